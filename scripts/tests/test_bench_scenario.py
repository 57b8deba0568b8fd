# SPDX-License-Identifier: GPL-2.0-only
"""Scenario files: options, arms, conditions, errors in one line; every scenario of the repository loads."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

import bench_fixture as fixture
import cpio
import scenario

MINIMAL = """
[scenario]
title = Test
[arms]
off = base LARGE=never | off
on = base LARGE=always | on
[against]
on = off
[options]
LARGE = never | never always
N = 4 | number
[set N=8]
DEPTH = 2
[guest]
memory = 512
append = a=$LARGE n=$N
[guest shell]
setup = true
workload =
    measure out a

    measure in b
[rows]
out = out:elapsed_s / N | lower
in = in:elapsed_s | lower chart | N=8
"""


class Scenarios(unittest.TestCase):
    def minimal(self, given: dict[str, str], text: str = MINIMAL) -> scenario.Scenario:
        with tempfile.TemporaryDirectory() as d:
            path = Path(d) / "test"
            path.write_text(text)
            return scenario.load(path, given)

    def refused(self, given: dict[str, str], reason: str, text: str = MINIMAL) -> None:
        with self.assertRaises(scenario.ScenarioError) as caught:
            self.minimal(given, text)
        self.assertIn(reason, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_arms_of_one_kernel_with_options_of_their_own(self) -> None:
        s = self.minimal({"N": "8"})
        self.assertEqual([s.command_line(a) for a in s.arms], ["a=never n=8", "a=always n=8"])
        self.assertEqual(s.options["DEPTH"], "2")
        self.assertEqual([r.label for r in s.rows], ["out", "in"])
        self.assertEqual(s.workload, "measure out a\n\nmeasure in b")

    def test_conditions(self) -> None:
        s = self.minimal({})
        self.assertEqual([r.label for r in s.rows], ["out"])
        self.assertNotIn("DEPTH", s.options)

    def test_errors(self) -> None:
        self.refused({"LARGE": "maybe"}, "LARGE=maybe: not one of never always")
        self.refused({"N": "many"}, "N=many: not a number")
        self.refused({"M": "1"}, "no option M")
        self.refused({}, "'memory'", MINIMAL.replace("memory", "remember"))
        self.refused({}, "not higher, lower or count", MINIMAL.replace("| lower\n", "| faster\n"))

    def test_unknown_variable_in_append(self) -> None:
        s = self.minimal({}, MINIMAL.replace("$N", "$NONE"))
        with self.assertRaises(scenario.ScenarioError):
            s.command_line(s.arms[0])

    def test_no_such_scenario(self) -> None:
        for name in ("nothing", "README"):
            with self.assertRaises(scenario.ScenarioError) as caught:
                scenario.load(fixture.TOP / "bench" / "scenarios" / name, {})
            self.assertIn("there are", str(caught.exception))

    def test_repository_scenarios(self) -> None:
        for path in sorted((fixture.TOP / "bench" / "scenarios").iterdir()):
            if path.name != "README":
                for smoke in (False, True):
                    s = scenario.load(path, {}, smoke)
                    self.assertTrue(s.rows and s.arms, path.name)
                    for arm in s.arms:
                        s.command_line(arm)
                    for shell in (s.setup, s.workload):
                        subprocess.run(["sh", "-n"], input=shell, text=True, check=True)

    def test_store_rows_follow_the_folio_size(self) -> None:
        labels = [r.label for r in fixture.load({"FOLIO": "2M"}).rows]
        self.assertIn("ZSWPOUT-2MB", labels)
        self.assertNotIn("ZSWPOUT-64kB", labels)

    def test_store_smoke_is_small(self) -> None:
        s = fixture.load(smoke=True)
        self.assertLessEqual(int(s.options["TASKS"]) * int(s.options["SIZE_MB"]), 32)
        self.assertEqual(fixture.load({"SIZE_MB": "16"}, smoke=True).options["SIZE_MB"], "16")


class Cpio(unittest.TestCase):
    def test_unpacks(self) -> None:
        with tempfile.TemporaryDirectory() as d:
            (Path(d) / "zfolio").mkdir()
            archive = cpio.archive({"zfolio/args": "A='1'\n", "zfolio/scenario": "setup() { :; }\n"})
            subprocess.run(["cpio", "-i", "--quiet"], cwd=d, input=archive, check=True)
            self.assertEqual((Path(d) / "zfolio" / "args").read_text(), "A='1'\n")
        self.assertEqual(len(archive) % 512, 0)


if __name__ == "__main__":
    unittest.main()
