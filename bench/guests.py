# SPDX-License-Identifier: GPL-2.0-only
"""Boot the guests of a scenario and collect their runs."""

from __future__ import annotations

import shlex
import subprocess
import sys
import threading
import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import cpio
import stream
from scenario import Arm, Scenario

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"


class GuestError(Exception):
    """Why a run failed, in one line."""


@dataclass(frozen=True)
class Job:
    arm: Arm
    kernel: Path
    number: int


@dataclass
class Done:
    job: Job
    run: stream.Run
    qemu_command: str
    host_s: float


class Guests:
    """Runs jobs, at most `parallel` guests at once; stops all of them when one fails."""

    def __init__(self, scenario: Scenario, accel: str, initrd: Path, out: Path, parallel: int) -> None:
        self.scenario, self.accel, self.initrd, self.out = scenario, accel, initrd, out
        self.parallel = parallel
        self.lock = threading.Lock()
        self.children: set[subprocess.Popen[bytes]] = set()
        self.stopping = False

    def _initrd(self, job: Job, directory: Path) -> Path:
        options = {**self.scenario.guest_options(job.arm), "RUN": str(job.number)}
        files = {
            "zfolio/args": "".join(f"{k}={shlex.quote(v)}\n" for k, v in options.items()),
            "zfolio/scenario": f"setup() {{\n{self.scenario.setup}\n}}\n"
                               f"workload() {{\n{self.scenario.workload}\n}}\n",
        }
        path = directory / "initrd"
        base = self.initrd.read_bytes()
        path.write_bytes(base + b"\0" * (-len(base) % 4) + cpio.archive(files))
        return path

    def _boot(self, command: list[str], log: Path) -> int:
        with log.open("wb") as f, self.lock:
            if self.stopping:
                raise GuestError("stopped")
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=f, stderr=f)
            self.children.add(child)
        status = child.wait()
        with self.lock:
            self.children.discard(child)
        return status

    def _one(self, job: Job) -> Done:
        directory = self.out / f"{job.arm.name}-{job.number}"
        directory.mkdir(parents=True)
        initrd = self._initrd(job, directory)
        command = [
            str(SCRIPTS / "boot"), "--kernel", str(job.kernel), "--initrd", str(initrd),
            "--accel", self.accel, "--smp", str(self.scenario.cpus), "--mem", str(self.scenario.memory),
            "--timeout", str(self.scenario.timeout), "--out", str(directory),
            "--append", f"zfolio.run=bench {self.scenario.command_line(job.arm)}"]
        if self.accel == "icount":
            # The guest must see neither the host's clock nor the moment at which a host thread serves its result
            # channel nor the random seed that QEMU hands over: else no two runs execute the same instructions. So
            # each run has a seed of its own, and is the same whenever the command is given again.
            command += ["--", "-rtc", "base=2025-01-01T00:00:00,clock=vm", "-global", "virtio-serial-pci.ioeventfd=off",
                        "-seed", str(job.number)]
        start = time.monotonic()
        status = self._boot(command, directory / "boot.log")
        seconds = time.monotonic() - start
        what = f"run {job.number} of {job.arm.name}"
        if status != 0:
            said = (directory / "boot.log").read_text(errors="replace").strip().splitlines()
            raise GuestError(f"{what}: scripts/boot exited {status}: {said[-1] if said else ''}")
        verdict = subprocess.run(
            [sys.executable, str(SCRIPTS / "verdict.py"), "--expect-records",
             "--console", str(directory / "console.log"), "--results", str(directory / "results.log"),
             "--qemu-status", str(directory / "qemu.status")],
            capture_output=True, text=True, check=False)
        where = f"(console: {directory / 'console.log'})"
        results = directory / "results.log"
        try:
            run = stream.parse(results.read_text(errors="replace") if results.exists() else "")
        except stream.StreamError as e:
            said = verdict.stdout.splitlines() or ["no verdict"]
            reason = said[0] if verdict.returncode not in (0, 1) else str(e)
            console = (directory / "console.log").read_text(errors="replace").splitlines()
            reason = next((x.strip() for x in console if x.startswith("bench: error:")), reason)
            qemu = directory / "qemu.log"
            ended = qemu.read_text(errors="replace").strip().splitlines() if qemu.exists() else []
            reason += f" ({ended[-1]})" if ended else ""
            raise GuestError(f"{what}: {reason} {where}") from None
        if verdict.returncode != 0:
            raise GuestError(f"{what}: {(verdict.stdout.splitlines() or ['no verdict'])[0]} {where}")
        initrd.unlink()
        print(f"bench: {what}: {seconds:.1f} s", file=sys.stderr, flush=True)
        return Done(job, run, (directory / "qemu.cmd").read_text().strip(), round(seconds, 1))

    def stop(self) -> None:
        with self.lock:
            self.stopping = True
            for child in self.children:
                child.terminate()

    def run(self, jobs: list[Job]) -> list[Done]:
        with ThreadPoolExecutor(self.parallel) as pool:
            futures = [pool.submit(self._one, job) for job in jobs]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
                failed = [e for f in futures if f.done() and (e := f.exception())]
                if failed:
                    raise failed[0]
                return [f.result() for f in futures]
            finally:
                self.stop()
                for future in futures:
                    future.cancel()
