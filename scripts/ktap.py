# SPDX-License-Identifier: GPL-2.0-only
"""Parser for KTAP version 1 (and TAP 13) as KUnit and kselftest print it.

Subtests are nested by indentation (KUnit) or by a '# ' before every line (kselftest's runner). Every level
with a plan is held to it. Lines that are not KTAP are noise and are dropped, whatever they hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# What printk puts before a line; also the ANSI colours and control bytes of a serial console.
PRINTK = re.compile(r"^(?:<[0-9]+>)?\[ *[0-9]+\.[0-9]+\](?:\[ *[TC][0-9]+\])? ?")
JUNK = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
VERSION = re.compile(r"(?:KTAP version [0-9]+|TAP version [0-9]+)$")
PLAN = re.compile(r"1\.\.([0-9]+)(?:\s*# *SKIP\b *(.*))?\s*$", re.IGNORECASE)
RESULT = re.compile(r"(not )?ok ([0-9]+)(?: +-)?(?: +(.*))?$")
DIRECTIVE = re.compile(r"(?:^|(?<=\s))#(?: *(SKIP|TODO|XFAIL)\b[ :]*| +)", re.IGNORECASE)
PREFIX = re.compile(r"(?: *# )* *(?=K?TAP version |1\.\.[0-9]|(?:not )?ok [0-9]|Bail out!)")


@dataclass
class Test:
    """One result line with what was nested under it. status: ok, fail, skip or todo (a failure that is expected)."""

    number: int
    name: str
    status: str
    reason: str = ""
    blocks: list[Block] = field(default_factory=list)

    def leaves(self, path: str = "") -> Iterator[tuple[str, str, str]]:
        """(status, path, reason) of every innermost test, and of this one if it alone says that it failed."""
        path = f"{path}: {self.name}" if path else self.name
        inner = [leaf for block in self.blocks for test in block.tests for leaf in test.leaves(path)]
        yield from inner
        if not inner or self.status == "fail" and all(status != "fail" for status, _, _ in inner):
            yield self.status, path, self.reason

    def problems(self) -> Iterator[str]:
        """What is wrong with the nested levels. Below a failed test that is no news: its own line says so."""
        if self.status == "fail":
            return
        for block in self.blocks:
            for problem in block.problems(need_plan=False):
                yield f"{self.name or self.number}: {problem}"


@dataclass
class Block:
    """One level of one KTAP document."""

    indent: int
    plan: int | None = None
    plan_skip: str | None = None
    tests: list[Test] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def problems(self, need_plan: bool = True) -> Iterator[str]:
        """Reasons not to believe that this level is complete."""
        yield from self.errors
        if self.plan is not None and self.plan != len(self.tests):
            yield f"plan says {self.plan} tests, {len(self.tests)} reported"
        if self.plan is None and need_plan:
            yield f"no plan, {len(self.tests)} tests reported"
        for test in self.tests:
            yield from test.problems()


def clean(data: bytes) -> list[str]:
    """The lines of a console or result stream without carriage returns, colours and binary junk."""
    text = data.decode("utf-8", errors="replace").replace("\r", "\n")
    return [JUNK.sub("", line) for line in text.split("\n")]


def parse(lines: Iterable[str]) -> list[Block]:
    """The documents of a stream (KUnit's debugfs files give one each suite)."""
    documents: list[Block] = []
    stack: list[Block] = []
    done: list[Block] = []          # closed levels that wait for the result line of their parent

    def close(indent: int) -> None:
        """Closes every level deeper than indent."""
        while stack and stack[-1].indent > indent:
            block = stack.pop()
            if done and done[0].indent > block.indent:
                block.errors.append("subtests without the result of their parent")
                done.clear()
            (done if stack else documents).append(block)

    def level(indent: int) -> Block:
        close(indent)
        if not stack or stack[-1].indent < indent:
            stack.append(Block(indent))
        return stack[-1]

    for line in lines:
        line = PRINTK.sub("", line).rstrip()
        prefix = PREFIX.match(line)
        if not prefix:
            continue
        indent, line = len(prefix[0]), line[prefix.end():]
        plan, result = PLAN.match(line), RESULT.match(line)
        if VERSION.match(line):
            if level(indent).tests or stack[-1].plan is not None:
                close(indent - 1)
            level(indent)
        elif plan:
            block = level(indent)
            if block.plan is not None:
                block.errors.append("a second plan")
            block.plan, block.plan_skip = int(plan[1]), plan[2]
        elif result:
            block = level(indent)
            text = result[3] or ""
            directives = list(DIRECTIVE.finditer(text))
            directive = next((found for found in directives if found[1]), directives[0] if directives else None)
            word = (directive[1] or "").upper() if directive else ""
            status = "skip" if word == "SKIP" else "fail" if result[1] else "ok"
            if word == "XFAIL" or word == "TODO" and status == "fail":
                status = "todo"
            name, reason = (text[:directive.start()], text[directive.end():]) if directive else (text, "")
            test = Test(int(result[2]), name.strip(), status, reason.strip(), done[:])
            done.clear()
            if test.number != len(block.tests) + 1:
                block.errors.append(f"test number {test.number} where {len(block.tests) + 1} was due")
            block.tests.append(test)
        elif line.startswith("Bail out!"):
            level(indent).errors.append(line)
    close(-1)
    return documents
