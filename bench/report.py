# SPDX-License-Identifier: GPL-2.0-only
"""The HTML report of a result: one file, nothing loaded from elsewhere."""

from __future__ import annotations

from html import escape
from pathlib import Path
from string import Template

import chart
import table
from result import Document

PAGE = Path(__file__).resolve().parent / "report.template.html"
CLASSES = {1: "better", -1: "worse", 0: ""}


def _cell(text: str, css: str = "", tag: str = "td") -> str:
    return f'<{tag} class="{css}">{escape(text)}</{tag}>' if css else f"<{tag}>{escape(text)}</{tag}>"


def _row(cells: list[str]) -> str:
    return "<tr>" + "".join(cells) + "</tr>"


def _main_table(document: Document) -> str:
    t = table.build(document)
    pairs = t.published_pairs()
    groups = [f'<th rowspan="2"></th><th colspan="{len(t.arms)}">median</th><th rowspan="2">spread</th>']
    if t.against:
        groups.append(f'<th colspan="{len(t.against)}">change</th>')
    if pairs:
        groups.append(f'<th class="pub" colspan="{len(pairs)}">published, other hardware</th>')
    second = [_cell(a, tag="th") for a in t.arms]
    second += [_cell(f"{new} vs {old}", tag="th") for new, old in t.against]
    second += [_cell(f"{new} vs {old}", "pub", "th") for new, old in pairs]
    body = []
    for line in t.lines:
        cells = [f'<th scope="row">{escape(line.label)}</th>']
        for median, low_high in zip(line.medians, line.ranges):
            cells.append(f'<td title="min..max {escape(low_high)}">{escape(median)}</td>')
        cells.append(_cell(line.spread, "dim"))
        for c in line.changes:
            cells.append(_cell(c.shown(), CLASSES[c.good] or ("dim" if c.text in (table.SAME, table.MISSING) else "")))
        cells += [_cell(p, "pub") for p in line.published]
        body.append(_row(cells))
    return (f'<table><thead><tr>{"".join(groups)}</tr>{_row(second)}</thead>'
            f'<tbody>{"".join(body)}</tbody></table>')


def _figures(document: Document) -> str:
    p = document["published"]
    if not p:
        return ""
    head = _row([_cell("", tag="th"), *(_cell(c, tag="th") for c in p["columns"])])
    body = [_row([_cell(label, tag="th"), *(_cell(table.number(f[c], label)) for c in p["columns"])])
            for label, f in p["figures"].items()]
    return (f'<section><h2>Published figures <span class="tag">other hardware</span></h2>'
            f'<p>{escape(p["text"])}: {escape(p["hardware"])}. Compare percentages, not seconds.</p>'
            f'<div class="scroll"><table><thead>{head}</thead><tbody>{"".join(body)}</tbody></table></div></section>')


def _headline(document: Document) -> str:
    """The first row that has a direction, in words."""
    t = table.build(document)
    for row, line in zip(document["rows"], t.lines):
        if row["better"] != "count" and t.against:
            said = [f"{c.text} against <b>{escape(old)}</b>" if c.text != table.SAME
                    else f"no difference to <b>{escape(old)}</b>"
                    for (new, old), c in zip(t.against, line.changes) if new == t.against[0][0]]
            return f"{escape(row['label'])} of <b>{escape(t.against[0][0])}</b>: {', '.join(said)}."
    return ""


def _runs(document: Document) -> str:
    labels = [r["label"] for r in document["rows"]]
    head = _row([_cell("run", tag="th"), *(_cell(x, tag="th") for x in labels), _cell("host s", tag="th")])
    body = [_row([_cell(f"{a['name']} {r['number']}", tag="th"),
                  *(_cell(table.number(r["values"][x], x)) for x in labels), _cell(f"{r['host_s']:.1f}")])
            for a in document["arms"] for r in a["runs"]]
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{"".join(body)}</tbody></table></div>'


def _kernels(document: Document) -> str:
    out = []
    for i, a in enumerate(document["arms"]):
        facts = {"kernel": a["kernel"], **a["image"], "QEMU": a["runs"][0]["qemu_command"],
                 "kernel command line": a["runs"][0]["kernel_command_line"]}
        shown = "".join(f"<dt>{escape(k)}</dt><dd>{escape(str(v))}</dd>" for k, v in facts.items() if v)
        out.append(f'<h3><i style="background:{chart.colour(a["name"], i)}"></i>{escape(a["name"])}</h3>'
                   f'<p>{escape(a["text"])}</p><dl>{shown}</dl>')
    return "".join(out)


def html(document: Document) -> str:
    about = table.caption(document)
    checked = "".join(
        f'<li class="{"met" if c["met"] else "unmet"}"><b>{"met" if c["met"] else "NOT MET"}</b> '
        f'{escape(c["text"])} <span class="dim">({escape(c["values"])})</span></li>' for c in document["checks"])
    time = "virtual time (instructions)" if document["virtual_time"] else "wall time"
    return Template(PAGE.read_text()).substitute(
        title=escape(document["title"]),
        tags="".join(f'<span class="tag">{escape(x)}</span>' for x in (
            document["stack"], document["scenario"], time,
            *(f"{k}={v}" for k, v in document["options"].items()))),
        headline=_headline(document),
        chart=chart.svg(document),
        table=_main_table(document),
        caption="".join(f"<li>{escape(x)}</li>" for x in about),
        checks=f"<section><h2>Checks</h2><ul class=\"checks\">{checked}</ul></section>" if checked else "",
        published=_figures(document), runs=_runs(document), kernels=_kernels(document),
        command=escape(document["command"]))
