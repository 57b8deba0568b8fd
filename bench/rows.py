# SPDX-License-Identifier: GPL-2.0-only
"""Work out a row's expression for one run (syntax: bench/scenarios/README)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable

from stream import Run, Section

OPERATORS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}


class RowError(Exception):
    """What is wrong with an expression, in one line."""


def _counter(section: Section, name: str) -> float | None:
    if name == "elapsed_s":
        return None if section.elapsed_us is None else section.elapsed_us / 1e6
    tasks = section.tasks()
    if name == "tasks/total_kbps":
        return float(sum(tasks)) if tasks else None
    if name == "tasks/average_kbps":
        return sum(tasks) / len(tasks) if tasks else None
    if name.startswith("value/"):
        return section.values.get(name.removeprefix("value/"))
    if name in section.before and name in section.after:
        return float(section.after[name] - section.before[name])
    return None


def _operand(run: Run, word: str) -> float | None:
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", word):
        return float(word)
    name, _, counter = word.rpartition(":")
    section = run.sections.get(name or "run")
    return None if section is None else _counter(section, counter)


def evaluate(expression: str, run: Run) -> float | None:
    """The number, or None where the kernel has no such counter."""
    words = expression.split()
    if len(words) % 2 == 0 or any(w not in OPERATORS for w in words[1::2]):
        raise RowError(f"bad expression '{expression}'")
    result = _operand(run, words[0])
    for sign, word in zip(words[1::2], words[2::2]):
        other = _operand(run, word)
        if result is None or other is None or (sign == "/" and other == 0):
            return None
        result = OPERATORS[sign](result, other)
    return result
