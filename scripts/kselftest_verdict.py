#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Judges a run of the selftests: like verdict.py, and each test must end as the stack's list expects.

The list (scripts/expected/STACK/kselftest) has a line for every test: what it gives on the base, what it gives on the
patched kernel, its name. A test of the base's own must give the same on both; only the programs that a line
'# new: DIRECTORY:PROGRAM' names may differ. 'any' stands for a result that changes from run to run, or a test that does
not always run; why is told after '#'. A '*' in a name stands for what changes in it. A remark that starts with
'test kernel:' names what only that kernel has: on the bench kernel the test must skip.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import ktap
from verdict import EXIT, QUOTED, Verdict, judge

STATUS = ("ok", "fail", "skip", "todo", "any")
COLUMN = {"base": 0, "patched": 1}


class ListError(Exception):
    """The list of expected results breaks its own rules."""


@dataclass
class Expected:
    """The list: per test its two results and the remark, in the order of the file."""

    header: list[str] = field(default_factory=list)
    new: set[str] = field(default_factory=set)
    rows: dict[str, list[str]] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    def is_new(self, name: str) -> bool:
        return program(name) in self.new


def program(name: str) -> str:
    """The program that a test belongs to, without the variant: 'mm:khugepaged' of 'mm:khugepaged+order4: x'."""
    return name.split(": ", 1)[0].split("+", 1)[0]


def read_list(text: str) -> Expected:
    expected = Expected()
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#") or not line.strip():
            expected.header.append(line)
            if line.startswith("# new: "):
                expected.new.add(line[len("# new: "):].strip())
            continue
        words, _, why = line.partition("  # ")
        parts = words.split(None, 2)
        if len(parts) != 3 or parts[0] not in STATUS or parts[1] not in STATUS:
            raise ListError(f"line {number}: want BASE PATCHED TEST, results {'|'.join(STATUS)}")
        name = parts[2].strip()
        if name in expected.rows:
            raise ListError(f"line {number}: '{name}' is there twice")
        if parts[0] != parts[1] and not expected.is_new(name):
            raise ListError(f"line {number}: '{name}' is a test of the base: it must give the same on both kernels")
        expected.rows[name] = parts[:2]
        expected.why[name] = why.strip()
    return expected


def write_list(expected: Expected) -> str:
    lines = list(expected.header)
    for name, (base, patched) in expected.rows.items():
        why = expected.why.get(name, "")
        lines.append(f"{base:4} {patched:4}  {name}" + (f"  # {why}" if why else ""))
    return "\n".join(lines) + "\n"


def results_of(lines: Iterable[str]) -> dict[str, str]:
    """Every innermost test and its status. A name that comes again gets a number.

    kselftest.h puts the name of a skipped test behind '# SKIP', where the others have the reason.
    """
    found: dict[str, str] = {}
    for block in ktap.parse(lines):
        for test in block.tests:
            for status, name, reason in test.leaves():
                name, count = " ".join((name + reason if name.endswith(": ") else name).split()), 1
                unique = name
                while unique in found:
                    count += 1
                    unique = f"{name} ({count})"
                found[unique] = status
    return found


def as_listed(expected: Expected, found: dict[str, str]) -> dict[str, str]:
    """The results under the names of the list, where a name of the list has a '*'."""
    patterns = [(re.compile(re.escape(row).replace(r"\*", ".*") + r"\Z"), row) for row in expected.rows if "*" in row]
    named: dict[str, str] = {}
    for name, status in found.items():
        fits = [row for pattern, row in patterns if row not in named and pattern.match(name)]
        if name in expected.rows:
            fits = []
        named[fits[0] if fits else name] = status
    return named


def compare(expected: Expected, found: dict[str, str], kernel: str, some: bool, config: str = "test") -> Verdict:
    """The verdict on a complete run. some: only a part of the programs was asked for."""
    ran = {name.split(": ", 1)[0] for name in found}
    passed = known = skipped = 0
    bad: list[str] = []
    for name, row in expected.rows.items():
        want, got = row[COLUMN[kernel]], found.get(name)
        if config != "test" and expected.why[name].startswith("test kernel:"):
            want = "skip"
        if got is None:
            if want != "any" and (not some or name.split(": ", 1)[0] in ran):
                bad.append(f"{name}: did not run, expected {want}")
        elif want not in (got, "any"):
            bad.append(f"{name}: {got}, expected {want}")
        elif want in ("skip", "any"):
            skipped += 1
        elif want == "ok":
            passed += 1
        else:
            known += 1
    bad += [f"{name}: {got}, not in the list" for name, got in found.items() if name not in expected.rows]
    counts = f"{passed} passed, {known} fail as the list says, {skipped} skipped"
    if bad:
        return Verdict("fail", f"{len(bad)} of {len(found)} tests are not as expected ({counts})", passed, len(bad),
                       skipped + known, quotes=bad)
    if not passed:
        return Verdict("skip", counts, 0, 0, skipped + known)
    return Verdict("pass", f"all as expected: {counts}", passed, 0, skipped + known)


def record(expected: Expected, found: dict[str, str], kernel: str) -> None:
    """Takes the results of this run into the list. The base decides on its own tests, for both kernels."""
    ran = {name.split(": ", 1)[0] for name in found}
    gone = [n for n, row in expected.rows.items() if n.split(": ", 1)[0] in ran and n not in found and "any" not in row]
    for name in gone:
        if kernel == "base" or expected.is_new(name):
            del expected.rows[name]
    for name, status in found.items():
        row = expected.rows.setdefault(name, ["any", "any"] if expected.is_new(name) else [status, status])
        if "any" in row and not expected.is_new(name):
            continue
        if expected.is_new(name):
            row[COLUMN[kernel]] = status
        elif kernel == "base":
            row[:] = [status, status]


def show(verdict: Verdict) -> int:
    print(f"{verdict.verdict}: {verdict.reason}")
    for line in verdict.quotes[:4 * QUOTED]:
        print(f"    > {line}")
    if len(verdict.quotes) > 4 * QUOTED:
        print(f"    > … and {len(verdict.quotes) - 4 * QUOTED} more")
    print(f"{verdict.passed} passed, {verdict.failed} failed, {verdict.skipped} skipped")
    return EXIT[verdict.verdict]


def main() -> int:
    parser = argparse.ArgumentParser(description="judge a run of the selftests")
    for name in ("console", "results", "qemu-status", "expected"):
        parser.add_argument(f"--{name}", type=Path, required=True, metavar="FILE")
    parser.add_argument("--kernel", choices=sorted(COLUMN), required=True)
    parser.add_argument("--config", choices=("test", "bench"), default="test")
    parser.add_argument("--some", action="store_true", help="only some programs were asked for")
    parser.add_argument("--record", action="store_true", help="take the results into the list instead of judging them")
    args = parser.parse_args()
    try:
        console, results = (ktap.clean(path.read_bytes()) for path in (args.console, args.results))
        verdict = judge(console, results, args.qemu_status.read_text(errors="replace"))
        if verdict.verdict not in ("pass", "fail", "skip"):
            return show(verdict)
        if not args.expected.is_file() and not args.record:
            raise ListError("does not exist; RECORD=1 KERNEL=base scripts/run-kselftest STACK makes it")
        text = args.expected.read_text() if args.expected.is_file() else "# SPDX-License-Identifier: GPL-2.0-only\n"
        expected = read_list(text)
        found = as_listed(expected, results_of(results))
        if args.record:
            record(expected, found, args.kernel)
            fresh = args.expected.with_name(args.expected.name + ".new")
            fresh.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_text(write_list(expected))
            fresh.replace(args.expected)
            print(f"recorded {len(found)} results of {args.kernel}", file=sys.stderr)
            return 0
        return show(compare(expected, found, args.kernel, args.some, args.config))
    except (OSError, ListError) as error:
        reason = f"{args.expected}: {error}" if isinstance(error, ListError) else f"{error.filename}: {error.strerror}"
        return show(Verdict("harness", reason, failed=1))


if __name__ == "__main__":
    sys.exit(main())
