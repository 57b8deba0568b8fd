// SPDX-License-Identifier: GPL-2.0-only
/*
 * Large folios in zswap: a folio is stored whole or not at all, every counter
 * tells the truth about it, and no byte is lost.
 *
 * The tests look at system-wide counters (/proc/vmstat, the counters of each
 * folio size, debugfs) as well as those of their own cgroup. They need a
 * system where nothing else is swapping, and swap space of at least 64 MB
 * that is not fragmented. Everything they change is restored at the end.
 */
#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/types.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest.h"
#include "cgroup_util.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT	21
#endif

#define THP_DIR		"/sys/kernel/mm/transparent_hugepage"
#define ZSWAP_PARAM	"/sys/module/zswap/parameters"
#define ZSWAP_DEBUG	"/sys/kernel/debug/zswap"
#define FAIL_FUNCTION	"/sys/kernel/debug/fail_function"

/* zswap looks at its limits again after this number of pages */
#define ZSWAP_BATCH	16

/* Longest time that a test may take, and that statistics may lag behind */
#define TEST_SECONDS	180
#define STAT_SECONDS	10

/* Random bytes that make a page fit, take about a quarter, or not fit */
#define COMPRESSIBLE	0
#define QUARTER		1024
#define INCOMPRESSIBLE	page_size

#define PM_SWAP_BIT	62

static long page_size;
static bool every_allocation;

struct folio_size {
	char name[NAME_MAX + 1];	/* below THP_DIR */
	size_t bytes;
	long nr;			/* base pages */
};

/* What a test of one folio size is asked to do, shared with its child */
struct job {
	const struct folio_size *fs;
	long bad;			/* index of the incompressible page */
	int writeback;			/* memory.zswap.writeback */
	const char *max;		/* memory.zswap.max */
	long bound;			/* memory.zswap.current that nobody may see exceeded */
	long peak;			/* largest memory.zswap.current seen */
};

static struct job *job;

/*
 * Global settings. The first change of a file keeps what was there.
 */
static struct {
	char path[PATH_MAX];
	char value[256];
} saved[128];
static int nr_saved;
static pid_t main_pid;

static int write_file(const char *path, const char *value)
{
	ssize_t len = strlen(value), ret;
	int fd = open(path, O_WRONLY);

	if (fd < 0)
		return -errno;
	ret = write(fd, value, len);
	if (ret < 0)
		ret = -errno;
	close(fd);
	return ret == len ? 0 : ret < 0 ? ret : -EIO;
}

/* Reads the first line, or the choice that is in brackets */
static int read_choice(const char *path, char *value, size_t size)
{
	char buf[256], *start, *end;
	ssize_t len = read_text(path, buf, sizeof(buf));

	if (len < 0)
		return len;
	start = strchr(buf, '[');
	end = start ? strchr(start, ']') : NULL;
	if (end)
		start++;
	else
		start = buf, end = buf + strcspn(buf, "\n");
	*end = '\0';
	snprintf(value, size, "%s", start);
	return 0;
}

static int set_param(const char *path, const char *value)
{
	int i;

	for (i = 0; i < nr_saved; i++) {
		if (!strcmp(saved[i].path, path))
			break;
	}
	if (i == nr_saved) {
		if (i == ARRAY_SIZE(saved))
			return -ENOSPC;
		if (read_choice(path, saved[i].value, sizeof(saved[i].value)))
			return -ENOENT;
		snprintf(saved[i].path, sizeof(saved[i].path), "%s", path);
		nr_saved++;
	}
	return write_file(path, value);
}

static void restore_param(const char *path)
{
	int i;

	for (i = 0; i < nr_saved; i++) {
		if (!strcmp(saved[i].path, path))
			write_file(path, saved[i].value);
	}
}

/* Only async-signal-safe calls: it runs in a signal handler as well */
static void restore_params(void)
{
	if (getpid() != main_pid)
		return;
	/* Error injection first, the rest in reverse order */
	write_file(FAIL_FUNCTION "/inject", "!zswap_decompress");
	while (nr_saved > 0) {
		nr_saved--;
		write_file(saved[nr_saved].path, saved[nr_saved].value);
	}
}

static void restore_and_die(int sig)
{
	restore_params();
	signal(sig, SIG_DFL);
	raise(sig);
}

/*
 * Counters
 */
static long read_key(const char *path, const char *key)
{
	size_t len = strlen(key);
	char line[256];
	long value = -1;
	FILE *file;

	file = fopen(path, "r");
	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file)) {
		if (!strncmp(line, key, len) && strchr(" :", line[len])) {
			value = atol(line + len + 1);
			break;
		}
	}
	fclose(file);
	return value;
}

static long read_number(const char *path)
{
	char buf[64];

	return read_text(path, buf, sizeof(buf)) > 0 ? atol(buf) : -1;
}

static long read_vmstat(const char *key)
{
	return read_key("/proc/vmstat", key);
}

static long size_stat(const struct folio_size *fs, const char *stat)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), THP_DIR "/%s/stats/%s", fs->name, stat);
	return read_number(path);
}

/*
 * memcg statistics lag behind: a read of memory.stat flushes them only when
 * there are many updates. A read of cpu.stat flushes always.
 */
static void flush_stats(const char *cgroup)
{
	char buf[PAGE_SIZE];

	cg_read(cgroup, "cpu.stat", buf, sizeof(buf));
}

static long memcg_stat(const char *cgroup, const char *key)
{
	char path[PATH_MAX];

	flush_stats(cgroup);
	snprintf(path, sizeof(path), "%s/memory.stat", cgroup);
	return read_key(path, key);
}

/* memory.stat has bytes of what was swapped out, before compression */
static long zswapped_pages(const char *cgroup)
{
	return memcg_stat(cgroup, "zswapped") / page_size;
}

static long zswap_current(const char *cgroup)
{
	flush_stats(cgroup);
	return cg_read_long(cgroup, "memory.zswap.current");
}

struct counters {
	long zswpout, pswpout;		/* pages, system-wide */
	long swpout, fallback, split;	/* folios of the size */
	long mthp_zswpout;
	long memcg_zswpout;		/* pages of the cgroup */
};

static void read_counters(const char *cgroup, const struct folio_size *fs,
			  struct counters *c)
{
	c->zswpout = read_vmstat("zswpout");
	c->pswpout = read_vmstat("pswpout");
	c->swpout = size_stat(fs, "swpout");
	c->fallback = size_stat(fs, "swpout_fallback");
	c->split = size_stat(fs, "split");
	c->mthp_zswpout = size_stat(fs, "zswpout");
	c->memcg_zswpout = memcg_stat(cgroup, "zswpout");
}

/* Turns what was read before into what happened since */
static void count_since(const char *cgroup, const struct folio_size *fs,
			struct counters *c)
{
	struct counters now;

	read_counters(cgroup, fs, &now);
	c->zswpout = now.zswpout - c->zswpout;
	c->pswpout = now.pswpout - c->pswpout;
	c->swpout = now.swpout - c->swpout;
	c->fallback = now.fallback - c->fallback;
	c->split = now.split - c->split;
	c->mthp_zswpout = now.mthp_zswpout - c->mthp_zswpout;
	c->memcg_zswpout = now.memcg_zswpout - c->memcg_zswpout;
}

static bool differs(const char *what, long got, long want)
{
	if (got == want)
		return false;
	ksft_print_msg("%s: %ld, expected %ld\n", what, got, want);
	return true;
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* Nothing of the cgroup may stay in zswap after its tasks are gone */
static bool zswap_drained(const char *cgroup)
{
	double deadline = seconds() + STAT_SECONDS;
	long current, bytes, pages;

	for (;;) {
		current = zswap_current(cgroup);
		bytes = memcg_stat(cgroup, "zswap");
		pages = zswapped_pages(cgroup);
		if (!current && !bytes && !pages)
			return true;
		if (seconds() > deadline)
			break;
		usleep(20000);
	}
	ksft_print_msg("left in zswap: memory.zswap.current %ld, zswap %ld, zswapped %ld pages\n",
		       current, bytes, pages);
	return false;
}

/*
 * First thing in a child. On one CPU: madvise() drains the LRU caches of the
 * CPU that it runs on, pages in those of another one would stay in memory.
 */
static void start_child(void)
{
	cpu_set_t cpus;

	alarm(TEST_SECONDS);
	CPU_ZERO(&cpus);
	CPU_SET(sched_getcpu(), &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

/*
 * Memory. Each page holds its address and a generation, so that neither a page
 * of another place nor one of another time passes for the right one.
 */
static void make_page(__u64 *page, const void *addr, unsigned int gen,
		      size_t random_bytes)
{
	__u64 x = ((__u64)(uintptr_t)addr << 8) ^ gen ^ 0x9e3779b97f4a7c15;
	size_t i, words = page_size / sizeof(*page);

	for (i = 0; i < random_bytes / sizeof(*page); i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		page[i] = x;
	}
	for (; i < words; i++)
		page[i] = i & 1 ? gen : (uintptr_t)addr;
}

static void fill(char *mem, long nr, unsigned int gen, size_t random_bytes)
{
	long i;

	for (i = 0; i < nr; i++, mem += page_size)
		make_page((__u64 *)mem, mem, gen, random_bytes);
}

static bool intact(const char *mem, long nr, unsigned int gen, size_t random_bytes)
{
	static __u64 want[65536 / sizeof(__u64)];
	long i;

	for (i = 0; i < nr; i++, mem += page_size) {
		make_page(want, mem, gen, random_bytes);
		if (memcmp(mem, want, page_size)) {
			ksft_print_msg("page %ld of %ld is not what was written\n",
				       i, nr);
			return false;
		}
	}
	return true;
}

static bool all_zero(const char *mem, long nr)
{
	long i, words = nr * page_size / sizeof(__u64);

	for (i = 0; i < words; i++) {
		if (((__u64 *)mem)[i]) {
			ksft_print_msg("page %ld of %ld is not zero\n",
				       i * sizeof(__u64) / page_size, nr);
			return false;
		}
	}
	return true;
}

/* Memory that consists of @nr folios of the size. NULL if there are none. */
static char *alloc_folios(const struct folio_size *fs, long nr)
{
	size_t head, len = nr * fs->bytes;
	long got = size_stat(fs, "anon_fault_alloc"), i;
	char *mem;

	mem = mmap(NULL, len + fs->bytes, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED)
		return NULL;
	head = -(uintptr_t)mem & (fs->bytes - 1);
	if (head)
		munmap(mem, head);
	mem += head;
	munmap(mem + len, fs->bytes - head);

	if (madvise(mem, len, MADV_HUGEPAGE)) {
		munmap(mem, len);
		return NULL;
	}
	for (i = 0; i < nr; i++)
		mem[i * fs->bytes] = 1;
	got = size_stat(fs, "anon_fault_alloc") - got;
	if (got < nr) {
		ksft_print_msg("only %ld of %ld folios could be allocated\n", got, nr);
		munmap(mem, len);
		return NULL;
	}
	return mem;
}

/*
 * Number of pages that are not mapped but swapped out. They may still be in
 * the swap cache: because of I/O, or because nobody wanted to have them.
 */
static long swapped_pages(const char *mem, long nr)
{
	__u64 entry[512];
	long i, n, swapped = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (fd < 0)
		return -1;
	while (nr > 0) {
		n = nr < (long)ARRAY_SIZE(entry) ? nr : (long)ARRAY_SIZE(entry);
		if (pread(fd, entry, n * sizeof(*entry),
			  (uintptr_t)mem / page_size * sizeof(*entry)) !=
		    (ssize_t)(n * sizeof(*entry))) {
			swapped = -1;
			break;
		}
		for (i = 0; i < n; i++)
			swapped += (entry[i] >> PM_SWAP_BIT) & 1;
		mem += n * page_size;
		nr -= n;
	}
	close(fd);
	return swapped;
}

/* Number of pages that are not in memory any more, nor in the swap cache. */
static long gone_pages(char *mem, long nr)
{
	unsigned char vec[512];
	long i, n, gone = 0;

	while (nr > 0) {
		n = nr < (long)sizeof(vec) ? nr : (long)sizeof(vec);
		if (mincore(mem, n * page_size, vec))
			return -1;
		for (i = 0; i < n; i++)
			gone += !(vec[i] & 1);
		mem += n * page_size;
		nr -= n;
	}
	return gone;
}

/*
 * Returns the number of pages that are gone afterwards. One call is not
 * always enough: somebody else may just have a folio locked or isolated.
 */
static long pageout(char *mem, long nr, long want)
{
	long gone = 0;
	int i;

	for (i = 0; i < 5 && gone < want; i++) {
		if (madvise(mem, nr * page_size, MADV_PAGEOUT)) {
			ksft_print_msg("MADV_PAGEOUT: %s\n", strerror(errno));
			return -1;
		}
		gone = gone_pages(mem, nr);
	}
	return gone;
}

/* The same through the LRU, as under memory pressure. */
static long reclaim_folios(const char *cgroup, char *mem, long nr, long want)
{
	long gone = 0;
	int i;

	for (i = 0; i < 20 && gone < want; i++) {
		/* -EAGAIN says that it was less than that, no error here */
		cg_write_numeric(cgroup, "memory.reclaim", nr * page_size);
		gone = gone_pages(mem, nr);
	}
	return gone;
}

/*
 * Runs @fn in a cgroup of its own, in a child that the alarm clock ends if it
 * does not end itself. Watches memory.zswap.current meanwhile if there is a
 * bound.
 */
static int run(const char *root, int (*fn)(const char *cgroup, void *arg))
{
	char *cgroup = cg_name(root, "zswap_large_folio_test");
	int status, ret = KSFT_FAIL;
	pid_t pid;

	if (cg_create(cgroup)) {
		ksft_print_msg("cannot create %s: %s\n", cgroup, strerror(errno));
		goto free;
	}
	if (cg_write(cgroup, "memory.zswap.writeback", job->writeback ? "1" : "0")) {
		ksft_print_msg("no memory.zswap.writeback\n");
		ret = KSFT_SKIP;
		goto destroy;
	}
	if (job->max && cg_write(cgroup, "memory.zswap.max", (char *)job->max))
		goto destroy;

	pid = cg_run_nowait(cgroup, fn, job);
	if (pid < 0)
		goto destroy;
	while (!waitpid(pid, &status, WNOHANG)) {
		if (job->bound) {
			long current = zswap_current(cgroup);

			if (current > job->peak)
				job->peak = current;
		}
		usleep(1000);
	}
	if (WIFSIGNALED(status)) {
		ksft_print_msg(WTERMSIG(status) == SIGALRM ? "time out\n" :
			       "killed by signal %d\n", WTERMSIG(status));
		goto destroy;
	}
	ret = WEXITSTATUS(status);
	if (ret == KSFT_PASS && !zswap_drained(cgroup))
		ret = KSFT_FAIL;
destroy:
	cg_destroy(cgroup);
free:
	free(cgroup);
	return ret;
}

static int run_job(const char *root, const struct folio_size *fs,
		   int (*fn)(const char *cgroup, void *arg), int writeback,
		   const char *max, long bad)
{
	*job = (struct job) {
		.fs = fs, .writeback = writeback, .max = max, .bad = bad,
	};
	return run(root, fn);
}

/*
 * A folio goes to zswap whole: all of its pages are there, none of them at the
 * swap device, without a split.
 */
static int check_stored(const struct counters *c, const char *cgroup, long nr)
{
	int bad = 0;

	bad += differs("memory.stat zswpout", c->memcg_zswpout, nr);
	bad += differs("zswapped pages", zswapped_pages(cgroup), nr);
	bad += differs("vmstat zswpout", c->zswpout, nr);
	bad += differs("vmstat pswpout", c->pswpout, 0);
	bad += differs("swpout of the size", c->swpout, 0);
	bad += differs("swpout_fallback of the size", c->fallback, 0);
	bad += differs("split of the size", c->split, 0);
	return bad;
}

/* Enough folios to see more than one, few enough to be quick. */
static long folios(const struct folio_size *fs)
{
	return fs->nr >= 256 ? 2 : 512 / fs->nr;
}

static int store_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	long nr = folios(fs) * fs->nr, stored, zswapped;
	struct counters c;
	char *mem;
	int bad;

	start_child();
	mem = alloc_folios(fs, folios(fs));
	if (!mem)
		return KSFT_SKIP;
	fill(mem, nr, 1, COMPRESSIBLE);
	stored = read_number(ZSWAP_DEBUG "/stored_pages");
	zswapped = read_key("/proc/meminfo", "Zswapped");
	read_counters(cgroup, fs, &c);
	bad = differs("swapped out", pageout(mem, nr, nr), nr);
	count_since(cgroup, fs, &c);
	bad += check_stored(&c, cgroup, nr);
	if (bad)
		return KSFT_FAIL;
	if (stored >= 0 && differs("debugfs stored_pages",
				   read_number(ZSWAP_DEBUG "/stored_pages"),
				   stored + nr))
		return KSFT_FAIL;
	if (differs("meminfo Zswapped", read_key("/proc/meminfo", "Zswapped"),
		    zswapped + nr * page_size / 1024))
		return KSFT_FAIL;
	if (!intact(mem, nr, 1, COMPRESSIBLE))
		return KSFT_FAIL;

	/* Once more, with other data in the same memory: nothing old comes back */
	fill(mem, nr, 2, COMPRESSIBLE);
	if (differs("swapped out again", pageout(mem, nr, nr), nr))
		return KSFT_FAIL;
	if (!intact(mem, nr, 2, COMPRESSIBLE))
		return KSFT_FAIL;
	munmap(mem, nr * page_size);
	if (stored >= 0 && differs("debugfs stored_pages at the end",
				   read_number(ZSWAP_DEBUG "/stored_pages"),
				   stored))
		return KSFT_FAIL;
	return KSFT_PASS;
}

static int test_store(const char *root, const struct folio_size *fs)
{
	return run_job(root, fs, store_child, 1, NULL, -1);
}

/* The same under memory pressure, where the folios are found on the LRU. */
static int reclaim_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	long nr = folios(fs) * fs->nr;
	struct counters c;
	char *mem;

	start_child();
	mem = alloc_folios(fs, folios(fs));
	if (!mem)
		return KSFT_SKIP;
	fill(mem, nr, 1, COMPRESSIBLE);
	read_counters(cgroup, fs, &c);
	if (differs("swapped out", reclaim_folios(cgroup, mem, nr, nr), nr))
		return KSFT_FAIL;
	count_since(cgroup, fs, &c);

	/* The rest of the task's memory may have gone the same way */
	if (c.memcg_zswpout < nr) {
		ksft_print_msg("memory.stat zswpout: %ld, expected at least %ld\n",
			       c.memcg_zswpout, nr);
		return KSFT_FAIL;
	}
	if (differs("vmstat pswpout", c.pswpout, 0) ||
	    differs("swpout of the size", c.swpout, 0) ||
	    differs("split of the size", c.split, 0))
		return KSFT_FAIL;
	return intact(mem, nr, 1, COMPRESSIBLE) ? KSFT_PASS : KSFT_FAIL;
}

static int test_store_reclaim(const char *root, const struct folio_size *fs)
{
	return run_job(root, fs, reclaim_child, 1, NULL, -1);
}

/* The counter of the size counts folios, and agrees with that of pages. */
static int counter_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	long nr = folios(fs) * fs->nr;
	struct counters c;
	char *mem;

	start_child();
	mem = alloc_folios(fs, folios(fs));
	if (!mem)
		return KSFT_SKIP;
	fill(mem, nr, 1, COMPRESSIBLE);
	read_counters(cgroup, fs, &c);
	if (c.mthp_zswpout < 0) {
		ksft_print_msg("no counter zswpout\n");
		return KSFT_SKIP;
	}
	if (differs("swapped out", pageout(mem, nr, nr), nr))
		return KSFT_FAIL;
	count_since(cgroup, fs, &c);
	if (differs("zswpout of the size", c.mthp_zswpout, folios(fs)) ||
	    differs("vmstat zswpout", c.zswpout, nr))
		return KSFT_FAIL;

	/* They come back as small pages, which are not of this size any more */
	if (!intact(mem, nr, 1, COMPRESSIBLE))
		return KSFT_FAIL;
	read_counters(cgroup, fs, &c);
	if (differs("swapped out again", pageout(mem, nr, nr), nr))
		return KSFT_FAIL;
	count_since(cgroup, fs, &c);
	return differs("zswpout of the size, small pages", c.mthp_zswpout, 0) ?
	       KSFT_FAIL : KSFT_PASS;
}

static int test_counter(const char *root, const struct folio_size *fs)
{
	return run_job(root, fs, counter_child, 1, NULL, -1);
}

/*
 * Zero-filled pages are no reason to treat a folio in another way, unless all
 * of them are: such a folio needs no store.
 */
static int zeroes_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	struct counters c;
	char *mem;
	long i;

	start_child();
	mem = alloc_folios(fs, 2);
	if (!mem)
		return KSFT_SKIP;
	memset(mem, 0, 2 * fs->bytes);
	for (i = 1; i < fs->nr; i += 2)
		fill(mem + i * page_size, 1, 1, COMPRESSIBLE);
	read_counters(cgroup, fs, &c);
	if (differs("swapped out", pageout(mem, 2 * fs->nr, 2 * fs->nr), 2 * fs->nr))
		return KSFT_FAIL;
	count_since(cgroup, fs, &c);
	if (check_stored(&c, cgroup, fs->nr))
		return KSFT_FAIL;
	for (i = 0; i < fs->nr; i++) {
		if (i & 1 ? !intact(mem + i * page_size, 1, 1, COMPRESSIBLE) :
			    !all_zero(mem + i * page_size, 1))
			return KSFT_FAIL;
	}
	return all_zero(mem + fs->bytes, fs->nr) ? KSFT_PASS : KSFT_FAIL;
}

static int test_zeroes(const char *root, const struct folio_size *fs)
{
	return run_job(root, fs, zeroes_child, 1, NULL, -1);
}

/*
 * memory.zswap.max: zswap may exceed it by one batch, not by one folio. What
 * does not fit any more leaves nothing behind: it stays in memory when
 * writeback is off, and goes to the swap device otherwise.
 */
static int limit_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	long nr_folios = fs->nr >= 256 ? 4 : 1024 / fs->nr;
	long nr = nr_folios * fs->nr, swapped = 0, zswapped, bytes, i, n;
	long limit, entry, fit = nr_folios / 2;
	struct counters c;
	char *mem;

	start_child();
	mem = alloc_folios(fs, nr_folios);
	if (!mem)
		return KSFT_SKIP;
	fill(mem, nr, 1, QUARTER);
	read_counters(cgroup, fs, &c);

	/* The first one tells the size of an entry. All are nearly the same. */
	if (differs("swapped out without a limit", pageout(mem, fs->nr, fs->nr), fs->nr) ||
	    differs("zswapped pages", zswapped_pages(cgroup), fs->nr))
		return KSFT_FAIL;
	entry = zswap_current(cgroup) / fs->nr;
	if (entry < QUARTER / 2 || entry > page_size / 2) {
		ksft_print_msg("pages that should compress to a quarter take %ld bytes\n",
			       entry);
		return KSFT_FAIL;
	}

	/* Room for so many folios and a half; the kernel counts in pages */
	limit = (fit * fs->nr + fs->nr / 2) * entry / page_size * page_size;
	job->bound = limit + page_size + ZSWAP_BATCH * (entry + entry / 8);
	if (cg_write_numeric(cgroup, "memory.zswap.max", limit))
		return KSFT_FAIL;
	for (i = 1; i < nr_folios; i++) {
		if (pageout(mem + i * fs->bytes, fs->nr, fs->nr) < 0)
			return KSFT_FAIL;
	}
	bytes = zswap_current(cgroup);
	zswapped = zswapped_pages(cgroup);
	count_since(cgroup, fs, &c);
	if (bytes > job->bound) {
		ksft_print_msg("memory.zswap.current: %ld, limit %ld, %ld bytes a page\n",
			       bytes, limit, entry);
		return KSFT_FAIL;
	}
	for (i = 0; i < nr_folios; i++) {
		n = job->writeback ? swapped_pages(mem + i * fs->bytes, fs->nr) :
				     gone_pages(mem + i * fs->bytes, fs->nr);
		if (n && differs("pages of one folio that are swapped out", n, fs->nr))
			return KSFT_FAIL;
		swapped += n;
	}
	if (job->writeback) {
		if (differs("swapped out", swapped, nr) ||
		    differs("zswapped + pswpout", zswapped + c.pswpout, nr))
			return KSFT_FAIL;
	} else {
		if (differs("zswapped pages", zswapped, swapped) ||
		    differs("vmstat pswpout", c.pswpout, 0))
			return KSFT_FAIL;
		if (swapped < fit * fs->nr) {
			ksft_print_msg("%ld pages in zswap, there was room for %ld\n",
				       swapped, fit * fs->nr);
			return KSFT_FAIL;
		}
	}
	if (differs("split of the size", c.split, 0))
		return KSFT_FAIL;
	return intact(mem, nr, 1, QUARTER) ? KSFT_PASS : KSFT_FAIL;
}

static int limit_job(const char *root, const struct folio_size *fs, int writeback)
{
	int ret = run_job(root, fs, limit_child, writeback, NULL, -1);

	if (ret == KSFT_PASS && job->peak > job->bound) {
		ksft_print_msg("memory.zswap.current was %ld, over the bound of %ld\n",
			       job->peak, job->bound);
		ret = KSFT_FAIL;
	}
	return ret;
}

static int test_limit(const char *root, const struct folio_size *fs)
{
	return limit_job(root, fs, 0);
}

static int test_limit_writeback(const char *root, const struct folio_size *fs)
{
	return limit_job(root, fs, 1);
}

/* Nothing to zswap, everything whole: to the device or nowhere. */
static int device_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	long nr = fs->nr;
	struct counters c;
	char *mem;

	start_child();
	mem = alloc_folios(fs, 1);
	if (!mem)
		return KSFT_SKIP;
	fill(mem, nr, 1, COMPRESSIBLE);
	if (job->bad >= 0)
		fill(mem + job->bad * page_size, 1, 1, INCOMPRESSIBLE);
	read_counters(cgroup, fs, &c);
	if (pageout(mem, nr, nr) < 0)
		return KSFT_FAIL;
	count_since(cgroup, fs, &c);
	if (job->writeback ? differs("swapped out", swapped_pages(mem, nr), nr) :
			     differs("not in memory", gone_pages(mem, nr), 0))
		return KSFT_FAIL;
	if (differs("memory.stat zswpout", c.memcg_zswpout, 0) ||
	    differs("zswapped pages", zswapped_pages(cgroup), 0) ||
	    differs("memory.zswap.current", zswap_current(cgroup), 0) ||
	    differs("vmstat pswpout", c.pswpout, job->writeback ? nr : 0) ||
	    differs("swpout of the size", c.swpout, job->writeback) ||
	    differs("split of the size", c.split, 0))
		return KSFT_FAIL;
	if (job->bad < 0)
		return intact(mem, nr, 1, COMPRESSIBLE) ? KSFT_PASS : KSFT_FAIL;
	if (!intact(mem, job->bad, 1, COMPRESSIBLE) ||
	    !intact(mem + job->bad * page_size, 1, 1, INCOMPRESSIBLE) ||
	    !intact(mem + (job->bad + 1) * page_size, nr - job->bad - 1, 1, COMPRESSIBLE))
		return KSFT_FAIL;
	return KSFT_PASS;
}

static int test_max_zero(const char *root, const struct folio_size *fs)
{
	return run_job(root, fs, device_child, 0, "0", -1);
}

static int test_max_zero_writeback(const char *root, const struct folio_size *fs)
{
	return run_job(root, fs, device_child, 1, "0", -1);
}

static int test_disabled(const char *root, const struct folio_size *fs)
{
	int ret;

	if (set_param(ZSWAP_PARAM "/enabled", "N"))
		return KSFT_SKIP;
	ret = run_job(root, fs, device_child, 1, NULL, -1);
	set_param(ZSWAP_PARAM "/enabled", "Y");
	return ret;
}

/* Calls @fn with the first, a middle and the last page incompressible. */
static int each_position(const char *root, const struct folio_size *fs,
			 int (*fn)(const char *cgroup, void *arg), int writeback)
{
	long position[] = { 0, fs->nr / 2, fs->nr - 1 };
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(position); i++) {
		ret = run_job(root, fs, fn, writeback, NULL, position[i]);
		if (ret != KSFT_PASS) {
			ksft_print_msg("with page %ld of %ld incompressible\n",
				       position[i], fs->nr);
			return ret;
		}
	}
	return KSFT_PASS;
}

static int test_bad_page_writeback(const char *root, const struct folio_size *fs)
{
	return each_position(root, fs, device_child, 1);
}

/*
 * One incompressible page, and it must not go to the device: the folio is
 * split, once. Its other pages go to zswap, and that one stays in memory
 * however often reclaim comes by.
 */
static int split_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	long nr = fs->nr;
	struct counters c;
	char *mem, *bad;
	int i;

	start_child();
	mem = alloc_folios(fs, 1);
	if (!mem)
		return KSFT_SKIP;
	bad = mem + job->bad * page_size;
	fill(mem, nr, 1, COMPRESSIBLE);
	fill(bad, 1, 1, INCOMPRESSIBLE);
	read_counters(cgroup, fs, &c);
	if (differs("swapped out", pageout(mem, nr, nr - 1), nr - 1) ||
	    differs("swapped out of the incompressible page", gone_pages(bad, 1), 0) ||
	    differs("zswapped pages", zswapped_pages(cgroup), nr - 1))
		return KSFT_FAIL;

	/* Reclaim comes again, and ends. It can do nothing with that page. */
	for (i = 0; i < 3; i++) {
		if (!intact(bad, 1, 1, INCOMPRESSIBLE) ||
		    madvise(mem, fs->bytes, MADV_PAGEOUT))
			return KSFT_FAIL;
		cg_write_numeric(cgroup, "memory.reclaim", page_size);
	}
	count_since(cgroup, fs, &c);
	if (differs("swapped out in the end", gone_pages(mem, nr), nr - 1) ||
	    differs("vmstat pswpout", c.pswpout, 0) ||
	    differs("split of the size", c.split, 1) ||
	    differs("swpout_fallback of the size", c.fallback, 1) ||
	    differs("swpout of the size", c.swpout, 0))
		return KSFT_FAIL;
	if (c.mthp_zswpout && size_stat(fs, "zswpout") >= 0) {
		ksft_print_msg("zswpout of the size: %ld for a folio that was split\n",
			       c.mthp_zswpout);
		return KSFT_FAIL;
	}
	if (!intact(mem, job->bad, 1, COMPRESSIBLE) ||
	    !intact(bad, 1, 1, INCOMPRESSIBLE) ||
	    !intact(bad + page_size, nr - job->bad - 1, 1, COMPRESSIBLE))
		return KSFT_FAIL;
	return KSFT_PASS;
}

static int test_bad_page(const char *root, const struct folio_size *fs)
{
	return each_position(root, fs, split_child, 0);
}

/* Compressors differ in what they say of a page that they cannot compress. */
static int test_bad_page_compressors(const char *root, const struct folio_size *fs)
{
	static const char * const compressors[] = {
		"lzo", "lzo-rle", "lz4", "lz4hc", "zstd", "deflate", "842",
	};
	int ret = KSFT_SKIP;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(compressors); i++) {
		if (set_param(ZSWAP_PARAM "/compressor", compressors[i]))
			continue;
		ret = run_job(root, fs, split_child, 0, NULL, fs->nr / 2);
		if (ret != KSFT_PASS) {
			ksft_print_msg("with compressor %s\n", compressors[i]);
			break;
		}
	}
	restore_param(ZSWAP_PARAM "/compressor");
	return ret;
}

/* Two tasks have the entries of a folio in common until one of them writes. */
static int fork_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	long nr = fs->nr, half = nr / 2;
	int status;
	char *mem;
	pid_t pid;

	start_child();
	mem = alloc_folios(fs, 1);
	if (!mem)
		return KSFT_SKIP;
	fill(mem, nr, 1, COMPRESSIBLE);
	if (differs("swapped out", pageout(mem, nr, nr), nr) ||
	    differs("zswapped pages", zswapped_pages(cgroup), nr))
		return KSFT_FAIL;

	pid = fork();
	if (pid < 0)
		return KSFT_FAIL;
	if (!pid) {
		alarm(TEST_SECONDS);
		if (!intact(mem, nr, 1, COMPRESSIBLE))
			exit(KSFT_FAIL);
		fill(mem + half * page_size, nr - half, 2, COMPRESSIBLE);
		/* Out again, each page to where it belongs now */
		madvise(mem, fs->bytes, MADV_PAGEOUT);
		if (!intact(mem, half, 1, COMPRESSIBLE) ||
		    !intact(mem + half * page_size, nr - half, 2, COMPRESSIBLE))
			exit(KSFT_FAIL);
		exit(KSFT_PASS);
	}
	/* At the same time */
	if (!intact(mem, half, 1, COMPRESSIBLE))
		return KSFT_FAIL;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status)) {
		ksft_print_msg("the forked task failed\n");
		return KSFT_FAIL;
	}
	if (!intact(mem, nr, 1, COMPRESSIBLE))
		return KSFT_FAIL;
	fill(mem, nr, 3, COMPRESSIBLE);
	if (differs("swapped out again", pageout(mem, nr, nr), nr))
		return KSFT_FAIL;
	return intact(mem, nr, 3, COMPRESSIBLE) ? KSFT_PASS : KSFT_FAIL;
}

static int test_fork(const char *root, const struct folio_size *fs)
{
	return run_job(root, fs, fork_child, 1, NULL, -1);
}

/* A part of the folio is freed while it is swapped out. */
static int dontneed_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	long nr = fs->nr, from = nr / 4, to = nr / 2;
	char *mem;

	start_child();
	mem = alloc_folios(fs, 1);
	if (!mem)
		return KSFT_SKIP;
	fill(mem, nr, 1, COMPRESSIBLE);
	if (differs("swapped out", pageout(mem, nr, nr), nr) ||
	    differs("zswapped pages", zswapped_pages(cgroup), nr))
		return KSFT_FAIL;
	if (madvise(mem + from * page_size, (to - from) * page_size, MADV_DONTNEED))
		return KSFT_FAIL;
	if (differs("zswapped pages of the rest", zswapped_pages(cgroup),
		    nr - (to - from)))
		return KSFT_FAIL;
	if (!intact(mem, from, 1, COMPRESSIBLE) ||
	    !all_zero(mem + from * page_size, to - from) ||
	    !intact(mem + to * page_size, nr - to, 1, COMPRESSIBLE))
		return KSFT_FAIL;
	return KSFT_PASS;
}

static int test_dontneed(const char *root, const struct folio_size *fs)
{
	return run_job(root, fs, dontneed_child, 1, NULL, -1);
}

/*
 * An entry that cannot be decompressed is an I/O error of the task that wants
 * it, and of no other. The entry is kept.
 */
static sigjmp_buf sigbus_jump;

static void sigbus(int sig)
{
	siglongjmp(sigbus_jump, 1);
}

static int sigbus_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	long nr = fs->nr, k = nr / 2, failed;
	struct rlimit no_core = { 0, 0 };
	double deadline;
	int status;
	char *mem;
	pid_t pid;

	start_child();
	mem = alloc_folios(fs, 1);
	if (!mem)
		return KSFT_SKIP;
	fill(mem, nr, 1, COMPRESSIBLE);
	if (differs("swapped out", pageout(mem, nr, nr), nr) ||
	    differs("zswapped pages", zswapped_pages(cgroup), nr))
		return KSFT_FAIL;

	failed = read_number(ZSWAP_DEBUG "/decompress_fail");
	pid = fork();
	if (pid < 0)
		return KSFT_FAIL;
	if (!pid) {
		setrlimit(RLIMIT_CORE, &no_core);
		if (write_file("/proc/self/make-it-fail", "1"))
			exit(KSFT_SKIP);
		exit(intact(mem + k * page_size, 1, 1, COMPRESSIBLE) ?
		     KSFT_PASS : KSFT_FAIL);
	}
	if (waitpid(pid, &status, 0) != pid)
		return KSFT_FAIL;
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS) {
		ksft_print_msg("no SIGBUS, wait status %#x\n", status);
		return KSFT_FAIL;
	}
	if (failed >= 0 && read_number(ZSWAP_DEBUG "/decompress_fail") <= failed) {
		ksft_print_msg("not counted in decompress_fail\n");
		return KSFT_FAIL;
	}
	if (differs("zswapped pages after the failure",
		    zswapped_pages(cgroup), nr))
		return KSFT_FAIL;

	/* The others are not affected */
	if (!intact(mem, k, 1, COMPRESSIBLE) ||
	    !intact(mem + (k + 1) * page_size, nr - k - 1, 1, COMPRESSIBLE))
		return KSFT_FAIL;

	/* Nor is this one, when the folio of the failure has left the swap cache */
	signal(SIGBUS, sigbus);
	deadline = seconds() + STAT_SECONDS;
	if (sigsetjmp(sigbus_jump, 1)) {
		if (seconds() > deadline) {
			ksft_print_msg("SIGBUS that does not end\n");
			return KSFT_FAIL;
		}
		cg_write_numeric(cgroup, "memory.reclaim", 2 * fs->bytes);
	}
	return intact(mem, nr, 1, COMPRESSIBLE) ? KSFT_PASS : KSFT_FAIL;
}

static bool probe_by_ftrace(const char *function)
{
	char line[256];
	bool found = false;
	FILE *file;

	file = fopen("/sys/kernel/debug/kprobes/list", "r");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file)) {
		if (strstr(line, function) && strstr(line, "[FTRACE]"))
			found = true;
	}
	fclose(file);
	return found;
}

static int test_decompress_failure(const char *root, const struct folio_size *fs)
{
	int ret = KSFT_SKIP;

	if (access("/proc/self/make-it-fail", W_OK) ||
	    set_param(FAIL_FUNCTION "/probability", "0") ||
	    write_file(FAIL_FUNCTION "/inject", "zswap_decompress")) {
		ksft_print_msg("no error injection into zswap_decompress()\n");
		return KSFT_SKIP;
	}
	/*
	 * A probe that is a breakpoint is handled as in an NMI: the filter by
	 * task does not work there, and lockdep objects to the random numbers.
	 */
	if (!probe_by_ftrace("zswap_decompress")) {
		ksft_print_msg("the probe of zswap_decompress() is not based on ftrace\n");
		goto out;
	}
	if (set_param(FAIL_FUNCTION "/task-filter", "Y") ||
	    set_param(FAIL_FUNCTION "/verbose", "0") ||
	    set_param(FAIL_FUNCTION "/interval", "1") ||
	    set_param(FAIL_FUNCTION "/space", "0") ||
	    set_param(FAIL_FUNCTION "/times", "-1") ||
	    set_param(FAIL_FUNCTION "/probability", "100") ||
	    write_file(FAIL_FUNCTION "/zswap_decompress/retval", "0xfffffffffffffffb"))
		ksft_print_msg("fail_function cannot be set up\n");
	else
		ret = run_job(root, fs, sigbus_child, 1, NULL, -1);
out:
	write_file(FAIL_FUNCTION "/inject", "!zswap_decompress");
	return ret;
}

/*
 * Every allocation on the way fails once, until there is none left to fail.
 * Writeback is off, so that the swap device has no part in it.
 */
static long fail_nth(int fd, long n)
{
	char buf[32];
	ssize_t len;

	if (n >= 0) {
		len = snprintf(buf, sizeof(buf), "%ld", n);
		return pwrite(fd, buf, len, 0) == len ? 0 : -1;
	}
	/* The read itself may be what fails */
	len = pread(fd, buf, sizeof(buf) - 1, 0);
	if (len < 0)
		len = pread(fd, buf, sizeof(buf) - 1, 0);
	if (len <= 0)
		return -1;
	buf[len] = '\0';
	return atol(buf);
}

static int fail_nth_child(const char *cgroup, void *arg)
{
	const struct folio_size *fs = job->fs;
	int fd = open("/proc/thread-self/fail-nth", O_RDWR);
	long nr = fs->nr, n = 1, left, gone, injected = 0;
	struct counters c;
	char *mem;

	if (fd < 0)
		return KSFT_SKIP;
	start_child();
	do {
		alarm(TEST_SECONDS);
		mem = alloc_folios(fs, 1);
		if (!mem)
			return KSFT_SKIP;
		fill(mem, nr, n, COMPRESSIBLE);
		read_counters(cgroup, fs, &c);
		if (fail_nth(fd, n))
			return KSFT_SKIP;
		madvise(mem, fs->bytes, MADV_PAGEOUT);
		left = fail_nth(fd, -1);
		fail_nth(fd, 0);
		if (left < 0)
			return KSFT_FAIL;

		gone = gone_pages(mem, nr);
		count_since(cgroup, fs, &c);
		/* A folio that gets no swap space is split, as without zswap */
		if ((!c.split && gone && differs("swapped out", gone, nr)) ||
		    differs("zswapped pages", zswapped_pages(cgroup), gone) ||
		    differs("memory.stat zswpout", c.memcg_zswpout, gone) ||
		    differs("vmstat pswpout", c.pswpout, 0) ||
		    !intact(mem, nr, n, COMPRESSIBLE))
			break;
		munmap(mem, fs->bytes);
		if (differs("zswapped pages after unmapping",
			    zswapped_pages(cgroup), 0) ||
		    differs("memory.zswap.current after unmapping",
			    zswap_current(cgroup), 0))
			break;
		if (left) {
			ksft_print_msg("%ld failures, the last one at allocation %ld\n",
				       injected, n - 1);
			return differs("swapped out without a failure", gone, nr) ||
			       !injected ? KSFT_FAIL : KSFT_PASS;
		}
		injected++;
		/* A large folio has many: thin them out unless told otherwise */
		n += every_allocation ? 1 : 1 + n / 32;
	} while (1);

	ksft_print_msg("with failure %ld\n", n);
	return KSFT_FAIL;
}

static int test_fail_nth(const char *root, const struct folio_size *fs)
{
	static const char * const need[][2] = {
		{ "/sys/kernel/debug/failslab/ignore-gfp-wait", "N" },
		{ "/sys/kernel/debug/failslab/cache-filter", "N" },
		{ "/sys/kernel/debug/failslab/verbose", "0" },
	};
	static const char * const want[][2] = {
		{ "/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N" },
		{ "/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "/sys/kernel/debug/fail_page_alloc/min-order", "0" },
		{ "/sys/kernel/debug/fail_page_alloc/verbose", "0" },
	};
	unsigned int i;

	if (access("/proc/thread-self/fail-nth", W_OK)) {
		ksft_print_msg("no fault injection\n");
		return KSFT_SKIP;
	}
	for (i = 0; i < ARRAY_SIZE(need); i++) {
		if (set_param(need[i][0], need[i][1])) {
			ksft_print_msg("no %s\n", need[i][0]);
			return KSFT_SKIP;
		}
	}
	/* Failing pages are welcome but not needed */
	for (i = 0; i < ARRAY_SIZE(want); i++)
		set_param(want[i][0], want[i][1]);
	return run_job(root, fs, fail_nth_child, 0, NULL, -1);
}

#define T(x) { x, #x }
struct zswap_test {
	int (*fn)(const char *root, const struct folio_size *fs);
	const char *name;
} tests[] = {
	T(test_store),
	T(test_store_reclaim),
	T(test_counter),
	T(test_zeroes),
	T(test_limit),
	T(test_limit_writeback),
	T(test_max_zero),
	T(test_max_zero_writeback),
	T(test_disabled),
	T(test_bad_page),
	T(test_bad_page_compressors),
	T(test_bad_page_writeback),
	T(test_fork),
	T(test_dontneed),
	T(test_decompress_failure),
	T(test_fail_nth),
};

#undef T

static struct folio_size sizes[32];
static int nr_sizes;

static int by_bytes(const void *a, const void *b)
{
	const struct folio_size *x = a, *y = b;

	return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

static void find_sizes(void)
{
	struct dirent *entry;
	unsigned long kb;
	DIR *dir = opendir(THP_DIR);

	if (!dir)
		return;
	while ((entry = readdir(dir)) && nr_sizes < (int)ARRAY_SIZE(sizes)) {
		struct folio_size *fs = &sizes[nr_sizes];

		if (sscanf(entry->d_name, "hugepages-%lukB", &kb) != 1)
			continue;
		snprintf(fs->name, sizeof(fs->name), "%s", entry->d_name);
		fs->bytes = kb * 1024;
		fs->nr = fs->bytes / page_size;
		/* Not every size is one of anonymous memory */
		if (size_stat(fs, "anon_fault_alloc") >= 0)
			nr_sizes++;
	}
	closedir(dir);
	qsort(sizes, nr_sizes, sizeof(*sizes), by_bytes);
}

static const char *size_param(const struct folio_size *fs)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), THP_DIR "/%s/enabled", fs->name);
	return path;
}

/* Folios of the size wherever a test asks for them, and nowhere else. */
static int select_size(const struct folio_size *fs)
{
	int i;

	for (i = 0; i < nr_sizes; i++) {
		if (set_param(size_param(&sizes[i]), "never"))
			return -1;
	}
	return set_param(size_param(fs), "madvise");
}

static int set_up(void)
{
	int i, sigs[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGSEGV, SIGBUS, SIGABRT };

	main_pid = getpid();
	atexit(restore_params);
	for (i = 0; i < (int)ARRAY_SIZE(sigs); i++)
		signal(sigs[i], restore_and_die);

	if (set_param(ZSWAP_PARAM "/enabled", "Y"))
		return -1;
	/* Nobody but the test moves pages: not all kernels have all of these */
	set_param(ZSWAP_PARAM "/shrinker_enabled", "N");
	set_param("/proc/sys/vm/page-cluster", "0");
	set_param(THP_DIR "/defrag", "madvise");
	set_param(THP_DIR "/shrink_underused", "0");
	set_param(THP_DIR "/khugepaged/scan_sleep_millisecs", "3600000");
	return 0;
}

static void report(int ret, const char *name, const char *size)
{
	switch (ret) {
	case KSFT_PASS:
		ksft_test_result_pass("%s %s\n", name, size);
		break;
	case KSFT_SKIP:
		ksft_test_result_skip("%s %s\n", name, size);
		break;
	default:
		ksft_test_result_fail("%s %s\n", name, size);
		break;
	}
}

int main(int argc, char **argv)
{
	const struct folio_size *main_sizes[2] = { NULL, NULL };
	size_t pmd_bytes;
	char root[PATH_MAX];
	int i, j;

	page_size = sysconf(_SC_PAGESIZE);
	/* -a: let every single allocation of a large folio's store fail */
	every_allocation = argc > 1 && !strcmp(argv[1], "-a");

	ksft_print_header();
	if (cg_find_unified_root(root, sizeof(root), NULL))
		ksft_exit_skip("cgroup v2 isn't mounted\n");
	if (geteuid())
		ksft_exit_skip("needs root\n");
	if (access(ZSWAP_PARAM, F_OK))
		ksft_exit_skip("zswap isn't configured\n");
	if (read_key("/proc/meminfo", "SwapFree") < 64 * 1024)
		ksft_exit_skip("needs 64 MB of free swap space\n");
	if (swapped_pages((char *)root, 1) < 0)
		ksft_exit_skip("/proc/self/pagemap isn't configured\n");
	if (cg_read_strstr(root, "cgroup.controllers", "memory"))
		ksft_exit_skip("memory controller isn't available\n");
	if (cg_read_strstr(root, "cgroup.subtree_control", "memory"))
		if (cg_write(root, "cgroup.subtree_control", "+memory"))
			ksft_exit_skip("Failed to set memory controller\n");
	find_sizes();
	if (!nr_sizes)
		ksft_exit_skip("no folio sizes to choose from in " THP_DIR "\n");
	job = mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (job == MAP_FAILED)
		ksft_exit_fail_msg("mmap: %s\n", strerror(errno));
	if (set_up())
		ksft_exit_skip("zswap cannot be enabled\n");

	pmd_bytes = read_number(THP_DIR "/hpage_pmd_size");
	for (i = 0; i < nr_sizes; i++) {
		if (sizes[i].bytes == 64 * 1024)
			main_sizes[0] = &sizes[i];
		if (sizes[i].bytes == pmd_bytes)
			main_sizes[1] = &sizes[i];
	}

	/* Everything for these two; the others show that they are no different */
	ksft_set_plan(2 * ARRAY_SIZE(tests) + nr_sizes -
		      !!main_sizes[0] - !!main_sizes[1]);
	for (i = 0; i < 2; i++) {
		const struct folio_size *fs = main_sizes[i];

		if (fs && select_size(fs))
			fs = NULL;
		for (j = 0; j < (int)ARRAY_SIZE(tests); j++)
			report(fs ? tests[j].fn(root, fs) : KSFT_SKIP,
			       tests[j].name,
			       fs ? fs->name : i ? "PMD size" : "hugepages-64kB");
	}
	for (i = 0; i < nr_sizes; i++) {
		if (&sizes[i] == main_sizes[0] || &sizes[i] == main_sizes[1])
			continue;
		report(select_size(&sizes[i]) ? KSFT_SKIP : test_store(root, &sizes[i]),
		       "test_store", sizes[i].name);
	}

	ksft_finished();
}
