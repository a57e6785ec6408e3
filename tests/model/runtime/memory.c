/* SPDX-License-Identifier: MIT */
#include "runtime/memory.h"

#include "runtime/atomic.h"
#include "runtime/explore.h"
#include "runtime/trace.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	PAGE_BYTES = 4096,
	PAGE_GRANULES = PAGE_BYTES / 8,
	PAGES_MAX = 1 << 15, /* size of the hash table */
	PAGES_RECENT = 1 << 8,
	/*
	 * Each fiber allocates from its own part, so that addresses do not depend on the order in
	 * which the fibers run.
	 */
	ARENA_PART_BYTES = 64 << 20,
	SAVES_MAX = 1 << 17,
	PARTS_MAX = 1 << 14,
};

#define ARENA_BYTES ((size_t)ARENA_PART_BYTES * MODEL_FIBERS)
#define ARENA_BASE ((char *)UINT64_C(0x200000000000))

struct page {
	uintptr_t number;
	uint64_t run;                         /* the last run that touched the page */
	uint64_t touched[PAGE_GRANULES / 64]; /* one bit for each piece that this run has touched */
	bool freed;
	struct granule granule[PAGE_GRANULES];
};

struct save {
	void *address;
	uint64_t value;
};

/* Declares the original function of a wrapped one. The linker prescribes the name. */
void *__real_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);

extern char __data_start[], _end[]; /* defined by the linker */
extern char __start_model_state[], __stop_model_state[];

static struct {
	uint64_t run;
	struct page **page;                /* hash table */
	struct page *recent[PAGES_RECENT]; /* indexed by page number */
	struct save *save;
	size_t save_count;
	struct page **freed;
	size_t freed_count;
	size_t arena_used[MODEL_FIBERS];
	size_t arena_kept[MODEL_FIBERS]; /* what setup has allocated */
} state MODEL_STATE;

void *memory_of_runtime(size_t bytes)
{
	void *memory = __real_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		abort();
	return memory;
}

void memory_init(void)
{
	void *arena = __real_mmap(ARENA_BASE, ARENA_BYTES, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
				  -1, 0);

	if (arena != ARENA_BASE)
		abort();
	state.page = memory_of_runtime(PAGES_MAX * sizeof(struct page *));
	state.save = memory_of_runtime(SAVES_MAX * sizeof(struct save));
	state.freed = memory_of_runtime(PAGES_MAX * sizeof(struct page *));
}

static bool within(const void *address, const char *begin, const char *end)
{
	return (const char *)address >= begin && (const char *)address < end;
}

bool memory_tracked(const void *address)
{
	if (within(address, ARENA_BASE, ARENA_BASE + ARENA_BYTES))
		return true;
	return within(address, __data_start, _end) &&
	       !within(address, __start_model_state, __stop_model_state);
}

bool memory_seen(const void *address)
{
	if (!fibers.running)
		return false;
	if (!memory_tracked(address) && !fiber_on_stack(address))
		model_fail("memory that the model does not know is shared: %p", address);
	return memory_tracked(address);
}

static struct page *page_find(uintptr_t number)
{
	size_t at = (number * UINT64_C(0x9e3779b97f4a7c15)) >> 49;

	for (;; at = (at + 1) % PAGES_MAX) {
		struct page *page = state.page[at];

		if (page == NULL) {
			page = memory_of_runtime(sizeof *page);
			page->number = number;
			state.page[at] = page;
			return page;
		}
		if (page->number == number)
			return page;
	}
}

static struct page *page_of(const void *address)
{
	uintptr_t number = (uintptr_t)address / PAGE_BYTES;

	struct page **recent = &state.recent[number % PAGES_RECENT];

	if (*recent == NULL || (*recent)->number != number)
		*recent = page_find(number);
	return *recent;
}

static void granule_renew(struct granule *granule)
{
	granule->run = state.run;
	granule->saved = false;
	granule->split = false;
	granule->objects = NULL;
	granule->cell.write_epoch = 0;
	memset(granule->cell.read_epoch, 0, sizeof granule->cell.read_epoch);
}

static struct granule *granule_in(struct page *page, const void *address)
{
	size_t number = (uintptr_t)address % PAGE_BYTES / 8;
	struct granule *granule = &page->granule[number];

	if (granule->run == state.run)
		return granule;
	if (page->run != state.run)
		memset(page->touched, 0, sizeof page->touched);
	page->run = state.run;
	page->touched[number / 64] |= UINT64_C(1) << number % 64;
	granule_renew(granule);
	return granule;
}

struct granule *memory_granule(const void *address)
{
	struct page *page = page_of(address);

	if (page->freed)
		model_fail("memory that was released is touched: %s", trace_symbol(address));
	return granule_in(page, address);
}

struct granule *memory_granule_any(const void *address)
{
	return granule_in(page_of(address), address);
}

bool memory_touch(struct granule *granule, bool writes)
{
	unsigned bit = 1u << fiber_self()->number;
	unsigned all;

	if (granule->contended || fiber_alone())
		return granule->contended;
	granule->readers |= (uint8_t)bit;
	if (writes)
		granule->writers |= (uint8_t)bit;
	all = granule->readers;
	if (granule->writers == 0 || (all & (all - 1)) == 0)
		return false;
	granule->contended = true;
	explore_grown();
	return true;
}

void memory_save(struct granule *granule, const void *address)
{
	uintptr_t begin = (uintptr_t)address & ~(uintptr_t)7;
	struct save *save = &state.save[state.save_count];

	if (granule->saved)
		return;
	if (state.save_count++ == SAVES_MAX)
		model_fail("one run writes too much memory");
	granule->saved = true;
	save->address = (void *)begin;
	save->value = *(const volatile uint64_t *)save->address;
}

/* Gives each byte a cell of its own until the end of the run. */
static void granule_split(struct granule *granule)
{
	granule->split = true;
	if (granule->part == NULL)
		granule->part = memory_of_runtime(7 * sizeof(struct plain_cell));
	for (unsigned i = 0; i < 7; i++)
		granule->part[i] = granule->cell;
}

static struct plain_cell *cell_of(struct granule *granule, unsigned byte)
{
	return byte == 0 ? &granule->cell : &granule->part[byte - 1];
}

static void race_tell(const char *mine, const void *address, const void *pc, const char *other,
		      unsigned fiber, const void *other_pc)
{
	trace_event(mine, address, 0, pc);
	trace_say("%s by fiber %u at %s", other, fiber, trace_symbol(other_pc));
	model_fail("data race at %s: %s by fiber %u against %s by fiber %u", trace_symbol(address),
		   mine, fiber_self()->number, other, fiber);
}

static void cell_write_check(const struct plain_cell *cell, const struct model_clock *clock,
			     const char *mine, const void *address, const void *pc)
{
	if (cell->write_epoch > clock->w[cell->write_fiber])
		race_tell(mine, address, pc, "write", cell->write_fiber, cell->write_pc);
}

static void cell_read_check(const struct plain_cell *cell, const char *mine, const void *address,
			    const void *pc)
{
	const struct fiber *self = fiber_self();

	for (unsigned i = 0; i < fibers.count; i++) {
		if (cell->read_epoch[i] > self->now.r[i])
			race_tell(mine, address, pc, "read", i, cell->read_pc);
	}
}

static void cell_read(struct plain_cell *cell, const void *address, const void *pc)
{
	const struct fiber *self = fiber_self();

	cell_write_check(cell, &self->reads, "read", address, pc);
	cell->read_epoch[self->number] = self->epoch;
	cell->read_pc = pc;
}

static void cell_write(struct plain_cell *cell, const void *address, const void *pc)
{
	const struct fiber *self = fiber_self();

	cell_write_check(cell, &self->now, "write", address, pc);
	cell_read_check(cell, "write", address, pc);
	cell->write_epoch = self->epoch;
	cell->write_fiber = self->number;
	cell->write_pc = pc;
}

/* Describes the bytes of one piece of memory that an access touches. */
struct part {
	unsigned from;
	unsigned to;
};

static struct part part_of(uintptr_t piece, const void *address, size_t bytes)
{
	uintptr_t begin = (uintptr_t)address;
	uintptr_t end = begin + bytes;

	return (struct part){.from = begin > piece ? (unsigned)(begin - piece) : 0,
			     .to = end < piece + 8 ? (unsigned)(end - piece) : 8};
}

static void granule_access(struct granule *granule, const void *address, struct part part,
			   bool writes, const void *pc)
{
	void (*access)(struct plain_cell * cell, const void *address, const void *pc) =
		writes ? cell_write : cell_read;

	if (!granule->split && part.from == 0 && part.to == 8) {
		access(&granule->cell, address, pc);
		return;
	}
	if (!granule->split)
		granule_split(granule);
	for (unsigned byte = part.from; byte < part.to; byte++)
		access(cell_of(granule, byte), address, pc);
}

static void range_access(const void *address, size_t bytes, bool writes, const void *pc)
{
	uintptr_t end = (uintptr_t)address + bytes;

	for (uintptr_t piece = (uintptr_t)address & ~(uintptr_t)7; piece < end; piece += 8) {
		const void *at = (const void *)piece;
		struct granule *granule = memory_granule(at);
		struct part part = part_of(piece, address, bytes);

		if (writes)
			memory_save(granule, at);
		granule_access(granule, at, part, writes, pc);
		if (granule->objects != NULL)
			atomic_plain_access(granule, piece + part.from, part.to - part.from, writes,
					    pc);
	}
}

void memory_read(const void *address, size_t bytes, const void *pc)
{
	struct fiber *self = fiber_self();

	if (!fibers.running || !memory_tracked(address))
		return;
	if (self->speculates)
		self->speculative = address;
	else
		range_access(address, bytes, false, pc);
	self->speculates = false;
}

void memory_write(const void *address, size_t bytes, const void *pc)
{
	if (fibers.running && memory_tracked(address))
		range_access(address, bytes, true, pc);
}

void memory_atomic_check(const void *address, size_t bytes, bool writes, const void *pc)
{
	struct granule *granule = memory_granule(address);
	unsigned from = (unsigned)((uintptr_t)address & 7);

	for (unsigned byte = from; byte < from + bytes; byte++) {
		struct plain_cell *cell = granule->split ? cell_of(granule, byte) : &granule->cell;
		const struct fiber *self = fiber_self();

		cell_write_check(cell, writes ? &self->now : &self->reads, "atomic access", address,
				 pc);
		if (writes)
			cell_read_check(cell, "atomic write", address, pc);
		if (!granule->split)
			return;
	}
}

void memory_begin(void)
{
	if (state.run++ == 0)
		memcpy(state.arena_kept, state.arena_used, sizeof state.arena_kept);
}

void memory_end(void)
{
	while (state.save_count > 0) {
		struct save *save = &state.save[--state.save_count];

		*(volatile uint64_t *)save->address = save->value;
	}
	while (state.freed_count > 0)
		state.freed[--state.freed_count]->freed = false;
	memcpy(state.arena_used, state.arena_kept, sizeof state.arena_used);
	atomic_end();
}

void *memory_map(size_t bytes)
{
	size_t rounded = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	unsigned part = fiber_self()->number;
	size_t *used = &state.arena_used[part];
	char *memory = ARENA_BASE + (size_t)part * ARENA_PART_BYTES + *used;

	if (rounded > ARENA_PART_BYTES - *used)
		return MAP_FAILED;
	*used += rounded;
	return memory;
}

/*
 * Records the release of memory as a write to all of it. So every other access must happen before
 * it.
 */
static void page_release(struct page *page, const void *pc)
{
	const char *begin = (const char *)(page->number * PAGE_BYTES);

	for (size_t i = 0; page->run == state.run && i < PAGE_GRANULES / 64; i++) {
		for (uint64_t bits = page->touched[i]; bits != 0; bits &= bits - 1)
			range_access(begin + (i * 64 + (size_t)__builtin_ctzll(bits)) * 8, 8, true,
				     pc);
	}
	page->freed = true;
	state.freed[state.freed_count++] = page;
}

void memory_unmap(void *address, size_t bytes, const void *pc)
{
	for (size_t at = 0; fibers.running && at < bytes; at += PAGE_BYTES)
		page_release(page_of((char *)address + at), pc);
}
