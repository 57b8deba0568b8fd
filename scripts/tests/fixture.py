# SPDX-License-Identifier: GPL-2.0-only
"""A small zfolio with a small kernel, made in a temporary directory: real scripts, invented source."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SCRIPTS))

STACK = "v1.0"
# The scripts that are tested here, and what they call. The others would only make the lint's own checks slower.
USED = ("*.py", "lib.sh", "lint", "lint.d", "cover-letter", "refresh-series", "series-tree", "apply-series", "import-base",
        "fetch-base", "apt-private", "check-config", "mail", "mail-branch.sh")
PIN = (f"# SPDX-License-Identifier: GPL-2.0-only\n# base-version: 1.0.7\n# base-tag: v1.0.7\n"
       f"# base-package: linux-source-1.0 1.0.7-1 - {'0' * 64}\n")
SNIPPET = ("# SPDX-License-Identifier: GPL-2.0-only\nZSWAP\nF:\tmm/tests/\n"
           "F:\ttools/testing/selftests/mm/answer.sh\n")
COVER = "mm: answer questions\n\nThe kernel has no answer. Give it one.\n\n---\nv2: a better answer\n"
# Stands for checkpatch.pl and kernel-doc: the same command line and output, with one simple rule each.
CHECKPATCH = r"""#!/usr/bin/env perl
my $found = 0;
open(my $f, '<', $ARGV[-1]) or die; my @lines = <$f>;
print "WARNING:TRAILING_SPACE: trailing whitespace\n" and $found = 1 if grep { /^\+.*[ \t]$/ } @lines;
print "ERROR:MISSING_SIGN_OFF: Missing Signed-off-by: line(s)\n"; exit 1;
"""
KERNEL_DOC = r"""#!/usr/bin/env perl
for my $name (@ARGV) { next if $name =~ /^-/; open(my $f, '<', $name) or die; my $n = 0;
while (<$f>) { $n++; print STDERR "$name:$n: warning: bad kernel-doc\n" if /BAD-DOC/; } }
"""
# Names the people (--nol) or lists (--nom) of every entry with an F: line that one of the patches touches.
GET_MAINTAINER = r"""#!/usr/bin/env perl
my ($path, $want, @patches) = ('MAINTAINERS');
while (my $arg = shift) {
    if ($arg eq '--mpath') { $path = shift } elsif ($arg eq '--nol') { $want = 'M' } elsif ($arg eq '--nom') { $want = 'L' }
    elsif ($arg !~ /^--/) { push @patches, $arg }
}
my $diffs = ''; for (@patches) { open(my $f, '<', $_) or die; local $/; $diffs .= <$f>; }
open(my $f, '<', $path) or die; local $/ = '';
for my $entry (<$f>) { my @files = $entry =~ /^F:\t(.*)$/mg;
    print "$_\n" for (grep { index($diffs, " b/$_") >= 0 } @files) ? $entry =~ /^$want:\t(.*)$/mg : (); }
"""
BASE = {
    "Makefile": "# SPDX-License-Identifier: GPL-2.0\nVERSION = 1\n",
    "mm/zswap.c": "// SPDX-License-Identifier: GPL-2.0\n/* BAD-DOC of the base's own */\n"
                  "int answer(void)\n{\n\treturn 0;\n}\n" + "/* pad */\n" * 20 + "int last(void)\n{\n\treturn 1;\n}\n",
    "include/linux/zswap.h": "/* SPDX-License-Identifier: GPL-2.0 */\nint answer(void);\n",
    "tools/testing/selftests/mm/Makefile": "# SPDX-License-Identifier: GPL-2.0\nTEST_PROGS :=\n",
    "scripts/checkpatch.pl": CHECKPATCH,
    "scripts/kernel-doc": KERNEL_DOC,
    "scripts/get_maintainer.pl": GET_MAINTAINER,
    "MAINTAINERS": "LISTS\n\nZSWAP\nM:\tZ. Keeper <keeper@example.org>\nL:\tzswap@example.org\nF:\tmm/zswap.c\n\n"
                   "HEADERS\nM:\tHeader Keeper <header@example.org>\nF:\tinclude/linux/\n",
    "Documentation/process/submitting-patches.rst": "Sign off.\n",
}

_made: tempfile.TemporaryDirectory[str] | None = None


def environment() -> dict[str, str]:
    """As on a machine where nobody configured git, and without what a caller of the tests set."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "ZFOLIO_")) and k not in ("TREE", "CI")}
    who = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER")
           for key, value in (("NAME", "A. Uthor"), ("EMAIL", "author@example.org"))}
    return env | who | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C"}


class Lab(unittest.TestCase):
    """Makes the small zfolio anew for each test."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory(prefix="zfolio-test-")
        self.addCleanup(scratch.cleanup)
        self.top = Path(scratch.name).resolve() / "zfolio"
        self.build = self.top / "build"
        self.linux = self.build / STACK / "linux"
        self.cache = self.top / "build" / "cache"
        for path in (path for pattern in USED for path in SCRIPTS.glob(pattern)):
            (self.top / "scripts").mkdir(parents=True, exist_ok=True)
            (shutil.copytree if path.is_dir() else shutil.copy2)(path, self.top / "scripts" / path.name)
        ignored = "# SPDX-License-Identifier: GPL-2.0-only\nbuild/\n__pycache__/\n"
        for name, text in {f"series/{STACK}": PIN, "MAINTAINERS.snippet": SNIPPET, ".gitignore": ignored}.items():
            self.put(self.top / name, text)
        self.run_ok("git", "init", "-q", "-b", "main", ".", cwd=self.top)

    def make_kernel(self) -> None:
        """build/linux.git with the base, and the work tree on branch zfolio/<stack>."""
        bare, seed = self.build / "linux.git", self.build / "seed"
        self.run_ok("git", "init", "-q", "--bare", str(bare), cwd=self.top)
        self.run_ok("git", "init", "-q", "-b", "main", str(seed), cwd=self.top)
        for name, text in BASE.items():
            self.put(seed / name, text)
            (seed / name).chmod(0o755 if text.startswith("#!") else 0o644)
        self.run_ok("git", "add", "-A", cwd=seed)
        self.run_ok("git", "commit", "-q", "-m", "Linux 1.0.7", cwd=seed)
        self.run_ok("git", "push", "-q", str(bare), f"HEAD:refs/zfolio/base/{STACK}", cwd=seed)
        self.run_ok("git", "worktree", "add", "-q", "-b", f"zfolio/{STACK}", str(self.linux),
                    f"refs/zfolio/base/{STACK}", cwd=bare)
        shutil.rmtree(seed)

    def make_stack(self, exported: bool = False) -> None:
        """Two topics of two and one patches, which add a selftest and a KUnit suite; exported: refreshed as well.

        Made once, then copied: it is most of the time of a test.
        """
        global _made
        if _made is None:
            maker = Lab()
            maker.setUp()
            maker._make_stack()
            maker.refresh()
            _made = tempfile.TemporaryDirectory(prefix="zfolio-made-")
            shutil.copytree(maker.top, Path(_made.name, "top"), symlinks=True)
            Path(_made.name, "was").write_text(str(maker.top))
            maker.doCleanups()
        for name in ("build", "patches", "series", "kselftests", "kunit") if exported else ("build",):
            shutil.copytree(Path(_made.name, "top", name), self.top / name, symlinks=True, dirs_exist_ok=True)
        # A work tree and its repository know each other by absolute paths.
        for path in (self.linux / ".git", self.build / "linux.git/worktrees/linux/gitdir"):
            path.write_text(path.read_text().replace(Path(_made.name, "was").read_text(), str(self.top)))

    def _make_stack(self) -> None:
        self.make_kernel()
        self.marker("01-answer")
        self.commit("mm: zswap: give the answer", {"mm/zswap.c": BASE["mm/zswap.c"].replace("return 0", "return 42")})
        self.commit("mm: zswap: test the answer", {
            "mm/tests/zswap_kunit.c": "// SPDX-License-Identifier: GPL-2.0\nint test;\n",
            "tools/testing/selftests/mm/answer.sh": "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0\necho 1..0\n"})
        self.marker("02-header")
        self.commit("mm: zswap: declare the last word",
                    {"include/linux/zswap.h": BASE["include/linux/zswap.h"] + "int last(void);\n"})

    def commit(self, message: str, files: dict[str, str], body: str = "Nobody knew it so far.", author: str = "") -> None:
        """One commit on the branch."""
        for name, text in files.items():
            self.put(self.linux / name, text)
            (self.linux / name).chmod(0o755 if text.startswith("#!") else 0o644)
        self.run_ok("git", "add", "-A", cwd=self.linux)
        self.run_ok("git", "commit", "-q", "--allow-empty", "--cleanup=verbatim", "-m", f"{message}\n\n{body}\n",
                    *([f"--author={author}"] if author else []), cwd=self.linux)

    def marker(self, topic: str, cover: str = COVER) -> None:
        self.commit(f"topic: {topic}", {}, body=cover.rstrip("\n"))

    def put(self, path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_cmd(self, *args: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs a program; its standard error is joined to its output."""
        return subprocess.run(args, cwd=cwd or self.top, env=environment() | {"ZFOLIO_CACHE": str(self.cache)} | env,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                              check=False, timeout=600)

    def run_ok(self, *args: str, cwd: Path | None = None, **env: str) -> str:
        done = self.run_cmd(*args, cwd=cwd, **env)
        self.assertEqual(done.returncode, 0, f"{args}: {done.stdout}")
        return done.stdout

    def script(self, name: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Runs one of the small zfolio's own scripts."""
        return self.run_cmd(str(self.top / "scripts" / name), *args, **env)

    def refresh(self) -> None:
        done = self.script("refresh-series", STACK)
        self.assertEqual(done.returncode, 0, done.stdout)

    def files(self, *places: str) -> dict[str, tuple[bytes, bool]]:
        """Content and executable bit of every file below the places."""
        return {path.relative_to(self.top).as_posix(): (path.read_bytes(), os.access(path, os.X_OK))
                for place in places for path in sorted((self.top / place).rglob("*")) if path.is_file()}
