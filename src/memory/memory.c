/* SPDX-License-Identifier: MIT */
/*
 * The built-in allocator maps pages. If the alignment is greater than a page, it maps more than
 * needed and unmaps the excess.
 */
#include "memory/memory.h"

#include "base/atomic.h"
#include "base/tsan.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t round_up(size_t value, size_t unit)
{
	return (value + unit - 1) & ~(unit - 1);
}

static void *map_pages(size_t bytes)
{
	void *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_pages(uintptr_t begin, uintptr_t end)
{
	if (begin < end)
		(void)munmap((void *)begin, end - begin);
}

static void *page_allocate(void *context, size_t bytes, size_t align)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	uintptr_t begin, kept;

	(void)context;
	bytes = round_up(bytes, page_bytes);
	if (align <= page_bytes)
		return map_pages(bytes);
	begin = (uintptr_t)map_pages(bytes + align);
	if (begin == 0)
		return NULL;
	kept = round_up(begin, align);
	unmap_pages(begin, kept);
	unmap_pages(kept + bytes, begin + bytes + align);
	return (void *)kept;
}

static void page_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)align;
	(void)munmap(memory, round_up(bytes, (size_t)sysconf(_SC_PAGESIZE)));
}

static const struct tw_allocator page_allocator = {
	.allocate = page_allocate,
	.release = page_release,
	.context = NULL,
};

static _Atomic(const struct tw_allocator *) current_allocator = &page_allocator; /* [atomic E11] */

void twi_allocator_set(const struct tw_allocator *allocator)
{
	twi_tsan_release(&current_allocator);
	/*
	 * E11: pairs with twi_allocator(). Publishes the struct. Otherwise a thread could read a
	 * half-written struct and call a wrong function.
	 */
	twi_store_release(&current_allocator, allocator != NULL ? allocator : &page_allocator);
}

const struct tw_allocator *twi_allocator(void)
{
	/* E11: pairs with twi_allocator_set(). */
	const struct tw_allocator *allocator = twi_load_acquire(&current_allocator);

	twi_tsan_acquire(&current_allocator);
	return allocator;
}

/*
 * Calls the user's hook. Disables cancellation: if a thread were cancelled (pthread_cancel) inside
 * the hook, its call would be left half done. For example, the thread would never leave its RCU
 * section, or the worker's successor would process the same queue entries again.
 */
static void *hook_allocate(const struct tw_allocator *allocator, size_t bytes, size_t align)
{
	void *memory;
	int cancel_state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	memory = allocator->allocate(allocator->context, bytes, align);
	(void)pthread_setcancelstate(cancel_state, NULL);
	return memory;
}

/* Disables cancellation, for the reason at hook_allocate(). */
void twi_release(const struct tw_allocator *allocator, void *memory, size_t bytes, size_t align)
{
	int cancel_state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	allocator->release(allocator->context, memory, bytes, align);
	(void)pthread_setcancelstate(cancel_state, NULL);
}

void *twi_allocate(const struct tw_allocator *allocator, size_t bytes, size_t align)
{
	void *memory = hook_allocate(allocator, bytes, align);

	if (((uintptr_t)memory & (align - 1)) == 0)
		return memory;
	twi_release(allocator, memory, bytes, align);
	return NULL;
}

void *twi_allocate_zeroed(const struct tw_allocator *allocator, size_t bytes, size_t align)
{
	void *memory = twi_allocate(allocator, bytes, align);

	/*
	 * Pages of the built-in allocator are zero already. Clearing them would make them take
	 * memory at once.
	 */
	if (memory != NULL && allocator != &page_allocator)
		memset(memory, 0, bytes);
	return memory;
}
