# SPDX-License-Identifier: GPL-2.0-only
"""Git as the export and the lint need it: the kernel's objects read through private repositories.

A private repository borrows the objects of another (objects/info/alternates) and has neither configuration nor
attributes of the user's, so that the same commits give the same bytes on every machine and with every git version.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

# git's own driver "cpp", spelled out: what stands behind @@ then does not depend on git's version either.
CPP_HEADS = ("!^[ \t]*[A-Za-z_][A-Za-z_0-9]*:[[:space:]]*($|/[/*])\n"
             "^((::[[:space:]]*)?[A-Za-z_].*)$")


class GitError(Exception):
    """A git command failed; the message holds the command and what git said."""


def environment() -> dict[str, str]:
    """The environment without what would point git elsewhere or configure it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
           for key, value in (("NAME", "zfolio"), ("EMAIL", "zfolio@localhost"))}
    return env | who | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_ATTR_NOSYSTEM": "1",
                        "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "TZ": "UTC"}


def git(where: Path, *args: str, stdin: bytes | None = None) -> bytes:
    """The output of git run in the directory where."""
    done = subprocess.run(["git", "-C", str(where), *args], input=stdin, capture_output=True, env=environment(),
                          check=False)
    if done.returncode:
        said = (done.stderr + done.stdout).decode(errors="replace").strip()
        raise GitError(f"git {' '.join(args[:4])} failed in {where}: {said}")
    return done.stdout


def borrow(repo: Path, target: Path, bare: bool = True) -> Path:
    """A new private repository at target with the objects of repo."""
    git(repo, "init", "--quiet", "--template=", *(["--bare"] if bare else []), str(target))
    inside = target if bare else target / ".git"
    (inside / "info").mkdir(exist_ok=True)
    (inside / "objects" / "info").mkdir(exist_ok=True)
    source = [Path(repo, line) for line in
              git(repo, "rev-parse", "--git-path", "objects", "--git-path", "shallow").decode().splitlines()]
    (inside / "objects" / "info" / "alternates").write_text(f"{source[0].resolve()}\n")
    if source[1].is_file():
        (inside / "shallow").write_bytes(source[1].read_bytes())
    (inside / "info" / "attributes").write_text("*.c diff=cpp\n*.h diff=cpp\n")
    git(target, "config", "diff.cpp.xfuncname", CPP_HEADS)
    git(target, "config", "gc.auto", "0")
    return target


def sparse_tree(repo: Path, target: Path, commit: str, paths: Iterable[str]) -> Path:
    """A work tree of commit that holds only paths: quick even for a tree of 85,000 files."""
    borrow(repo, target, bare=False)
    git(target, "config", "core.sparseCheckout", "true")
    (target / ".git" / "info" / "sparse-checkout").write_text("".join(f"/{path}\n" for path in paths))
    git(target, "update-ref", "--no-deref", "HEAD", commit)
    git(target, "read-tree", "-m", "-u", "HEAD")
    return target
