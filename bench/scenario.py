# SPDX-License-Identifier: GPL-2.0-only
"""Read bench/scenarios/<name> (format: bench/scenarios/README)."""

from __future__ import annotations

import configparser
import re
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


class ScenarioError(Exception):
    """What is wrong with a scenario or with the options given to it, in one line."""


@dataclass(frozen=True)
class Arm:
    name: str
    kernel: str
    text: str
    options: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    label: str
    expression: str
    better: str
    chart: bool


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    named_by: list[str]
    arms: list[Arm]
    against: dict[str, list[str]]
    options: dict[str, str]
    cpus: int
    memory: int
    timeout: int
    append: str
    setup: str
    workload: str
    rows: list[Row]
    checks: list[str]
    notes: list[str]
    defaults: dict[str, str]

    def directory(self) -> str:
        """Where the result goes: an option that is not at its default gets a result of its own."""
        named = [self.options[o] for o in self.named_by]
        other = [f"{o}{self.options[o]}" for o, d in self.defaults.items()
                 if o not in self.named_by and self.options[o] != d]
        return "-".join([self.name, *named, *other])

    def guest_options(self, arm: Arm) -> dict[str, str]:
        return {**self.options, **arm.options}

    def command_line(self, arm: Arm) -> str:
        return " ".join(_substitute(self.append, self.guest_options(arm)).split())


def holds(condition: str, options: Mapping[str, str]) -> bool:
    """True if every OPTION=VALUE of the condition is so; the empty condition is true."""
    return all(options.get(c.split("=", 1)[0]) == c.split("=", 1)[1] for c in condition.split())


def _substitute(text: str, options: Mapping[str, str]) -> str:
    try:
        return string.Template(text).substitute(options)
    except (KeyError, ValueError) as e:
        raise ScenarioError(f"no option or variable {e} for '{text[:60]}'") from None


def _allowed(name: str, value: str, values: str) -> None:
    if values == "number":
        if not re.fullmatch(r"[0-9]+", value):
            raise ScenarioError(f"{name}={value}: not a number")
    elif value not in values.split():
        raise ScenarioError(f"{name}={value}: not one of {values}")


def _options(ini: configparser.ConfigParser, given: Mapping[str, str], smoke: bool) -> dict[str, str]:
    """Defaults, then [set …] of the options in force, then what the user gave."""
    allowed: dict[str, str] = {}
    options: dict[str, str] = {}
    for name, spec in ini["options"].items():
        default, _, values = (s.strip() for s in spec.partition("|"))
        allowed[name], options[name] = values, default
    for name in given:
        if name not in allowed:
            raise ScenarioError(f"no option {name}: there are {' '.join(allowed)}")
    if smoke and ini.has_section("set SMOKE=1"):
        options |= ini["set SMOKE=1"]
    options |= given
    for name, values in allowed.items():
        _allowed(name, options[name], values)
    for section in ini.sections():
        if section.startswith("set ") and section != "set SMOKE=1":
            if holds(section[4:], options):
                options |= {k: v for k, v in ini[section].items() if k not in given}
    return options


def _arm(name: str, spec: str) -> Arm:
    left, _, text = spec.partition("|")
    kernel, *settings = left.split()
    return Arm(name, kernel, text.strip(), dict(s.split("=", 1) for s in settings))


def _rows(ini: configparser.ConfigParser, options: Mapping[str, str]) -> list[Row]:
    rows = []
    for label, spec in ini["rows"].items():
        parts = [p.strip() for p in spec.split("|")]
        flags = parts[1].split() if len(parts) > 1 else ["count"]
        if flags[0] not in ("higher", "lower", "count"):
            raise ScenarioError(f"row {label}: '{flags[0]}' is not higher, lower or count")
        if len(parts) < 3 or holds(parts[2], options):
            rows.append(Row(label, parts[0], flags[0], "chart" in flags))
    return rows


def _checks(ini: configparser.ConfigParser, options: Mapping[str, str]) -> list[str]:
    if not ini.has_section("checks"):
        return []
    pairs = [v.partition("|") for v in ini["checks"].values()]
    return [c.strip() for c, _, condition in pairs if holds(condition, options)]


def load(path: Path, given: Mapping[str, str], smoke: bool = False) -> Scenario:
    ini = configparser.ConfigParser(
        delimiters=("=",), comment_prefixes=("#",), interpolation=None, default_section="")
    ini.optionxform = str  # type: ignore[assignment,method-assign]
    if not path.is_file() or path.name.upper() == path.name:
        known = sorted(p.name for p in path.parent.glob("*") if p.name.upper() != p.name)
        raise ScenarioError(f"no scenario {path.name}: there are {' '.join(known)}")
    try:
        ini.read_string(path.read_text())
        options = _options(ini, given, smoke)
        guest, shell = ini["guest"], ini["guest shell"]
        return Scenario(
            name=path.name,
            title=ini["scenario"]["title"],
            named_by=ini["scenario"].get("name", "").split(),
            arms=[_arm(n, s) for n, s in ini["arms"].items()],
            against={n: s.split() for n, s in ini["against"].items()},
            options=options,
            cpus=int(guest.get("cpus", "1")),
            memory=int(guest["memory"]),
            timeout=int(guest.get("timeout", "300")),
            append=guest.get("append", ""),
            setup=shell["setup"].strip(),
            workload=shell["workload"].strip(),
            rows=_rows(ini, options),
            checks=_checks(ini, options),
            notes=[_substitute(n, options) for n in ini["scenario"].get("notes", "").splitlines() if n],
            defaults={o: spec.partition("|")[0].strip() for o, spec in ini["options"].items()},
        )
    except (configparser.Error, KeyError, ValueError) as e:
        raise ScenarioError(f"{path.name}: {str(e).splitlines()[0]}") from None
