# SPDX-License-Identifier: GPL-2.0-only
"""The verdict on a run of the selftests against the list of expected results."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from fixture import SCRIPTS

import kselftest_verdict as kv

STREAM = """zfolio-begin kselftest
KTAP version 1
1..3
# ok 1 usage
# not ok 2 bypass
not ok 1 cgroup:old # exit status 1
# TAP version 13
# 1..2
# # a remark
# ok 1 store hugepages-64kB
# ok 2 # SKIP counter hugepages-64kB
ok 2 cgroup:new
# Run test: collapse
ok 3 mm:plain+order4
zfolio-end 0
"""
LIST = """# SPDX-License-Identifier: GPL-2.0-only
# new: cgroup:new
ok   ok    cgroup:old: usage
fail fail  cgroup:old: bypass  # the guest is too small
fail ok    cgroup:new: store hugepages-64kB
skip skip  cgroup:new: counter hugepages-64kB
ok   ok    mm:plain+order4
"""


class KselftestVerdict(unittest.TestCase):
    def run_verdict(self, stream: str, expected: str | None, *args: str, console: str = "boot\n",
                    status: str = "exit 0") -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as scratch:
            self.dir = Path(scratch)
            for name, text in (("console", console), ("results", stream), ("status", status)):
                (self.dir / name).write_text(text)
            if expected is not None:
                (self.dir / "list").write_text(expected)
            argv = ["kselftest_verdict.py", "--console", f"{scratch}/console", "--results", f"{scratch}/results",
                    "--qemu-status", f"{scratch}/status", "--expected", f"{scratch}/list", *args]
            out = io.StringIO()
            with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), \
                    contextlib.redirect_stderr(io.StringIO()):
                code = kv.main()
            self.written = (self.dir / "list").read_text() if (self.dir / "list").is_file() else ""
            return code, out.getvalue()

    def test_as_expected(self) -> None:
        code, out = self.run_verdict(STREAM, LIST, "--kernel", "patched")
        self.assertEqual(code, 0, out)
        self.assertEqual(out.splitlines()[-1], "3 passed, 0 failed, 2 skipped")

    def test_new_test_that_passes_on_the_base_is_a_difference(self) -> None:
        code, out = self.run_verdict(STREAM, LIST, "--kernel", "base")
        self.assertEqual(code, 1)
        self.assertIn("cgroup:new: store hugepages-64kB: ok, expected fail", out)

    def test_difference_names_the_test(self) -> None:
        code, out = self.run_verdict(STREAM.replace("# ok 1 usage", "# not ok 1 usage"), LIST, "--kernel", "patched")
        self.assertEqual(code, 1)
        self.assertIn("cgroup:old: usage: fail, expected ok", out)

    def test_a_pass_that_was_expected_to_fail_is_a_difference(self) -> None:
        stream = STREAM.replace("# not ok 2 bypass", "# ok 2 bypass").replace("not ok 1 cgroup:old # exit status 1",
                                                                             "ok 1 cgroup:old")
        code, out = self.run_verdict(stream, LIST, "--kernel", "patched")
        self.assertEqual(code, 1)
        self.assertIn("cgroup:old: bypass: ok, expected fail", out)

    def test_program_that_fails_though_its_tests_pass(self) -> None:
        code, out = self.run_verdict(STREAM.replace("ok 2 cgroup:new", "not ok 2 cgroup:new # exit status 1"), LIST,
                                     "--kernel", "patched")
        self.assertEqual(code, 1)
        self.assertIn("cgroup:new: fail, not in the list", out)

    def test_missing_and_unknown(self) -> None:
        stream = STREAM.replace("# ok 1 usage\n# not ok 2 bypass", "# not ok 1 bypass\n# ok 2 other")
        code, out = self.run_verdict(stream, LIST, "--kernel", "patched")
        self.assertEqual(code, 1)
        self.assertIn("cgroup:old: usage: did not run, expected ok", out)
        self.assertIn("cgroup:old: other: ok, not in the list", out)

    def test_some(self) -> None:
        stream = "zfolio-begin kselftest\nKTAP version 1\n1..1\nok 1 mm:plain+order4\nzfolio-end 0\n"
        self.assertEqual(self.run_verdict(stream, LIST, "--kernel", "patched", "--some")[0], 0)
        self.assertEqual(self.run_verdict(stream, LIST, "--kernel", "patched")[0], 1)

    def test_any_is_no_difference(self) -> None:
        expected = LIST.replace("ok   ok    cgroup:old: usage", "any  any   cgroup:old: usage  # races")
        for stream in (STREAM, STREAM.replace("# ok 1 usage", "# not ok 1 usage")):
            self.assertEqual(self.run_verdict(stream, expected, "--kernel", "patched")[0], 0)

    def test_any_may_be_missing(self) -> None:
        expected = LIST + "any  any   cgroup:old: third  # the time limit may come first\n"
        self.assertEqual(self.run_verdict(STREAM, expected, "--kernel", "patched")[0], 0)

    def test_name_that_changes(self) -> None:
        stream = STREAM.replace("# ok 1 usage", "# ok 1 usage of 453 pages (0.9%)")
        expected = LIST.replace("cgroup:old: usage", "cgroup:old: usage of * pages (*%)")
        self.assertEqual(self.run_verdict(stream, expected, "--kernel", "patched")[0], 0)
        code, out = self.run_verdict(stream.replace("# ok 1", "# not ok 1"), expected, "--kernel", "patched")
        self.assertEqual(code, 1)
        self.assertIn("usage of * pages (*%): fail, expected ok", out)

    def test_bench_kernel_must_skip_what_it_lacks(self) -> None:
        expected = LIST.replace("cgroup:old: usage", "cgroup:old: usage  # test kernel: fail-nth")
        skipped = STREAM.replace("# ok 1 usage", "# ok 1 # SKIP usage")
        for stream, config, code in ((STREAM, "test", 0), (skipped, "test", 1), (skipped, "bench", 0), (STREAM, "bench", 1)):
            with self.subTest(config=config, code=code):
                self.assertEqual(self.run_verdict(stream, expected, "--kernel", "patched", "--config", config)[0], code)

    def test_dead_guest_is_judged_as_everywhere(self) -> None:
        cases = (
            (STREAM, "Kernel panic - not syncing: x\n", "exit 0", 10),
            (STREAM.replace("zfolio-end 0\n", ""), "boot\n", "timeout", 12),
            (STREAM.replace("ok 3 mm:plain+order4\n", ""), "boot\n", "exit 0", 13),
            ("", "boot\n", "exit 0", 14),
            ("", "boot\n", "timeout", 11),
        )
        for stream, console, status, want in cases:
            with self.subTest(want=want):
                code, out = self.run_verdict(stream, LIST, "--kernel", "patched", console=console, status=status)
                self.assertEqual(code, want, out)

    def test_no_list(self) -> None:
        code, out = self.run_verdict(STREAM, None, "--kernel", "patched")
        self.assertEqual(code, 2)
        self.assertIn("RECORD=1", out)

    def test_bad_list(self) -> None:
        for line in ("ok cgroup:old: usage", "good ok x", "fail ok cgroup:old: more", "ok ok mm:plain+order4"):
            with self.subTest(line=line):
                code, out = self.run_verdict(STREAM, LIST + line + "\n", "--kernel", "patched")
                self.assertEqual(code, 2)
                self.assertIn("line 8", out)

    def test_record_gives_what_it_was_made_from(self) -> None:
        head = "# new: cgroup:new\n"
        base = STREAM.replace("# ok 1 store", "# not ok 1 store").replace("ok 2 cgroup:new", "not ok 2 cgroup:new # x")
        self.run_verdict(base, head, "--kernel", "base", "--record")
        self.run_verdict(STREAM, self.written, "--kernel", "patched", "--record")
        self.assertIn("fail fail  cgroup:old: bypass", self.written)
        self.assertIn("fail ok    cgroup:new: store hugepages-64kB", self.written)
        for stream, kernel in ((base, "base"), (STREAM, "patched")):
            self.assertEqual(self.run_verdict(stream, self.written, "--kernel", kernel)[0], 0)

    def test_patched_cannot_rewrite_a_test_of_the_base(self) -> None:
        self.run_verdict(STREAM.replace("# ok 1 usage", "# not ok 1 usage"), LIST, "--kernel", "patched", "--record")
        self.assertIn("ok   ok    cgroup:old: usage", self.written)


class KselftestFiles(unittest.TestCase):
    NAMES = re.findall(r"^([a-z][^ ]*) +[0-9]+(?: .*)?$", (SCRIPTS / "kselftest.list").read_text(), re.MULTILINE)

    def test_lists_agree(self) -> None:
        for path in (SCRIPTS / "expected").glob("*/kselftest"):
            with self.subTest(list=path.parent.name):
                expected = kv.read_list(path.read_text())
                self.assertEqual({name.split(": ", 1)[0] for name in expected.rows} - set(self.NAMES), set())
                for name in expected.rows:
                    if "any" in expected.rows[name] or "fail" == expected.rows[name][1]:
                        self.assertTrue(expected.why[name], f"{name}: say why")

    def test_list_is_well_formed(self) -> None:
        lines = [line for line in (SCRIPTS / "kselftest.list").read_text().splitlines() if line[:1] != "#"]
        self.assertEqual(len(lines), len(self.NAMES))
        self.assertEqual(len(set(self.NAMES)), len(self.NAMES))

    def test_bad_arguments(self) -> None:
        stack = next(path.name for path in (SCRIPTS.parent / "series").iterdir() if path.is_file())
        for args in ([], ["nosuchstack"], [stack, "KERNEL=other"], [stack, "TESTS=nosuchtest"], [stack, "TESTS=a;b"],
                     [stack, "FOO=1"]):
            with self.subTest(args=args):
                done = subprocess.run([SCRIPTS / "run-kselftest", *args], capture_output=True, text=True, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
