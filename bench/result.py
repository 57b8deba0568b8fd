# SPDX-License-Identifier: GPL-2.0-only
"""The stored result: one JSON document that every table, chart and report is made from."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import rows
import stats
from guests import Done
from scenario import Arm, Row, Scenario, holds

FORMAT = 1
Document = dict[str, Any]


class ResultError(Exception):
    """What is wrong with a stored result, in one line."""


def load(path: Path) -> Document:
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError) as e:
        raise ResultError(f"{path}: {e}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ResultError(f"{path}: not a zfolio bench result of format {FORMAT}")
    return document


def published(path: Path, options: Mapping[str, str]) -> Document | None:
    """The figures published for this configuration: label -> arm -> number, and their source."""
    if not path.is_file():
        return None
    ini = configparser.ConfigParser(
        delimiters=("=",), comment_prefixes=("#",), interpolation=None, default_section="")
    ini.optionxform = str  # type: ignore[assignment,method-assign]
    ini.read_string(path.read_text())
    source = ini["source"]
    columns = source["columns"].split()
    for section in ini.sections():
        if section.startswith("figures ") and holds(section.removeprefix("figures "), options):
            figures = {
                label: {c: None if n == "n/a" else float(n) for c, n in zip(columns, line.split())}
                for label, line in ini[section].items()}
            return {"text": source["text"], "hardware": " ".join(source["hardware"].split()),
                    "columns": columns, "figures": figures}
    return None


def values(arm: Mapping[str, Any], label: str) -> list[float] | None:
    """One number for each run, or None if the kernel does not have the counter."""
    found = [run["values"].get(label) for run in arm["runs"]]
    return None if not found or None in found else found


def _check(text: str, arms: Mapping[str, Mapping[str, Any]]) -> dict[str, Any] | None:
    """None when one of the arms was not run."""
    within = re.fullmatch(r"(\S+) (.+) within ([\d.]+) % of (\S+)", text)
    equal = re.fullmatch(r"(\S+) (.+) is ([\d.]+)", text)
    match = within or equal
    if not match:
        raise ResultError(f"bad check '{text}'")
    names = [match[1], match[4]] if within else [match[1]]
    if any(n not in arms for n in names):
        return None
    found = [values(arms[n], match[2]) for n in names]
    numbers = [stats.summary(v).median if v else None for v in found]
    shown = " and ".join("n/a" if n is None else f"{n:,.0f}" for n in numbers)
    if None in numbers:
        met = False
    elif within:
        met = abs(numbers[0] - numbers[1]) <= float(match[3]) / 100 * abs(numbers[1])  # type: ignore[operator,arg-type]
    else:
        met = numbers[0] == float(match[3])
    return {"text": text, "met": met, "values": shown}


def _arm(arm: Arm, done: list[Done], wanted: list[Row], image: Mapping[str, str]) -> Document:
    first = done[0].run
    for d in done[1:]:
        if d.run.release != first.release or d.run.proc_version != first.proc_version:
            raise ResultError(f"the kernel of {arm.name} changed between the runs")
    return {
        "name": arm.name, "kernel": arm.kernel, "text": arm.text, "options": arm.options,
        "image": {"release": first.release, "proc_version": first.proc_version,
                  "guest_config_sha256": first.config_sha256, **image},
        "runs": [{
            "number": d.job.number, "host_s": d.host_s, "qemu_command": d.qemu_command,
            "kernel_command_line": d.run.command_line,
            "values": {r.label: rows.evaluate(r.expression, d.run) for r in wanted},
            "sections": {n: asdict(s) for n, s in d.run.sections.items()},
        } for d in done]}


def build(scenario: Scenario, done: list[Done], images: Mapping[str, Mapping[str, str]],
          about: Mapping[str, Any], figures: Document | None) -> Document:
    arms = []
    for arm in scenario.arms:
        of_arm = [d for d in done if d.job.arm.name == arm.name]
        if of_arm:
            arms.append(_arm(arm, of_arm, scenario.rows, images[arm.name]))
    by_name = {a["name"]: a for a in arms}
    against = [[new, old] for new, olds in scenario.against.items() for old in olds
               if new in by_name and old in by_name]
    checks = [c for text in scenario.checks if (c := _check(text, by_name))]
    return {
        "format": FORMAT, "scenario": scenario.name, "title": scenario.title, **about,
        "notes": scenario.notes,
        "options": {k: scenario.options[k] for k in scenario.defaults},
        "variables": {k: v for k, v in scenario.options.items() if k not in scenario.defaults},
        "cpus": scenario.cpus, "memory_mb": scenario.memory,
        "arms": arms, "against": against, "checks": checks, "published": figures,
        "rows": [{"label": r.label, "expression": r.expression, "better": r.better, "chart": r.chart}
                 for r in scenario.rows]}
