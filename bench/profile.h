/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where this task's time goes: the processor clock interrupts it every 97 us, and each sample is inside or outside
 * of the functions whose names begin with one of the given words. memcpy, memset and memmove, which use no stack,
 * belong to their caller. The handler's own time is in no sample, so the share of samples is the share of time.
 * Needs root and CONFIG_PERF_EVENTS.
 */
#ifndef PROFILE_H
#define PROFILE_H

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROFILE_NS 97001	/* a prime: in step with nothing */
#define PROFILE_RING (16ul << 20)

struct profile_symbol {
	uint64_t address;
	enum { OUTSIDE, INSIDE, CALLER } kind;
};

static struct profile_symbol *profile_symbols;
static size_t profile_count;
static struct perf_event_mmap_page *profile_ring;
static int profile_fd;

static void profile_die(const char *what)
{
	fprintf(stderr, "profile: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int profile_kind(const char *name, const char *words)
{
	static const char *const helpers[] = { "memcpy", "__memcpy", "memcpy_orig", "memset", "__memset", "memset_orig",
					       "memmove", "__memmove" };
	size_t i, n;

	for (i = 0; i < sizeof(helpers) / sizeof(*helpers); i++)
		if (!strcmp(name, helpers[i]))
			return CALLER;
	for (; *words; words += n + strspn(words + n, " ")) {
		n = strcspn(words, " ");
		if (!strncmp(name, words, n))
			return INSIDE;
	}
	return OUTSIDE;
}

static int profile_order(const void *a, const void *b)
{
	const struct profile_symbol *x = a, *y = b;

	/* Of names for one address, the one that says most comes last. */
	return x->address < y->address ? -1 : x->address > y->address ? 1 : (int)x->kind - (int)y->kind;
}

static int profile_at(uint64_t address)
{
	size_t low = 0, high = profile_count, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (profile_symbols[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? profile_symbols[low - 1].kind : OUTSIDE;
}

static void profile_open(const char *words)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PROFILE_NS, .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
		.disabled = 1, .exclude_callchain_user = 1, .sample_max_stack = 4,
	};
	size_t room = 0, inside = 0;
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[512], name[256], type;
	unsigned long long address;

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %c %255s", &address, &type, name) != 3 || !strchr("tTwW", type) || !address)
			continue;
		if (profile_count == room) {
			room = room ? 2 * room : 4096;
			profile_symbols = realloc(profile_symbols, room * sizeof(*profile_symbols));
			if (!profile_symbols)
				profile_die("symbols");
		}
		profile_symbols[profile_count].address = address;
		profile_symbols[profile_count].kind = profile_kind(name, words);
		inside += profile_symbols[profile_count++].kind == INSIDE;
	}
	errno = ENOENT;
	if (!inside)
		profile_die("no function of these names in /proc/kallsyms");
	fclose(file);
	qsort(profile_symbols, profile_count, sizeof(*profile_symbols), profile_order);
	profile_fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
	if (profile_fd < 0)
		profile_die("perf_event_open");
	profile_ring = mmap(NULL, sysconf(_SC_PAGESIZE) + PROFILE_RING, PROT_READ | PROT_WRITE, MAP_SHARED, profile_fd, 0);
	if (profile_ring == MAP_FAILED)
		profile_die("mmap of the samples");
}

static void profile_start(void)
{
	ioctl(profile_fd, PERF_EVENT_IOC_ENABLE, 0);
}

static uint64_t profile_word(uint64_t at)
{
	/* Records are multiples of 8 bytes, and so is the ring: no word is in two parts. */
	return *(uint64_t *)((char *)profile_ring + profile_ring->data_offset + at % PROFILE_RING);
}

static void profile_stop(unsigned long *samples, unsigned long *inside)
{
	uint64_t at, caller, i, word;
	struct perf_event_header header;
	int kind;

	ioctl(profile_fd, PERF_EVENT_IOC_DISABLE, 0);
	*samples = *inside = 0;
	for (at = profile_ring->data_tail; at < profile_ring->data_head; at += header.size) {
		word = profile_word(at);
		memcpy(&header, &word, sizeof(header));
		errno = ENOBUFS;
		if (header.type == PERF_RECORD_LOST || header.type == PERF_RECORD_THROTTLE || !header.size)
			profile_die("samples were lost");
		if (header.type != PERF_RECORD_SAMPLE)
			continue;
		/* header, ip, number of callers, then those: a mark, ip itself (once or twice), where it returns to */
		for (caller = 0, i = 0; i < profile_word(at + 16) && !caller; i++) {
			word = profile_word(at + 24 + 8 * i);
			if (word < (uint64_t)PERF_CONTEXT_MAX && word != profile_word(at + 8))
				caller = word;
		}
		kind = profile_at(profile_word(at + 8));
		*inside += kind == INSIDE || (kind == CALLER && profile_at(caller) == INSIDE);
		++*samples;
	}
	profile_ring->data_tail = profile_ring->data_head;
}

#endif
