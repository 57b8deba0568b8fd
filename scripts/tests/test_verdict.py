# SPDX-License-Identifier: GPL-2.0-only
"""verdict.py: every verdict from a recorded console, result stream and QEMU status (data/verdict/)."""

import contextlib
import io
import json
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from fixture import SCRIPTS

import ktap
import verdict

DATA = Path(__file__).resolve().parent / "data/verdict"
# The verdict is the first word of the recording's name, save where this says otherwise.
OTHER = {"hang-boot": "hang-boot", "hang-test": "hang-test", "hang-power-off": "hang-test", "records-pass": "pass",
         "records-fail": "fail", "records-none": "truncated", "records-malformed": "truncated", "records-splat": "splat"}
# Name: (passed, failed, skipped), and what the output must hold.
SAYS = {
    "pass-kunit": ((5, 0, 1), ""),
    "pass-noisy": ((5, 0, 1), ""),
    "pass-kselftest": ((5, 0, 1), ""),
    "pass-two-documents": ((10, 0, 2), ""),
    "pass-todo": ((1, 0, 2), ""),
    "fail-kunit": ((4, 1, 1), "> not ok zswap: zswap_store_fails_at: page 7"),
    "fail-kselftest": ((4, 1, 1), "> not ok selftests: cgroup: test_zswap: test_zswapin"),
    "fail-only-the-parent-says-so": ((1, 1, 0), "> not ok selftests: mm: a # exit=139"),
    "fail-hidden-by-parent": ((0, 1, 0), "broken"),
    "fail-timeout": ((0, 1, 0), "TIMEOUT 45 seconds"),
    "fail-bail-out-below": ((1, 1, 0), "exit=1"),
    "fail-exit-status": ((5, 1, 1), "exited with 3"),
    "skip": ((0, 0, 2), "no hugetlb"),
    "skip-plan": ((0, 0, 1), "zswap is not built in"),
    "splat-panic": ((0, 1, 0), "> Kernel panic - not syncing: Attempted to kill init!"),
    "splat-oops": ((0, 1, 0), "> RIP: 0010:zswap_store+0x1f3/0x5a0"),
    "splat-bug": ((0, 1, 0), "splat: kernel BUG at mm/zswap.c:1010!"),
    "splat-warning": ((0, 1, 0), "splat: WARNING: CPU: 0 PID: 70 at mm/page_counter.c:60"),
    "splat-warning-new-form": ((0, 1, 0), "splat: WARNING: mm/page_counter.c:60 at page_counter_cancel"),
    "splat-kasan": ((0, 1, 0), "splat: BUG: KASAN: slab-use-after-free in zswap_load"),
    "splat-ubsan": ((5, 1, 1), "splat: UBSAN: array-index-out-of-bounds"),
    "splat-kmemleak": ((5, 1, 1), "splat: kmemleak: 4 new suspected memory leaks"),
    "splat-lockdep": ((5, 1, 1), "splat: WARNING: possible circular locking dependency"),
    "splat-hung-task": ((0, 1, 0), "splat: INFO: task usemem:80 blocked"),
    "splat-rcu-stall": ((0, 1, 0), "self-detected stall on CPU"),
    "splat-soft-lockup": ((0, 1, 0), "soft lockup - CPU#1 stuck"),
    "splat-gpf": ((0, 1, 0), "general protection fault"),
    "splat-slub": ((5, 1, 1), "Poison overwritten"),
    "splat-list": ((5, 1, 1), "list_del corruption"),
    "splat-then-time-limit": ((0, 1, 0), "soft lockup"),
    "splat-before-begin": ((0, 1, 0), "Kernel panic"),
    "hang-boot": ((0, 1, 0), "no zfolio-begin"),
    "hang-test": ((0, 1, 0), "time limit"),
    "hang-power-off": ((5, 1, 1), "not powered off"),
    "truncated-no-end": ((5, 1, 1), "without zfolio-end"),
    "truncated-plan": ((5, 1, 1), "plan says 2 tests, 1 reported"),
    "truncated-plan-below": ((5, 1, 1), "zswap: plan says 5 tests, 4 reported"),
    "truncated-no-plan": ((2, 1, 0), "no plan"),
    "truncated-no-parent": ((0, 1, 0), "without the result of their parent"),
    "truncated-number": ((2, 1, 0), "test number 3 where 2 was due"),
    "truncated-bail-out": ((1, 1, 0), "Bail out! out of memory"),
    "truncated-no-test": ((0, 1, 0), "no test ran"),
    "truncated-no-ktap": ((0, 1, 0), "no test ran"),
    "truncated-two-runs": ((10, 1, 2), "zfolio-begin 2 times"),
    "truncated-no-begin": ((5, 1, 1), "no zfolio-begin"),
    "silent": ((0, 1, 0), "without a byte"),
    "harness-qemu": ((0, 1, 0), "QEMU exited with 1"),
    "harness-status": ((5, 1, 1), "neither 'timeout' nor 'exit N'"),
    "records-pass": ((1, 0, 0), "3 records"),
    "records-fail": ((0, 1, 0), "exited with 1"),
    "records-none": ((0, 1, 0), "no zfolio-record"),
    "records-malformed": ((0, 1, 0), "malformed record 'zfolio-record elapsed'"),
    "records-splat": ((1, 1, 0), "list_del corruption"),
}
EXIT = {"pass": 0, "fail": 1, "harness": 2, "skip": 4, "splat": 10, "hang-boot": 11, "hang-test": 12, "truncated": 13,
        "silent": 14}


def arguments(case: Path) -> list[str]:
    return ["--console", str(case / "console.log"), "--results", str(case / "results.log"),
            "--qemu-status", str(case / "qemu.status"), *(["--expect-records"] if case.name.startswith("records") else [])]


def run(case: Path, *more: str) -> tuple[int, str]:
    """Exit status and output of verdict.py, run in this process to be quick."""
    with mock.patch("sys.argv", ["verdict.py", *arguments(case), *more]), contextlib.redirect_stdout(io.StringIO()) as out:
        return verdict.main(), out.getvalue()


class Recorded(unittest.TestCase):
    """One test a recording; they are made below."""

    def judge(self, name: str) -> None:
        wanted = OTHER.get(name, name.split("-")[0])
        counts, words = SAYS[name]
        status, said = run(DATA / name)
        self.assertEqual(said.partition(":")[0], wanted, said)
        self.assertEqual(status, EXIT[wanted], said)
        self.assertIn(words, said)
        self.assertEqual(said.splitlines()[-1], "%d passed, %d failed, %d skipped" % counts)


for _case in sorted(SAYS.keys() | {path.name for path in DATA.iterdir()}):
    setattr(Recorded, f"test_{_case.replace('-', '_')}", lambda self, name=_case: self.judge(name))


class Rules(unittest.TestCase):
    def test_exit_statuses_differ(self) -> None:
        self.assertEqual(verdict.EXIT, EXIT)
        self.assertEqual(len(set(EXIT.values())), len(EXIT))

    def test_as_a_command(self) -> None:
        done = subprocess.run([sys.executable, "-B", str(SCRIPTS / "verdict.py"), *arguments(DATA / "splat-oops")],
                              text=True, capture_output=True, check=False)
        self.assertEqual((done.returncode, done.stderr, done.stdout), (10, "", run(DATA / "splat-oops")[1]))

    def test_json(self) -> None:
        status, output = run(DATA / "splat-oops", "--json")
        said = json.loads(output)
        self.assertEqual((said["verdict"], said["exit"], said["failed"], status), ("splat", 10, 1, 10))
        self.assertIn("BUG: kernel NULL pointer dereference", said["quotes"][0])

    def test_list(self) -> None:
        lines = run(DATA / "fail-kselftest", "--list")[1].splitlines()
        self.assertEqual(lines[2:4], ["fail selftests: cgroup: test_zswap: test_zswapin",
                                      "skip selftests: cgroup: test_zswap: test_zswap_writeback_enabled"])

    def test_missing_file_is_a_harness_error(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            status, said = run(Path(empty))
        self.assertEqual(status, 2)
        self.assertRegex(said, r"\Aharness: cannot read \S+console.log: No such file")

    def test_no_prefix_of_a_run_passes(self) -> None:
        """Wherever the guest dies, what it had said by then is no pass."""
        results = (DATA / "pass-kunit/results.log").read_bytes()
        for size in range(len(results) - 1):
            for end in ("exit 0", "timeout"):
                found = verdict.judge([], ktap.clean(results[:size]), end)
                self.assertNotIn(found.verdict, ("pass", "skip", "fail"), f"after {size} bytes, {end}")

    def test_no_lost_line_passes(self) -> None:
        """A run of which any one line of KTAP is lost does not pass, a line of comment excepted."""
        lines = (DATA / "pass-kunit/results.log").read_text().splitlines()
        for number, line in enumerate(lines):
            found = verdict.judge([], lines[:number] + lines[number + 1:], "exit 0")
            # Neither version lines nor the optional plan of a level below the first carry a result.
            if not re.match(r"\s*(#|KTAP version|    1\.\.)", line) and "page 15" not in line:
                self.assertNotEqual(found.verdict, "pass", line)

    def test_splat_in_any_verdict(self) -> None:
        for name in ("pass-kunit", "fail-kunit", "skip", "hang-test", "silent", "harness-qemu"):
            case = DATA / name
            console = ktap.clean((case / "console.log").read_bytes() + b"[    5.000000] BUG: Bad page state in process a  pfn:4\n")
            found = verdict.judge(console, ktap.clean((case / "results.log").read_bytes()), (case / "qemu.status").read_text())
            self.assertEqual(found.verdict, "splat", name)

    def test_directive_after_a_number_sign(self) -> None:
        block = ktap.parse(["1..2", "ok 1 issue #3 # SKIP no device", "ok 2 - plain #4"])[0]
        self.assertEqual([(test.status, test.reason) for test in block.tests], [("skip", "no device"), ("ok", "")])
