# SPDX-License-Identifier: GPL-2.0-only
"""A run that is not whole never becomes a number; counters and expressions come out right."""

from __future__ import annotations

import unittest

import bench_fixture as fixture
import rows
import stream


class Whole(unittest.TestCase):
    def setUp(self) -> None:
        self.run_ = stream.parse(fixture.text("after", 1))

    def test_tasks(self) -> None:
        self.assertEqual(self.run_.sections["run"].tasks(), [58990] * 4)

    def test_task_line_after_progress_dots(self) -> None:
        section = stream.Section(stdout=["....16 bytes / 2 usecs = 7812 KB/s", "read again 16 bytes / 2 usecs = 7 KB/s"])
        self.assertEqual(section.tasks(), [7812])

    def test_expressions(self) -> None:
        for expression, value in (
                ("tasks/total_kbps", 4 * 58990.0), ("tasks/average_kbps", 58990.0),
                ("vmstat/zswpout", 32770.0), ("run:vmstat/zswpout", 32770.0),
                ("vmstat/zswpout / 2 + 5", 16390.0), ("elapsed_s", 500_000_000_000 // 58990 / 1e6),
                ("vmstat/nothing", None), ("vmstat/nothing + 1", None), ("out:vmstat/zswpout", None),
                ("1 / vmstat/pswpout", None)):
            self.assertEqual(rows.evaluate(expression, self.run_), value, expression)

    def test_bad_expression(self) -> None:
        for expression in ("1 +", "1 ^ 2", "vmstat/zswpout vmstat/zswpin"):
            with self.assertRaises(rows.RowError):
                rows.evaluate(expression, self.run_)

    def test_several_sections_and_values(self) -> None:
        extra = ("zfolio-record command in cat\nzfolio-record status in 0\nzfolio-record elapsed_us in 250000\n"
                 "zfolio-record value in huge_percent 47.5\nzfolio-end 0")
        run = stream.parse(fixture.text("after", 1).replace("zfolio-end 0", extra))
        self.assertEqual(rows.evaluate("in:elapsed_s", run), 0.25)
        self.assertEqual(rows.evaluate("in:value/huge_percent", run), 47.5)

    def test_carriage_returns(self) -> None:
        self.assertEqual(stream.parse(fixture.text("after", 1).replace("\n", "\r\n")), self.run_)


class Broken(unittest.TestCase):
    def refused(self, old: str, new: str, reason: str) -> None:
        with self.assertRaises(stream.StreamError) as caught:
            stream.parse(fixture.text("case1", 1).replace(old, new, 1))
        self.assertIn(reason, str(caught.exception))
        self.assertNotIn("\n", str(caught.exception))

    def test_missing_task_line(self) -> None:
        self.refused("zfolio-record stdout run 75497472 bytes / 1500000 usecs = 49990 KB/s\n", "",
                     "3 task lines, 4 expected")

    def test_half_a_task_line(self) -> None:
        self.refused("usecs = 49990 KB/s", "usecs = ", "3 task lines, 4 expected")

    def test_command_failed(self) -> None:
        self.refused("status run 0", "status run 1\nzfolio-record stderr run Data wrong at offset 4096",
                     "exited 1: Data wrong at offset 4096")

    def test_guest_died(self) -> None:
        self.refused("zfolio-end 0", "", "no end line")

    def test_run_script_failed(self) -> None:
        self.refused("zfolio-end 0", "zfolio-end 3", "exited 3")

    def test_never_began(self) -> None:
        self.refused("zfolio-begin bench\n", "", "never began")

    def test_command_without_end(self) -> None:
        self.refused("zfolio-record status run 0\n", "", "did not end")

    def test_malformed_record(self) -> None:
        self.refused("vmstat/zswpout 7", "vmstat/zswpout seven", "malformed record")

    def test_unknown_record(self) -> None:
        self.refused("zfolio-record release", "zfolio-record surprise run", "unknown record 'surprise'")

    def test_nothing_measured(self) -> None:
        with self.assertRaises(stream.StreamError):
            stream.parse("zfolio-begin bench\nzfolio-end 0\n")


if __name__ == "__main__":
    unittest.main()
