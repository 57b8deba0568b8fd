# SPDX-License-Identifier: GPL-2.0-only
"""What the bench's tests share: its modules on the path, result streams, and a result made from them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[2]
DATA = Path(__file__).resolve().parent / "data" / "bench"
sys.path.insert(0, str(TOP / "bench"))

import result  # noqa: E402
import scenario  # noqa: E402
import stream  # noqa: E402
from guests import Done, Job  # noqa: E402

COUNTERS: dict[str, dict[str, int]] = {
    "case1": {"vmstat/zswpout": 32768, "vmstat/pswpout": 0, "cgroup/memory.swap.events/fail": 2048,
              "mthp/64kB/swpout_fallback": 2048, "mthp/64kB/swpout": 0},
    "case2": {"vmstat/zswpout": 12, "vmstat/pswpout": 32768, "cgroup/memory.swap.events/fail": 1,
              "mthp/64kB/swpout_fallback": 1, "mthp/64kB/swpout": 2047},
    "after": {"vmstat/zswpout": 32770, "vmstat/pswpout": 0, "cgroup/memory.swap.events/fail": 0,
              "mthp/64kB/swpout_fallback": 0, "mthp/64kB/swpout": 0, "mthp/64kB/zswpout": 2047},
}
SPEED = {"case1": 50000, "case2": 16000, "after": 59000}


def text(arm: str, number: int, jitter: int = 10) -> str:
    """A stream as scripts/guest/bench writes it; a later run of an arm is a little slower."""
    speed = SPEED[arm] - jitter * number
    counters = {**COUNTERS[arm], "cgroup/cpu.stat/system_usec": 400_000_000_000 // speed,
                "cgroup/memory.events/high": 1000 + number}
    lines = ["zfolio-begin bench", f"zfolio-record release 6.12.117-{arm}",
             "zfolio-record proc_version Linux version 6.12.117 (zfolio@zfolio) "
             "(gcc (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld 2.40) #1 SMP",
             "zfolio-record command_line console=ttyS0 zfolio.run=bench",
             "zfolio-record tasks_expected run 4",
             "zfolio-record command run usemem --init-time -w -O -s 1 -n 4 64m",
             "zfolio-record status run 0", f"zfolio-record elapsed_us run {500_000_000_000 // speed}"]
    lines += [f"zfolio-record before run {k} 7" for k in counters]
    lines += [f"zfolio-record after run {k} {v + 7}" for k, v in counters.items()]
    lines += ["zfolio-record stdout run the initialization time is 0 secs 12 usecs"]
    lines += [f"zfolio-record stdout run 75497472 bytes / 1500000 usecs = {speed} KB/s"] * 4
    lines += ["zfolio-record stdout run 1200 usecs to free memory"] * 4
    return "\n".join([*lines, "zfolio-end 0", ""])


def load(given: Mapping[str, str] | None = None, smoke: bool = False) -> scenario.Scenario:
    return scenario.load(TOP / "bench" / "scenarios" / "store", given or {}, smoke)


def document(accelerator: str = "icount", runs: int = 3, jitter: int = 10) -> dict[str, Any]:
    s = load()
    done = [Done(Job(arm, Path("/image"), n + 1), stream.parse(text(arm.name, n + 1, jitter)), "qemu-system-x86_64 …", 9.5)
            for n in range(runs) for arm in s.arms if arm.kernel != "image"]
    return result.build(
        s, done, {a.name: {"commit": "0123456789abcdef0123", "path": "/image"} for a in s.arms},
        {"stack": "v6.12", "accelerator": accelerator, "virtual_time": accelerator == "icount", "smoke": False,
         "qemu": "QEMU emulator version 7.2.22", "command": "make bench STACK=v6.12 SCENARIO=store"},
        result.published(TOP / "bench" / "published" / "store", s.options))
