#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The commits of a stack as the files that the repository keeps: patches/, series/, kselftests/, kunit/.

render() gives every exported file as bytes; it does not look at what is there, so that the same commits give the same
files anywhere. The command writes them (or, with --check, names what differs). Called by refresh-series and the lint.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from cover_letter import Cover, CoverError, marker_topic, parse_message
from gitstore import GitError, borrow, git

TOP = Path(__file__).resolve().parent.parent
MOST = 15
SELFTESTS = "tools/testing/selftests/"
NEW_FILE = re.compile(rb"^diff --git a/(\S+) b/\S+\nnew file mode", re.MULTILINE)
FORMAT = ["--numbered", "--zero-commit", "--no-signature", "--full-index", "--no-renames", "--diff-algorithm=myers",
          "--unified=3", "--subject-prefix=PATCH"]


class ExportError(Exception):
    """The branch cannot be exported; the message names the commit and the rule."""


@dataclass(frozen=True)
class Commit:
    id: str
    parents: list[str]
    tree: str
    author: str
    email: str
    date: str
    message: str

    @property
    def subject(self) -> str:
        return self.message.partition("\n")[0]


@dataclass
class Topic:
    name: str
    cover: Cover
    marker: str
    commits: list[Commit] = field(default_factory=list)


@dataclass(frozen=True)
class File:
    data: bytes
    executable: bool = False


def build_dir() -> Path:
    """build/, or the directory that lib.sh chose for TREE=."""
    return Path(os.environ.get("ZFOLIO_BUILD") or TOP / "build")


def kernel_repo() -> Path:
    """The repository that has the kernel's objects."""
    return Path(os.environ["TREE"]) if os.environ.get("TREE") else build_dir() / "linux.git"


def base_commit(stack: str, repo: Path) -> str:
    """The id of the stack's base: what import-base noted, or in a tree of the user's the pinned tag."""
    names = [f"refs/zfolio/base/{stack}"]
    if os.environ.get("TREE"):
        names = re.findall(r"^# base-tag: *(\S+)", (TOP / "series" / stack).read_text(), re.MULTILINE)
    if not repo.is_dir() or not names:
        raise ExportError(f"no kernel source in {repo}: run 'make series STACK={stack}' first")
    try:
        return git(repo, "rev-parse", "--verify", "--quiet", f"{names[0]}^{{commit}}").decode().strip()
    except GitError as error:
        raise ExportError(f"{repo} has no {names[0]}: run 'make series STACK={stack}' first") from error


def read_commits(repo: Path, base: str, tip: str) -> list[Commit]:
    """The commits base..tip, oldest first."""
    out = git(repo, "log", "--reverse", "--topo-order", "--date=raw", "-z",
              "--format=%H%x01%P%x01%T%x01%an%x01%ae%x01%ad%x01%B", f"{base}..{tip}").decode()
    rows = [record.split("\x01", 6) for record in out.split("\0") if record.strip()]
    return [Commit(row[0].strip(), row[1].split(), *row[2:]) for row in rows]


def split_topics(repo: Path, base: str, commits: list[Commit]) -> list[Topic]:
    """The commits by topic; every rule that the export rests on is checked here."""
    topics: list[Topic] = []
    parent, tree = base, git(repo, "rev-parse", f"{base}^{{tree}}").decode().strip()
    for commit in commits:
        what = f"commit {commit.id[:12]} '{commit.subject}'"
        if commit.parents != [parent]:
            raise ExportError(f"{what} is a merge or does not stand on the base: a stack is a straight line of commits")
        if re.match(r"(fixup|squash|amend)! ", commit.subject):
            raise ExportError(f"{what}: squash it first (git rebase -i --autosquash {base[:12]})")
        if re.search(r"^\s*signed-off-by:", commit.message, re.MULTILINE | re.IGNORECASE):
            raise ExportError(f"{what} has a Signed-off-by: patches carry none, the sender adds theirs")
        name = marker_topic(commit.subject)
        if name is None and commit.subject.startswith("["):
            raise ExportError(f"{what}: git am would strip the [..] at the start of the subject")
        if (name is not None) != (commit.tree == tree):
            raise ExportError(f"{what} changes " + ("no file" if name is None else "files, a topic marker must not"))
        if name is not None:
            if topics and name <= topics[-1].name:
                raise ExportError(f"topic {name} comes after {topics[-1].name}: topics must be in the order of their names")
            cover = parse_message(commit.message, commit.author, commit.email, commit.date)[1]
            topics.append(Topic(name, cover, commit.id))
        elif not topics:
            raise ExportError(f"{what} comes before the first 'topic: NN-name' marker (an empty commit)")
        else:
            topics[-1].commits.append(commit)
        parent, tree = commit.id, commit.tree
    for topic in topics:
        if not 1 <= len(topic.commits) <= MOST:
            raise ExportError(f"topic {topic.name} has {len(topic.commits)} patches: 1 to {MOST} are allowed")
    return topics


def exported_path(path: str) -> str | None:
    """Where a file that the stack adds is exported to, if it is."""
    if path.startswith(SELFTESTS):
        return "kselftests/" + path[len(SELFTESTS):]
    if "kunit" in path.rpartition("/")[2]:
        return "kunit/" + path
    return None


def render(repo: Path, stack: str, base: str, tip: str) -> dict[str, File]:
    """Every exported file by its path below the top of the repository, series/<stack> excepted."""
    files: dict[str, File] = {}
    with tempfile.TemporaryDirectory(prefix="zfolio-export-") as scratch:
        store = borrow(repo, Path(scratch, "store"))
        for topic in split_topics(store, base, read_commits(store, base, tip)):
            out, last = Path(scratch, topic.name), topic.commits[-1].id
            git(store, "format-patch", "--quiet", *FORMAT, "-o", str(out), f"{topic.marker}..{last}")
            stat = git(store, "diff", "--stat=72", "--summary", "--no-renames", topic.marker, last).decode()
            shortlog = [(commit.author, commit.subject) for commit in topic.commits]
            files[f"patches/{stack}/{topic.name}/0000-cover-letter"] = File(topic.cover.mail(shortlog, stat).encode())
            for patch in sorted(out.iterdir()):
                files[f"patches/{stack}/{topic.name}/{patch.name}"] = File(patch.read_bytes())
        raw = git(store, "diff", "--raw", "-z", "--no-renames", "--diff-filter=A", "--no-abbrev", base, tip).decode()
        for meta, path in zip(*[iter(raw.split("\0"))] * 2):
            if target := exported_path(path):
                _, mode, _, blob, _ = meta.split()
                files[target] = File(git(store, "cat-file", "blob", blob), mode == "100755")
    return files


def series_text(stack: str, files: Iterable[str], old: str) -> str:
    """series/<stack>: the pin header of the old text, then the patches under their topics."""
    out, topic = [], ""
    for line in old.splitlines():
        if not line.startswith("#") or line.startswith("# topic:"):
            break
        out.append(line)
    for path in sorted(files):
        parts = path.split("/")
        if path.startswith(f"patches/{stack}/") and path.endswith(".patch"):
            if parts[2] != topic:
                topic = parts[2]
                out.append(f"# topic: {topic}")
            out.append("/".join(parts[1:]))
    return "\n".join(out) + "\n"


def others(stack: str) -> set[str]:
    """The exported paths that other stacks add: theirs stay."""
    patches = [p for d in (TOP / "patches").glob("*") if d.name != stack for p in d.glob("*/*.patch")]
    found = {m.decode() for patch in patches for m in NEW_FILE.findall(patch.read_bytes())}
    return {target for path in found if (target := exported_path(path))}


def present(stack: str) -> dict[str, File]:
    """What the repository holds now of what an export of the stack writes."""
    found: dict[str, File] = {}
    keep = others(stack)
    for place in (f"patches/{stack}", "kselftests", "kunit"):
        for path in sorted((TOP / place).rglob("*")):
            name = path.relative_to(TOP).as_posix()
            if path.is_file() and (place.startswith("patches/") or name not in keep and path.name != ".kunitconfig"):
                found[name] = File(path.read_bytes(), os.access(path, os.X_OK))
    return found


def differences(stack: str, files: dict[str, File]) -> list[str]:
    """One line for every file of the repository that is not what the export would write."""
    now = present(stack)
    for name in files.keys() - now.keys():
        if (TOP / name).is_file():
            now[name] = File((TOP / name).read_bytes(), os.access(TOP / name, os.X_OK))
    lines = [f"{name} is missing" for name in files.keys() - now.keys()]
    lines += [f"{name} comes from no commit" for name in now.keys() - files.keys()]
    lines += [f"{name} differs" for name in files.keys() & now.keys() if files[name] != now[name]]
    series = TOP / "series" / stack
    if series.read_text() != series_text(stack, files, series.read_text()):
        lines.append(f"series/{stack} differs")
    return sorted(lines)


def replace_tree(target: Path, files: dict[str, File]) -> None:
    """Makes target hold exactly files: written beside it, then renamed."""
    fresh, old = target.with_name(f".{target.name}.new"), target.with_name(f".{target.name}.old")
    for leftover in (fresh, old):
        shutil.rmtree(leftover, ignore_errors=True)
    for name, file in files.items():
        path = fresh / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)
    if target.exists():
        target.rename(old)
    if files:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def write(stack: str, files: dict[str, File]) -> None:
    """Writes the export. A file that git does not know may be somebody's only copy: it is not removed."""
    stale = present(stack)
    gone = [name for name in stale.keys() - files.keys() if not name.startswith("patches/")]
    if gone and (TOP / ".git").exists():
        known = git(TOP, "ls-files", "-z", "--", *gone).decode().split("\0")
        for name in sorted(set(gone) - set(known)):
            raise ExportError(f"{name} comes from no commit of the stack and git does not know it: add it to the stack or delete it")
    for place in (f"patches/{stack}", "kselftests", "kunit"):
        mine = {name[len(place) + 1:]: file for name, file in files.items() if name.startswith(place + "/")}
        kept = {path.relative_to(TOP / place).as_posix(): File(path.read_bytes(), os.access(path, os.X_OK))
                for path in (TOP / place).rglob("*")
                if path.is_file() and path.relative_to(TOP).as_posix() not in stale}
        if kept | mine or (TOP / place).exists():
            replace_tree(TOP / place, kept | mine)
    series = TOP / "series" / stack
    fresh = series.with_name(f".{stack}.new")
    fresh.write_text(series_text(stack, files, series.read_text()))
    fresh.replace(series)


def main() -> int:
    parser = argparse.ArgumentParser(description="export the commits of a stack")
    parser.add_argument("stack")
    parser.add_argument("--check", action="store_true", help="write nothing, name what differs")
    args = parser.parse_args()
    try:
        repo = kernel_repo()
        base, branch = base_commit(args.stack, repo), f"refs/heads/zfolio/{args.stack}"
        tip = git(repo, "rev-parse", "--verify", f"{branch}^{{commit}}").decode().strip()
        files = render(repo, args.stack, base, tip)
        drift = differences(args.stack, files)
        for line in drift:
            print(line)
        if drift and not args.check:
            write(args.stack, files)
    except (ExportError, CoverError, GitError, OSError) as error:
        print(f"refresh-series: error: {error}", file=sys.stderr)
        return 2
    patches = sum(name.endswith(".patch") for name in files)
    done = "differ from" if args.check else "written from" if drift else ""
    print(f"{args.stack}: {patches} patches, {len(files)} files"
          + (f", {len(drift)} {done} the commits" if drift else ", all as the commits say"))
    return 1 if drift and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
