// SPDX-License-Identifier: GPL-2.0-only
/*
 * zstdreuse: what it costs to set up a compressor anew for each page, in user space on this machine.
 *
 *   zstdreuse ROUNDS FILE…
 *
 * Compresses each 4 KB page of each FILE in two ways; prints the wall time of a page (the least of ROUNDS for each
 * 64 pages, the ways taking turns) and the compressed sizes.
 *   zstd  fresh  as crypto/zstd.c of 7.3: a streaming context, then a one-shot context, in the same workspace
 *         kept   one context, reset and given its parameters for each page
 *   lz4   fresh  LZ4_compress_fast_extState: clears its table of 16 KB for each page, as the kernel's does
 *         kept   LZ4_compress_fast_extState_fastReset: goes on with the table
 * Level, parameters and the order of the calls are the kernel's; the libraries are this system's.
 */
#define ZSTD_STATIC_LINKING_ONLY
#define LZ4_STATIC_LINKING_ONLY
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <lz4.h>
#include <zstd.h>

#define PAGE 4096
#define BLOCK 64		/* pages: short enough for a round without interruption */
#define LEVEL 3
#define SOURCE (256 * 1024)	/* the size that the kernel takes the parameters for */

static char dst[2 * PAGE];
static ZSTD_parameters parameters;
static void *workspace, *lz4;
static size_t workspace_size;
static ZSTD_CCtx *kept;

static void need(int good, const char *what, const char *name)
{
	if (good)
		return;
	fprintf(stderr, "zstdreuse: %s%s\n", name, what);
	exit(1);
}

static void prepare(ZSTD_CCtx *c, unsigned long long size)
{
	const ZSTD_compressionParameters *p = &parameters.cParams;
	const struct { ZSTD_cParameter name; int value; } set[] = {
		{ ZSTD_c_windowLog, p->windowLog }, { ZSTD_c_hashLog, p->hashLog }, { ZSTD_c_chainLog, p->chainLog },
		{ ZSTD_c_searchLog, p->searchLog }, { ZSTD_c_minMatch, p->minMatch },
		{ ZSTD_c_targetLength, p->targetLength }, { ZSTD_c_strategy, p->strategy },
		{ ZSTD_c_contentSizeFlag, parameters.fParams.contentSizeFlag },
		{ ZSTD_c_checksumFlag, parameters.fParams.checksumFlag },
		{ ZSTD_c_dictIDFlag, !parameters.fParams.noDictIDFlag },
	};
	int bad = !c || ZSTD_isError(ZSTD_CCtx_reset(c, ZSTD_reset_session_and_parameters)) ||
		  ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(c, size));
	size_t i;

	for (i = 0; !bad && i < sizeof(set) / sizeof(*set); i++)
		bad = ZSTD_isError(ZSTD_CCtx_setParameter(c, set[i].name, set[i].value));
	need(!bad, "does not take the parameters", "zstd ");
}

static size_t zstd_fresh(const char *page)
{
	ZSTD_CCtx *c;

	prepare(ZSTD_initStaticCStream(workspace, workspace_size), ZSTD_CONTENTSIZE_UNKNOWN);
	c = ZSTD_initStaticCCtx(workspace, workspace_size);
	prepare(c, PAGE);
	return ZSTD_compress2(c, dst, sizeof(dst), page, PAGE);
}

static size_t zstd_kept(const char *page)
{
	prepare(kept, PAGE);
	return ZSTD_compress2(kept, dst, sizeof(dst), page, PAGE);
}

static size_t lz4_fresh(const char *page)
{
	return LZ4_compress_fast_extState(lz4, page, dst, PAGE, sizeof(dst), 1);
}

static size_t lz4_kept(const char *page)
{
	return LZ4_compress_fast_extState_fastReset(lz4, page, dst, PAGE, sizeof(dst), 1);
}

/* Nanoseconds for all pages; their compressed size. */
static double pass(size_t (*compress)(const char *), const char *data, size_t pages, size_t *total)
{
	struct timespec t0, t1;
	size_t n, size;

	clock_gettime(CLOCK_MONOTONIC, &t0);
	for (*total = n = 0; n < pages; n++) {
		size = compress(data + n * PAGE);
		need(size && !ZSTD_isError(size), "a page was not compressed", "");
		*total += size;
	}
	clock_gettime(CLOCK_MONOTONIC, &t1);
	return (t1.tv_sec - t0.tv_sec) * 1e9 + (t1.tv_nsec - t0.tv_nsec);
}

static void report(const char *name, size_t (*const way[2])(const char *), const char *data, size_t pages, long rounds)
{
	double sum[2] = { 0, 0 }, best[2], ns;
	size_t total[2] = { 0, 0 }, at, n, size;
	long r;
	int w;

	for (at = 0; at < pages; at += n) {
		n = pages - at < BLOCK ? pages - at : BLOCK;
		for (r = 0; r < 2 * rounds; r++) {
			w = r & 1;
			ns = pass(way[w], data + at * PAGE, n, &size);
			total[w] += r < 2 ? size : 0;
			best[w] = r < 2 || ns < best[w] ? ns : best[w];
		}
		sum[0] += best[0];
		sum[1] += best[1];
	}
	printf("%-4s  fresh %6.0f ns  kept %6.0f ns  %+6.1f %%   size %10zu %10zu  %+6.2f %%\n", name, sum[0] / pages,
	       sum[1] / pages, 100 * (sum[1] - sum[0]) / sum[0], total[0], total[1],
	       100.0 * ((double)total[1] - total[0]) / total[0]);
}

int main(int argc, char **argv)
{
	size_t (*const zstd[2])(const char *) = { zstd_fresh, zstd_kept };
	size_t (*const lz4s[2])(const char *) = { lz4_fresh, lz4_kept };
	const size_t most = 64 << 20;
	long rounds = argc > 2 ? atol(argv[1]) : 0;
	char *data = malloc(most);
	int arg;

	need(rounds > 0, "usage: zstdreuse ROUNDS FILE...", "");
	parameters = ZSTD_getParams(LEVEL, SOURCE, 0);
	workspace_size = ZSTD_estimateCStreamSize_usingCParams(parameters.cParams);
	workspace = malloc(workspace_size);
	kept = ZSTD_initStaticCCtx(malloc(workspace_size), workspace_size);
	lz4 = calloc(1, LZ4_sizeofState());
	need(data && workspace && kept && lz4, "no memory", "");
	printf("zstd %s, lz4 %s, least of %ld rounds\n", ZSTD_versionString(), LZ4_versionString(), rounds);
	for (arg = 2; arg < argc; arg++) {
		FILE *file = fopen(argv[arg], "rb");
		size_t pages = file ? fread(data, PAGE, most / PAGE, file) : 0;

		need(!!pages, file ? ": less than a page" : ": cannot be read", argv[arg]);
		fclose(file);
		printf("%s: %zu pages\n", argv[arg], pages);
		report("zstd", zstd, data, pages, rounds);
		report("lz4", lz4s, data, pages, rounds);
	}
	return 0;
}
