# SPDX-License-Identifier: GPL-2.0-only
"""Scenarios cycle and limit: rows worked out from recorded runs, a table from end to end, and their programs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import bench_fixture as fixture
import guests
import rows
import run
import scenario
import stream
from test_bench_run import BOOT

BENCH = fixture.TOP / "bench"
FLAGS = "-O2 -Wall -Wextra -Werror -static".split()
PAGE = 4096
LIMIT = 60  # seconds that any program may take

# The base writes its large folios to the device, the patched kernel to zswap.
CYCLE = {
    "base": {"out": {"vmstat/pswpout": 27853, "vmstat/zswpout": 0, "folio/swpout": 1740, "folio/swpout_fallback": 0,
                     "cgroup/memory.zswap.current": 0, "zswap/pool_total_size": 0},
             "in": {"vmstat/pswpin": 27853, "vmstat/zswpin": 0, "vmstat/pgmajfault": 27853}},
    "after": {"out": {"vmstat/pswpout": 3276, "vmstat/zswpout": 24577, "folio/zswpout": 1536, "folio/swpout": 204,
                      "folio/swpout_fallback": 0, "cgroup/memory.zswap.current": 32 << 20,
                      "zswap/pool_total_size": 34 << 20},
              "in": {"vmstat/pswpin": 3276, "vmstat/zswpin": 24577, "vmstat/pgmajfault": 27853}},
}
NS = {"base": {"out": 65_536_000, "in": 98_304_000}, "after": {"out": 327_680_000, "in": 196_608_000}}


def record(sections: dict[str, dict[str, int]], values: dict[str, dict[str, int]], release: str) -> str:
    lines = ["zfolio-begin bench", f"zfolio-record release 6.12.117-{release}",
             "zfolio-record proc_version Linux version 6.12.117 (zfolio@zfolio) "
             "(gcc (Debian 12.2.0-14+deb12u1) 12.2.0, GNU ld 2.40) #1 SMP",
             "zfolio-record command_line console=ttyS0 zfolio.run=bench"]
    for name, counters in sections.items():
        lines += [f"zfolio-record value {name} {k} {v}" for k, v in values[name].items()]
        lines += [f"zfolio-record command {name} order {name}", f"zfolio-record status {name} 0",
                  f"zfolio-record elapsed_us {name} 1000"]
        lines += [f"zfolio-record before {name} {k} 3" for k in counters]
        lines += [f"zfolio-record after {name} {k} {v + 3}" for k, v in counters.items()]
    return "\n".join([*lines, "zfolio-end 0", ""])


def cycle_text(arm: str, number: int) -> str:
    values = {half: {"pages": 32768, "ns": ns + 1000 * number} for half, ns in NS[arm].items()}
    values["out"]["resident"] = 0
    usec = {half: {**counters, "cgroup/cpu.stat/system_usec": NS[arm][half] // 1000}
            for half, counters in CYCLE[arm].items()}
    return record(usec, values, arm)


def limit_text() -> str:
    values = {"out": {"pages": 100, "ns": 2_000_000}, "sampled-out": {"samples": 4000, "inside": 3000, "ns": 1, "pages": 100},
              "in": {"pages": 100, "ns": 1_000_000}, "sampled-in": {"samples": 1000, "inside": 900, "ns": 1, "pages": 100}}
    return record({n: {"vmstat/zswpout": 80} if n == "out" else {} for n in values}, values, "base")


def work_out(name: str, text: str) -> dict[str, float | None]:
    s = scenario.load(BENCH / "scenarios" / name, {})
    parsed = stream.parse(text)
    return {r.label: rows.evaluate(r.expression, parsed) for r in s.rows}


class Rows(unittest.TestCase):
    def test_cycle(self) -> None:
        found = work_out("cycle", cycle_text("after", 0))
        for label, value in {
                "out (ns a page)": 10000, "in (ns a page)": 6000, "swap-out (s)": 0.32768, "cycle (s)": 0.524288,
                "sys time, in (s)": 0.196608, "pages": 32768, "pages that stayed": 0, "compressed (KB)": 32 << 10,
                "zswap pool (KB)": 34 << 10, "zswpout": 24577, "zswpin": 24577, "pswpout": 3276, "pswpin": 3276,
                "ZSWPOUT, folios of FOLIO": 1536, "pgmajfault": 27853}.items():
            self.assertEqual(found[label], value, label)

    def test_counter_that_the_base_does_not_have(self) -> None:
        found = work_out("cycle", cycle_text("base", 0))
        self.assertIsNone(found["ZSWPOUT, folios of FOLIO"])
        self.assertEqual(found["SWPOUT, folios of FOLIO"], 1740)

    def test_limit(self) -> None:
        found = work_out("limit", limit_text())
        for label, value in {
                "compressor (ns a page)": 15000, "out (ns a page)": 20000, "compressor, share of out (%)": 75,
                "decompressor (ns a page)": 9000, "decompressor, share of in (%)": 90, "samples of out": 4000,
                "zswpout": 80}.items():
            self.assertEqual(found[label], value, label)

    def test_every_compressor_has_its_words(self) -> None:
        path = BENCH / "scenarios" / "limit"
        words = [scenario.load(path, {"COMP": c}).options["WORDS"] for c in ("zstd", "lz4", "deflate")]
        self.assertEqual(len(set(words)), 3)

    def test_options(self) -> None:
        for name in ("cycle", "limit"):
            s = scenario.load(BENCH / "scenarios" / name, {"COMP": "lz4", "SIZE_MB": "48"})
            self.assertTrue(s.directory().startswith(name) and s.directory().endswith("SIZE_MB48"))
            self.assertIn("48m", s.notes[0])
            small = scenario.load(BENCH / "scenarios" / name, {}, smoke=True)
            self.assertLessEqual(int(small.options["SIZE_MB"]), 32)
        with self.assertRaises(scenario.ScenarioError):
            scenario.load(BENCH / "scenarios" / "cycle", {"FOLIO": "8K"})


class EndToEnd(unittest.TestCase):
    def test_table(self) -> None:
        with tempfile.TemporaryDirectory() as d:
            here = Path(d)
            (here / "streams").mkdir()
            for arm in CYCLE:
                for n in range(1, 4):
                    (here / "streams" / f"{arm}-{n}").write_text(cycle_text(arm, n))
            (here / "streams" / "console").write_text("Linux version 6.12.117\n")
            (here / "boot").write_text(BOOT)
            (here / "boot").chmod(0o755)
            for name in ("verdict.py", "ktap.py"):
                (here / name).symlink_to(fixture.TOP / "scripts" / name)
            for name in ("initrd", "bzImage"):
                (here / name).write_text("x")
            argv = ["run.py", "--scenario", "cycle", "--stack", "v6.12", "--initrd", str(here / "initrd"),
                    "--out", str(here / "results"), "--command", "make bench"]
            argv += [x for k in ("base", "patched") for x in ("--image", f"{k}={here / 'bzImage'}")]
            out = io.StringIO()
            with (mock.patch.object(guests, "SCRIPTS", here), mock.patch.object(sys, "argv", argv),
                  contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO())):
                self.assertEqual(run.main(), 0)
            lines = {line.split("  ")[0]: line.split() for line in out.getvalue().splitlines()}
            self.assertEqual(lines["out (ns a page)"][4:], ["2,000", "10,000", "0.00%", "+400.0%"])
            self.assertEqual(lines["pswpout"][1:], ["27,853", "3,276", "0.00%", "-88.2%"])
            self.assertIn("check: after pages that stayed is 0: met (0)", out.getvalue())
            document = json.loads((here / "results" / "cycle-64K-zstd-mix" / "result.json").read_text())
            self.assertIn("null_blk.irqmode=0", document["arms"][0]["runs"][0]["qemu_command"])


class Program(unittest.TestCase):
    """What tests of a program share; it has none itself."""

    name = ""
    libraries: list[str] = []
    program: Path

    @classmethod
    def setUpClass(cls) -> None:
        build = tempfile.TemporaryDirectory(prefix="cycle-")
        cls.addClassCleanup(build.cleanup)
        cls.program = Path(build.name) / cls.name
        subprocess.run(["gcc", *FLAGS, "-o", cls.program, BENCH / f"{cls.name}.c", *cls.libraries], check=True)

    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory(prefix="cycle-")
        self.addCleanup(held.cleanup)
        self.file = Path(held.name) / "file"

    def call(self, args: str, orders: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.program, *args.split()], input=orders, text=True, capture_output=True,
                              timeout=LIMIT, check=False)


class Cycle(Program):
    name = "cycle"

    def test_answers(self) -> None:
        for kind in ("mix", "usemem"):
            done = self.call(f"--data {kind} 2m", "out\nin\nverify\n")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            ready, out, back, verified = done.stdout.splitlines()
            self.assertEqual(ready, "ready")
            self.assertRegex(out, r"^pages 512 ns \d+ resident \d+$")
            for line in (back, verified):
                self.assertRegex(line, r"^pages 512 ns \d+$")

    @contextlib.contextmanager
    def started(self, args: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen([self.program, *args.split()], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as child:
            assert child.stdout
            self.assertEqual(child.stdout.readline(), "ready\n")
            yield child

    @staticmethod
    def address(pid: int, size: int) -> int:
        """Where the memory begins: at a multiple of 2M in the mapping that is 2M larger."""
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            low, high = (int(x, 16) for x in line.split()[0].split("-"))
            # The kernel may have put another mapping right beside it.
            if high - low >= size + (2 << 20):
                return low + (-low & (2 << 20) - 1)
        raise AssertionError("no mapping of that size")

    def written(self, args: str, pages: int) -> bytes:
        with self.started(f"{args} {pages * 4}k") as child:
            with open(f"/proc/{child.pid}/mem", "rb", buffering=0) as memory:
                memory.seek(self.address(child.pid, pages * PAGE))
                data = memory.read(pages * PAGE)
            child.communicate("", timeout=LIMIT)
        self.assertEqual(child.returncode, 0)
        return data

    def test_contents(self) -> None:
        self.assertEqual(struct.unpack("=2048Q", self.written("--data usemem", 4)), tuple(range(2048)))
        first, again, other = (self.written(f"--seed {s}", 640) for s in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertIn(bytes(16 * PAGE), first)

    def test_wrong_data_is_seen(self) -> None:
        with self.started("256k") as child:
            with open(f"/proc/{child.pid}/mem", "r+b", buffering=0) as memory:
                memory.seek(self.address(child.pid, 64 * PAGE) + 5 * PAGE + 100)
                memory.write(b"wrong bytes")
            _, said = child.communicate("out\nin\nverify\n", timeout=LIMIT)
        self.assertEqual((child.returncode, said), (1, f"cycle: data wrong at offset {5 * PAGE}\n"))

    def test_profile(self) -> None:
        done = subprocess.run([self.program, "--profile", "no_function_is_called_this", "4k"], text=True,
                              capture_output=True, timeout=LIMIT, check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("profile: no function of these names", done.stderr)
        done = self.call("--profile sys_ 8m", "out\nin\nverify\n")
        if "perf_event_open" in done.stderr or "no function" in done.stderr:
            self.skipTest("not allowed here: " + done.stderr.strip())
        _, out, back, verified = done.stdout.splitlines()
        self.assertRegex(out, r"^pages 2048 ns \d+ samples \d+ inside \d+ resident \d+$")
        self.assertRegex(back, r" samples \d+ inside \d+$")
        self.assertNotIn("samples", verified)

    def test_errors(self) -> None:
        for args in ("", "0", "5000", "4x", "-4k", "--data none 4k", "--seed 4k", "--bogus 1 4k", "4k 4k"):
            done = self.call(args)
            self.assertEqual((done.returncode, done.stdout), (2, ""), args)
            self.assertIn("usage: cycle", done.stderr)
        done = self.call("4k", "sideways\n")
        self.assertEqual((done.returncode, done.stderr), (1, "cycle: unknown order 'sideways'\n"))


class Converse(unittest.TestCase):
    """The functions of scripts/guest/bench that talk to such a program, in the host's shell."""

    def test_orders(self) -> None:
        text = (fixture.TOP / "scripts" / "guest" / "bench").read_text()
        wanted = [re.search(rf"^{name}\(\) \{{([^\n]*\}}$|.*?^\}}$)", text, re.MULTILINE | re.DOTALL)
                  for name in ("die", "value", "converse", "order", "part")]
        functions = "\n".join(m[0] for m in wanted if m)
        with tempfile.TemporaryDirectory() as d:
            script = f"""set -eu; W={d} s=
{functions}
converse sh -c 'echo ready; read -r x; echo "pages 4 ns 5"; read -r x; echo "no such order $x" >&2'
s=out; order one; s=
order two || echo status $?
part
cat $W/records
converse sh -c 'echo cannot >&2'
"""
            done = subprocess.run(["sh", "-c", script], text=True, capture_output=True, timeout=LIMIT, check=False)
        self.assertEqual(done.stdout, "status 1\nzfolio-record value out pages 4\nzfolio-record value out ns 5\n")
        first, second = done.stderr.splitlines()
        self.assertEqual(first, "no such order two")
        self.assertRegex(second, "^bench: error: sh -c .*: cannot$")
        self.assertNotEqual(done.returncode, 0)


def have_libraries() -> bool:
    said = subprocess.run(["gcc", "-E", "-xc", "-"], input="#include <stddef.h>\n#include <zstd.h>\n#include <lz4.h>\n",
                          text=True, capture_output=True, check=False)
    return said.returncode == 0


@unittest.skipUnless(have_libraries(), "no zstd.h or no lz4.h: packages libzstd-dev, liblz4-dev")
class Reuse(Program):
    name = "zstdreuse"
    libraries = ["-lzstd", "-llz4"]

    def test_report(self) -> None:
        self.file.write_bytes(os.urandom(4 * PAGE) + b"text that compresses " * 2000 + b"tail")
        done = self.call(f"1 {self.file}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        head, name, zstd, lz4 = done.stdout.splitlines()
        self.assertIn("least of 1 rounds", head)
        self.assertTrue(name.endswith(": 14 pages"), name)
        for line, library in ((zstd, "zstd"), (lz4, "lz4")):
            self.assertRegex(line, rf"^{library} +fresh +\d+ ns +kept +\d+ ns +[-+][\d.]+ % +size +\d+ +\d+ +[-+][\d.]+ %$")
            fresh, kept = (int(x) for x in line.split("size")[1].split()[:2])
            self.assertTrue(4 * PAGE < fresh < 6 * PAGE, line)
            self.assertLess(abs(kept - fresh), fresh / 50)

    def test_errors(self) -> None:
        self.file.write_bytes(b"short")
        for args, reason in (("", "usage"), ("3", "usage"), (f"x {self.file}", "usage"),
                             (f"1 {self.file}.none", "cannot be read"), (f"1 {self.file}", "less than a page")):
            done = self.call(args)
            self.assertEqual(done.returncode, 1)
            self.assertIn(reason, done.stderr)


class RunReuse(unittest.TestCase):
    def test_missing_headers(self) -> None:
        done = subprocess.run([fixture.TOP / "scripts" / "run-reuse"], env={**os.environ, "CC": shutil.which("false") or ""},
                              text=True, capture_output=True, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn("libzstd-dev and liblz4-dev", done.stderr)


if __name__ == "__main__":
    unittest.main()
