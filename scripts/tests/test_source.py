# SPDX-License-Identifier: GPL-2.0-only
"""fetch-base, import-base, apply-series and check-config, with invented packages and a small kernel."""

import hashlib
import shutil
import tarfile
from pathlib import Path

from fixture import BASE, PIN, STACK, Lab

# Stands for apt: a file lists what the archive has, a directory holds the packages.
APT = """#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
set -eu
archive=$(dirname "$0")/../build/archive
case $2 in
update) [ ! -e "$archive/unreachable" ] ;;
apt-cache) cat "$archive/madison" ;;
apt-get) name=${!#}; cp "$archive/${name%%=*}_${name##*=}_all.deb" . ;;
esac
"""


class Source(Lab):
    def package(self, version: str, place: Path, text: str = "VERSION = 1\n", inside: str = "linux-source-1.0") -> str:
        """Makes a source package at place; returns the SHA-256 of the tarball in it."""
        root = self.build / f"package-{version}"
        self.put(root / "kernel" / "Makefile", f"# SPDX-License-Identifier: GPL-2.0\n{text}\nkernelversion:\n\t@echo 1.0.7\n")
        tarball = root / "deb/usr/src" / f"{inside}.tar.xz"
        tarball.parent.mkdir(parents=True)
        with tarfile.open(tarball, "w:xz") as archive:
            archive.add(root / "kernel", "linux-source-1.0")
        self.put(root / "deb/DEBIAN/control", f"Package: linux-source-1.0\nVersion: {version}\nArchitecture: all\n"
                 "Maintainer: A. Uthor <author@example.org>\nDescription: source\n")
        place.mkdir(parents=True, exist_ok=True)
        self.run_ok("dpkg-deb", "--root-owner-group", "--build", str(root / "deb"), str(place / f"linux-source-1.0_{version}_all.deb"))
        return hashlib.sha256(tarball.read_bytes()).hexdigest()

    def pin(self, sha: str) -> None:
        (self.top / "series" / STACK).write_text(PIN.replace("0" * 64, sha))

    def archive(self, *versions: str) -> Path:
        """What apt offers. Returns the directory of its packages."""
        place = self.build / "archive"
        self.put(self.top / "scripts/apt-private", APT)
        self.put(place / "madison", "".join(f"linux-source-1.0 | {v} | somewhere stable/main\n" for v in versions))
        return place


class Fetch(Source):
    def test_cached_and_right(self) -> None:
        sha = self.package("1.0.7-1", self.cache / "downloads")
        self.pin(sha)
        done = self.script("fetch-base", STACK)
        self.assertEqual(done.returncode, 0, done.stdout)
        path = Path(done.stdout.splitlines()[-1])
        self.assertEqual(hashlib.sha256(path.read_bytes()).hexdigest(), sha)

    def test_wrong_hash_is_an_error_and_the_file_goes(self) -> None:
        sha = self.package("1.0.7-1", self.cache / "downloads")
        self.pin("1" * 64)
        done = self.script("fetch-base", STACK)
        self.assertNotEqual(done.returncode, 0)
        last = done.stdout.splitlines()[-1]
        for words in ("fetch-base: error: ", sha, "1" * 64, "deleted"):
            self.assertIn(words, last)
        left = [path for place in (self.cache / "downloads", self.build / "fetch") for path in place.glob("*linux-source*")]
        self.assertEqual(left, [])

    def test_package_without_source_is_deleted(self) -> None:
        self.pin(self.package("1.0.7-1", self.cache / "downloads", inside="something"))
        done = self.script("fetch-base", STACK)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("holds no source tarball", done.stdout)
        self.assertEqual(list((self.cache / "downloads").glob("*.deb")), [])

    def test_pinned_version_is_downloaded_and_checked(self) -> None:
        place = self.archive("1.0.9-1", "1.0.7-1")
        self.pin(self.package("1.0.7-1", place))
        done = self.script("fetch-base", STACK)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertNotIn("WARNING", done.stdout)
        shutil.rmtree(place)
        self.assertEqual(self.script("fetch-base", STACK).returncode, 0, "the second time it comes from the cache")

    def test_downloaded_with_a_wrong_hash(self) -> None:
        self.package("1.0.7-1", self.archive("1.0.7-1"))
        self.pin("2" * 64)
        done = self.script("fetch-base", STACK)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("deleted", done.stdout.splitlines()[-1])
        self.assertEqual(list((self.cache / "downloads").glob("*.deb")), [])

    def test_pinned_version_gone_takes_the_newest_and_says_so(self) -> None:
        place = self.archive("1.0.9-1", "1.0.10-1")
        self.package("1.0.10-1", place)
        self.pin("3" * 64)
        done = self.script("fetch-base", STACK)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("WARNING", done.stdout)
        self.assertRegex(done.stdout, r"WARNING.* 1\.0\.7 is gone.* 1\.0\.10-1 ")
        self.assertIn("1.0.10-1", done.stdout.splitlines()[-1])

    def test_lists_that_cannot_be_read_are_not_gone(self) -> None:
        place = self.archive("1.0.9-1")
        self.package("1.0.9-1", place)
        self.put(place / "unreachable", "")
        self.pin("4" * 64)
        done = self.script("fetch-base", STACK)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("cannot be read", done.stdout.splitlines()[-1])

    def test_no_version_at_all(self) -> None:
        self.archive()
        done = self.script("fetch-base", STACK)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no version of linux-source-1.0", done.stdout.splitlines()[-1])


class Import(Source):
    def test_same_commit_in_every_clone(self) -> None:
        self.pin(self.package("1.0.7-1", self.cache / "downloads"))
        first = self.script("import-base", STACK)
        self.assertEqual(first.returncode, 0, first.stdout)
        commit = first.stdout.splitlines()[-1]
        self.assertTrue((self.linux / "Makefile").is_file())
        self.assertEqual(self.script("import-base", STACK).stdout.splitlines()[-1], commit)
        for name in ("linux.git", STACK):
            shutil.rmtree(self.build / name)
        self.assertEqual(self.script("import-base", STACK).stdout.splitlines()[-1], commit)

    def test_users_tree_without_the_tag(self) -> None:
        tree = self.build / "users"
        self.run_ok("git", "init", "-q", str(tree))
        done = self.script("import-base", STACK, TREE=str(tree))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("no tag v1.0.7", done.stdout.splitlines()[-1])

    def test_users_tree(self) -> None:
        self.make_stack(exported=True)
        tree = self.build / "users"
        self.run_ok("git", "clone", "-q", str(self.build / "linux.git"), str(tree))
        base = self.run_ok("git", "rev-parse", f"refs/zfolio/base/{STACK}", cwd=self.build / "linux.git").strip()
        self.run_ok("git", "fetch", "-q", "origin", base, cwd=tree)
        self.run_ok("git", "tag", "v1.0.7", base, cwd=tree)
        self.run_ok("git", "checkout", "-q", "--detach", "v1.0.7", cwd=tree)
        before = self.run_ok("git", "rev-parse", "HEAD", cwd=tree)
        for script in ("apply-series", "refresh-series", "lint"):
            done = self.script(script, STACK, *(["export-drift"] if script == "lint" else []), TREE=str(tree))
            self.assertEqual(done.returncode, 0, f"{script}: {done.stdout}")
        self.assertEqual(self.run_ok("git", "rev-parse", "HEAD", cwd=tree), before, "the user's own checkout stays")
        self.assertEqual(self.run_ok("git", "status", "--porcelain", cwd=tree), "")


class Apply(Lab):
    def setUp(self) -> None:
        super().setUp()
        self.make_stack(exported=True)
        self.made = self.run_ok("git", "rev-parse", "HEAD^{tree}", cwd=self.linux)
        self.patch = self.top / f"patches/{STACK}/01-answer/0001-mm-zswap-give-the-answer.patch"

    def reset(self) -> None:
        self.run_ok("git", "reset", "-q", "--hard", f"refs/zfolio/base/{STACK}", cwd=self.linux)

    def test_gives_the_branch_back(self) -> None:
        self.reset()
        done = self.script("apply-series", STACK)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.splitlines()[-1], self.run_ok("git", "rev-parse", f"zfolio/{STACK}", cwd=self.linux).strip())
        self.assertEqual(self.run_ok("git", "rev-parse", "HEAD^{tree}", cwd=self.linux), self.made)

    def test_refresh_after_it_changes_nothing(self) -> None:
        self.reset()
        before = self.files("patches", "series", "kselftests", "kunit")
        self.assertEqual(self.script("apply-series", STACK).returncode, 0)
        self.refresh()
        self.assertEqual(self.files("patches", "series", "kselftests", "kunit"), before)

    def test_a_patch_that_does_not_apply_is_named_with_its_file(self) -> None:
        self.reset()
        self.patch.write_text(self.patch.read_text().replace("-\treturn 0;", "-\treturn 7;"))
        done = self.script("apply-series", STACK)
        self.assertNotEqual(done.returncode, 0)
        last = done.stdout.splitlines()[-1]
        self.assertTrue(last.startswith("apply-series: error: "), last)
        self.assertIn(f"patches/{STACK}/01-answer/0001-mm-zswap-give-the-answer.patch does not apply: mm/zswap.c", last)
        base = self.run_ok("git", "rev-parse", f"refs/zfolio/base/{STACK}", cwd=self.linux)
        self.assertEqual(self.run_ok("git", "rev-parse", "HEAD", cwd=self.linux), base, "nothing half applied")
        self.assertEqual(self.run_ok("git", "status", "--porcelain", cwd=self.linux), "")
        self.assertFalse((self.build / f"linux.git/worktrees/linux/rebase-apply").exists())

    def test_a_newer_base_is_merged_three_way(self) -> None:
        self.reset()
        self.put(self.linux / "mm/zswap.c", BASE["mm/zswap.c"].replace("int answer(void)\n{", "int answer(void)\n\n{"))
        self.run_ok("git", "commit", "-q", "-a", "-m", "Linux 1.0.8", cwd=self.linux)
        self.run_ok("git", "update-ref", f"refs/zfolio/base/{STACK}", "HEAD", cwd=self.linux)
        done = self.script("apply-series", STACK)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("\n\n{\n\treturn 42;", (self.linux / "mm/zswap.c").read_text())

    def test_a_patch_that_is_missing(self) -> None:
        self.reset()
        self.patch.unlink()
        done = self.script("apply-series", STACK)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(self.patch.name, done.stdout.splitlines()[-1])

    def test_own_commits_and_edits_are_never_thrown_away(self) -> None:
        self.commit("mm: zswap: my own", {"mm/zswap.c": BASE["mm/zswap.c"].replace("return 0", "return 5")})
        head = self.run_ok("git", "rev-parse", "HEAD", cwd=self.linux)
        done = self.script("apply-series", STACK)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("make refresh", done.stdout.splitlines()[-1])
        self.assertEqual(self.run_ok("git", "rev-parse", "HEAD", cwd=self.linux), head)
        self.reset()
        self.put(self.linux / "mm/zswap.c", "int mine;\n")
        done = self.script("apply-series", STACK)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual((self.linux / "mm/zswap.c").read_text(), "int mine;\n")


class Config(Lab):
    def setUp(self) -> None:
        super().setUp()
        self.put(self.top / "src/mm/Kconfig", "config ZSWAP\n\tbool\n\nmenuconfig SWAP\n\tbool\n")
        self.put(self.top / "src/Kconfig", "config NR\n\tint\n")
        self.src = str(self.top / "src")

    def verify(self, config: str, *fragments: str) -> tuple[int, str]:
        self.put(self.top / "config", config)
        for number, text in enumerate(fragments):
            self.put(self.top / f"{number}.config", text)
        done = self.script("check-config", "verify", str(self.top / "config"), self.src,
                           *(str(self.top / f"{number}.config") for number in range(len(fragments))))
        return done.returncode, done.stdout

    def test_everything_taken(self) -> None:
        status, said = self.verify('CONFIG_ZSWAP=y\nCONFIG_NR=3\n# CONFIG_SWAP is not set\n',
                                   "CONFIG_ZSWAP=y\nCONFIG_NR=2\n", "CONFIG_NR=3\n# CONFIG_SWAP is not set\n")
        self.assertEqual((status, said), (0, ""))

    def test_dropped_option_is_an_error(self) -> None:
        status, said = self.verify("CONFIG_SWAP=y\n", "CONFIG_SWAP=y\nCONFIG_ZSWAP=y\n")
        self.assertNotEqual(status, 0)
        self.assertIn("CONFIG_ZSWAP: wanted y, got n", said)
        self.assertNotIn("CONFIG_SWAP:", said)
        self.assertIn("error: Kconfig dropped", said.splitlines()[-1])

    def test_other_value_and_unwanted_option(self) -> None:
        status, said = self.verify("CONFIG_NR=4\nCONFIG_SWAP=y\n", "CONFIG_NR=3\n# CONFIG_SWAP is not set\n")
        self.assertNotEqual(status, 0)
        self.assertIn("CONFIG_NR: wanted 3, got 4", said)
        self.assertIn("CONFIG_SWAP: wanted n, got y", said)

    def test_option_wanted_only_where_it_exists(self) -> None:
        self.assertEqual(self.verify("CONFIG_SWAP=y\n", "?CONFIG_NOT_YET=y\nCONFIG_SWAP=y\n")[0], 0)
        status, said = self.verify("", "?CONFIG_ZSWAP=y\n")
        self.assertNotEqual(status, 0)
        self.assertIn("CONFIG_ZSWAP: wanted y, got n", said)

    def test_line_that_is_no_option(self) -> None:
        status, said = self.verify("", "CONFIG ZSWAP=y\n")
        self.assertNotEqual(status, 0)
        self.assertIn("line 1 is no option", said)

    def test_merge_takes_the_last_value(self) -> None:
        self.put(self.top / "a", "CONFIG_NR=2\nCONFIG_ZSWAP=y\n")
        self.put(self.top / "b", "CONFIG_NR=3\n# CONFIG_ZSWAP is not set\n?CONFIG_NOT_YET=y\n")
        done = self.script("check-config", "merge", self.src, "a", "b")
        self.assertEqual(sorted(done.stdout.splitlines()), ["# CONFIG_ZSWAP is not set", "CONFIG_NR=3"])
