// SPDX-License-Identifier: GPL-2.0-only
/*
 * cycle: push memory out and bring it in again, each half on its own order and timed on its own.
 *
 *   cycle [--data mix|usemem] [--seed N] [--profile WORDS] SIZE
 *
 * Fills SIZE (k, m, g: times 1024) of anonymous memory and says `ready`: with the mix of mixdata.h, or with words
 * that count up. Then takes orders, one a line, on standard input and answers each with one line, `pages N ns N`
 * and what else is known, after the work:
 *   out      MADV_PAGEOUT; `resident` is how many pages of 4K stayed mapped all the same
 *   in       read one word of each page of 4K
 *   verify   compare the memory with what was written; wrong data ends the program with status 1
 * --profile takes samples of out and in (profile.h); `inside` of `samples` were in functions named by WORDS.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "mixdata.h"
#include "profile.h"

#define ALIGN (2ul << 20)	/* no folio is larger */

static const char *data = "mix", *profile;
static uint64_t *memory, seed = 1;
static size_t size;

static void fail(const char *what)
{
	fprintf(stderr, "cycle: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void make(uint64_t *block, uint64_t number)
{
	int i;

	if (!strcmp(data, "mix"))
		fill(block, seed, number);
	else
		for (i = 0; i < WORDS; i++)
			block[i] = number * WORDS + i;
}

static unsigned long resident(void)
{
	uint64_t entry[4096];
	unsigned long found = 0, per_block = sysconf(_SC_PAGESIZE), first = (uintptr_t)memory / per_block, i, n;
	unsigned long left = size / per_block;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (fd < 0)
		fail("/proc/self/pagemap");
	for (; left; left -= n, first += n) {
		n = left < 4096 ? left : 4096;
		if (pread(fd, entry, n * 8, first * 8) != (ssize_t)(n * 8))
			fail("/proc/self/pagemap");
		for (i = 0; i < n; i++)
			found += entry[i] >> 63;
	}
	close(fd);
	return found * (per_block / BLOCK);
}

static void verify(void)
{
	static uint64_t want[WORDS];
	size_t n;

	for (n = 0; n < size / BLOCK; n++) {
		make(want, n);
		if (memcmp(want, memory + n * WORDS, BLOCK)) {
			fprintf(stderr, "cycle: data wrong at offset %zu\n", n * BLOCK);
			exit(1);
		}
	}
}

static void order(const char *what)
{
	int sampled = profile && strcmp(what, "verify");
	unsigned long samples, inside;
	struct timespec t0, t1;
	size_t n;

	if (sampled)
		profile_start();
	clock_gettime(CLOCK_MONOTONIC, &t0);
	if (!strcmp(what, "out")) {
		if (madvise(memory, size, MADV_PAGEOUT))
			fail("MADV_PAGEOUT");
	} else if (!strcmp(what, "in")) {
		for (n = 0; n < size / BLOCK; n++)
			*(volatile uint64_t *)(memory + n * WORDS);
	} else {
		verify();
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);
	printf("pages %zu ns %lld", size / BLOCK, (t1.tv_sec - t0.tv_sec) * 1000000000ll + t1.tv_nsec - t0.tv_nsec);
	if (sampled) {
		profile_stop(&samples, &inside);
		printf(" samples %lu inside %lu", samples, inside);
	}
	if (!strcmp(what, "out"))
		printf(" resident %lu", resident());
	printf("\n");
	fflush(stdout);
}

static unsigned long long number(const char *s, int units)
{
	static const char unit[] = "kmg";
	const char *u = NULL;
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(s, &end, 10);
	if (units && *end && (u = strchr(unit, *end | 0x20)))
		end++;
	return errno || end == s || *end || *s == '-' ? 0 : u ? v << 10 * (u - unit + 1) : v;
}

int main(int argc, char **argv)
{
	char line[16];
	size_t n;
	int arg;

	for (arg = 1; arg + 1 < argc; arg += 2) {
		if (!strcmp(argv[arg], "--data"))
			data = argv[arg + 1];
		else if (!strcmp(argv[arg], "--seed"))
			seed = number(argv[arg + 1], 0);
		else if (!strcmp(argv[arg], "--profile"))
			profile = argv[arg + 1];
		else
			break;
	}
	size = arg + 1 == argc ? number(argv[arg], 1) : 0;
	if (!size || size % BLOCK || !seed || (strcmp(data, "mix") && strcmp(data, "usemem"))) {
		fprintf(stderr, "usage: cycle [--data mix|usemem] [--seed N] [--profile WORDS] SIZE\n"
			"       SIZE is a multiple of 4k\n");
		return 2;
	}
	memory = mmap(NULL, size + ALIGN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	memory = (uint64_t *)(((uintptr_t)memory + ALIGN - 1) & -ALIGN);
	if (profile)
		profile_open(profile);
	for (n = 0; n < size / BLOCK; n++)
		make(memory + n * WORDS, n);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		if (strcmp(line, "out") && strcmp(line, "in") && strcmp(line, "verify")) {
			fprintf(stderr, "cycle: unknown order '%s'\n", line);
			return 1;
		}
		order(line);
	}
	return 0;
}
