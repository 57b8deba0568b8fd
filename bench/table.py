# SPDX-License-Identifier: GPL-2.0-only
"""The before/after table of a result: its cells, as plain text and as Markdown."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

import stats
from result import Document, values

SAME = "no difference"
MISSING = "n/a"


@dataclass(frozen=True)
class Changed:
    """A percentage column's cell. good: 1 better, -1 worse, 0 neither."""

    text: str
    good: int = 0
    p: float | None = None

    def shown(self) -> str:
        if self.p is None:
            return self.text
        return f"{self.text} (p {'<0.001' if self.p < 0.001 else f'{self.p:.3f}'})"


@dataclass(frozen=True)
class Line:
    label: str
    medians: list[str]
    ranges: list[str]
    spread: str
    changes: list[Changed]
    published: list[str]


@dataclass(frozen=True)
class Table:
    arms: list[str]
    against: list[tuple[str, str]]
    lines: list[Line]
    has_published: bool

    def published_pairs(self) -> list[tuple[str, str]]:
        return self.against if self.has_published else []


def number(value: float | None, label: str) -> str:
    if value is None:
        return MISSING
    return f"{value:,.2f}" if re.search(r"\(m?s\)|\(us\)", label) else f"{value:,.0f}"


def _signed(percent: float) -> str:
    """A percentage, or a factor where a percentage would say less."""
    if percent >= 1000:
        return f"x{1 + percent / 100:,.1f}"
    return f"{percent:+.1f}%" if abs(percent) >= 0.05 else "0.0%"


def _changed(old: list[float] | None, new: list[float] | None, better: str, wall: bool) -> Changed:
    if old is None or new is None:
        return Changed(MISSING)
    c = stats.change(old, new, wall)
    if c.same:
        return Changed(SAME, 0, c.p)
    if c.percent is None:
        return Changed("was 0", 0, c.p)
    good = 0 if better == "count" else 1 if (c.percent > 0) == (better == "higher") else -1
    return Changed(_signed(c.percent), good, c.p)


def _published(document: Document, label: str, pair: tuple[str, str]) -> str:
    figures = document["published"]["figures"].get(label, {})
    new, old = figures.get(pair[0]), figures.get(pair[1])
    if new is None or old is None:
        return MISSING
    if not old:
        return "0 = 0" if not new else "was 0"
    return _signed(100 * (new - old) / old)


def build(document: Document) -> Table:
    arms = {a["name"]: a for a in document["arms"]}
    against = [(new, old) for new, old in document["against"]]
    wall = not document["virtual_time"]
    lines = []
    for row in document["rows"]:
        label = row["label"]
        found = {n: values(a, label) for n, a in arms.items()}
        sums = [stats.summary(v) if v else None for v in found.values()]
        spreads = [s.relative for s in sums if s]
        lines.append(Line(
            label,
            [number(s.median if s else None, label) for s in sums],
            [f"{number(s.low, label)}..{number(s.high, label)}" if s else MISSING for s in sums],
            f"{max(spreads):.2f}%" if spreads else MISSING,
            [_changed(found[old], found[new], row["better"], wall) for new, old in against],
            [_published(document, label, pair) for pair in against] if document["published"] else []))
    return Table(list(arms), against, lines, bool(document["published"]) and bool(against))


def caption(document: Document) -> list[str]:
    """What was measured, and what the numbers mean: part of every table."""
    runs = len(document["arms"][0]["runs"])
    if document["virtual_time"]:
        how = (f"virtual time (instructions): seconds and KB/s count executed instructions, 1 ns each; "
               f"medians of {runs} runs, spread = (max - min) / median, the largest of the columns")
    else:
        how = (f"wall time ({document['accelerator']}): medians of {runs} runs with min..max; "
               f"Welch's test, 'no difference' from p = {stats.SIGNIFICANT}")
    how += "; 'no difference' where the spread covers the effect"
    given = " ".join(f"{k}={v}" for k, v in document["options"].items())
    out = [f"{document['title']}: {given}", how,
           f"guest: {document['accelerator']}, {document['cpus']} CPU, {document['memory_mb']} MB; "
           f"{document['qemu']}"]
    for arm in document["arms"]:
        image = arm["image"]
        commit = f", commit {image['commit'][:12]}" if image.get("commit") else ""
        out.append(f"{arm['name']}: {image['release']} ({arm['kernel']}{commit}): {arm['text']}")
    compilers = {m[1] for a in document["arms"]
                 if (m := re.search(r"\) \(([^)]*\) [\d.]+)", a["image"]["proc_version"]))}
    out.append(f"compiler: {'; '.join(sorted(compilers)) or 'unknown'}")
    command = next(iter(document["arms"][0]["runs"][0]["sections"].values()))["command"]
    out += [f"command: {command}", *document["notes"]]
    if document["published"]:
        p = document["published"]
        out.append(f"published, other hardware: {p['text']}; {p['hardware']}")
    return out


def _header(table: Table, wall: bool) -> list[str]:
    head = ["", *table.arms] + ([] if wall else ["spread"])
    head += [f"{new} vs {old}" for new, old in table.against]
    return head + [f"published: vs {old}" if new == "after" else f"published: {new} vs {old}"
                   for new, old in table.published_pairs()]


def _cells(table: Table, wall: bool) -> Iterable[list[str]]:
    for line in table.lines:
        changes = [c.shown() for c in line.changes]
        yield [line.label, *line.medians, *([] if wall else [line.spread]), *changes, *line.published]
        if wall and any(r != f"{m}..{m}" and r != MISSING for r, m in zip(line.ranges, line.medians)):
            blank = [""] * (len(changes) + len(line.published))
            yield ["  min..max", *line.ranges, *blank]


def text(document: Document) -> str:
    wall = not document["virtual_time"]
    table = build(document)
    grid = [_header(table, wall), *_cells(table, wall)]
    widths = [max(len(row[i]) for row in grid) for i in range(len(grid[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]).rstrip()
             for row in grid]
    lines.insert(1, "-" * (sum(widths) + 2 * len(widths) - 2))
    return "\n".join(lines) + "\n"


def markdown(document: Document) -> str:
    wall = not document["virtual_time"]
    table = build(document)
    grid = [_header(table, wall), *_cells(table, wall)]
    grid.insert(1, ["---"] + ["---:"] * (len(grid[0]) - 1))
    out = ["| " + " | ".join(row) + " |" for row in grid]
    out += ["", *(f"- {line}" for line in caption(document)), "", *(f"- check: {c}" for c in checks(document))]
    return "\n".join(out).rstrip() + "\n"


def notes(document: Document) -> str:
    """The caption for a terminal."""
    return "\n".join(textwrap.fill(x, 110, subsequent_indent="  ", break_on_hyphens=False)
                     for x in caption(document)) + "\n"


def checks(document: Document) -> list[str]:
    return [f"{c['text']}: {'met' if c['met'] else 'NOT MET'} ({c['values']})" for c in document["checks"]]
