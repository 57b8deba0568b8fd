/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pages that compress like those of real memory do. They come in extents of 64K of one kind, drawn from
 * the seed: 45 % text-like, 30 % pointer-like, 15 % zero, 10 % incompressible. A seed and a number are one
 * page, always the same.
 */
#ifndef MIXDATA_H
#define MIXDATA_H

#include <stdint.h>
#include <string.h>

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

#endif
