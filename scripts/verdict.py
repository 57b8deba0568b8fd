#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judges one run of a guest from its console, its result channel and how QEMU ended.

Prints one line with the verdict and its reason, the lines of the console or the tests that led to it, and last
'N passed, N failed, N skipped'. The exit status is the verdict's: pass 0, fail 1, harness error 2, skip 4, splat 10,
hang-boot 11, hang-test 12, truncated 13, silent 14.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

import ktap

EXIT = {"pass": 0, "fail": 1, "harness": 2, "skip": 4, "splat": 10, "hang-boot": 11, "hang-test": 12,
        "truncated": 13, "silent": 14}
QUOTED = 8
# panic_on_warn turns every warning into a panic, so that only the kernel's own forms of WARNING are listed here.
SPLAT = re.compile(
    r"Kernel panic - not syncing|\bBUG: |kernel BUG at |\bBUG [\w-]+ \(|\bOops: |general protection fault"
    r"|Unable to handle kernel |double fault|stack-protector: |PANIC: early exception|unhandled exception"
    r"|WARNING: (?:CPU: |\S+:[0-9]+ at |.* at \S+:[0-9]+|possible |suspicious |inconsistent |bad unlock |lock held"
    r"|held lock |Nested lock |stack |kernel stack |\S+-safe -> )"
    r"|\b(?:KASAN|UBSAN|KCSAN|KMSAN|KFENCE): |kmemleak: [0-9]+ new suspected"
    r"|INFO: (?:task \S+ blocked|possible |trying to register|rcu_\w+ |suspicious |inconsistent )"
    r"|possible circular locking|rcu: INFO: |detected stall|soft lockup|hard LOCKUP|hung_task: "
    r"|list_(?:add|del) corruption|refcount_t: |ODEBUG: |nobody cared|\[ cut here \]")
# Lines of the console that name these words and report nothing.
HARMLESS = re.compile(r"Kernel command line: |Command line: |hung_task_panic|kmemleak: Kernel memory leak detector"
                      r"|KASAN: KernelAddressSanitizer initialized|ODEBUG: selftest passed|ODEBUG: [0-9]+ of [0-9]+ active"
                      r"|ODEBUG: Out of memory|KCSAN: (?:enabled|strict|non-strict)|kfence: initialized")
DETAIL = re.compile(r"\bRIP: 0010:|\bpc : ")


@dataclass
class Verdict:
    """The verdict, why, and the counts of the tests; a run that has no valid result counts as one failure."""

    verdict: str
    reason: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    quotes: list[str] = field(default_factory=list)


def splats(console: list[str]) -> list[str]:
    """The lines of a kernel's complaints, each once, in their order."""
    found: dict[str, None] = {}
    for line in (ktap.PRINTK.sub("", line).strip() for line in console):
        if SPLAT.search(line) and not HARMLESS.search(line) or found and DETAIL.search(line):
            found.setdefault(line)
    titled = [line for line in found if "[ cut here ]" not in line]
    return titled or list(found)


def judge_stream(lines: list[str], end_status: int, records: bool) -> Verdict:
    """The verdict on a complete result stream, which is what stands between zfolio-begin and zfolio-end."""
    if records:
        kept = [line.split() for line in lines if line.startswith("zfolio-record")]
        broken = [" ".join(words) for words in kept if words[0] != "zfolio-record" or len(words) < 3]
        if broken:
            return Verdict("truncated", f"malformed record '{broken[0]}'")
        if end_status:
            return Verdict("fail", f"the run script exited with {end_status}")
        if not kept:
            return Verdict("truncated", "no zfolio-record in the result stream")
        return Verdict("pass", f"{len(kept)} records", passed=1)
    documents = ktap.parse(lines)
    leaves = [leaf for block in documents for test in block.tests for leaf in test.leaves()]
    skipped_plans = [block.plan_skip for block in documents if block.plan == 0 and block.plan_skip is not None]
    counts = [sum(status in kind for status, _, _ in leaves) for kind in (("ok",), ("fail",), ("skip", "todo"))]
    counts[2] += len(skipped_plans)
    bad = [f"not ok {name}{' # ' + why if why else ''}" for status, name, why in leaves if status == "fail"]
    problems = [problem for block in documents for problem in block.problems()]
    if not documents:
        problems = ["no KTAP in the result stream: no test ran"]
    elif not leaves and not skipped_plans:
        problems = problems or ["the plan is empty: no test ran"]
    if problems:
        return Verdict("truncated", "; ".join(problems[:3]), *counts, quotes=bad[:QUOTED])
    if bad:
        return Verdict("fail", f"{len(bad)} of {len(leaves)} tests failed", *counts, quotes=bad)
    all_skipped = counts[0] == 0
    if end_status and not (all_skipped and end_status == 4):
        return Verdict("fail", f"the run script exited with {end_status} though no test failed", *counts)
    if all_skipped:
        reasons = skipped_plans + [f"{name}: {why}" for status, name, why in leaves]
        return Verdict("skip", f"everything was skipped ({reasons[0]})", *counts)
    return Verdict("pass", f"{counts[0]} tests", *counts)


def judge(console: list[str], results: list[str], qemu_status: str, records: bool = False) -> Verdict:
    """The verdict on a run. What the console says wins over what the tests say."""
    status = re.fullmatch(r"(timeout)|exit ([0-9]+)", qemu_status.strip())
    begins = [i for i, line in enumerate(results) if re.fullmatch(r"zfolio-begin \S.*", line.strip())]
    ends = [i for i, line in enumerate(results) if line.startswith("zfolio-end")]
    complete = len(begins) == 1 and len(ends) == 1 and begins < ends
    end = re.fullmatch(r"zfolio-end ([0-9]+)", results[ends[0]].strip()) if complete else None
    first, last = (begins or [0])[0], (ends or [len(results)])[-1]
    stream = judge_stream(results[first:last], int(end[1]) if end else 0, records)
    timeout = bool(status and status[1])
    if found := splats(console):
        outcome = Verdict("splat", found[0], quotes=found[:QUOTED])
    elif not status:
        outcome = Verdict("harness", f"qemu.status says '{qemu_status.strip()}', neither 'timeout' nor 'exit N'")
    elif not timeout and status[2] != "0":
        outcome = Verdict("harness", f"QEMU exited with {status[2]}; qemu.cmd has its command line")
    elif not begins and timeout:
        outcome = Verdict("hang-boot", "no zfolio-begin before the time limit")
    elif not begins and not any(line.strip() for line in results):
        outcome = Verdict("silent", "QEMU ended without a byte on the result channel")
    elif not begins:
        outcome = Verdict("truncated", "output on the result channel but no zfolio-begin")
    elif not ends and timeout:
        outcome = Verdict("hang-test", "the run began and had not ended at the time limit")
    elif not ends:
        outcome = Verdict("truncated", "the guest stopped without zfolio-end")
    elif not complete or not end:
        outcome = Verdict("truncated", f"zfolio-begin {len(begins)} times, zfolio-end {len(ends)} times, or malformed")
    elif timeout:
        outcome = Verdict("hang-test", "the run ended but the guest had not powered off at the time limit")
    else:
        outcome = stream
    if outcome is not stream:
        outcome.passed, outcome.failed, outcome.skipped = stream.passed, stream.failed, stream.skipped
    if outcome.verdict not in ("pass", "fail", "skip") or outcome.verdict == "fail" and not outcome.failed:
        outcome.failed += 1
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description="judge one run of a guest")
    for name in ("console", "results", "qemu-status"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FILE")
    parser.add_argument("--expect-records", action="store_true", help="bench records instead of KTAP")
    parser.add_argument("--json", action="store_true", help="the verdict as one JSON object")
    parser.add_argument("--list", action="store_true", help="before the verdict, one line a test: its status and name")
    args = parser.parse_args()
    try:
        console, results = (ktap.clean(path.read_bytes()) for path in (args.console, args.results))
        verdict = judge(console, results, args.qemu_status.read_text(errors="replace"), args.expect_records)
    except OSError as error:
        verdict, results = Verdict("harness", f"cannot read {error.filename}: {error.strerror}", failed=1), []
    if args.list:
        for block in ktap.parse(results):
            for test in block.tests:
                print("\n".join(f"{status} {name}" for status, name, _ in test.leaves()))
    if args.json:
        print(json.dumps({**asdict(verdict), "exit": EXIT[verdict.verdict]}))
    else:
        print(f"{verdict.verdict}: {verdict.reason}")
        for line in verdict.quotes:
            print(f"    > {line}")
        print(f"{verdict.passed} passed, {verdict.failed} failed, {verdict.skipped} skipped")
    return EXIT[verdict.verdict]


if __name__ == "__main__":
    sys.exit(main())
