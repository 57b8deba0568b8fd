# SPDX-License-Identifier: GPL-2.0-only
"""What the checks of lint.d/ share: the stack's patches, trees of its base, and how a check reports."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn

from cover_letter import CoverError
from export import TOP, ExportError, base_commit, build_dir, kernel_repo
from gitstore import GitError, borrow, environment, git

TOUCHED = re.compile(rb"^diff --git a/(\S+) b/(\S+)$", re.MULTILINE)


class Finding(Exception):
    """The check found something. Its first argument is the one-line detail."""


class Unable(Exception):
    """The check could not run."""


class Skip(Exception):
    """The check does not apply here."""


def run(check: Callable[[str, Path], str]) -> NoReturn:
    """Runs a check with a scratch directory, reports as scripts/lint wants it: detail last, exit status."""
    place = build_dir() / sys.argv[1] / "lint"
    place.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(prefix="scratch-", dir=place) as scratch:
            detail, status = check(sys.argv[1], Path(scratch)), 0
    except Skip as reason:
        detail, status = str(reason), 4
    except (Unable, ExportError) as reason:
        detail, status = str(reason), 2
    except (Finding, CoverError, GitError) as reason:
        detail, status = str(reason), 1
    lines = detail.splitlines() or ["no detail"]
    print("\n".join([*lines[1:], lines[0]]))
    sys.exit(status)


def report(findings: Iterable[str], fine: str) -> str:
    """The detail where nothing was found; else raises the findings, one a line in the log."""
    lines = list(findings)
    if not lines:
        return fine
    raise Finding(f"{len(lines)} findings, first: {lines[0]}\n" + "\n".join(lines))


def need(tool: str, package: str) -> str:
    """The path of a program that the check cannot do without."""
    path = shutil.which(tool)
    if not path:
        raise Unable(f"{tool} is not installed (package {package}; scripts/install-deps does it)")
    return path


def command(args: list[str], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Runs a program, output and errors together, without the user's git configuration."""
    return subprocess.run(args, cwd=cwd, env=environment() | env, text=True, errors="replace", check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def patches(stack: str) -> list[Path]:
    """The patches in the order in which the shell's patches/<stack>/*/*.patch gives them."""
    found = sorted((TOP / "patches" / stack).glob("*/*.patch"))
    if not found:
        raise Skip(f"patches/{stack} holds no patch yet")
    return found


def touched(files: Iterable[Path]) -> list[str]:
    """Every path that the patches name."""
    return sorted({path.decode() for file in files for pair in TOUCHED.findall(file.read_bytes()) for path in pair})


def store(stack: str, scratch: Path) -> tuple[Path, str]:
    """A private repository with the kernel's objects, and the id of the stack's base."""
    repo = kernel_repo()
    base = base_commit(stack, repo)
    return borrow(repo, scratch / "store"), base


def patched_tree(stack: str, base: str) -> str:
    """The id of the tree that the series makes of base; no file is checked out."""
    done = command([str(TOP / "scripts/series-tree"), stack, base], TOP)
    if done.returncode:
        raise Finding(f"{done.stdout.strip().splitlines()[-1]}\n{done.stdout}")
    return done.stdout.split()[-1]


def branch_tip(stack: str, base: str) -> str | None:
    """The stack's branch, where there is one that has commits: a fresh import leaves it at the base."""
    try:
        tip = git(kernel_repo(), "rev-parse", "--verify", "--quiet", f"refs/heads/zfolio/{stack}^{{commit}}").decode().strip()
    except GitError:
        return None
    return None if tip == base else tip


def repo_files() -> list[Path]:
    """The files of this repository: tracked, or new and not ignored."""
    names = git(TOP, "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
    return [TOP / name for name in sorted(set(names)) if name and (TOP / name).is_file()]


def interpreter(path: Path) -> str:
    """The name of the program in the file's #! line."""
    with path.open("rb") as file:
        words = file.readline(200).decode(errors="replace").split()
    if not words or not words[0].startswith("#!"):
        return ""
    return os.path.basename(words[1] if words[0].endswith("/env") and len(words) > 1 else words[0].removeprefix("#!"))
