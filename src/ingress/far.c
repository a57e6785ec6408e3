/* SPDX-License-Identifier: MIT */
#include "ingress/far.h"

#include "memory/memory.h"

/*
 * The address of this variable marks a page for which there was no memory. Its value is not used.
 */
static _Alignas(struct twi_lane_block) char none_mark;

#define PAGE_NONE ((struct twi_lane_block *)(void *)&none_mark)

/* Returns the number of the page that has this block. Block 0 is in no page. */
static uint32_t page_of(uint32_t block)
{
	return 31 - (uint32_t)__builtin_clz(block);
}

static size_t page_bytes(uint32_t page)
{
	return sizeof(struct twi_lane_block) << page;
}

/* Returns the page, or NULL if it does not exist. */
static struct twi_lane_block *page_made(const struct twi_worker *worker, uint32_t page)
{
	/*
	 * E130: acquires the zeroed page. E8: this load is also part of the worker's last look
	 * before it sleeps. If the worker misses a page, the thread that has made the page pushes
	 * later, and wakes the worker if necessary.
	 */
	struct twi_lane_block *block = twi_load_seq_cst(&worker->far[page]);

	return block == PAGE_NONE ? NULL : block;
}

uint32_t twi_lane_block_next(const struct twi_worker *worker, uint32_t from)
{
	if (from == 0)
		return 0;
	for (uint32_t page = page_of(from); page < TWI_FAR_PAGES; page++, from = 1U << page) {
		if (page_made(worker, page) != NULL)
			return from;
	}
	return TWI_BLOCKS;
}

struct twi_lane_block *twi_lane_block_at(struct twi_worker *worker, uint32_t number)
{
	uint32_t page;

	if (number == 0)
		return &worker->near;
	page = page_of(number);
	return page_made(worker, page) + (number - (1U << page));
}

static void page_free(const struct tw_allocator *allocator, struct twi_lane_block *block,
		      uint32_t page)
{
	twi_release(allocator, block, page_bytes(page), TWI_CACHE_LINE);
}

/* Allocates a page. If there is no memory, returns PAGE_NONE. */
static struct twi_lane_block *page_allocate(const struct tw_allocator *allocator, uint32_t page)
{
	struct twi_lane_block *block =
		twi_allocate_zeroed(allocator, page_bytes(page), TWI_CACHE_LINE);

	return block != NULL ? block : PAGE_NONE;
}

/*
 * Makes a page, unless another thread makes it first. Returns the page that is used, or PAGE_NONE.
 */
static TWI_COLD struct twi_lane_block *page_make(struct twi_worker *worker, uint32_t page)
{
	struct twi_lane_block *block = page_allocate(worker->allocator, page);
	struct twi_lane_block *first = NULL;

	TWI_TEST_POINT("far:made");
	twi_tsan_release(block);
	/*
	 * E130: releases the zeroed page, or acquires the page of the other thread. E8: the page
	 * must be visible before this thread pushes and checks whether the worker sleeps.
	 */
	if (twi_cas_seq_cst(&worker->far[page], &first, block))
		return block;
	if (block != PAGE_NONE)
		page_free(worker->allocator, block, page);
	return first;
}

/* Returns the lane with this number in a page, or NULL if there is no page. */
static struct twi_lane *lane_in(struct twi_lane_block *block, uint32_t number)
{
	uint32_t offset = number - ((uint32_t)TWI_LANES << page_of(number / TWI_LANES));

	if (block == NULL || block == PAGE_NONE)
		return NULL;
	return &block[offset / TWI_LANES].lane[offset % TWI_LANES];
}

TWI_NOINLINE struct twi_lane *twi_lane_far(struct twi_worker *worker, uint32_t number)
{
	uint32_t page = page_of(number / TWI_LANES);
	/* E130: acquires the page, which is zeroed. */
	struct twi_lane_block *block = twi_load_acquire(&worker->far[page]);
	struct twi_lane *lane;

	if (TWI_UNLIKELY(block == NULL))
		block = page_make(worker, page);
	lane = lane_in(block, number);
	if (TWI_UNLIKELY(lane == NULL))
		return &worker->near.lane[TWI_LANE_SHARED];
	/*
	 * Initialises the lane at its first use. No other thread initialises the lane, and the
	 * worker looks at the lane only after its first push.
	 */
	if (TWI_UNLIKELY(lane->number != number))
		twi_lane_init(lane, number);
	return lane;
}

struct twi_lane *twi_lane_far_made(struct twi_worker *worker, uint32_t number)
{
	uint32_t page = page_of(number / TWI_LANES);
	/* E130: as in twi_lane_far. */
	struct twi_lane *lane = lane_in(twi_load_acquire(&worker->far[page]), number);

	return lane != NULL && lane->number == number ? lane : &worker->near.lane[TWI_LANE_SHARED];
}

void twi_far_free(struct twi_worker *worker)
{
	for (uint32_t page = 0; page < TWI_FAR_PAGES; page++) {
		struct twi_lane_block *block = page_made(worker, page);

		twi_tsan_acquire(block);
		if (block != NULL)
			page_free(worker->allocator, block, page);
	}
}
