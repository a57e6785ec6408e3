/* SPDX-License-Identifier: MIT */
/*
 * A ring begins with 512 places. If they are full, it grows to 8,192, and then to 65,536. If a
 * thread schedules only now and then, its ring takes 8 KiB in each engine (512 places and the
 * array's head, in two pages). A thread that outruns the worker gets a larger ring. The growth
 * factor is large because each growth costs page faults. With a factor of 2, 63 threads took 10 to
 * 15 % more CPU until their rings had grown; with 16, up to 5 %.
 *
 * A ring shrinks only if it is empty, and if many looks in a row have found it nearly empty. A look
 * is rare: the thread looks only when it has used all places that it knew to be free. So if bursts
 * come again and again, the ring keeps the size that they need, and nothing is allocated.
 *
 * Only the lane's thread uses these functions, except twi_lane_ring_free. If another thread gets
 * the lane later, E7 makes the ring visible to it.
 */
#include "ingress/rings.h"

#include "memory/memory.h"

enum {
	GROWTH = 16,
	/* A ring is nearly empty if at most 1/CALM_PART of its places are in use. */
	CALM_PART = 2 * GROWTH,
	CALM_LOOKS = 64,
	/* A ring counts as full if at most 1/ROOM_PART of its places are free. */
	ROOM_PART = 4,
};

/* Allocates an array. Returns NULL if there is no memory. */
static struct twi_ring_array *array_make(struct twi_worker *worker, uint64_t mask)
{
	struct twi_ring_array *array =
		twi_allocate(worker->allocator, twi_ring_bytes(mask), TWI_CACHE_LINE);

	if (array != NULL)
		twi_tsan_release(array);
	return array;
}

static void array_free(const struct tw_allocator *allocator, struct twi_ring_array *array)
{
	twi_tsan_acquire(array);
	twi_release(allocator, array, twi_ring_bytes(array->mask), TWI_CACHE_LINE);
}

static bool extend(struct twi_worker *worker, struct twi_lane *lane, uint64_t mask)
{
	struct twi_ring_array *array = array_make(worker, mask);

	if (array == NULL)
		return false;
	twi_ring_extend(&lane->ring, &lane->arrays, array, mask);
	(void)twi_ring_look(&lane->ring, &lane->ring_out);
	return true;
}

void twi_lane_ring_make(struct twi_worker *worker, struct twi_lane *lane)
{
	(void)extend(worker, lane, TWI_RING_LEAST - 1);
}

static uint64_t smaller(uint64_t mask)
{
	uint64_t size = (mask + 1) / GROWTH;

	return (size > TWI_RING_LEAST ? size : TWI_RING_LEAST) - 1;
}

/*
 * Returns whether the ring is full. One that is nearly full counts as full. Otherwise its producer
 * would have to look again after a few pushes, and each look takes a cache line away from the
 * worker's core.
 */
static bool full(const struct twi_ring_in *ring, uint32_t wanted)
{
	uint32_t room = twi_ring_known_room(ring);

	return room < wanted || room <= ring->mask / ROOM_PART;
}

static uint64_t larger(uint64_t mask)
{
	uint64_t size = (mask + 1) * GROWTH;

	return (size < TWI_RING_ENTRIES ? size : TWI_RING_ENTRIES) - 1;
}

/*
 * Makes the ring larger until enough places are free, or it has its largest size, or there is no
 * memory.
 */
static void grow(struct twi_worker *worker, struct twi_lane *lane, uint32_t wanted)
{
	struct twi_ring_in *ring = &lane->ring;
	struct twi_ring_arrays *arrays = &lane->arrays;

	while (full(ring, wanted) && ring->mask < TWI_RING_ENTRIES - 1 && !arrays->stuck)
		arrays->stuck = !extend(worker, lane, larger(ring->mask));
}

static void shrink_if_calm(struct twi_worker *worker, struct twi_lane *lane, uint64_t waiting)
{
	const struct twi_ring_in *ring = &lane->ring;
	struct twi_ring_arrays *arrays = &lane->arrays;

	if (waiting > ring->mask / CALM_PART)
		arrays->calm = 0;
	else if (++arrays->calm >= CALM_LOOKS && waiting == 0 && ring->mask >= TWI_RING_LEAST) {
		arrays->calm = 0;
		(void)extend(worker, lane, smaller(ring->mask));
	}
}

TWI_NOINLINE bool twi_lane_ring_room(struct twi_worker *worker, struct twi_lane *lane,
				     uint32_t wanted)
{
	struct twi_ring_in *ring = &lane->ring;
	struct twi_ring_array *array;
	uint64_t head;

	if (ring->entry == NULL)
		return false;
	head = twi_ring_look(ring, &lane->ring_out);
	while ((array = twi_ring_left(&lane->arrays, head)) != NULL)
		array_free(worker->allocator, array);
	if (full(ring, wanted)) {
		lane->arrays.calm = 0;
		grow(worker, lane, wanted);
	} else {
		lane->arrays.stuck = false;
		/* RELAXED: only this thread writes the tail. */
		shrink_if_calm(worker, lane, twi_load_relaxed(&ring->tail) - head);
	}
	return twi_ring_knows_room(ring);
}

/* RELAXED, all: no other thread uses the engine any more. */
void twi_lane_ring_free(const struct tw_allocator *allocator, struct twi_lane *lane)
{
	struct twi_ring_array *array = twi_load_relaxed(&lane->arrays.first), *next;

	for (; array != NULL; array = next) {
		next = twi_load_relaxed(&array->next);
		array_free(allocator, array);
	}
	twi_store_relaxed(&lane->arrays.first, NULL);
}
