# SPDX-License-Identifier: GPL-2.0-only
"""Parse what a bench guest sent over its result channel (written by scripts/guest/bench)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

TASK = re.compile(r"(\d+) bytes / (\d+) usecs = (\d+) KB/s")


class StreamError(Exception):
    """Why a run cannot be used, in one line."""


@dataclass
class Section:
    """One measured command."""

    command: str = ""
    status: int | None = None
    elapsed_us: int | None = None
    tasks_expected: int | None = None
    before: dict[str, int] = field(default_factory=dict)
    after: dict[str, int] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    stdout: list[str] = field(default_factory=list)
    stderr: list[str] = field(default_factory=list)

    def tasks(self) -> list[int]:
        """KB/s of each task, as usemem prints them."""
        found = (TASK.search(line) for line in self.stdout if not line.startswith("read again"))
        return [int(m.group(3)) for m in found if m]


@dataclass
class Run:
    release: str = ""
    proc_version: str = ""
    command_line: str = ""
    config_sha256: str = ""
    sections: dict[str, Section] = field(default_factory=dict)


def _record(run: Run, words: list[str]) -> None:
    key, rest = words[0], " ".join(words[1:])
    if key in ("release", "proc_version", "command_line", "config_sha256"):
        setattr(run, key, rest)
        return
    section = run.sections.setdefault(words[1], Section())
    text = " ".join(words[2:])
    if key == "command":
        section.command = text
    elif key in ("status", "elapsed_us", "tasks_expected"):
        setattr(section, key, int(text))
    elif key in ("before", "after"):
        getattr(section, key)[words[2]] = int(words[3])
    elif key == "value":
        section.values[words[2]] = float(words[3])
    elif key in ("stdout", "stderr"):
        getattr(section, key).append(text)
    else:
        raise StreamError(f"unknown record '{key}'")


def _check(name: str, section: Section) -> None:
    if section.status is None or section.elapsed_us is None:
        raise StreamError(f"section {name}: the command did not end")
    if section.status != 0:
        said = section.stderr[0] if section.stderr else "it said nothing"
        raise StreamError(f"section {name}: '{section.command}' exited {section.status}: {said}")
    if section.tasks_expected is not None and len(section.tasks()) != section.tasks_expected:
        raise StreamError(
            f"section {name}: {len(section.tasks())} task lines, {section.tasks_expected} expected")


def parse(text: str) -> Run:
    """A usable run, or StreamError: a run that is not whole must not reach a table."""
    run = Run()
    lines = text.replace("\r", "").split("\n")
    begun = False
    ended: str | None = None
    for line in lines:
        if line.startswith("zfolio-begin"):
            begun = True
        elif line.startswith("zfolio-end"):
            ended = line.removeprefix("zfolio-end").strip()
        elif line.startswith("zfolio-record "):
            try:
                _record(run, line.split(" ")[1:])
            except (IndexError, ValueError):
                raise StreamError(f"malformed record '{line[:80]}'") from None
    if not begun:
        raise StreamError("the guest never began")
    if ended is None:
        raise StreamError("no end line: the guest died")
    if ended != "0":
        raise StreamError(f"the guest's run script exited {ended}")
    if not run.sections:
        raise StreamError("nothing was measured")
    for name, section in run.sections.items():
        _check(name, section)
    return run
