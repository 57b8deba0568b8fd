/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KUnit tests for zswap.
 *
 * The tests call zswap_store() and its relatives for folios and swap entries
 * of a swap device that does not exist: a swap type which no device uses gets
 * trees of its own. Failures are forced by static stubs, at every page and in
 * every step of a store.
 *
 * Charges are only seen in a memory cgroup. The tests that need one take that
 * of the task which runs them, so they skip at boot and work with
 *
 *	echo 1 > /sys/kernel/debug/kunit/zswap/run
 *
 * from a shell in a cgroup. All skip while there is swap space: they disable
 * zswap for moments, and the global counters must be theirs alone.
 */

#ifdef CONFIG_ZSWAP_KUNIT_TEST

#ifndef _MM_ZSWAP_KUNIT_H
#define _MM_ZSWAP_KUNIT_H

#include <kunit/test.h>
#include <linux/random.h>
#include <linux/sched/mm.h>

#define ZSWAP_TEST_TYPE		(MAX_SWAPFILES - 1)
#define ZSWAP_TEST_SLOTS	(2 * SWAP_ADDRESS_SPACE_PAGES)
#define ZSWAP_TEST_BYTES	64	/* what a page shrinks to in a stub */

enum zswap_test_step {
	ZSWAP_TEST_NONE,
	ZSWAP_TEST_ENTRY,	/* fails a batch */
	ZSWAP_TEST_COMPRESS,	/* fails a page */
	ZSWAP_TEST_ZPOOL,	/* fails a page */
	ZSWAP_TEST_TREE,	/* fails a batch */
	ZSWAP_TEST_LIMIT,	/* fails a batch */
};

static const char * const zswap_test_step_names[] = {
	[ZSWAP_TEST_ENTRY] = "entry allocation",
	[ZSWAP_TEST_COMPRESS] = "compression",
	[ZSWAP_TEST_ZPOOL] = "pool allocation",
	[ZSWAP_TEST_TREE] = "tree insertion",
	[ZSWAP_TEST_LIMIT] = "limit",
};

/* Everything that a failed store must leave as it was */
struct zswap_test_counts {
	unsigned long stored;		/* zswap_stored_pages */
	unsigned long present;		/* entries in the trees */
	unsigned long on_lru;
	unsigned long pool_pages;
	unsigned long pool_refs;
	unsigned long objcg_refs;
	unsigned long memcg_bytes;	/* MEMCG_ZSWAP_B */
	unsigned long memcg_pages;	/* MEMCG_ZSWAPPED */
	unsigned long zswpout;		/* vm event */
};

struct zswap_test {
	struct zswap_pool *pool;
	struct obj_cgroup *objcg;	/* NULL without a memory cgroup */
	enum zswap_test_step step;
	unsigned int calls;		/* of the step */
	unsigned int fail_at;		/* the call that fails */
	unsigned int batches;
	unsigned int max_batch;
	unsigned int drops;
	unsigned long max_on_lru;	/* while a store is going on */
	unsigned long max_bytes;	/* of the memcg, likewise */
};

/* Of the task that runs the suite, NULL for the root memory cgroup */
static struct mem_cgroup *zswap_test_memcg;
static bool zswap_test_was_enabled;

/*
 * helpers
 */

static unsigned long zswap_test_on_lru(void)
{
	unsigned long sum = 0;
	int nid;

	for_each_online_node(nid)
		sum += list_lru_count_node(&zswap_list_lru, nid);

	return sum;
}

/* Only good for comparison: in percpu mode there is a bias in it */
static unsigned long zswap_test_refs(struct percpu_ref *ref)
{
	unsigned long __percpu *percpu_count;
	unsigned long sum;
	int cpu;

	rcu_read_lock();
	sum = atomic_long_read(&ref->data->count);
	if (__ref_is_percpu(ref, &percpu_count)) {
		for_each_possible_cpu(cpu)
			sum += *per_cpu_ptr(percpu_count, cpu);
	}
	rcu_read_unlock();

	return sum;
}

static unsigned long zswap_test_memcg_bytes(void)
{
#ifdef CONFIG_MEMCG
	if (zswap_test_memcg) {
		cgroup_rstat_flush(zswap_test_memcg->css.cgroup);
		return memcg_page_state(zswap_test_memcg, MEMCG_ZSWAP_B);
	}
#endif
	return 0;
}

static void zswap_test_count(struct kunit *test, struct zswap_test_counts *c)
{
	struct zswap_test *ctx = test->priv;
	unsigned long events[NR_VM_EVENT_ITEMS] = { };
	struct zswap_entry *entry;
	unsigned long index;
	int i;

	memset(c, 0, sizeof(*c));
	c->stored = atomic_long_read(&zswap_stored_pages);
	for (i = 0; i < nr_zswap_trees[ZSWAP_TEST_TYPE]; i++)
		xa_for_each(&zswap_trees[ZSWAP_TEST_TYPE][i], index, entry)
			c->present++;
	c->on_lru = zswap_test_on_lru();
	c->pool_pages = zpool_get_total_pages(ctx->pool->zpool);
	c->pool_refs = zswap_test_refs(&ctx->pool->ref);
	c->memcg_bytes = zswap_test_memcg_bytes();
#ifdef CONFIG_MEMCG
	if (zswap_test_memcg)
		c->memcg_pages = memcg_page_state(zswap_test_memcg,
						  MEMCG_ZSWAPPED);
	if (ctx->objcg) {
		/* The stock of this CPU has a reference: let it be on ours */
		if (!obj_cgroup_charge(ctx->objcg, GFP_KERNEL, 1))
			obj_cgroup_uncharge(ctx->objcg, 1);
		c->objcg_refs = zswap_test_refs(&ctx->objcg->refcnt);
	}
#endif
	all_vm_events(events);
	c->zswpout = events[ZSWPOUT];
}

static void zswap_test_expect_same(struct kunit *test,
				   const struct zswap_test_counts *a,
				   const struct zswap_test_counts *b)
{
	KUNIT_EXPECT_EQ(test, a->stored, b->stored);
	KUNIT_EXPECT_EQ(test, a->present, b->present);
	KUNIT_EXPECT_EQ(test, a->on_lru, b->on_lru);
	KUNIT_EXPECT_EQ(test, a->pool_pages, b->pool_pages);
	KUNIT_EXPECT_EQ(test, a->pool_refs, b->pool_refs);
	KUNIT_EXPECT_EQ(test, a->objcg_refs, b->objcg_refs);
	KUNIT_EXPECT_EQ(test, a->memcg_bytes, b->memcg_bytes);
	KUNIT_EXPECT_EQ(test, a->memcg_pages, b->memcg_pages);
	KUNIT_EXPECT_EQ(test, a->zswpout, b->zswpout);
}

/* @b is @a with @nr more pages stored */
static void zswap_test_expect_stored(struct kunit *test,
				     const struct zswap_test_counts *a,
				     const struct zswap_test_counts *b,
				     long nr)
{
	struct zswap_test *ctx = test->priv;

	KUNIT_EXPECT_EQ(test, a->stored + nr, b->stored);
	KUNIT_EXPECT_EQ(test, a->present + nr, b->present);
	KUNIT_EXPECT_EQ(test, a->on_lru + nr, b->on_lru);
	KUNIT_EXPECT_EQ(test, a->pool_refs + nr, b->pool_refs);
	if (ctx->objcg) {
		KUNIT_EXPECT_EQ(test, a->objcg_refs + nr, b->objcg_refs);
		KUNIT_EXPECT_EQ(test, a->memcg_pages + nr, b->memcg_pages);
		KUNIT_EXPECT_GT(test, b->memcg_bytes, a->memcg_bytes);
	}
}

/* Each page of each generation is different, and compresses */
static u64 zswap_test_word(pgoff_t offset, unsigned int gen, unsigned int word)
{
	return ((u64)gen << 56) | ((u64)offset << 16) | (word / 8);
}

static void zswap_test_fill(struct folio *folio, unsigned int gen)
{
	pgoff_t offset = swp_offset(folio->swap);
	unsigned int w;
	long i;

	for (i = 0; i < folio_nr_pages(folio); i++) {
		u64 *data = kmap_local_folio(folio, i * PAGE_SIZE);

		for (w = 0; w < PAGE_SIZE / sizeof(*data); w++)
			data[w] = zswap_test_word(offset + i, gen, w);
		kunmap_local(data);
	}
}

static bool zswap_test_verify(struct folio *folio, unsigned int gen)
{
	pgoff_t offset = swp_offset(folio->swap);
	u64 *data = kmap_local_folio(folio, 0);
	unsigned int w;

	for (w = 0; w < PAGE_SIZE / sizeof(*data); w++)
		if (data[w] != zswap_test_word(offset, gen, w))
			break;
	kunmap_local(data);

	return w == PAGE_SIZE / sizeof(*data);
}

static void zswap_test_free_folio(void *data)
{
	struct folio *folio = data;

	folio_clear_swapcache(folio);
	folio->swap.val = 0;
	folio_clear_dirty(folio);
	folio_unlock(folio);
	folio_put(folio);
}

/* A locked folio in the swap cache, as far as zswap can see */
static struct folio *zswap_test_folio(struct kunit *test, unsigned int order,
				      pgoff_t offset)
{
	struct mem_cgroup *old_memcg;
	struct folio *folio;
	int err;

	folio = folio_alloc(GFP_KERNEL, order);
	KUNIT_ASSERT_NOT_NULL(test, folio);
	__folio_set_locked(folio);
	__folio_set_swapbacked(folio);
	folio_set_swapcache(folio);
	folio->swap = swp_entry(ZSWAP_TEST_TYPE, offset);

	old_memcg = set_active_memcg(zswap_test_memcg);
	err = mem_cgroup_charge(folio, NULL, GFP_KERNEL);
	set_active_memcg(old_memcg);
	err = kunit_add_action_or_reset(test, zswap_test_free_folio, folio) ?:
	      err;
	KUNIT_ASSERT_EQ(test, 0, err);

	return folio;
}

static int zswap_test_store(struct folio *folio)
{
	unsigned int flags = memalloc_noreclaim_save();
	int err = zswap_store(folio);

	memalloc_noreclaim_restore(flags);
	return err;
}

/* Loads slot @offset and tells whether it has the data of @gen */
static bool zswap_test_load(struct kunit *test, pgoff_t offset,
			    unsigned int gen, bool swapcache)
{
	struct folio *folio = zswap_test_folio(test, 0, offset);
	bool good;

	if (!swapcache)
		folio_clear_swapcache(folio);
	good = zswap_load(folio) && folio_test_uptodate(folio) &&
	       zswap_test_verify(folio, gen);
	kunit_release_action(test, zswap_test_free_folio, folio);

	return good;
}

static bool zswap_test_present(pgoff_t offset)
{
	swp_entry_t swp = swp_entry(ZSWAP_TEST_TYPE, offset);

	return xa_load(swap_zswap_tree(swp), offset);
}

/*
 * stubs
 */

static bool zswap_test_fails(struct zswap_test *ctx, enum zswap_test_step step)
{
	ctx->max_on_lru = max(ctx->max_on_lru, zswap_test_on_lru());

	return step == ctx->step && ctx->calls++ == ctx->fail_at;
}

static int zswap_test_entries_cache_alloc(struct zswap_entry **entries,
					  unsigned int nr, int nid)
{
	struct zswap_test *ctx = kunit_get_current_test()->priv;
	unsigned int i;

	ctx->batches++;
	ctx->max_batch = max(ctx->max_batch, nr);
	if (zswap_test_fails(ctx, ZSWAP_TEST_ENTRY))
		return -ENOMEM;

	for (i = 0; i < nr; i++)
		entries[i] = kmem_cache_alloc_node(zswap_entry_cache,
						   GFP_KERNEL | __GFP_NOFAIL,
						   nid);
	return 0;
}

static int zswap_test_zpool_alloc(struct zpool *zpool, size_t size,
				  unsigned long *handle)
{
	struct zswap_test *ctx = kunit_get_current_test()->priv;

	if (zswap_test_fails(ctx, ZSWAP_TEST_ZPOOL))
		return -ENOMEM;

	return zpool_malloc(zpool, size, GFP_NOWAIT, handle);
}

static int zswap_test_compress(struct page *page, struct zswap_entry *entry,
			       struct crypto_acomp_ctx *acomp_ctx)
{
	struct zswap_test *ctx = kunit_get_current_test()->priv;

	if (zswap_test_fails(ctx, ZSWAP_TEST_COMPRESS))
		return -E2BIG;

	entry->length = ZSWAP_TEST_BYTES;
	return zswap_zpool_alloc(entry->pool->zpool, entry->length,
				 &entry->handle);
}

static int zswap_test_tree_store(swp_entry_t swp, struct zswap_entry **entries,
				 unsigned int nr)
{
	struct zswap_test *ctx = kunit_get_current_test()->priv;
	struct xarray *tree = swap_zswap_tree(swp);
	unsigned int i;

	if (zswap_test_fails(ctx, ZSWAP_TEST_TREE))
		return -ENOMEM;

	for (i = 0; i < nr; i++)
		entries[i] = xa_store(tree, swp_offset(swp) + i, entries[i],
				      GFP_KERNEL | __GFP_NOFAIL);
	return 0;
}

static int zswap_test_may_store(struct obj_cgroup *objcg, unsigned int tries)
{
	struct zswap_test *ctx = kunit_get_current_test()->priv;

	return zswap_test_fails(ctx, ZSWAP_TEST_LIMIT) ? -EDQUOT : 0;
}

static int zswap_test_decompress(struct zswap_entry *entry, struct folio *folio)
{
	return -EIO;
}

static void zswap_test_drop_entries(swp_entry_t swp, unsigned int nr)
{
	struct zswap_test *ctx = kunit_get_current_test()->priv;

	ctx->drops++;
}

static void zswap_test_stub_steps(struct kunit *test)
{
	kunit_activate_static_stub(test, zswap_entries_cache_alloc,
				   zswap_test_entries_cache_alloc);
	kunit_activate_static_stub(test, zswap_zpool_alloc,
				   zswap_test_zpool_alloc);
	kunit_activate_static_stub(test, zswap_compress, zswap_test_compress);
	kunit_activate_static_stub(test, zswap_tree_store,
				   zswap_test_tree_store);
	kunit_activate_static_stub(test, zswap_may_store, zswap_test_may_store);
}

/*
 * tests
 */

/* Folios of order 0, of one batch, of a batch and more, and of PMD size */
static const unsigned int zswap_test_orders[] = { 0, 2, 4, 5, 9 };

static void zswap_test_order_desc(const unsigned int *order, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u", *order);
}

KUNIT_ARRAY_PARAM(zswap_test_order, zswap_test_orders, zswap_test_order_desc);

static void zswap_test_never_enabled(struct kunit *test)
{
	struct zswap_test *ctx = test->priv;
	struct folio *folio = zswap_test_folio(test, 4, 0);

	kunit_activate_static_stub(test, zswap_drop_entries,
				   zswap_test_drop_entries);
	static_branch_disable(&zswap_ever_enabled);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, zswap_test_store(folio));
	KUNIT_EXPECT_FALSE(test, zswap_load(folio));
	zswap_invalidate(folio->swap);
	static_branch_enable(&zswap_ever_enabled);
	kunit_deactivate_static_stub(test, zswap_drop_entries);
	KUNIT_EXPECT_EQ(test, 0, ctx->drops);
}

static void zswap_test_disabled(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value;
	struct folio *folio = zswap_test_folio(test, order, 512);
	struct zswap_test_counts before, after;

	zswap_test_count(test, &before);
	zswap_test_fill(folio, 1);
	KUNIT_EXPECT_EQ(test, 0, zswap_test_store(folio));

	/* What was stored is stale now, and must go */
	zswap_enabled = false;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, zswap_test_store(folio));
	zswap_enabled = true;

	zswap_test_count(test, &after);
	before.zswpout += folio_nr_pages(folio);
	zswap_test_expect_same(test, &before, &after);
}

static void zswap_test_round_trip(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value;
	long i, nr = 1L << order;
	struct folio *folio = zswap_test_folio(test, order, 512);
	struct zswap_test_counts before, stored, after;

	zswap_test_count(test, &before);
	zswap_test_fill(folio, 1);
	KUNIT_ASSERT_EQ(test, 0, zswap_test_store(folio));
	zswap_test_count(test, &stored);
	zswap_test_expect_stored(test, &before, &stored, nr);
	KUNIT_EXPECT_EQ(test, before.zswpout + nr, stored.zswpout);

	/* A load past the swap cache leaves the entry */
	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_TRUE(test, zswap_test_load(test, 512 + i, 1, false));
	zswap_test_count(test, &after);
	zswap_test_expect_same(test, &stored, &after);

	/* One into the swap cache takes it, last page first */
	for (i = nr - 1; i >= 0; i--) {
		KUNIT_ASSERT_TRUE(test, zswap_test_load(test, 512 + i, 1, true));
		KUNIT_EXPECT_FALSE(test, zswap_test_present(512 + i));
	}
	zswap_test_count(test, &after);
	before.zswpout += nr;
	zswap_test_expect_same(test, &before, &after);
}

/* The first and the last folio of a tree, and the first of the next one */
static void zswap_test_tree_boundary(struct kunit *test)
{
	const pgoff_t offsets[] = {
		0, SWAP_ADDRESS_SPACE_PAGES - 512, SWAP_ADDRESS_SPACE_PAGES,
	};
	struct zswap_test_counts before, after;
	struct folio *folio;
	int i;

	zswap_test_count(test, &before);
	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		folio = zswap_test_folio(test, 9, offsets[i]);
		zswap_test_fill(folio, i);
		KUNIT_ASSERT_EQ(test, 0, zswap_test_store(folio));
	}
	zswap_test_count(test, &after);
	zswap_test_expect_stored(test, &before, &after,
				 512 * ARRAY_SIZE(offsets));

	for (i = 0; i < ARRAY_SIZE(offsets); i++) {
		pgoff_t first = offsets[i], last = first + 511;

		KUNIT_EXPECT_TRUE(test, zswap_test_load(test, first, i, false));
		KUNIT_EXPECT_TRUE(test, zswap_test_load(test, last, i, false));
	}
}

/* Invalidating one slot of a folio leaves the others */
static void zswap_test_invalidate(struct kunit *test)
{
	struct folio *folio = zswap_test_folio(test, 4, 512);
	struct zswap_test_counts stored, after;
	int i;

	zswap_test_fill(folio, 1);
	KUNIT_ASSERT_EQ(test, 0, zswap_test_store(folio));
	zswap_test_count(test, &stored);

	zswap_invalidate(swp_entry(ZSWAP_TEST_TYPE, 512 + 5));
	zswap_test_count(test, &after);
	zswap_test_expect_stored(test, &after, &stored, 1);

	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_EQ(test, i != 5,
				zswap_test_load(test, 512 + i, 1, false));
}

/* Stored again with other data: the old entries are replaced, one for one */
static void zswap_test_replace(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value;
	long i, nr = 1L << order;
	struct folio *folio = zswap_test_folio(test, order, 512);
	struct zswap_test_counts first, second;
	struct folio *small;

	zswap_test_fill(folio, 1);
	KUNIT_ASSERT_EQ(test, 0, zswap_test_store(folio));
	zswap_test_count(test, &first);

	/* One of them comes from a small folio, one is missing */
	if (nr > 1) {
		small = zswap_test_folio(test, 0, 512 + nr - 1);
		zswap_test_fill(small, 2);
		KUNIT_ASSERT_EQ(test, 0, zswap_test_store(small));
		zswap_invalidate(swp_entry(ZSWAP_TEST_TYPE, 512 + nr / 2));
	}

	zswap_test_fill(folio, 3);
	KUNIT_ASSERT_EQ(test, 0, zswap_test_store(folio));
	zswap_test_count(test, &second);
	KUNIT_EXPECT_EQ(test, first.stored, second.stored);
	KUNIT_EXPECT_EQ(test, first.present, second.present);
	KUNIT_EXPECT_EQ(test, first.on_lru, second.on_lru);
	KUNIT_EXPECT_EQ(test, first.pool_refs, second.pool_refs);
	KUNIT_EXPECT_EQ(test, first.objcg_refs, second.objcg_refs);
	KUNIT_EXPECT_EQ(test, first.memcg_pages, second.memcg_pages);

	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_TRUE(test, zswap_test_load(test, 512 + i, 3, false));
}

struct zswap_test_failure {
	unsigned int order;
	enum zswap_test_step step;
};

static const struct zswap_test_failure zswap_test_failures[] = {
	{ 0, ZSWAP_TEST_ENTRY }, { 4, ZSWAP_TEST_ENTRY }, { 9, ZSWAP_TEST_ENTRY },
	{ 0, ZSWAP_TEST_COMPRESS }, { 4, ZSWAP_TEST_COMPRESS },
	{ 9, ZSWAP_TEST_COMPRESS },
	{ 0, ZSWAP_TEST_ZPOOL }, { 4, ZSWAP_TEST_ZPOOL }, { 9, ZSWAP_TEST_ZPOOL },
	{ 0, ZSWAP_TEST_TREE }, { 4, ZSWAP_TEST_TREE }, { 9, ZSWAP_TEST_TREE },
	{ 0, ZSWAP_TEST_LIMIT }, { 4, ZSWAP_TEST_LIMIT }, { 9, ZSWAP_TEST_LIMIT },
};

static void zswap_test_failure_desc(const struct zswap_test_failure *f,
				    char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "order %u, %s", f->order,
		 zswap_test_step_names[f->step]);
}

KUNIT_ARRAY_PARAM(zswap_test_failure, zswap_test_failures,
		  zswap_test_failure_desc);

static const int zswap_test_step_errors[] = {
	[ZSWAP_TEST_ENTRY] = -ENOMEM,
	[ZSWAP_TEST_COMPRESS] = -E2BIG,
	[ZSWAP_TEST_ZPOOL] = -ENOMEM,
	[ZSWAP_TEST_TREE] = -ENOMEM,
	[ZSWAP_TEST_LIMIT] = -EDQUOT,
};

/*
 * Let the step fail in its first call, in its second one and so on, until it
 * is not called often enough to fail. Each time the store has to undo all that
 * it did before, and to drop the stale entries.
 */
static void zswap_test_failing_step(struct kunit *test)
{
	const struct zswap_test_failure *f = test->param_value;
	bool per_page = f->step == ZSWAP_TEST_COMPRESS ||
			f->step == ZSWAP_TEST_ZPOOL;
	long nr = 1L << f->order;
	long nr_calls = per_page ? nr : DIV_ROUND_UP(nr, ZSWAP_STORE_BATCH);
	struct folio *folio = zswap_test_folio(test, f->order, 512);
	struct folio *stale = zswap_test_folio(test, 0, 512 + nr / 2);
	struct zswap_test_counts before, after;
	struct zswap_test *ctx = test->priv;
	long i;
	int err;

	zswap_test_count(test, &before);
	zswap_test_stub_steps(test);

	for (i = 0; i < nr_calls; i++) {
		ctx->step = ZSWAP_TEST_NONE;
		KUNIT_ASSERT_EQ(test, 0, zswap_test_store(stale));

		ctx->step = f->step;
		ctx->calls = 0;
		ctx->fail_at = i;
		ctx->max_on_lru = 0;
		err = zswap_test_store(folio);
		KUNIT_ASSERT_EQ(test, zswap_test_step_errors[f->step], err);

		zswap_test_count(test, &after);
		before.zswpout++;
		zswap_test_expect_same(test, &before, &after);
		/* No entry of the folio was there for writeback, only the stale */
		KUNIT_EXPECT_LE(test, ctx->max_on_lru, before.on_lru + 1);
	}

	ctx->calls = 0;
	ctx->fail_at = nr_calls;
	KUNIT_EXPECT_EQ(test, 0, zswap_test_store(folio));
	KUNIT_EXPECT_EQ(test, nr_calls, ctx->calls);
	zswap_test_count(test, &after);
	zswap_test_expect_stored(test, &before, &after, nr);
}

/* Work is done in batches, and none of them is larger than allowed */
static void zswap_test_batches(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value;
	long nr = 1L << order;
	struct folio *folio = zswap_test_folio(test, order, 512);
	struct zswap_test *ctx = test->priv;

	zswap_test_stub_steps(test);
	KUNIT_ASSERT_EQ(test, 0, zswap_test_store(folio));
	KUNIT_EXPECT_EQ(test, DIV_ROUND_UP(nr, ZSWAP_STORE_BATCH), ctx->batches);
	KUNIT_EXPECT_EQ(test, min_t(long, nr, ZSWAP_STORE_BATCH),
			ctx->max_batch);
}

/* A real page that does not compress, at the ends and in the middle */
static void zswap_test_incompressible(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value;
	long nr = 1L << order;
	const long pages[] = { 0, nr / 2, nr - 1 };
	struct folio *folio = zswap_test_folio(test, order, 512);
	struct zswap_test_counts before, after;
	int i;

	zswap_test_count(test, &before);
	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		void *data;

		zswap_test_fill(folio, 1);
		data = kmap_local_folio(folio, pages[i] * PAGE_SIZE);
		get_random_bytes(data, PAGE_SIZE);
		kunmap_local(data);

		KUNIT_EXPECT_EQ(test, -E2BIG, zswap_test_store(folio));
		zswap_test_count(test, &after);
		zswap_test_expect_same(test, &before, &after);
	}
}

static void zswap_test_pool_full(struct kunit *test)
{
	struct folio *folio = zswap_test_folio(test, 4, 512);
	unsigned int max_pool_percent = zswap_max_pool_percent;
	struct zswap_test_counts before, after;

	zswap_test_count(test, &before);
	zswap_test_fill(folio, 1);
	zswap_max_pool_percent = 0;
	KUNIT_EXPECT_EQ(test, -EDQUOT, zswap_test_store(folio));
	zswap_max_pool_percent = max_pool_percent;

	zswap_test_count(test, &after);
	zswap_test_expect_same(test, &before, &after);
	/* Below the limit again, stores are accepted again */
	KUNIT_EXPECT_EQ(test, 0, zswap_test_store(folio));
}

#ifdef CONFIG_MEMCG
/* Notes what the memcg has when a batch is about to be stored */
static int zswap_test_watch_tree_store(swp_entry_t swp,
				       struct zswap_entry **entries,
				       unsigned int nr)
{
	struct zswap_test *ctx = kunit_get_current_test()->priv;

	ctx->batches++;
	ctx->max_bytes = max(ctx->max_bytes, zswap_test_memcg_bytes());
	return zswap_test_tree_store(swp, entries, nr);
}

/* Over its limit the memcg may be by one batch, whatever the folio's size */
static void zswap_test_memcg_limit(struct kunit *test)
{
	struct folio *folio = zswap_test_folio(test, 9, 512);
	struct zswap_test_counts before, after;
	const unsigned int batch = ZSWAP_TEST_BYTES * ZSWAP_STORE_BATCH;
	struct zswap_test *ctx = test->priv;
	unsigned long zswap_max, limit;

	if (!ctx->objcg)
		kunit_skip(test, "not run from a memory cgroup");

	zswap_test_count(test, &before);
	limit = before.memcg_bytes / PAGE_SIZE + 1;
	zswap_max = xchg(&zswap_test_memcg->zswap_max, limit);
	limit *= PAGE_SIZE;
	kunit_activate_static_stub(test, zswap_compress, zswap_test_compress);
	kunit_activate_static_stub(test, zswap_tree_store,
				   zswap_test_watch_tree_store);
	KUNIT_EXPECT_EQ(test, -EDQUOT, zswap_test_store(folio));
	xchg(&zswap_test_memcg->zswap_max, zswap_max);

	/* It got to the limit, and not past it by a batch */
	KUNIT_EXPECT_EQ(test, ctx->batches,
			DIV_ROUND_UP(limit - before.memcg_bytes, batch));
	KUNIT_EXPECT_LT(test, ctx->max_bytes, limit);

	zswap_test_count(test, &after);
	zswap_test_expect_same(test, &before, &after);

	/* zswap.max of 0: not a single page */
	zswap_max = xchg(&zswap_test_memcg->zswap_max, 0);
	ctx->batches = 0;
	KUNIT_EXPECT_EQ(test, -EDQUOT, zswap_test_store(folio));
	KUNIT_EXPECT_EQ(test, 0, ctx->batches);
	xchg(&zswap_test_memcg->zswap_max, zswap_max);
}

/* Charges of several sizes: what comes off is what went on */
static void zswap_test_memcg_charges(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value;
	long i, nr = 1L << order;
	struct folio *folio = zswap_test_folio(test, order, 512);
	struct zswap_test_counts before, after;
	struct zswap_test *ctx = test->priv;
	unsigned long bytes = 0;

	if (!ctx->objcg)
		kunit_skip(test, "not run from a memory cgroup");

	zswap_test_count(test, &before);
	zswap_test_fill(folio, 1);
	/* Every third page compresses less than the others */
	for (i = 0; i < nr; i += 3) {
		void *data = kmap_local_folio(folio, i * PAGE_SIZE);

		get_random_bytes(data, PAGE_SIZE / 2);
		kunmap_local(data);
	}
	KUNIT_ASSERT_EQ(test, 0, zswap_test_store(folio));

	zswap_test_count(test, &after);
	zswap_test_expect_stored(test, &before, &after, nr);
	for (i = 0; i < nr; i++) {
		struct zswap_entry *entry;
		swp_entry_t swp = swp_entry(ZSWAP_TEST_TYPE, 512 + i);

		entry = xa_load(swap_zswap_tree(swp), 512 + i);
		KUNIT_ASSERT_NOT_NULL(test, entry);
		bytes += entry->length;
	}
	KUNIT_EXPECT_EQ(test, before.memcg_bytes + bytes, after.memcg_bytes);

	for (i = 0; i < nr; i++)
		zswap_invalidate(swp_entry(ZSWAP_TEST_TYPE, 512 + i));
	zswap_test_count(test, &after);
	before.zswpout += nr;
	zswap_test_expect_same(test, &before, &after);
}
#endif /* CONFIG_MEMCG */

/* A page that cannot be decompressed is an error to the reader, and stays */
static void zswap_test_decompress_fails(struct kunit *test)
{
	struct folio *folio = zswap_test_folio(test, 4, 512);
	struct zswap_test_counts stored, after;
	u64 fails = zswap_decompress_fail;
	struct folio *small;
	int i;

	zswap_test_fill(folio, 1);
	KUNIT_ASSERT_EQ(test, 0, zswap_test_store(folio));
	zswap_test_count(test, &stored);

	kunit_activate_static_stub(test, zswap_decompress,
				   zswap_test_decompress);
	for (i = 0; i < 2; i++) {
		small = zswap_test_folio(test, 0, 512 + 3);
		if (i)
			folio_clear_swapcache(small);
		KUNIT_EXPECT_TRUE(test, zswap_load(small));
		KUNIT_EXPECT_FALSE(test, folio_test_uptodate(small));
		KUNIT_EXPECT_FALSE(test, folio_test_dirty(small));
		KUNIT_EXPECT_EQ(test, fails + i + 1, zswap_decompress_fail);
	}
	kunit_deactivate_static_stub(test, zswap_decompress);

	zswap_test_count(test, &after);
	zswap_test_expect_same(test, &stored, &after);
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_TRUE(test, zswap_test_load(test, 512 + i, 1, true));
}

/*
 * An entry's node decides on its LRU. For a folio of a remote node it must be
 * that of the folio, on the local one the bulk allocator takes what it has.
 */
static void zswap_test_entry_node(struct kunit *test)
{
	unsigned int order = *(const unsigned int *)test->param_value;
	unsigned int i, nr = min(1U << order, ZSWAP_STORE_BATCH);
	struct zswap_entry *entries[ZSWAP_STORE_BATCH];
	int nid, local = numa_mem_id();

	if (num_node_state(N_MEMORY) == 1)
		kunit_skip(test, "one memory node");

	for_each_node_state(nid, N_MEMORY) {
		if (nid == local)
			continue;
		KUNIT_ASSERT_EQ(test, 0,
				zswap_entries_cache_alloc(entries, nr, nid));
		for (i = 0; i < nr; i++)
			KUNIT_EXPECT_EQ(test, nid, entry_to_nid(entries[i]));
		zswap_entries_cache_free(entries, nr);
	}
}

/*
 * suite
 */

static int zswap_test_init(struct kunit *test)
{
	struct zswap_test *ctx;
	struct folio *folio;

	if (total_swap_pages)
		kunit_skip(test, "there is swap space");

	/* References that memcg caches for each CPU are the same again then */
	set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));

	ctx = kunit_kzalloc(test, sizeof(*ctx), GFP_KERNEL);
	if (!ctx)
		return -ENOMEM;
	test->priv = ctx;

	ctx->pool = zswap_pool_current_get();
	if (!ctx->pool)
		return -ENODEV;
	folio = zswap_test_folio(test, 0, 0);
	ctx->objcg = get_obj_cgroup_from_folio(folio);
	kunit_release_action(test, zswap_test_free_folio, folio);
	return 0;
}

static void zswap_test_exit(struct kunit *test)
{
	struct zswap_test *ctx = test->priv;
	struct zswap_entry *entry;
	unsigned long offset;
	int i;

	if (!ctx || !ctx->pool)
		return;

	for (i = 0; i < nr_zswap_trees[ZSWAP_TEST_TYPE]; i++)
		xa_for_each(&zswap_trees[ZSWAP_TEST_TYPE][i], offset, entry)
			zswap_invalidate(entry->swpentry);
	obj_cgroup_put(ctx->objcg);
	zswap_pool_put(ctx->pool);
}

static int zswap_test_suite_init(struct kunit_suite *suite)
{
	struct kunit_case __maybe_unused *test_case;
	int err = 0;

	if (zswap_trees[ZSWAP_TEST_TYPE])
		return -EBUSY;

	mutex_lock(&zswap_init_lock);
	if (zswap_init_state == ZSWAP_UNINIT)
		err = zswap_setup();
	mutex_unlock(&zswap_init_lock);
	if (err)
		return err;

	err = zswap_swapon(ZSWAP_TEST_TYPE, ZSWAP_TEST_SLOTS);
	if (err)
		return err;

	zswap_test_memcg = NULL;
#ifdef CONFIG_MEMCG
	if (!mem_cgroup_disabled() && current->mm) {
		zswap_test_memcg = get_mem_cgroup_from_mm(current->mm);
		/* KUnit does not run a case again that skipped at boot */
		kunit_suite_for_each_test_case(suite, test_case)
			test_case->status = KUNIT_SUCCESS;
	}
#endif
	zswap_test_was_enabled = zswap_enabled;
	zswap_enabled = true;
	return 0;
}

static void zswap_test_suite_exit(struct kunit_suite *suite)
{
	zswap_enabled = zswap_test_was_enabled;
	mem_cgroup_put(zswap_test_memcg);
	zswap_swapoff(ZSWAP_TEST_TYPE);
}

static struct kunit_case zswap_test_cases[] = {
	KUNIT_CASE(zswap_test_never_enabled),
	KUNIT_CASE_PARAM(zswap_test_disabled, zswap_test_order_gen_params),
	KUNIT_CASE_PARAM(zswap_test_round_trip, zswap_test_order_gen_params),
	KUNIT_CASE(zswap_test_tree_boundary),
	KUNIT_CASE(zswap_test_invalidate),
	KUNIT_CASE_PARAM(zswap_test_replace, zswap_test_order_gen_params),
	KUNIT_CASE_PARAM(zswap_test_failing_step, zswap_test_failure_gen_params),
	KUNIT_CASE_PARAM(zswap_test_batches, zswap_test_order_gen_params),
	KUNIT_CASE_PARAM(zswap_test_incompressible, zswap_test_order_gen_params),
	KUNIT_CASE(zswap_test_pool_full),
#ifdef CONFIG_MEMCG
	KUNIT_CASE(zswap_test_memcg_limit),
	KUNIT_CASE_PARAM(zswap_test_memcg_charges, zswap_test_order_gen_params),
#endif
	KUNIT_CASE(zswap_test_decompress_fails),
	KUNIT_CASE_PARAM(zswap_test_entry_node, zswap_test_order_gen_params),
	{},
};

static struct kunit_suite zswap_test_suite = {
	.name = "zswap",
	.init = zswap_test_init,
	.exit = zswap_test_exit,
	.suite_init = zswap_test_suite_init,
	.suite_exit = zswap_test_suite_exit,
	.test_cases = zswap_test_cases,
};

kunit_test_suite(zswap_test_suite);

#endif /* _MM_ZSWAP_KUNIT_H */

#endif /* CONFIG_ZSWAP_KUNIT_TEST */
