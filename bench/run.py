# SPDX-License-Identifier: GPL-2.0-only
"""Run one scenario: boot its guests, then write result.json, table.md, chart.svg and report.html.

Called by scripts/run-bench, which has built the kernels and the initramfs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import chart
import guests
import report
import result
import rows
import scenario
import stream
import table

HERE = Path(__file__).resolve().parent


def _arguments() -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--scenario", required=True)
    p.add_argument("--stack", required=True)
    p.add_argument("--option", action="append", default=[], metavar="NAME=VALUE")
    p.add_argument("--arms", default="", help="only these, in blanks")
    p.add_argument("--smoke", action="store_true")
    p.add_argument("--runs", type=int, default=0)
    p.add_argument("--jobs", type=int, default=0)
    p.add_argument("--accel", default="icount", choices=("icount", "kvm", "tcg"))
    p.add_argument("--list-kernels", action="store_true", help="print the kernels to build, then stop")
    p.add_argument("--image", action="append", default=[], metavar="KERNEL=FILE")
    p.add_argument("--initrd", type=Path)
    p.add_argument("--out", type=Path, help="directory of the results of this stack's benches")
    p.add_argument("--command", default="", help="the command that repeats this run")
    return p.parse_args()


def _pairs(items: list[str]) -> dict[str, str]:
    return dict(i.split("=", 1) for i in items)


def _chosen(s: scenario.Scenario, only: list[str], have_image: bool, smoke: bool) -> list[scenario.Arm]:
    arms = [a for a in s.arms if a.kernel != "image" or have_image]
    unknown = [n for n in only if n not in [a.name for a in arms]]
    if unknown:
        raise scenario.ScenarioError(f"no column {unknown[0]}: there are {' '.join(a.name for a in arms)}")
    if not only and smoke:
        only = [a.name for a in arms if a.kernel in ("patched", "image")]
    return [a for a in arms if a.name in only] if only else arms


def _write(document: result.Document, out: Path) -> None:
    (out / "result.json").write_text(json.dumps(document, indent=1) + "\n")
    (out / "table.md").write_text(table.markdown(document))
    (out / "chart.svg").write_text(chart.svg(document))
    (out / "report.html").write_text(report.html(document))


def _image(path: Path) -> dict[str, str]:
    """What scripts/build-kernel wrote about the image that it built; the user's own has only its hash."""
    facts = {"path": str(path), "image-sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    stamp = path.parents[3] / "zfolio-kernel" if len(path.parents) > 3 else None
    if stamp and stamp.is_file():
        built = dict(line.split(" ", 1) for line in stamp.read_text().splitlines() if " " in line)
        if built.get("image-sha256") == facts["image-sha256"]:
            facts = {**built, **facts}
    return facts


def _qemu() -> str:
    said = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True)
    return said.stdout.splitlines()[0]


def _run(a: argparse.Namespace) -> int:
    s = scenario.load(HERE / "scenarios" / a.scenario, _pairs(a.option), a.smoke)
    images = {k: Path(v) for k, v in _pairs(a.image).items()}
    arms = _chosen(s, a.arms.split(), a.list_kernels or "image" in images, a.smoke)
    if a.list_kernels:
        # The base first: builds of the others start from a copy of its objects.
        kernels = dict.fromkeys(arm.kernel for arm in arms if arm.kernel != "image")
        print("\n".join(sorted(kernels, key=lambda k: k != "base")))
        return 0
    least = 1 if a.smoke else 3 if a.accel == "icount" else 5
    runs = a.runs or least
    if runs < least:
        raise scenario.ScenarioError(f"RUNS={runs}: at least {least} with ACCEL={a.accel}")
    # The sizes of a smoke run are nobody's choice, so they do not name it.
    name = f"smoke-{s.name}" if a.smoke else s.directory()
    if a.accel != "icount":
        name += f"-{a.accel}"
    final, partial = a.out / name, a.out / f"{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    # Guests on wall time disturb each other; instruction counts do not.
    parallel = a.jobs or (min(2, os.cpu_count() or 1) if a.accel == "icount" else 1)
    jobs = [guests.Job(arm, images[arm.kernel], n + 1) for n in range(runs) for arm in arms]
    farm = guests.Guests(s, a.accel, a.initrd, partial / "runs", parallel)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    done = farm.run(jobs)
    document = result.build(s, done, {arm.name: _image(images[arm.kernel]) for arm in arms}, {
        "stack": a.stack, "accelerator": a.accel, "virtual_time": a.accel == "icount",
        "smoke": a.smoke, "qemu": _qemu(), "command": a.command,
    }, result.published(HERE / "published" / s.name, s.options))
    if a.smoke:
        print(f"bench: smoke run of {s.name}: every task of {len(done)} guest(s) reported; too small for figures")
    else:
        print(table.text(document))
        print(table.notes(document), end="")
    _write(document, partial)
    shutil.rmtree(final, ignore_errors=True)
    partial.rename(final)
    for check in ([] if a.smoke else table.checks(document)):
        print(f"check: {check}")
    print(f"report: {final / 'report.html'}")
    return 0 if a.smoke or all(c["met"] for c in document["checks"]) else 1


def main() -> int:
    try:
        return _run(_arguments())
    except (scenario.ScenarioError, guests.GuestError, stream.StreamError, rows.RowError,
            result.ResultError, chart.ChartError, OSError) as e:
        print(f"bench: error: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
