// SPDX-License-Identifier: GPL-2.0-only
/*
 * mixmem: write memory that compresses like memory does, not like a counter.
 *
 *   mixmem [-n TASKS] [-s SECONDS] [--seed N] [--verify] SIZE
 *
 * Each task maps SIZE (k, m, g: times 1024) of anonymous memory and writes it once. Pages come in
 * extents of 64K of one kind, drawn from the seed: 45 % text-like, 30 % pointer-like, 15 % zero,
 * 10 % incompressible. After SECONDS, --verify reads all of it back and compares.
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

#define WORDS 512		/* of 8 bytes in a block of 4K, on every page size */
#define BLOCK (WORDS * 8)
#define EXTENT (64 * 1024 / BLOCK)

static const char lexicon[64][12] = {
	"the ", "of ", "and ", "to ", "in ", "is ", "that ", "for ", "with ", "as ", "on ", "be ",
	"are ", "this ", "by ", "from ", "page", "folio", "memory", "kernel", "error", "value",
	"name", "return ", "static ", "struct ", "const ", "unsigned ", "if (", ") {\n\t", "};\n\n",
	"->", "= ", "== ", "0x", "NULL", ", ", "; ", ";\n\t", "()", "<div>", "</div>\n", "http://",
	"id=\"", "\" class=\"", "true", "false", "{\"", "\":\"", "\",\"", "time", "request",
	"2024-", "10:", "INFO ", "GET /", "200 ", "user", "data", "index", "count", "size", "list",
	"next"
};

static uint64_t mix(uint64_t x)	/* splitmix64: any seed gives a stream of good bits */
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static void fill(uint64_t *block, uint64_t seed, uint64_t number)
{
	unsigned int kind = mix(seed ^ mix(number / EXTENT)) % 100;
	uint64_t r = mix(seed + number * 0x100000001b3ull);
	char *text = (char *)block;
	size_t at = 0;
	int i;

	if (kind < 45) {
		while (at < BLOCK) {
			const char *word;
			size_t length;

			r = mix(r);
			/* The smaller of two draws: few words are frequent, many are rare. */
			word = lexicon[(r & 63) < (r >> 8 & 63) ? r & 63 : r >> 8 & 63];
			length = strnlen(word, sizeof(lexicon[0]));
			if (length > BLOCK - at)
				length = BLOCK - at;
			memcpy(text + at, word, length);
			at += length;
		}
	} else if (kind < 75) {
		for (i = 0; i < WORDS; i++) {
			r = mix(r);
			/* Addresses of one arena, small integers, and empty fields. */
			if (r >> 61 < 4)
				block[i] = 0x00007f5a00000000ull + (number / EXTENT << 20) + (r & 0xffff0);
			else
				block[i] = r >> 61 < 6 ? r & 0xff : 0;
		}
	} else if (kind < 90) {
		memset(block, 0, BLOCK);
	} else {
		for (i = 0; i < WORDS; i++)
			block[i] = r = mix(r);
	}
}

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
