// SPDX-License-Identifier: GPL-2.0-only
/*
 * usemem - fill memory from many processes or threads and report the speed
 *
 * Every task (a process, or one of its threads) gets memory of the whole SIZE,
 * writes word i with the value i, and prints how many bytes it handled in how
 * many microseconds. Later passes check what the earlier ones wrote.
 *
 * A task's way: pin, allocate, meet the others (-y), passes, mremap, mincore,
 * report, page out, wait for SIGUSR1 (-W), read again, punch holes, mlock,
 * detach, sleep, meet the others (-x), free.
 *
 * Each line is one write(2), so that lines of tasks that share a pipe do not
 * mix. Progress dots are for a person: they appear on a terminal only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_COLD
#define MADV_COLD 20
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#define WORD_SIZE 8
#define MAX_TASKS 65536
#define MAX_SECONDS (1UL << 31)
#define NSEC_PER_SEC 1000000000ULL
#define NSEC_PER_USEC 1000ULL
/* A timer is too coarse for a shorter delay than this: spin instead. */
#define SPIN_LIMIT_NS 50000ULL
#define DELAY_SLICE_NS 10000000ULL
/* Piece of memory for one mincore call, if huge pages do not give the size. */
#define MINCORE_WINDOW (2UL << 20)

#define __printf(a, b) __attribute__((__format__(printf, a, b)))

#define ARRAY_SIZE(x) (sizeof(x) / sizeof((x)[0]))

#define READ_ONCE(x) __atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, val) __atomic_store_n(&(x), val, __ATOMIC_RELAXED)

enum source {
	SRC_ZERO,		/* private mapping of /dev/zero, the default */
	SRC_ANON,
	SRC_HEAP,
	SRC_FILE,
	SRC_MEMFD,
};

enum access {
	ACCESS_READ	= 1,
	ACCESS_CHECK	= 2,	/* read, and compare */
	ACCESS_WRITE	= 4,
};

struct options {
	size_t size;
	size_t unit;
	size_t step;
	enum source source;
	const char *file;
	const char *pidfile;
	int fd;			/* what to map, opened once in the parent */
	unsigned long processes;	/* 0: no fork, the tasks run in place */
	unsigned long threads;
	unsigned long passes;
	unsigned long pin_step;
	unsigned long long delay_ns;
	unsigned long sleep_secs;
	unsigned long run_secs;
	unsigned long long seed;
	int msync_flags;
	bool pin;
	bool hugetlb;
	bool populate;
	bool prealloc;
	bool random;
	bool readonly;
	bool open_rw;
	bool read_again;
	bool mlock;
	bool sleep;
	bool quiet;
	bool detach;
	bool sync_start;
	bool sync_free;
	bool wait_signal;
	bool mremap;
	bool mincore;
	bool mincore_huge;
	bool init_time;
	bool touch_alloc;
	bool punch_holes;
	bool madv_thp;
	bool madv_pageout;
};

/*
 * One piece of memory. [lo, lo + span) are its whole pages, which is what the
 * page-wise system calls take; for malloc() they are a part of the words.
 */
struct region {
	void *base;
	size_t map_size;
	unsigned long long *words;
	char *lo;
	size_t span;
	size_t page;
	unsigned long users;
};

struct task {
	unsigned long index;	/* over all processes */
	struct region own;
	struct region *mem;
	unsigned long long accesses;
	unsigned long long random;
	pthread_t thread;
};

/* A door that stays open: whoever passes leaves it open for the next one. */
struct gate {
	sem_t sem;
	unsigned long arrived;
};

/* Shared by all processes */
struct shared {
	struct gate allocated;
	struct gate worked;
	struct gate freeing;
	int detached[];
};

struct child {
	pid_t pid;
	bool done;
};

/* Visits 0 .. n - 1 once each in a random order, without memory for it. */
struct order {
	unsigned long long n, mask, mul, add, pos;
	unsigned int shift;
};

static struct options opt = {
	.fd = -1,
	.threads = 1,
	.passes = 1,
	.step = WORD_SIZE,
};

static struct shared *shared;
static struct region common;		/* the memory of -P */
static unsigned long long start_ns;
static size_t page_size;
static bool show_dots;

/* State of one process and its threads */
static unsigned long process_index;
static unsigned long busy_tasks;
static struct gate resume;
static int stop;

static const char usage_text[] =
"usage: usemem [option ...] SIZE\n"
"Each task fills SIZE bytes of memory. Sizes take a k, m, g or t suffix (x 1024).\n"
"  -n N  run N processes              -t N  run N threads in each process\n"
"  -b N  pin task i to CPU i * N      -a    memory of malloc\n"
"  -f FILE  map FILE, shared          -O    map anonymous memory\n"
"  -U    hugetlb pages, with -O       -F    populate the mapping\n"
"  -P    allocate before forking      -u SIZE  work chunk by chunk of this size\n"
"  -j SIZE  stride, 8 or more         -r N  number of passes\n"
"  -R    random order                 -o    only read\n"
"  -w    map writable even with -o    -Z    read everything again\n"
"  -e T  delay per page in ns, or with suffix u or m\n"
"  -M    mlock after the work         -S, -A  msync each pass, or MS_ASYNC\n"
"  -s N  sleep N s before freeing     -T N  stop the work after N s\n"
"  -q    no progress dots             -d    go to background after the work\n"
"  -p FILE  append the background pid to FILE\n"
"  -y    all start together           -x    all free together\n"
"  -W    write, wait for SIGUSR1, read\n"
"  -E    move the memory by mremap, once per pass\n"
"  -N, -H  mincore, counting pages or huge pages (on stderr)\n"
"  --init-time       print the time before the tasks start\n"
"  --random-seed N   seed of -R\n"
"  --touch-alloc     touch each page right after allocation\n"
"  --punch-holes     give every second page back after the work\n"
"  --memfd           map a memfd, shared\n"
"  --madv-thp        ask for transparent huge pages\n"
"  --madv-pageout    page the memory out after the passes\n";

static size_t align_down(size_t x, size_t unit)
{
	return x / unit * unit;
}

static size_t align_up(size_t x, size_t unit)
{
	return align_down(x + unit - 1, unit);
}

static void emit_all(int fd, const char *text, size_t len)
{
	ssize_t n;

	while (len) {
		n = write(fd, text, len);
		if (n < 0 && errno == EINTR)
			continue;
		/* Lost output must not look like success. */
		if (n < 0)
			_exit(EXIT_FAILURE);
		text += n;
		len -= n;
	}
}

static void vemit(int fd, const char *fmt, va_list args)
{
	char line[512];
	int len = vsnprintf(line, sizeof(line), fmt, args);

	if (len >= (int)sizeof(line)) {
		len = sizeof(line) - 1;
		line[len - 1] = '\n';
	}
	if (len > 0)
		emit_all(fd, line, len);
}

static __printf(2, 3) void emit(int fd, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vemit(fd, fmt, args);
	va_end(args);
}

/* From a thread too, this ends the whole process. */
static _Noreturn void die(const char *what)
{
	emit(STDERR_FILENO, "usemem: %s: %s\n", what, strerror(errno));
	_exit(EXIT_FAILURE);
}

static _Noreturn __printf(1, 2) void bad_usage(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vemit(STDERR_FILENO, fmt, args);
	va_end(args);
	emit_all(STDERR_FILENO, usage_text, sizeof(usage_text) - 1);
	_exit(2);
}

static unsigned long long now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* A time of 0 has no rate, so that the shortest time is 1. */
static unsigned long long usecs_since(unsigned long long ns)
{
	unsigned long long usecs = (now_ns() - ns) / NSEC_PER_USEC;

	return usecs ? usecs : 1;
}

static int sleep_until(unsigned long long ns)
{
	struct timespec ts = {
		.tv_sec = ns / NSEC_PER_SEC,
		.tv_nsec = ns % NSEC_PER_SEC,
	};

	return clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
}

static void sleep_seconds(unsigned long secs)
{
	unsigned long long end = now_ns() + secs * NSEC_PER_SEC;

	while (sleep_until(end) == EINTR)
		;
}

/* Looks for -T now and then: its signal may have gone to another thread. */
static void delay(unsigned long long ns)
{
	unsigned long long now = now_ns();
	unsigned long long end = now + ns;

	while (now < end && !READ_ONCE(stop)) {
		if (end - now > DELAY_SLICE_NS)
			sleep_until(now + DELAY_SLICE_NS);
		else if (end - now >= SPIN_LIMIT_NS)
			sleep_until(end);
		now = now_ns();
	}
}

static void gate_init(struct gate *gate, bool between_processes)
{
	if (sem_init(&gate->sem, between_processes, 0))
		die("sem_init");
}

/* Safe in a signal handler */
static void gate_open(struct gate *gate)
{
	sem_post(&gate->sem);
}

static void gate_pass(struct gate *gate)
{
	while (sem_wait(&gate->sem))
		if (errno != EINTR)
			die("sem_wait");
	gate_open(gate);
}

/*
 * A barrier for all tasks. The parent opens it when a process fails, so that
 * the others do not wait forever for one that will not come.
 */
static void gate_meet(struct gate *gate)
{
	unsigned long processes = opt.processes ? opt.processes : 1;

	if (__atomic_add_fetch(&gate->arrived, 1, __ATOMIC_SEQ_CST) ==
	    processes * opt.threads)
		gate_open(gate);
	gate_pass(gate);
}

/* splitmix64: any seed will do, also small ones that are close together */
static unsigned long long random_next(unsigned long long *state)
{
	unsigned long long x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/*
 * A linear congruential generator modulo a power of two visits every value
 * below it if the factor is 1 modulo 4 and the summand is odd.
 */
static void order_init(struct order *o, unsigned long long n,
		       unsigned long long *random)
{
	unsigned int bits = 0;

	while (bits < 63 && 1ULL << bits < n)
		bits++;
	o->n = n;
	o->mask = (1ULL << bits) - 1;
	o->shift = bits / 2 + 1;
	o->mul = random_next(random) * 8 + 5;
	o->add = random_next(random) | 1;
	o->pos = random_next(random) & o->mask;
}

/* The low bits of the generator hardly vary: mix the high ones into them. */
static unsigned long long order_next(struct order *o)
{
	unsigned long long value;

	do {
		o->pos = (o->pos * o->mul + o->add) & o->mask;
		value = o->pos ^ (o->pos >> o->shift);
	} while (value >= o->n);
	return value;
}

static size_t huge_page_size(void)
{
	unsigned long kb = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	if (!f)
		die("/proc/meminfo");
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Hugepagesize: %lu kB", &kb) == 1)
			break;
	fclose(f);
	if (!kb) {
		errno = EOPNOTSUPP;
		die("hugetlb pages");
	}
	return kb << 10;
}

static bool map_shared(void)
{
	return opt.source == SRC_FILE || opt.source == SRC_MEMFD;
}

static bool map_writable(void)
{
	return !opt.readonly || opt.open_rw;
}

/* A hint for huge pages has to come before the pages do. */
static bool populate_late(void)
{
	return opt.populate && opt.madv_thp;
}

/* Creates a missing file also for a run that only reads it. */
static void create_file(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 && errno == EEXIST)
		return;
	if (fd < 0 || ftruncate(fd, opt.size))
		die(file);
	close(fd);
}

static void open_file(const char *file)
{
	struct stat st;

	opt.fd = open(file, (map_writable() ? O_RDWR : O_RDONLY) | O_CLOEXEC);
	if (opt.fd < 0 || fstat(opt.fd, &st))
		die(file);
	if (!S_ISREG(st.st_mode) || (size_t)st.st_size >= opt.size)
		return;
	if (!map_writable()) {
		emit(STDERR_FILENO, "usemem: %s: smaller than SIZE\n", file);
		_exit(EXIT_FAILURE);
	}
	if (ftruncate(opt.fd, opt.size))
		die(file);
}

/* Once, before forking: only one process may create and extend the file. */
static void open_source(void)
{
	if (opt.source == SRC_FILE) {
		create_file(opt.file);
		open_file(opt.file);
	} else if (opt.source == SRC_ZERO) {
		open_file("/dev/zero");
	}
}

static int open_memfd(void)
{
	int fd = memfd_create("usemem", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, opt.size))
		die("memfd");
	return fd;
}

static void map_region(struct region *r)
{
	int fd = opt.source == SRC_MEMFD ? open_memfd() : opt.fd;
	int prot = PROT_READ | (map_writable() ? PROT_WRITE : 0);
	int flags = map_shared() ? MAP_SHARED : MAP_PRIVATE;

	if (opt.source == SRC_ANON)
		flags |= MAP_ANONYMOUS;
	if (opt.hugetlb)
		flags |= MAP_HUGETLB;
	if (opt.populate && !populate_late())
		flags |= MAP_POPULATE;

	r->page = opt.hugetlb ? huge_page_size() : page_size;
	r->map_size = align_up(opt.size, r->page);
	r->base = mmap(NULL, r->map_size, prot, flags, fd, 0);
	if (r->base == MAP_FAILED)
		die("mmap");
	if (opt.source == SRC_MEMFD)
		close(fd);
	r->words = r->base;
	r->lo = r->base;
	r->span = r->map_size;
}

static void heap_region(struct region *r)
{
	size_t lo, hi;

	r->base = malloc(opt.size);
	if (!r->base)
		die("malloc");
	lo = align_up((size_t)r->base, page_size);
	hi = align_down((size_t)r->base + opt.size, page_size);
	r->words = r->base;
	r->lo = (char *)lo;
	r->span = hi > lo ? hi - lo : 0;
	r->page = page_size;
}

static void advise(struct region *r, int advice, const char *name)
{
	if (r->span && madvise(r->lo, r->span, advice))
		die(name);
}

/* Writes what the passes write, since others may share the memory already. */
static void touch_region(struct region *r)
{
	size_t words = opt.size / WORD_SIZE;
	size_t i;

	for (i = 0; i < words; i += r->page / WORD_SIZE) {
		if (opt.readonly)
			READ_ONCE(r->words[i]);
		else
			WRITE_ONCE(r->words[i], i);
	}
}

static void alloc_region(struct region *r)
{
	if (opt.source == SRC_HEAP)
		heap_region(r);
	else
		map_region(r);
	if (opt.madv_thp)
		advise(r, MADV_HUGEPAGE, "madvise(MADV_HUGEPAGE)");
	if (populate_late())
		advise(r, map_writable() ? MADV_POPULATE_WRITE :
		       MADV_POPULATE_READ, "populate");
	if (opt.touch_alloc)
		touch_region(r);
}

static void free_region(struct region *r)
{
	if (opt.source == SRC_HEAP)
		free(r->base);
	else if (munmap(r->base, r->map_size))
		die("munmap");
}

/* The last user frees: the threads of a process share the memory of -P. */
static void put_region(struct region *r)
{
	unsigned long long begin;

	if (__atomic_sub_fetch(&r->users, 1, __ATOMIC_SEQ_CST))
		return;
	begin = now_ns();
	free_region(r);
	if (opt.sleep)
		emit(STDOUT_FILENO, "%llu usecs to free memory\n",
		     usecs_since(begin));
}

static void write_words(unsigned long long *words, size_t i, size_t count,
			size_t stride)
{
	for (; count; count--, i += stride)
		WRITE_ONCE(words[i], i);
}

static void read_words(unsigned long long *words, size_t i, size_t count,
		       size_t stride)
{
	for (; count; count--, i += stride)
		READ_ONCE(words[i]);
}

static _Noreturn void data_wrong(size_t i, unsigned long long value)
{
	emit(STDERR_FILENO, "Data wrong at offset %zu: %llu instead of %zu\n",
	     i * WORD_SIZE, value, i);
	_exit(EXIT_FAILURE);
}

static void check_words(unsigned long long *words, size_t i, size_t count,
			size_t stride)
{
	unsigned long long value;

	for (; count; count--, i += stride) {
		value = READ_ONCE(words[i]);
		if (value != i)
			data_wrong(i, value);
	}
}

static void access_words(struct region *r, size_t i, size_t count,
			 size_t stride, enum access how)
{
	if (how & ACCESS_READ)
		read_words(r->words, i, count, stride);
	if (how & ACCESS_CHECK)
		check_words(r->words, i, count, stride);
	if (how & ACCESS_WRITE)
		write_words(r->words, i, count, stride);
}

/*
 * Goes over the words of one chunk. It does a page's worth of accesses at a
 * time (one, if they are random), then looks whether to delay or to stop.
 */
static void walk_chunk(struct task *t, size_t first, size_t words,
		       enum access how)
{
	size_t stride = opt.step / WORD_SIZE;
	size_t total = (words - 1) / stride + 1;
	size_t batch = page_size / WORD_SIZE / stride;
	size_t done, count, i;
	struct order order = { 0 };

	if (opt.random)
		order_init(&order, total, &t->random);
	if (opt.random || !batch)
		batch = 1;
	for (done = 0; done < total && !READ_ONCE(stop); done += count) {
		count = total - done < batch ? total - done : batch;
		i = opt.random ? order_next(&order) : done;
		access_words(t->mem, first + i * stride, count, stride, how);
		if (opt.delay_ns)
			delay(opt.delay_ns);
	}
	t->accesses += done;
}

static void sync_chunk(struct region *r, size_t first, size_t words)
{
	char *from = (char *)(r->words + first);
	char *to = (char *)(r->words + first + words);
	char *end = r->lo + r->span;

	from = (char *)align_down((size_t)from, r->page);
	to = (char *)align_up((size_t)to, r->page);
	if (from < r->lo)
		from = r->lo;
	if (to > end)
		to = end;
	if (from < to && msync(from, to - from, opt.msync_flags))
		die("msync");
}

static void do_passes_on_chunk(struct task *t, size_t first, size_t words)
{
	enum access how = opt.readonly ? ACCESS_READ : ACCESS_WRITE;
	unsigned long pass;

	for (pass = 0; pass < opt.passes && !READ_ONCE(stop); pass++) {
		walk_chunk(t, first, words, how);
		if (opt.msync_flags)
			sync_chunk(t->mem, first, words);
		if (show_dots)
			emit_all(STDOUT_FILENO, ".", 1);
		if (!opt.readonly)
			how = ACCESS_CHECK | ACCESS_WRITE;
	}
}

/* All passes over one chunk come before the next chunk. */
static void do_passes(struct task *t)
{
	size_t words = opt.size / WORD_SIZE;
	size_t chunk = opt.unit / WORD_SIZE;
	size_t first;

	for (first = 0; first < words; first += chunk) {
		if (chunk > words - first)
			chunk = words - first;
		do_passes_on_chunk(t, first, chunk);
	}
}

/* Moves the whole mapping to an address that a reservation keeps free. */
static void move_region(struct region *r)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	void *to;

	if (opt.hugetlb)
		flags |= MAP_HUGETLB;
	to = mmap(NULL, r->map_size, PROT_NONE, flags, -1, 0);
	if (to == MAP_FAILED)
		die("mmap for mremap");
	to = mremap(r->base, r->map_size, r->map_size,
		    MREMAP_MAYMOVE | MREMAP_FIXED, to);
	if (to == MAP_FAILED)
		die("mremap");
	r->base = to;
	r->words = to;
	r->lo = to;
}

static void move_loop(struct region *r)
{
	unsigned long i;

	for (i = 0; i < opt.passes && !READ_ONCE(stop); i++)
		move_region(r);
}

static size_t resident_pages(char *from, size_t size, unsigned char *vec)
{
	size_t pages = size / page_size;
	size_t count = 0;
	size_t i;

	if (mincore(from, size, vec))
		die("mincore");
	for (i = 0; i < pages; i++)
		count += vec[i] & 1;
	return count;
}

/* A huge page counts if all its pages are there. */
static void count_resident(struct region *r)
{
	size_t window = opt.mincore_huge ? huge_page_size() : MINCORE_WINDOW;
	size_t pages = 0, huge = 0, huge_total = 0;
	char *at, *next, *end = r->lo + r->span;
	unsigned char *vec = malloc(window / page_size);
	size_t n;

	if (!vec)
		die("malloc");
	for (at = r->lo; at < end; at = next) {
		next = (char *)align_up((size_t)at + 1, window);
		if (next > end)
			next = end;
		n = resident_pages(at, next - at, vec);
		pages += n;
		if ((size_t)(next - at) == window) {
			huge_total++;
			huge += n == window / page_size;
		}
	}
	free(vec);
	if (opt.mincore)
		emit(STDERR_FILENO, "mincore: %zu of %zu pages\n", pages,
		     r->span / page_size);
	if (opt.mincore_huge)
		emit(STDERR_FILENO, "mincore: %zu of %zu huge pages\n", huge,
		     huge_total);
}

static void report(const char *prefix, unsigned long long accesses,
		   unsigned long long begin)
{
	unsigned long long usecs = usecs_since(begin);
	unsigned long long bytes = opt.size / 8 + accesses * WORD_SIZE;
	unsigned long long rate = (__uint128_t)bytes * 1000000 / 1024 /
				  usecs;

	emit(STDOUT_FILENO, "%s%llu bytes / %llu usecs = %llu KB/s\n", prefix,
	     bytes, usecs, rate);
}

static void read_again(struct task *t)
{
	unsigned long long begin = now_ns();

	t->accesses = 0;
	walk_chunk(t, 0, opt.size / WORD_SIZE,
		   opt.readonly ? ACCESS_READ : ACCESS_CHECK);
	report("read again ", t->accesses, begin);
}

/* Other tasks may still check memory that they share with this one. */
static void punch_holes(struct region *r)
{
	int advice = map_shared() ? MADV_REMOVE : MADV_DONTNEED;
	size_t at;

	gate_meet(&shared->worked);
	for (at = r->page; at < r->span; at += 2 * r->page)
		if (madvise(r->lo + at, r->page, advice))
			die("punching holes");
}

static void write_pidfile(void)
{
	int fd = open(opt.pidfile, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
		      0644);

	if (fd < 0)
		die(opt.pidfile);
	emit(fd, "%ld\n", (long)getpid());
	close(fd);
}

/*
 * Lets the parent leave while this process goes on with the memory. The
 * output goes, too: a caller that reads it to its end must not wait for us.
 */
static void detach(void)
{
	pid_t parent = getppid();
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd < 0)
		die("/dev/null");
	if (opt.pidfile)
		write_pidfile();
	if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, 0))
		die("detach");
	if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
	    dup2(fd, STDERR_FILENO) < 0)
		die("detach");
	close(fd);
	__atomic_store_n(&shared->detached[process_index], 1, __ATOMIC_SEQ_CST);
	kill(parent, SIGCHLD);
}

static void pin_task(const struct task *t)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	if (cpus < 1)
		die("number of CPUs");
	CPU_ZERO(&set);
	CPU_SET((unsigned long long)t->index * opt.pin_step % cpus, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void task_alloc(struct task *t)
{
	if (opt.prealloc) {
		t->mem = &common;
	} else {
		t->own.users = 1;
		t->mem = &t->own;
		alloc_region(t->mem);
	}
	if (opt.sync_start)
		gate_meet(&shared->allocated);
}

static void task_work(struct task *t)
{
	do_passes(t);
	if (opt.mremap)
		move_loop(t->mem);
	if (opt.mincore || opt.mincore_huge)
		count_resident(t->mem);
	report("", t->accesses, start_ns);
}

static void task_after_work(struct task *t)
{
	if (opt.madv_pageout) {
		advise(t->mem, MADV_COLD, "madvise(MADV_COLD)");
		advise(t->mem, MADV_PAGEOUT, "madvise(MADV_PAGEOUT)");
	}
	if (opt.wait_signal)
		gate_pass(&resume);
	/* Passes that were stopped did not write all that this would check. */
	if ((opt.read_again || opt.wait_signal) && !READ_ONCE(stop))
		read_again(t);
	if (opt.punch_holes)
		punch_holes(t->mem);
	if (opt.mlock && mlock(t->mem->lo, t->mem->span))
		die("mlock");
}

static void task_end(struct task *t)
{
	if (!__atomic_sub_fetch(&busy_tasks, 1, __ATOMIC_SEQ_CST) &&
	    opt.detach)
		detach();
	if (opt.sleep)
		sleep_seconds(opt.sleep_secs);
	if (opt.sync_free)
		gate_meet(&shared->freeing);
	put_region(t->mem);
}

static void *run_task(void *arg)
{
	struct task *t = arg;

	t->random = opt.seed + t->index;
	t->random = random_next(&t->random);
	if (opt.pin)
		pin_task(t);
	task_alloc(t);
	task_work(t);
	task_after_work(t);
	task_end(t);
	return NULL;
}

static void on_alarm(int sig)
{
	(void)sig;
	WRITE_ONCE(stop, 1);
	gate_open(&resume);
}

static void on_resume(int sig)
{
	(void)sig;
	gate_open(&resume);
}

static void handle(int sig, void (*handler)(int))
{
	struct sigaction sa = {
		.sa_handler = handler,
		.sa_flags = SA_RESTART,
	};

	if (sigaction(sig, &sa, NULL))
		die("sigaction");
}

static void run_threads(struct task *tasks)
{
	unsigned long i;

	for (i = 0; i < opt.threads; i++) {
		errno = pthread_create(&tasks[i].thread, NULL, run_task,
				       &tasks[i]);
		if (errno)
			die("pthread_create");
	}
	for (i = 0; i < opt.threads; i++)
		pthread_join(tasks[i].thread, NULL);
}

/* Blocked, if not NULL, are signals that the parent kept from us so far. */
static void run_process(unsigned long index, const sigset_t *blocked)
{
	struct task *tasks = calloc(opt.threads, sizeof(*tasks));
	unsigned long i;

	if (!tasks)
		die("calloc");
	process_index = index;
	busy_tasks = opt.threads;
	common.users = opt.threads;
	for (i = 0; i < opt.threads; i++)
		tasks[i].index = index * opt.threads + i;
	/* The handlers use the gate, so that it comes first. */
	gate_init(&resume, false);
	if (opt.wait_signal)
		handle(SIGUSR1, on_resume);
	handle(SIGALRM, on_alarm);
	if (blocked)
		sigprocmask(SIG_UNBLOCK, blocked, NULL);
	alarm(opt.run_secs);
	if (opt.threads > 1)
		run_threads(tasks);
	else
		run_task(tasks);
	free(tasks);
}

static void run_child(unsigned long index, pid_t parent,
		      const sigset_t *signals)
{
	/* The children of a parent that was killed must not hold memory. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		die("prctl");
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	run_process(index, signals);
}

static void open_all_gates(void)
{
	gate_open(&shared->allocated);
	gate_open(&shared->worked);
	gate_open(&shared->freeing);
}

static struct child *find_child(struct child *children, pid_t pid)
{
	unsigned long i;

	for (i = 0; i < opt.processes; i++)
		if (children[i].pid == pid)
			return &children[i];
	return NULL;
}

/* Returns whether one of them failed. */
static bool reap(struct child *children)
{
	bool failed = false;
	struct child *child;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		child = find_child(children, pid);
		if (child)
			child->done = true;
		if (!status)
			continue;
		failed = true;
		open_all_gates();
		if (WIFSIGNALED(status))
			emit(STDERR_FILENO,
			     "usemem: process %ld: killed by signal %d\n",
			     (long)pid, WTERMSIG(status));
	}
	return failed;
}

static unsigned long count_running(const struct child *children)
{
	unsigned long running = 0;
	unsigned long i;

	for (i = 0; i < opt.processes; i++)
		running += !children[i].done &&
			   !__atomic_load_n(&shared->detached[i],
					    __ATOMIC_SEQ_CST);
	return running;
}

static void forward(const struct child *children, int sig)
{
	unsigned long i;

	for (i = 0; i < opt.processes; i++)
		if (!children[i].done)
			kill(children[i].pid, sig);
}

/* SIGCHLD says that a child ended or detached itself. */
static int supervise(struct child *children, const sigset_t *signals)
{
	int status = EXIT_SUCCESS;
	int sig;

	while (count_running(children)) {
		sig = sigwaitinfo(signals, NULL);
		if (sig == SIGUSR1)
			forward(children, sig);
		if (reap(children))
			status = EXIT_FAILURE;
	}
	return status;
}

static void block_signals(sigset_t *signals)
{
	/* An ignored SIGCHLD, as a caller may leave it, would lose the status. */
	handle(SIGCHLD, SIG_DFL);
	sigemptyset(signals);
	sigaddset(signals, SIGCHLD);
	if (opt.wait_signal)
		sigaddset(signals, SIGUSR1);
	sigprocmask(SIG_BLOCK, signals, NULL);
}

static int run_forked(void)
{
	struct child *children = calloc(opt.processes, sizeof(*children));
	pid_t parent = getpid();
	sigset_t signals;
	unsigned long i;
	int status;

	if (!children)
		die("calloc");
	block_signals(&signals);
	for (i = 0; i < opt.processes; i++) {
		children[i].pid = fork();
		if (children[i].pid < 0)
			die("fork");
		if (!children[i].pid) {
			run_child(i, parent, &signals);
			_exit(EXIT_SUCCESS);
		}
	}
	status = supervise(children, &signals);
	free(children);
	return status;
}

static unsigned long long parse_number(const char *text, const char **end,
				       const char *what)
{
	unsigned long long value;
	char *rest;

	/* strtoull() takes signs and spaces: a number here starts with a digit */
	if (*text < '0' || *text > '9')
		bad_usage("usemem: %s: not a number: %s\n", what, text);
	errno = 0;
	value = strtoull(text, &rest, 10);
	if (errno)
		bad_usage("usemem: %s: too large: %s\n", what, text);
	*end = rest;
	return value;
}

static unsigned long long parse_count(const char *text, const char *what,
				      unsigned long long min,
				      unsigned long long max)
{
	unsigned long long value;
	const char *end;

	value = parse_number(text, &end, what);
	if (*end)
		bad_usage("usemem: %s: not a number: %s\n", what, text);
	if (value < min || value > max)
		bad_usage("usemem: %s: not within %llu and %llu: %s\n", what,
			  min, max, text);
	return value;
}

static size_t parse_size(const char *text, const char *what)
{
	static const char suffixes[] = "kmgt";
	unsigned long long value;
	unsigned int shift = 0;
	const char *end, *suffix;

	value = parse_number(text, &end, what);
	if (*end) {
		suffix = strchr(suffixes, *end | 0x20);
		if (!suffix || end[1])
			bad_usage("usemem: %s: not a size: %s\n", what, text);
		shift = 10 * (suffix - suffixes + 1);
	}
	if (value > (unsigned long long)SSIZE_MAX >> shift)
		bad_usage("usemem: %s: too large: %s\n", what, text);
	value <<= shift;
	if (value < WORD_SIZE)
		bad_usage("usemem: %s: less than %d bytes: %s\n", what,
			  WORD_SIZE, text);
	return value;
}

static unsigned long long parse_delay(const char *text)
{
	unsigned long long value, factor = 1;
	const char *end;

	value = parse_number(text, &end, "-e");
	if (*end == 'u')
		factor = 1000;
	else if (*end == 'm')
		factor = 1000000;
	if (*end && (factor == 1 || end[1]))
		bad_usage("usemem: -e: not a time: %s\n", text);
	if (value > MAX_SECONDS * NSEC_PER_SEC / factor)
		bad_usage("usemem: -e: too large: %s\n", text);
	return value * factor;
}

static void set_source(enum source source)
{
	if (opt.source != SRC_ZERO && opt.source != source)
		bad_usage("usemem: only one of -a, -f, -O and --memfd\n");
	opt.source = source;
}

enum {
	OPT_INIT_TIME = 256,
	OPT_RANDOM_SEED,
	OPT_TOUCH_ALLOC,
	OPT_PUNCH_HOLES,
	OPT_MEMFD,
	OPT_MADV_THP,
	OPT_MADV_PAGEOUT,
};

static const char short_options[] =
	"n:t:b:af:OUFPu:j:r:RowZe:MSAs:T:qdp:yxWENH";

static const struct option long_options[] = {
	{ "init-time", no_argument, NULL, OPT_INIT_TIME },
	{ "random-seed", required_argument, NULL, OPT_RANDOM_SEED },
	{ "touch-alloc", no_argument, NULL, OPT_TOUCH_ALLOC },
	{ "punch-holes", no_argument, NULL, OPT_PUNCH_HOLES },
	{ "memfd", no_argument, NULL, OPT_MEMFD },
	{ "madv-thp", no_argument, NULL, OPT_MADV_THP },
	{ "madv-pageout", no_argument, NULL, OPT_MADV_PAGEOUT },
	{ }
};

static const struct {
	int c;
	bool *flag;
} flags[] = {
	{ 'U', &opt.hugetlb },
	{ 'F', &opt.populate },
	{ 'P', &opt.prealloc },
	{ 'R', &opt.random },
	{ 'o', &opt.readonly },
	{ 'w', &opt.open_rw },
	{ 'Z', &opt.read_again },
	{ 'M', &opt.mlock },
	{ 'q', &opt.quiet },
	{ 'd', &opt.detach },
	{ 'y', &opt.sync_start },
	{ 'x', &opt.sync_free },
	{ 'W', &opt.wait_signal },
	{ 'E', &opt.mremap },
	{ 'N', &opt.mincore },
	{ 'H', &opt.mincore_huge },
	{ OPT_INIT_TIME, &opt.init_time },
	{ OPT_TOUCH_ALLOC, &opt.touch_alloc },
	{ OPT_PUNCH_HOLES, &opt.punch_holes },
	{ OPT_MADV_THP, &opt.madv_thp },
	{ OPT_MADV_PAGEOUT, &opt.madv_pageout },
};

static bool set_flag(int c)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		if (flags[i].c == c) {
			*flags[i].flag = true;
			return true;
		}
	}
	return false;
}

static void set_option(int c, const char *arg)
{
	switch (c) {
	case 'n':
		opt.processes = parse_count(arg, "-n", 1, MAX_TASKS);
		break;
	case 't':
		opt.threads = parse_count(arg, "-t", 1, MAX_TASKS);
		break;
	case 'b':
		opt.pin = true;
		opt.pin_step = parse_count(arg, "-b", 0, MAX_TASKS);
		break;
	case 'a':
		set_source(SRC_HEAP);
		break;
	case 'f':
		set_source(SRC_FILE);
		opt.file = arg;
		break;
	case 'O':
		set_source(SRC_ANON);
		break;
	case OPT_MEMFD:
		set_source(SRC_MEMFD);
		break;
	case 'u':
		opt.unit = parse_size(arg, "-u");
		break;
	case 'j':
		opt.step = parse_size(arg, "-j");
		break;
	case 'r':
		opt.passes = parse_count(arg, "-r", 1, ULONG_MAX);
		break;
	case OPT_RANDOM_SEED:
		opt.seed = parse_count(arg, "--random-seed", 0, ULLONG_MAX);
		break;
	case 'e':
		opt.delay_ns = parse_delay(arg);
		break;
	case 'S':
		opt.msync_flags |= MS_SYNC;
		break;
	case 'A':
		opt.msync_flags |= MS_ASYNC;
		break;
	case 's':
		opt.sleep = true;
		opt.sleep_secs = parse_count(arg, "-s", 0, MAX_SECONDS);
		break;
	case 'T':
		opt.run_secs = parse_count(arg, "-T", 1, MAX_SECONDS);
		break;
	case 'p':
		opt.pidfile = arg;
		break;
	default:
		/* getopt has said what is wrong */
		bad_usage("%s", "");
	}
}

/* Options that together cannot do what they say are an error. */
static void check_combinations(void)
{
	const struct {
		bool bad;
		const char *text;
	} rules[] = {
		{ opt.hugetlb && opt.source != SRC_ANON, "-U needs -O" },
		{ opt.pidfile && !opt.detach, "-p needs -d" },
		{ opt.source == SRC_HEAP && opt.populate,
		  "-F needs a mapping, not -a" },
		{ opt.source == SRC_HEAP && opt.mremap,
		  "-E needs a mapping, not -a" },
		{ opt.mremap && opt.prealloc && opt.threads > 1,
		  "-E cannot move the memory that -P and -t share" },
		{ opt.wait_signal && opt.readonly, "-W writes, -o does not" },
		{ opt.punch_holes && opt.mlock,
		  "-M would fill what --punch-holes gives back" },
		{ opt.msync_flags == (MS_SYNC | MS_ASYNC),
		  "only one of -S and -A" },
		{ opt.detach && opt.sync_free,
		  "-x needs a parent that waits, -d has none" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rules); i++)
		if (rules[i].bad)
			bad_usage("usemem: %s\n", rules[i].text);
}

static void parse_options(int argc, char **argv)
{
	int c;

	opt.seed = now_ns() ^ (unsigned long long)getpid() << 32;
	while ((c = getopt_long(argc, argv, short_options, long_options,
				NULL)) != -1) {
		if (!set_flag(c))
			set_option(c, optarg);
	}
	if (optind == argc)
		bad_usage("usemem: SIZE is missing\n");
	if (argc - optind > 1)
		bad_usage("usemem: more than one SIZE: %s\n", argv[optind + 1]);
	opt.size = parse_size(argv[optind], "SIZE");
	if (!opt.unit)
		opt.unit = opt.size;
	/* Only a child can go to the background. */
	if (opt.detach && !opt.processes)
		opt.processes = 1;
	check_combinations();
}

/* What a failing process opens, or counts, has to be in everyone's sight. */
static void map_shared_state(void)
{
	size_t size = sizeof(*shared) +
		      opt.processes * sizeof(shared->detached[0]);

	shared = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	gate_init(&shared->allocated, true);
	gate_init(&shared->worked, true);
	gate_init(&shared->freeing, true);
}

int main(int argc, char **argv)
{
	unsigned long long init_ns = now_ns();
	unsigned long long usecs;

	parse_options(argc, argv);
	page_size = sysconf(_SC_PAGESIZE);
	show_dots = !opt.quiet && opt.passes > 1 && isatty(STDOUT_FILENO);
	map_shared_state();
	open_source();
	if (opt.prealloc)
		alloc_region(&common);
	if (opt.init_time) {
		usecs = usecs_since(init_ns);
		emit(STDOUT_FILENO,
		     "the initialization time is %llu secs %llu usecs\n",
		     usecs / 1000000, usecs % 1000000);
	}
	/* By default a sleep may take 50 us more than it should. */
	if (opt.delay_ns && prctl(PR_SET_TIMERSLACK, 1))
		die("timer slack");
	start_ns = now_ns();
	if (opt.processes)
		return run_forked();
	run_process(0, NULL);
	return EXIT_SUCCESS;
}
