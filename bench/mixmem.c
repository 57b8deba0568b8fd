// SPDX-License-Identifier: GPL-2.0-only
/*
 * mixmem: write memory that compresses like memory does, not like a counter.
 *
 *   mixmem [-n TASKS] [-s SECONDS] [--seed N] [--verify] SIZE
 *
 * Each task maps SIZE (k, m, g: times 1024) of anonymous memory and writes it once, with the pages of
 * mixdata.h. After SECONDS, --verify reads all of it back and compares.
 *
 * Output is that of usemem: BYTES bytes / USECS usecs = KBPS KB/s, one line for each task.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mixdata.h"

static int task(size_t size, unsigned int pause, uint64_t seed, int verify, const struct timespec *t0)
{
	static uint64_t want[WORDS];
	size_t n, blocks = size / BLOCK;
	unsigned long long usecs;
	struct timespec t1;
	uint64_t *memory;

	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		fprintf(stderr, "mixmem: cannot map %zu bytes: %s\n", size, strerror(errno));
		return 1;
	}
	for (n = 0; n < blocks; n++)
		fill(memory + n * WORDS, seed, n);
	clock_gettime(CLOCK_MONOTONIC, &t1);
	usecs = (t1.tv_sec - t0->tv_sec) * 1000000ull + t1.tv_nsec / 1000 - t0->tv_nsec / 1000;
	usecs = usecs ? usecs : 1;
	printf("%zu bytes / %llu usecs = %llu KB/s\n", size, usecs,
	       (unsigned long long)size * 1000000 / 1024 / usecs);
	fflush(stdout);
	sleep(pause);
	for (n = 0; verify && n < blocks; n++) {
		fill(want, seed, n);
		if (memcmp(want, memory + n * WORDS, BLOCK)) {
			fprintf(stderr, "mixmem: data wrong at offset %zu\n", n * BLOCK);
			return 1;
		}
	}
	return 0;
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
	if (errno || end == s || *end || *s == '-') {
		fprintf(stderr, "mixmem: bad number '%s'\n", s);
		exit(2);
	}
	return u ? v << 10 * (u - unit + 1) : v;
}

int main(int argc, char **argv)
{
	unsigned long long tasks = 1, pause = 0, seed = 1, size = 0, i;
	int arg, verify = 0, status, failed = 0;
	struct timespec t0;

	for (arg = 1; arg < argc; arg++) {
		int more = arg + 1 < argc;

		if (!strcmp(argv[arg], "-n") && more)
			tasks = number(argv[++arg], 0);
		else if (!strcmp(argv[arg], "-s") && more)
			pause = number(argv[++arg], 0);
		else if (!strcmp(argv[arg], "--seed") && more)
			seed = number(argv[++arg], 0);
		else if (!strcmp(argv[arg], "--verify"))
			verify = 1;
		else if (argv[arg][0] != '-' && !size)
			size = number(argv[arg], 1);
		else
			size = 0, arg = argc;
	}
	if (size < BLOCK || size % BLOCK || !tasks) {
		fprintf(stderr, "usage: mixmem [-n TASKS] [-s SECONDS] [--seed N] [--verify] SIZE\n"
			"       SIZE is a multiple of 4k\n");
		return 2;
	}
	clock_gettime(CLOCK_MONOTONIC, &t0);
	for (i = 0; i < tasks; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			fprintf(stderr, "mixmem: cannot fork: %s\n", strerror(errno));
			failed = 1;
			break;
		}
		if (!pid)
			_exit(task(size, pause, mix(seed) + i, verify, &t0));
	}
	while (wait(&status) > 0)
		failed |= !WIFEXITED(status) || WEXITSTATUS(status);
	return failed;
}
