# SPDX-License-Identifier: GPL-2.0-only
"""Tables, charts, reports and comparisons made from recorded runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

import bench_fixture as fixture
import chart
import report
import result
import table


class Golden(unittest.TestCase):
    """UPDATE_GOLDEN=1 writes the files anew: read the difference before keeping it."""

    def same(self, name: str, made: str) -> None:
        path = fixture.DATA / name
        made = f"SPDX-License-Identifier: GPL-2.0-only\n\n{made}"
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(made)
        self.assertEqual(path.read_text(), made)

    def test_icount(self) -> None:
        document = fixture.document()
        self.same("table-icount.txt", "\n".join([table.text(document), table.notes(document), *table.checks(document), ""]))

    def test_markdown(self) -> None:
        self.same("table-icount.md", table.markdown(fixture.document()))

    def test_wall_clock(self) -> None:
        document = fixture.document("kvm", runs=5, jitter=400)
        self.same("table-kvm.txt", table.text(document) + table.notes(document))


class Cells(unittest.TestCase):
    def line(self, label: str, **kw: int) -> table.Line:
        return next(x for x in table.build(fixture.document(**kw)).lines if x.label == label)  # type: ignore[arg-type]

    def test_missing_counter(self) -> None:
        line = self.line("ZSWPOUT-64kB")
        self.assertEqual(line.medians, ["n/a", "n/a", "2,047"])
        self.assertEqual([c.text for c in line.changes], ["n/a", "n/a"])

    def test_spread_larger_than_effect(self) -> None:
        self.assertEqual(self.line("elapsed (s)", jitter=4600).changes[0].text, table.SAME)
        self.assertEqual(self.line("elapsed (s)").changes[0].text, "-15.3%")

    def test_better_and_worse(self) -> None:
        self.assertEqual([c.good for c in self.line("Total throughput (KB/s)").changes], [1, 1])
        self.assertEqual([c.good for c in self.line("memcg_swap_fail").changes], [0, 0])

    def test_published_percentages(self) -> None:
        self.assertEqual(self.line("Total throughput (KB/s)").published, ["+18.0%", "+472.1%"])
        self.assertEqual(self.line("elapsed (s)").published, ["-10.1%", "-68.8%"])

    def test_published_rows_are_rows_of_the_scenario(self) -> None:
        for folio in ("4K", "64K", "2M"):
            s = fixture.load({"FOLIO": folio})
            found = result.published(fixture.TOP / "bench" / "published" / "store", s.options)
            assert found is not None
            self.assertLessEqual(set(found["figures"]), {r.label for r in s.rows})

    def test_nothing_published_for_other_configurations(self) -> None:
        for given in ({"COMP": "lz4"}, {"DATA": "mix"}, {"FOLIO": "32K"}, {"COMP": "deflate"}):
            s = fixture.load(given)
            self.assertIsNone(result.published(fixture.TOP / "bench" / "published" / "store", s.options))

    def test_checks(self) -> None:
        document = fixture.document()
        self.assertEqual([c["met"] for c in document["checks"]], [True, True])
        arms = {a["name"]: a for a in document["arms"]}
        for run in arms["after"]["runs"]:
            run["values"]["zswpout"] = 32000.0
        found = result._check("after zswpout within 1 % of case1", arms)
        assert found is not None
        self.assertFalse(found["met"])
        self.assertIsNone(result._check("image zswpout is 0", arms))
        with self.assertRaises(result.ResultError):
            result._check("after is good", arms)


class Loads(HTMLParser):
    """Everything that a page would fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [v for k, v in attrs if v and (k == "src" or k == "href" and tag in ("link", "script"))]


class Pictures(unittest.TestCase):
    def test_chart(self) -> None:
        drawn = chart.svg(fixture.document())
        for shown in ("case1", "case2", "after", "Total throughput", "236"):
            self.assertIn(shown, drawn)
        self.assertIn("prefers-color-scheme", drawn)
        self.assertNotIn("black", drawn)

    def test_report_stands_alone(self) -> None:
        page = report.html(fixture.document())
        loads = Loads()
        loads.feed(page)
        self.assertEqual(loads.found, [])
        self.assertNotRegex(page, r"@import|url\(\s*['\"]?http")
        self.assertIn("published, other hardware", page)
        self.assertIn("virtual time (instructions)", page)
        self.assertIn("make bench STACK=v6.12", page)
        self.assertIsNone(re.search(r"\$[a-z]", page))


class Compare(unittest.TestCase):
    def compare(self, *args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, str(fixture.TOP / "bench" / "compare"), *args],
                              capture_output=True, text=True, check=False)

    def test_two_results(self) -> None:
        with tempfile.TemporaryDirectory() as d:
            a, b, c = (str(Path(d) / n) for n in ("a.json", "b.json", "c.json"))
            document = fixture.document()
            Path(a).write_text(json.dumps(document))
            Path(b).write_text(json.dumps({**document, "options": {**document["options"], "COMP": "lz4"}}))
            Path(c).write_text(json.dumps(fixture.document("kvm", runs=5)))
            done = self.compare(f"{a}:case1", b)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("after vs case1", done.stdout)
            self.assertIn("+18.0%", done.stdout)
            self.assertIn("note: COMP differs: zstd and lz4", done.stdout)
            self.assertIn("B after vs A after", self.compare(a, b).stdout)
            for args, reason in (((a, c), "different accelerators"), ((a, f"{b}:none"), "no column none"),
                                 ((a, str(Path(d) / "gone.json")), "gone.json")):
                done = self.compare(*args)
                self.assertEqual(done.returncode, 2)
                self.assertIn(reason, done.stderr)
                self.assertEqual(len(done.stderr.splitlines()), 1)
                self.assertEqual(done.stdout, "")

    def test_not_a_result(self) -> None:
        with tempfile.TemporaryDirectory() as d:
            path = Path(d) / "x.json"
            for content in ("", "[]", '{"format": 99}'):
                path.write_text(content)
                done = self.compare(str(path), str(path))
                self.assertEqual((done.returncode, done.stdout), (2, ""))


if __name__ == "__main__":
    unittest.main()
