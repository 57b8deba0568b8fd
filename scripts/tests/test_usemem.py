# SPDX-License-Identifier: GPL-2.0-only
"""Tests of bench/usemem.c: each option by what one can see of it from outside."""

import contextlib
import os
import pty
import re
import resource
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).resolve().parent / "data"
FLAGS = "-O2 -Wall -Wextra -Werror -static -pthread".split()
WRAPPED = ("mmap", "munmap", "mremap", "madvise", "msync", "mincore", "fork")

K, M, G = 1 << 10, 1 << 20, 1 << 30
RESULT = re.compile(r"(\d+) bytes / (\d+) usecs = (\d+) KB/s")
AGAIN = re.compile(r"read again (\d+) bytes / (\d+) usecs = (\d+) KB/s")
INIT = re.compile(r"the initialization time is (\d+) secs (\d+) usecs")
FREE = re.compile(r"(\d+) usecs to free memory")
DEV_ZERO = re.compile(r"rw-p .* /dev/zero\n")
MADV_HUGEPAGE, MADV_COLD, MADV_PAGEOUT, MADV_POPULATE_WRITE = 14, 20, 21, 23
MS_ASYNC, MS_SYNC = 1, 4
MAP_POPULATE, MAP_HUGETLB = 0x8000, 0x40000
LIMIT = 10  # seconds that any wait may take


def one_pass(size: int) -> int:
    return size // 8 + size


class Call(NamedTuple):
    pid: int
    name: str
    length: int
    flag: int


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("the state waited for did not come")
        time.sleep(0.005)


def children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # ended meanwhile
            if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(stat.parent.name))
    return sorted(found)


def alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def status(pid: int, key: str) -> str:
    text = Path(f"/proc/{pid}/status").read_text()
    return re.search(rf"^{key}:\s*(.*)$", text, re.M).group(1)


def kilobytes(pid: int, key: str) -> int:
    return int(status(pid, key).split()[0])


def maps(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()


def words(path: Path) -> tuple[int, ...]:
    data = path.read_bytes()
    return struct.unpack(f"={len(data) // 8}Q", data)


def touched_pages(path: Path) -> set[int]:
    return {i * 8 // 4096 for i, word in enumerate(words(path)) if word}


class UsememTest(unittest.TestCase):
    build: tempfile.TemporaryDirectory
    program: Path
    logging_program: Path

    @classmethod
    def setUpClass(cls) -> None:
        # The compiler runs once for all classes of this file.
        if hasattr(UsememTest, "program"):
            return
        UsememTest.build = tempfile.TemporaryDirectory(prefix="usemem-")
        unittest.addModuleCleanup(UsememTest.build.cleanup)
        source, out = ROOT / "bench/usemem.c", Path(UsememTest.build.name)
        UsememTest.program = out / "usemem"
        UsememTest.logging_program = out / "usemem-calls"
        wrap = [f"-Wl,--wrap={name}" for name in WRAPPED]
        subprocess.run(["gcc", *FLAGS, source, "-o", cls.program], check=True)
        subprocess.run(["gcc", *FLAGS, *wrap, source, DATA / "usemem-calls.c",
                        "-o", cls.logging_program], check=True)

    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory(prefix="usemem-")
        self.addCleanup(holder.cleanup)
        self.dir = Path(holder.name)
        self.file = self.dir / "memory"

    def usemem(self, args: str, program: Path | None = None,
               **more: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program or self.program, *args.split()], text=True,
            capture_output=True, timeout=LIMIT, check=False, **more)

    def lines(self, args: str) -> list[str]:
        """Output of a run that has to be right."""
        run = self.usemem(args)
        self.assertEqual((run.returncode, run.stderr), (0, ""), args)
        return run.stdout.splitlines()

    def task_bytes(self, args: str) -> int:
        (line,) = self.lines(args)
        self.assertRegex(line, RESULT)
        return int(RESULT.fullmatch(line).group(1))

    def calls(self, args: str) -> list[Call]:
        """System calls of a run that has to be right."""
        log = self.dir / "calls"
        log.unlink(missing_ok=True)
        env = {**os.environ, "USEMEM_CALLS": str(log)}
        run = self.usemem(args, self.logging_program, env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        found = []
        for line in log.read_text().splitlines():
            pid, name, length, flag = line.split()
            found.append(Call(int(pid), name, int(length), int(flag)))
        return found

    @contextlib.contextmanager
    def started(self, args: str, results: int = 0,
                ) -> Iterator[subprocess.Popen[str]]:
        """A run in the background, after its first lines of output."""
        with subprocess.Popen(
                [self.program, *args.split()], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
            try:
                for _ in range(results):
                    self.assertRegex(run.stdout.readline(), RESULT)
                yield run
            finally:
                run.kill()


class Output(UsememTest):
    def test_bytes(self) -> None:
        self.assertEqual(self.task_bytes("16m"), 18874368)
        self.assertEqual(self.task_bytes("-j 4096 -r 4 16m"), 2228224)
        # What 10g gives, by the rule that the smaller sizes follow
        self.assertEqual(one_pass(10 * G), 12079595520)
        for size, count in (("8", 8), ("64k", 64 * K), ("3M", 3 * M)):
            self.assertEqual(self.task_bytes(size), one_pass(count))

    def test_bytes_of_large_sizes(self) -> None:
        # Read-only memory of this size costs nothing.
        self.assertEqual(self.task_bytes("-o -O -j 1m 10g"), 10 * G // 8 + 8 * 10240)
        self.assertEqual(self.task_bytes("-o -O -j 1g 1t"), K * G // 8 + 8 * 1024)

    def test_bytes_of_odd_sizes(self) -> None:
        self.assertEqual(self.task_bytes("4100"), 512 + 8 * 512)
        self.assertEqual(self.task_bytes("-j 24 80"), 10 + 8 * 4)
        self.assertEqual(self.task_bytes("-j 1m 4k"), 512 + 8)
        self.assertEqual(self.task_bytes("-u 24 -j 16 80"), 10 + 8 * (3 * 2 + 1))

    def test_rate_is_rounded_down(self) -> None:
        for line in self.lines("-n 3 -r 2 1m"):
            count, usecs, rate = map(int, RESULT.fullmatch(line).groups())
            self.assertEqual(rate, count * 10**6 // 1024 // usecs)

    def test_published_command(self) -> None:
        lines = self.lines("--init-time -w -O -s 0 -n 3 1m")
        self.assertRegex(lines[0], INIT)
        self.assertEqual(len(lines), 7)
        self.assertEqual(sum(1 for x in lines if RESULT.fullmatch(x)), 3)
        self.assertEqual(sum(1 for x in lines if FREE.fullmatch(x)), 3)

    def test_clock_starts_before_forking(self) -> None:
        # The children of this program start 50 ms late.
        env = {**os.environ, "USEMEM_CALLS": "/dev/null"}
        run = self.usemem("-n 2 64k", self.logging_program, env=env)
        usecs = [int(line[1]) for line in RESULT.findall(run.stdout)]
        self.assertEqual(len(usecs), 2)
        self.assertGreaterEqual(min(usecs), 50000)

    def test_lines_do_not_mix(self) -> None:
        lines = self.lines("--init-time -n 16 -t 4 -r 3 -Z -s 0 64k")
        self.assertRegex(lines[0], INIT)
        for pattern in (RESULT, AGAIN, FREE):
            found = [x for x in lines if pattern.fullmatch(x)]
            self.assertEqual(len(found), 64, pattern.pattern)
        self.assertEqual(len(lines), 1 + 3 * 64)

    def test_dots_on_a_terminal(self) -> None:
        for args, start in (("-r 3", "..."), ("-r 3 -q", ""), ("", "")):
            master, terminal = pty.openpty()
            with open(master, "rb", buffering=0) as reader:
                with open(terminal, "wb", buffering=0) as writer:
                    subprocess.run([self.program, *args.split(), "64k"],
                                   stdout=writer, check=True)
                    line = reader.read(200).decode()
            self.assertRegex(line, rf"^{re.escape(start)}\d+ bytes / ")
        self.assertRegex(self.lines("-r 3 64k")[0], r"^\d+ bytes / ")

    def test_lost_output_is_a_failure(self) -> None:
        with open("/dev/full", "w", encoding="ascii") as full:
            run = subprocess.run([self.program, "-n", "2", "64k"], stdout=full,
                                 timeout=LIMIT, check=False)
        self.assertNotEqual(run.returncode, 0)


class Tasks(UsememTest):
    def test_processes_and_threads(self) -> None:
        lines = self.lines("-n 3 -t 2 64k")
        self.assertEqual(len(lines), 6)
        for line in lines:
            self.assertEqual(int(RESULT.fullmatch(line).group(1)),
                             one_pass(64 * K))
        self.assertEqual(len(self.lines("-t 3 64k")), 3)

    def test_processes_are_forked_and_threads_are_not(self) -> None:
        with self.started("-n 2 -t 3 -s 60 64k", 6) as run:
            pids = children(run.pid)
            self.assertEqual(len(pids), 2)
            self.assertEqual([status(p, "Threads") for p in pids], ["4", "4"])
        wait_for(lambda: not any(map(alive, pids)))  # they follow the parent
        with self.started("-s 60 64k", 1) as run:
            self.assertEqual(children(run.pid), [])

    def test_pin(self) -> None:
        cpus = os.sysconf("SC_NPROCESSORS_ONLN")
        if os.sched_getaffinity(0) != set(range(cpus)):
            self.skipTest("not all CPUs are for this process")
        with self.started("-n 3 -b 1 -s 60 64k", 3) as run:
            found = sorted(status(pid, "Cpus_allowed_list")
                           for pid in children(run.pid))
        self.assertEqual(found, sorted(str(i % cpus) for i in range(3)))

    def test_failing_child(self) -> None:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_AS, (64 * M, 64 * M))

        run = self.usemem("-n 3 1g", preexec_fn=limit)
        self.assertNotEqual(run.returncode, 0)
        self.assertEqual(run.stdout, "")
        self.assertEqual(run.stderr.count("usemem: mmap: "), 3)
        # A barrier must not wait for a task that failed.
        run = self.usemem("-n 3 -x -y 1g", preexec_fn=limit)
        self.assertNotEqual(run.returncode, 0)

    def test_killed_child(self) -> None:
        with self.started("-n 2 -W -x 64k", 2) as run:
            first, second = children(run.pid)
            os.kill(first, signal.SIGUSR1)
            self.assertRegex(run.stdout.readline(), AGAIN)
            self.assertTrue(alive(first))  # it waits for the second
            os.kill(second, signal.SIGKILL)
            self.assertEqual(run.wait(LIMIT), 1)
            self.assertIn(f"{second}: killed by signal 9", run.stderr.read())

    def order(self, args: str) -> list[str]:
        """The calls on 6 pieces of memory; mincore marks the end of the work."""
        calls = self.calls(f"{args} -N -n 6 20k")
        return [x.name for x in calls
                if x.length == 20 * K or x.name == "mincore"]

    def test_start_barrier(self) -> None:
        names = self.order("-y")
        self.assertEqual(names[:6], ["mmap"] * 6)
        self.assertGreaterEqual(names.count("mincore"), 6)

    def test_free_barrier(self) -> None:
        names = self.order("-x")
        self.assertEqual(names[-6:], ["munmap"] * 6)
        self.assertGreaterEqual(names.count("mincore"), 6)

    def test_detach(self) -> None:
        pidfile = self.dir / "pids"
        pidfile.write_text("1\n")
        begin = time.monotonic()
        # Reading the output to its end shows that nobody else holds it.
        run = self.usemem(f"-n 2 -d -p {pidfile} -s 60 4m")
        self.assertLess(time.monotonic() - begin, LIMIT)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(len(RESULT.findall(run.stdout)), 2)
        first, *pids = map(int, pidfile.read_text().split())
        self.assertEqual((first, len(pids)), (1, 2))
        for pid in pids:
            self.addCleanup(os.kill, pid, signal.SIGKILL)
        for pid in pids:
            self.assertGreater(kilobytes(pid, "RssAnon"), 4096)

    def test_detach_without_processes(self) -> None:
        pidfile = self.dir / "pids"
        self.assertEqual(self.task_bytes(f"-d -p {pidfile} -s 60 64k"),
                         one_pass(64 * K))
        os.kill(int(pidfile.read_text()), signal.SIGKILL)

    def test_detach_after_a_failure(self) -> None:
        run = self.usemem(f"-n 2 -d -p {self.dir}/none/pids -s 60 64k")
        self.assertEqual(run.returncode, 1)


class Memory(UsememTest):
    def test_default_and_anonymous(self) -> None:
        with self.started("-s 60 4m", 1) as run:
            self.assertRegex(maps(run.pid), DEV_ZERO)
        with self.started("-O -s 60 4m", 1) as run:
            self.assertNotRegex(maps(run.pid), DEV_ZERO)
            self.assertGreater(kilobytes(run.pid, "RssAnon"), 4096)

    def test_malloc(self) -> None:
        with self.started("-a -s 60 4m", 1) as run:
            self.assertNotRegex(maps(run.pid), DEV_ZERO)
            self.assertGreater(kilobytes(run.pid, "RssAnon"), 4096)
        self.assertEqual([x for x in self.calls("-a 4m") if x.length == 4 * M],
                         [])
        # All that works on pages has to cope with memory that is not aligned.
        run = self.usemem("-a -r 2 -S -M -N --madv-pageout -Z 1m")
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_file(self) -> None:
        self.assertEqual(self.task_bytes(f"-f {self.file} 64k"), one_pass(64 * K))
        self.assertEqual(words(self.file), tuple(range(8192)))
        self.assertEqual(len(self.lines(f"-n 3 -f {self.file} 1m")), 3)
        self.assertEqual(words(self.file), tuple(range(131072)))

    def test_file_that_is_larger(self) -> None:
        self.file.write_bytes(b"\xff" * 8192)
        self.task_bytes(f"-f {self.file} 4k")
        self.assertEqual(words(self.file),
                         tuple(range(512)) + (2**64 - 1,) * 512)

    def test_memfd(self) -> None:
        with self.started("--memfd -s 60 4m", 1) as run:
            self.assertRegex(maps(run.pid), r"rw-s .* /memfd:usemem")

    def test_hugetlb(self) -> None:
        with open("/proc/meminfo", encoding="ascii") as info:
            free = re.search(r"HugePages_Free:\s*(\d+)", info.read())
        run = self.usemem("-O -U -Z -E -H 8")
        if free and int(free.group(1)):
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertEqual(run.stderr, "mincore: 1 of 1 huge pages\n")
        else:
            self.assertEqual((run.returncode, run.stdout), (1, ""))
            self.assertRegex(run.stderr, "^usemem: (mmap|hugetlb pages): ")

    def test_populate(self) -> None:
        call = next(x for x in self.calls("-F 4m") if x.length == 4 * M)
        self.assertTrue(call.flag & MAP_POPULATE)
        with self.started("-F -j 1m -s 60 4m", 1) as run:
            self.assertGreater(kilobytes(run.pid, "RssAnon"), 4096)
        with self.started("-j 1m -s 60 4m", 1) as run:
            self.assertLess(kilobytes(run.pid, "RssAnon"), 4096)

    def test_prealloc(self) -> None:
        for args, there in (("-P", True), ("", False)):
            with self.started(f"-n 2 {args} -f {self.file} -s 60 64k",
                              2) as run:
                self.assertEqual(str(self.file) in maps(run.pid), there)
        # Threads share it, and free it once.
        lines = self.lines("-P -t 3 -s 0 64k")
        self.assertEqual(sum(1 for x in lines if FREE.fullmatch(x)), 1)
        self.assertEqual(sum(1 for x in lines if RESULT.fullmatch(x)), 3)

    def test_mlock(self) -> None:
        with self.started("-M -s 60 64k", 1) as run:
            wait_for(lambda: kilobytes(run.pid, "VmLck") == 64)

    def test_touch_alloc(self) -> None:
        with self.started("--touch-alloc -j 1m -s 60 4m", 1) as run:
            self.assertGreater(kilobytes(run.pid, "RssAnon"), 4096)
        self.assertEqual(len(self.lines(f"--touch-alloc -r 2 -Z -n 2 "
                                        f"-f {self.file} 64k")), 4)
        self.assertEqual(words(self.file), tuple(range(8192)))

    def test_punch_holes(self) -> None:
        with self.started("--punch-holes -s 60 8m", 1) as run:
            wait_for(lambda: kilobytes(run.pid, "RssAnon") < 5000)
            self.assertGreater(kilobytes(run.pid, "RssAnon"), 4096)
        self.lines(f"--punch-holes -n 3 -r 3 -Z -f {self.file} 64k")
        self.assertEqual({i // 512 for i, x in enumerate(words(self.file))
                          if x}, set(range(0, 16, 2)))

    @unittest.skipUnless(Path("/sys/kernel/mm/transparent_hugepage").exists(),
                         "this kernel has no transparent huge pages")
    def test_madv_thp(self) -> None:
        calls = [x for x in self.calls("--madv-thp -O 4m")
                 if x.length == 4 * M]
        self.assertEqual([(x.name, x.flag) for x in calls[1:]],
                         [("madvise", MADV_HUGEPAGE), ("munmap", 0)])
        calls = [x for x in self.calls("--madv-thp -F -O 4m")
                 if x.length == 4 * M]
        self.assertFalse(calls[0].flag & MAP_POPULATE)
        self.assertEqual([x.flag for x in calls[1:3]],
                         [MADV_HUGEPAGE, MADV_POPULATE_WRITE])

    def test_madv_pageout(self) -> None:
        calls = self.calls("--madv-pageout -Z -O 4m")
        self.assertEqual([x.flag for x in calls if x.name == "madvise"],
                         [MADV_COLD, MADV_PAGEOUT])

    def test_mremap(self) -> None:
        calls = self.calls("-E -r 3 -Z -O 4m")
        self.assertEqual([x.length for x in calls if x.name == "mremap"],
                         [4 * M] * 3)

    def test_mincore(self) -> None:
        run = self.usemem("-N 4m")
        self.assertEqual(run.stderr, "mincore: 1024 of 1024 pages\n")
        run = self.usemem("-N -j 8k -O 64k")
        self.assertEqual(run.stderr, "mincore: 8 of 16 pages\n")

    def test_mincore_huge(self) -> None:
        run = self.usemem("-H -O 8m")
        if "hugetlb pages" in run.stderr:
            self.skipTest("this kernel has no huge pages")
        self.assertRegex(run.stderr, r"^mincore: (\d+) of \1 huge pages\n$")

    def test_msync(self) -> None:
        for option, flag in (("-S", MS_SYNC), ("-A", MS_ASYNC)):
            calls = self.calls(f"{option} -r 3 -f {self.file} 64k")
            self.assertEqual([(x.length, x.flag) for x in calls
                              if x.name == "msync"], [(64 * K, flag)] * 3)


class Work(UsememTest):
    def test_read_only(self) -> None:
        self.assertEqual(self.task_bytes(f"-o -r 2 -f {self.file} 64k"),
                         8 * K + 2 * 64 * K)
        self.assertEqual(self.file.read_bytes(), bytes(64 * K))
        run = self.usemem(f"-o -f {self.file} 128k")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertEqual(run.stderr, f"usemem: {self.file}: smaller than SIZE\n")
        self.assertEqual(self.file.stat().st_size, 64 * K)

    def test_open_rw(self) -> None:
        for args, mode in (("-o", "r--s"), ("-o -w", "rw-s"), ("", "rw-s")):
            with self.started(f"{args} -s 60 -f {self.file} 64k", 1) as run:
                self.assertRegex(maps(run.pid),
                                 rf"{mode} .* {re.escape(str(self.file))}")

    def test_read_again(self) -> None:
        for args in ("", "-o", "-R"):
            first, again = self.lines(f"-r 2 -Z {args} 64k")
            self.assertEqual(int(RESULT.fullmatch(first).group(1)),
                             8 * K + 2 * 64 * K)
            self.assertEqual(int(AGAIN.fullmatch(again).group(1)),
                             one_pass(64 * K))

    def test_random_order_visits_all(self) -> None:
        for size in (8, 16, 24, 4096, 5000, 65536):
            self.file.unlink(missing_ok=True)
            self.lines(f"-R -r 2 -Z -f {self.file} {size}")
            self.assertEqual(words(self.file), tuple(range(size // 8)))

    def partial(self, args: str, pages: int) -> set[int]:
        """Pages of a file of 4 MiB at the time when PAGES were written."""
        self.file.unlink(missing_ok=True)
        # A page begins with a word that is not zero, except for the first.
        with self.started(f"{args} -e 500u -j 4k -f {self.file} 4m"):
            wait_for(lambda: self.file.exists()
                     and len(touched_pages(self.file)) >= pages)
        return touched_pages(self.file)

    def test_random_seed(self) -> None:
        first = self.partial("-R --random-seed 7", 40)
        second = self.partial("-R --random-seed 7", 40)
        other = self.partial("-R --random-seed 8", 40)
        self.assertTrue(first <= second or second <= first)
        self.assertFalse(first <= other or other <= first)
        self.assertGreater(max(first), len(first) + 1)

    def test_unit(self) -> None:
        # The order is random within a chunk of 16 pages only.
        done = self.partial("-R -u 64k", 40)
        self.assertLess(max(done), (len(done) // 16 + 1) * 16 + 1)
        calls = self.calls(f"-u 16k -S -r 2 -f {self.file} 64k")
        self.assertEqual([x.length for x in calls if x.name == "msync"],
                         [16 * K] * 8)

    def test_delay(self) -> None:
        for delay, seconds in (("10m", 0.16), ("9000u", 0.144),
                               ("8000000", 0.128), ("900", 0)):
            (line,) = self.lines(f"-e {delay} 64k")
            usecs = int(RESULT.fullmatch(line).group(2))
            self.assertGreaterEqual(usecs / 10**6, seconds, delay)

    def test_sleep(self) -> None:
        begin = time.monotonic()
        first, second = self.lines("-s 1 64k")
        self.assertGreaterEqual(time.monotonic() - begin, 1)
        self.assertRegex(first, RESULT)
        self.assertLess(int(RESULT.fullmatch(first).group(2)), 10**6)
        self.assertRegex(second, FREE)

    def test_runtime(self) -> None:
        # It also ends a long delay in every thread, and no check follows it.
        begin = time.monotonic()
        lines = self.lines("-T 1 -t 2 -Z -e 60000m -r 1000000 16m")
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(len(lines), 2)
        for line in lines:
            count, usecs, _ = map(int, RESULT.fullmatch(line).groups())
            self.assertEqual(count, 2 * M + 4096)
            self.assertGreaterEqual(usecs, 990000)

    def test_runtime_ends_the_wait(self) -> None:
        (line,) = self.lines("-n 1 -T 1 -W 64k")
        self.assertRegex(line, RESULT)


class Verification(UsememTest):
    def corrupt(self, offset: int, value: int) -> None:
        with open(self.file, "r+b") as file:
            file.seek(offset)
            file.write(struct.pack("=Q", value))

    def test_write_signal_read(self) -> None:
        for args, tasks in (("", 1), ("-n 2", 2), ("-t 2", 2)):
            with self.started(f"-W {args} 64k", tasks) as run:
                run.send_signal(signal.SIGUSR1)
                out, err = run.communicate(timeout=LIMIT)
                self.assertEqual((run.returncode, err), (0, ""))
                self.assertEqual(len(AGAIN.findall(out)), tasks)

    def test_signal_that_comes_early(self) -> None:
        with self.started("-W -e 30m 64k") as run:
            wait_for(lambda: int(status(run.pid, "SigCgt"), 16) &
                     1 << signal.SIGUSR1 - 1 != 0)
            run.send_signal(signal.SIGUSR1)
            self.assertEqual(run.wait(LIMIT), 0)

    def test_corruption(self) -> None:
        for args in ("", "-n 1", "-R"):
            with self.started(f"-W {args} -f {self.file} 64k", 1) as run:
                self.corrupt(4096, 9)
                run.send_signal(signal.SIGUSR1)
                out, err = run.communicate(timeout=LIMIT)
            self.assertEqual((run.returncode, out), (1, ""))
            self.assertEqual(
                err, "Data wrong at offset 4096: 9 instead of 512\n")

    def test_corruption_seen_by_a_pass(self) -> None:
        with self.started(f"-n 2 -r 9999999 -f {self.file} 4k") as run:
            wait_for(lambda: self.file.exists()
                     and touched_pages(self.file) == {0})
            # A write of the pass may come between, so that it takes several.
            while run.poll() is None:
                self.corrupt(4088, 7)
            self.assertEqual(run.wait(), 1)
            self.assertIn("Data wrong at offset 4088: 7 instead of 511\n",
                          run.stderr.read())

    def test_truncated_file(self) -> None:
        with self.started(f"-n 1 -W -f {self.file} 64k", 1) as run:
            os.truncate(self.file, 0)
            run.send_signal(signal.SIGUSR1)
            self.assertEqual(run.wait(LIMIT), 1)
            self.assertIn("killed by signal 7", run.stderr.read())


class Errors(UsememTest):
    def test_usage(self) -> None:
        for args in ("", "-n 2", "-Q 1m", "--bogus 1m", "-n", "1m 2m",
                     "0", "7", "-1m", "x", "m", "1x", "1mm", "1.5m", "0x10",
                     "99999999999999999999", "99999999t", "1m ",
                     "-n 0 1m", "-n x 1m", "-n -1 1m", "-t 0 1m", "-r 0 1m",
                     "-n 99999999 1m", "-j 4 1m", "-j 0 1m", "-u 0 1m",
                     "-e x 1m", "-e 1mm 1m", "-e 1s 1m", "-s -1 1m", "-s 1x 1m",
                     "-T 0 1m", "--random-seed x 1m", "-U 1m", "-p pids 1m",
                     "-a -O 1m", "-a -F 1m", "-a -E 1m", "-o -W 1m",
                     "-M --punch-holes 1m", "-S -A 1m", "-d -x 1m",
                     "-E -P -t 2 1m"):
            argv = args.split() if args != "1m " else ["1m "]
            run = subprocess.run([self.program, *argv], text=True, check=False,
                                 capture_output=True, timeout=LIMIT)
            self.assertEqual((run.returncode, run.stdout), (2, ""), args)
            self.assertIn("\nusage: usemem [option ...] SIZE\n", run.stderr)

    def test_usage_names_every_option(self) -> None:
        text = self.usemem("").stderr
        for option in "ntbafOUFPujrRowZeMSAsTqdpyxWENH":
            self.assertRegex(text, rf"(^|[ ,])-{option}\b")
        for option in ("init-time", "random-seed", "touch-alloc",
                       "punch-holes", "memfd", "madv-thp", "madv-pageout"):
            self.assertRegex(text, rf"(?m)^  --{option}\b")

    def test_file_that_cannot_be(self) -> None:
        run = self.usemem(f"-f {self.dir}/none/x 64k")
        self.assertEqual((run.returncode, run.stdout), (1, ""))
        self.assertEqual(run.stderr,
                         f"usemem: {self.dir}/none/x: "
                         "No such file or directory\n")


if __name__ == "__main__":
    unittest.main()
