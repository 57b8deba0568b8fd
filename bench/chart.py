# SPDX-License-Identifier: GPL-2.0-only
"""The bar charts of a result, as one SVG made by gnuplot."""

from __future__ import annotations

import re
import subprocess

from result import Document, values
from stats import summary
from table import number

# Grey and blue for what was before, so that the eye goes to the measured change.
COLOURS = {"after": "#0f9d76", "image": "#d97706"}
BEFORE = ["#94a3b8", "#5b8def", "#a78bfa", "#c084fc"]
PANEL, HEIGHT = 300, 330
# A picture of its own and one inside the report both follow the reader's light or dark setting.
STYLE = """<style>
.zfolio { color: #1f2937; } .zfolio text { fill: currentColor; }
@media (prefers-color-scheme: dark) { .zfolio { color: #e5e7eb; } }
</style>"""


class ChartError(Exception):
    """Why there is no chart, in one line."""


def colour(arm: str, position: int) -> str:
    return COLOURS.get(arm, BEFORE[position % len(BEFORE)])


def _quoted(text: str) -> str:
    return '"' + re.sub(r'["\\]', "", text).replace("_", r"\\_") + '"'


def script(document: Document) -> str:
    """gnuplot commands: a panel for each row that wants a chart, a bar with min and max for each arm."""
    arms = document["arms"]
    panels = [r for r in document["rows"] if r["chart"]
              and all(values(a, r["label"]) for a in arms)]
    if not panels:
        raise ChartError("no row with a chart was measured on every kernel")
    out = [
        f"set terminal svg size {PANEL * len(panels)},{HEIGHT} font 'sans-serif,13' enhanced",
        f"set multiplot layout 1,{len(panels)}",
        "set style fill solid 1 noborder", "set boxwidth 0.62", "set border 1 lw 0.6",
        "set xtics nomirror scale 0", "unset ytics", "unset key",
        f"set xrange [-0.6:{len(arms) - 0.4}]"]
    for row in panels:
        sums = [summary(values(a, row["label"]) or [0.0]) for a in arms]
        top = max(s.high for s in sums) or 1.0
        tics = ", ".join(f"{_quoted(a['name'])} {i}" for i, a in enumerate(arms))
        direction = {"higher": "  (higher is better)", "lower": "  (lower is better)"}.get(row["better"], "")
        out += [f"set title {_quoted(row['label'] + direction)}", f"set xtics ({tics})", f"set yrange [0:{top * 1.15}]",
                "unset label"]
        for i, s in enumerate(sums):
            shown = number(s.median, row["label"])
            out.append(f"set label {i + 1} {_quoted(shown)} at {i},{s.high} center offset 0,0.7")
        plots = [f"'-' with boxes lc rgb '{colour(a['name'], i)}'" for i, a in enumerate(arms)]
        plots.append("'-' using 1:2:(0):3 with vectors nohead lw 1.5 lc rgb '#475569'")
        out.append("plot " + ", ".join(plots))
        out += [f"{i} {s.median}\ne" for i, s in enumerate(sums)]
        out += [f"{i} {s.low} {s.spread}" for i, s in enumerate(sums)] + ["e"]
    return "\n".join([*out, "unset multiplot", ""])


def svg(document: Document) -> str:
    try:
        made = subprocess.run(["gnuplot", "-"], input=script(document), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ChartError("gnuplot not found: install package gnuplot-nox") from None
    if made.returncode != 0 or "</svg>" not in made.stdout:
        raise ChartError(f"gnuplot failed: {(made.stderr.strip().splitlines() or ['no output'])[-1]}")
    # gnuplot fixes black for text and axes; the reader's setting decides.
    drawn = made.stdout[made.stdout.index("<svg"):]
    drawn = re.sub(r"<title>.*?</title>\s*<desc>.*?</desc>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"stroke=(['\"])black\1", "stroke='currentColor'", drawn)
    drawn = re.sub(r'\sfill="black"|\scolor="black"', "", drawn)
    drawn = drawn.replace("<svg", '<svg class="zfolio" role="img"', 1)
    return re.sub(r"(<svg[^>]*>)", lambda m: m[1] + STYLE, drawn, count=1)
