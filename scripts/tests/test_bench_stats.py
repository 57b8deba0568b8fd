# SPDX-License-Identifier: GPL-2.0-only
"""bench/stats.py: Welch's test against known values, spread, and the no-difference rule."""

from __future__ import annotations

import unittest

import bench_fixture  # noqa: F401
import stats


class Welch(unittest.TestCase):
    # A published worked example, p = 0.021378001.
    A1 = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4]
    A2 = [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 20.5, 24.4]

    def test_known_value(self) -> None:
        w = stats.welch(self.A1, self.A2)
        assert w is not None
        self.assertAlmostEqual(w.p, 0.021378001, places=8)

    def test_textbook_distribution(self) -> None:
        # Two-sided p of t = 2.228 with 10 degrees of freedom is 0.05, of 12.706 with 1 also.
        for t, df in ((2.228139, 10), (12.706205, 1), (1.959966, 1e7)):
            self.assertAlmostEqual(stats.incomplete_beta(df / 2, 0.5, df / (df + t * t)), 0.05, places=5)

    def test_incomplete_beta(self) -> None:
        self.assertAlmostEqual(stats.incomplete_beta(1, 1, 0.3), 0.3, places=12)
        self.assertAlmostEqual(stats.incomplete_beta(2, 3, 0.4), 0.5248, places=10)
        self.assertEqual(stats.incomplete_beta(2, 3, 0), 0.0)
        self.assertEqual(stats.incomplete_beta(2, 3, 1), 1.0)

    def test_nothing_to_test(self) -> None:
        self.assertIsNone(stats.welch([1.0], [2.0, 3.0]))
        self.assertIsNone(stats.welch([2.0, 2.0], [2.0, 2.0]))
        self.assertIsNone(stats.welch([2.0, 2.0], [3.0, 3.0]))


class Change(unittest.TestCase):
    def test_percentage_of_medians(self) -> None:
        c = stats.change([100, 101, 99], [118, 117, 119], wall_clock=False)
        self.assertAlmostEqual(c.percent or 0, 18.0)
        self.assertFalse(c.same)

    def test_spread_covers_the_effect(self) -> None:
        self.assertTrue(stats.change([100, 104, 98], [103, 104, 102], wall_clock=False).same)
        self.assertTrue(stats.change([103, 104, 102], [100, 104, 98], wall_clock=False).same)

    def test_equal_runs(self) -> None:
        self.assertTrue(stats.change([5, 5, 5], [5, 5, 5], wall_clock=False).same)
        self.assertTrue(stats.change([0, 0, 0], [0, 0, 0], wall_clock=True).same)

    def test_from_zero_has_no_percentage(self) -> None:
        c = stats.change([0, 0, 0], [5, 5, 5], wall_clock=False)
        self.assertIsNone(c.percent)
        self.assertFalse(c.same)

    def test_wall_clock_needs_significance(self) -> None:
        noisy = stats.change([100, 110, 90, 105, 95], [112, 122, 102, 117, 107], wall_clock=True)
        self.assertTrue(noisy.same)
        clear = stats.change([100, 101, 99, 100, 100], [110, 111, 109, 110, 110], wall_clock=True)
        self.assertFalse(clear.same)
        assert clear.p is not None
        self.assertLess(clear.p, 0.001)

    def test_constant_counters_differ_without_a_test(self) -> None:
        c = stats.change([4.0] * 5, [5.0] * 5, wall_clock=True)
        self.assertEqual((c.percent, c.same, c.p), (25.0, False, None))

    def test_summary(self) -> None:
        s = stats.summary([3.0, 1.0, 2.0, 10.0])
        self.assertEqual((s.median, s.low, s.high, s.spread), (2.5, 1.0, 10.0, 9.0))
        self.assertAlmostEqual(s.relative, 360.0)


if __name__ == "__main__":
    unittest.main()
