# SPDX-License-Identifier: GPL-2.0-only
"""bench/run.py from its arguments to its files, with a boot script that replays recorded runs."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import bench_fixture as fixture
import guests
import run

BOOT = """#!/bin/sh
here=${0%/*}
while [ $# -gt 0 ]; do
    case $1 in --out) out=$2 ;; --append) append=$2 ;; --initrd) initrd=$2 ;; --) shift && break ;; esac
    shift
done
cp "$here/streams/${out##*/}" "$out/results.log"
cp "$here/streams/console" "$out/console.log"
echo "exit 0" >"$out/qemu.status"
echo "qemu-system-x86_64 $append $*" >"$out/qemu.cmd"
grep -q 'TRAILER!!!' "$initrd"
"""


class Run(unittest.TestCase):
    def setUp(self) -> None:
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.dir = Path(held.name)
        self.out = self.dir / "results"
        self.streams = self.dir / "streams"
        self.streams.mkdir()
        for arm in fixture.SPEED:
            for n in range(1, 6):
                (self.streams / f"{arm}-{n}").write_text(fixture.text(arm, n))
                (self.streams / f"image-{n}").write_text(fixture.text("case1", n))
        (self.streams / "console").write_text("Linux version 6.12.117\n")
        (self.dir / "boot").write_text(BOOT)
        (self.dir / "boot").chmod(0o755)
        (self.dir / "verdict.py").symlink_to(fixture.TOP / "scripts" / "verdict.py")
        (self.dir / "ktap.py").symlink_to(fixture.TOP / "scripts" / "ktap.py")
        for name in ("initrd", "bzImage"):
            (self.dir / name).write_text("x")

    def bench(self, *more: str) -> tuple[int, str, str]:
        image = self.dir / "bzImage"
        arguments = ["run.py", "--scenario", "store", "--stack", "v6.12", "--initrd", str(self.dir / "initrd"),
                     "--out", str(self.out), "--command", "make bench"]
        for kernel in ("base", "nothpswap", "patched"):
            arguments += ["--image", f"{kernel}={image}"]
        out, err = io.StringIO(), io.StringIO()
        with (mock.patch.object(guests, "SCRIPTS", self.dir), mock.patch.object(sys, "argv", [*arguments, *more]),
              contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)):
            status = run.main()
        return status, out.getvalue(), err.getvalue()

    def refused(self, reason: str, *more: str) -> None:
        status, out, err = self.bench(*more)
        self.assertEqual(status, 1)
        self.assertEqual(out, "")
        self.assertIn(reason, err.splitlines()[-1])
        self.assertFalse((self.out / "store-64K-zstd-usemem").exists())

    def test_every_file(self) -> None:
        status, out, err = self.bench()
        self.assertEqual(status, 0, err)
        final = self.out / "store-64K-zstd-usemem"
        self.assertTrue(out.rstrip().endswith(f"report: {final / 'report.html'}"))
        for name in ("result.json", "table.md", "chart.svg", "report.html"):
            self.assertTrue((final / name).stat().st_size, name)
        document = json.loads((final / "result.json").read_text())
        self.assertEqual([len(a["runs"]) for a in document["arms"]], [3, 3, 3])
        first = document["arms"][0]
        self.assertEqual(first["runs"][0]["sections"]["run"]["before"]["vmstat/zswpout"], 7)
        self.assertIn("null_blk.completion_nsec=80000", first["runs"][0]["qemu_command"])
        for number, entry in enumerate(first["runs"], 1):  # each run can be had again, instruction for instruction
            self.assertIn(f" -seed {number}", entry["qemu_command"])
            self.assertIn(",clock=vm", entry["qemu_command"])
        self.assertEqual(len(first["image"]["image-sha256"]), 64)
        self.assertEqual([p.name for p in self.out.iterdir()], [final.name])

    def test_missing_task_line(self) -> None:
        path = self.streams / "after-2"
        path.write_text(path.read_text().replace("75497472 bytes / 1500000 usecs", "", 1))
        self.refused("run 2 of after: section run: 3 task lines, 4 expected (console: ", "--arms", "after")

    def test_dead_guest(self) -> None:
        path = self.streams / "case2-3"
        path.write_text(path.read_text().replace("zfolio-end 0\n", ""))
        self.refused("run 3 of case2: truncated: the guest stopped without zfolio-end", "--arms", "case2")

    def test_reason_from_the_guest(self) -> None:
        path = self.streams / "after-1"
        path.write_text("zfolio-begin bench\nzfolio-end 1\n")
        (self.streams / "console").write_text("bench: error: zswap: no compressor zstd in this kernel\n")
        self.refused("run 1 of after: bench: error: zswap: no compressor zstd", "--arms", "after")

    def test_splat_beside_good_figures(self) -> None:
        (self.streams / "console").write_text("[    1.0] BUG: Bad page state in process usemem  pfn:1\n")
        self.refused("splat: BUG: Bad page state", "--arms", "after")

    def test_never_a_single_run(self) -> None:
        self.refused("RUNS=1: at least 3", "--runs", "1")
        self.refused("RUNS=4: at least 5", "--runs", "4", "--accel", "kvm")

    def test_unknown_column(self) -> None:
        self.refused("no column before", "--arms", "before")

    def test_failed_check_shows_in_the_status(self) -> None:
        for n in range(1, 4):
            path = self.streams / f"after-{n}"
            path.write_text(path.read_text().replace("after run vmstat/pswpout 7", "after run vmstat/pswpout 99"))
        status, out, _ = self.bench("--arms", "after")
        self.assertEqual(status, 1)
        self.assertIn("check: after pswpout is 0: NOT MET (92)", out)
        self.assertIn("report: ", out)

    def test_some_columns(self) -> None:
        status, out, _ = self.bench("--arms", "case1 case2")
        self.assertEqual(status, 0)
        self.assertNotIn("after vs", out)
        self.assertNotIn("check:", out)

    def test_the_users_own_image(self) -> None:
        status, out, err = self.bench("--image", f"image={self.dir / 'bzImage'}", "--arms", "case2 after image")
        self.assertEqual(status, 0, err)
        for head in ("image vs case2", "image vs after", "after vs case2"):
            self.assertIn(head, out.splitlines()[0])
        self.assertIn("image: 6.12.117-case1 (image): the kernel given as KERNEL_IMAGE=", out)

    def test_smoke_has_no_table(self) -> None:
        status, out, err = self.bench("--smoke", "--option", "DATA=usemem")
        self.assertEqual(status, 0, err)
        self.assertNotIn("throughput", out)
        self.assertTrue((self.out / "smoke-store" / "report.html").exists())

    def test_other_options_get_a_result_of_their_own(self) -> None:
        self.assertEqual(self.bench("--option", "MBPS=0", "--arms", "after")[0], 0)
        self.assertEqual([p.name for p in self.out.iterdir()], ["store-64K-zstd-usemem-MBPS0"])

    def test_kernels_to_build(self) -> None:
        self.assertEqual(self.bench("--list-kernels")[1], "base\nnothpswap\npatched\n")
        self.assertEqual(self.bench("--list-kernels", "--smoke")[1], "patched\n")


if __name__ == "__main__":
    unittest.main()
