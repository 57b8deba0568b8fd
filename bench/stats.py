# SPDX-License-Identifier: GPL-2.0-only
"""Median, spread, Welch's test, and when two sets of runs differ at all."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

# Wall-clock runs differ only when chance explains it less often than this.
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Summary:
    median: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        return self.high - self.low

    @property
    def relative(self) -> float:
        """Spread in percent of the median."""
        return 100 * self.spread / abs(self.median) if self.median else 0.0


def summary(values: list[float]) -> Summary:
    return Summary(statistics.median(values), min(values), max(values))


def _fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function, by Lentz's method."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    result = d
    for m in range(1, 1000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + numerator * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + numerator / c
            c = c if abs(c) > tiny else tiny
            result *= d * c
        if abs(d * c - 1) < 1e-14:
            break
    return result


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
                     + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


@dataclass(frozen=True)
class Welch:
    t: float
    df: float
    p: float


def welch(a: list[float], b: list[float]) -> Welch | None:
    """Welch's unequal-variances t-test, two-sided; None where there is no variance to judge by."""
    if len(a) < 2 or len(b) < 2:
        return None
    va, vb = statistics.variance(a) / len(a), statistics.variance(b) / len(b)
    difference = statistics.fmean(b) - statistics.fmean(a)
    if va + vb == 0:
        return None
    t = difference / math.sqrt(va + vb)
    df = (va + vb) ** 2 / (va ** 2 / (len(a) - 1) + vb ** 2 / (len(b) - 1))
    return Welch(t, df, incomplete_beta(df / 2, 0.5, df / (df + t * t)))


@dataclass(frozen=True)
class Change:
    """New against old. percent is None when old is zero and new is not."""

    percent: float | None
    same: bool
    p: float | None = None


def change(old: list[float], new: list[float], wall_clock: bool) -> Change:
    """A difference of the medians that a set's own spread covers is none."""
    a, b = summary(old), summary(new)
    effect = b.median - a.median
    same = abs(effect) <= max(a.spread, b.spread)
    test = welch(old, new) if wall_clock else None
    if test is not None and test.p >= SIGNIFICANT:
        same = True
    percent = 100 * effect / abs(a.median) if a.median else (0.0 if effect == 0 else None)
    return Change(percent, same, test.p if test else None)
