/* SPDX-License-Identifier: MIT */
/*
 * A ring begins with 512 places. If they are full, it goes on with 8,192, and then with 65,536. So a
 * thread that schedules now and then takes 8 KiB in each engine, and one that outruns the worker gets
 * what it needs. The steps are large because each of them costs page faults: with steps of two, 63
 * threads took 10 to 15 % more CPU until their rings had grown, and with steps of 16 up to 5 %.
 *
 * A ring becomes smaller only if it is empty, and if many looks in a row have found it nearly empty.
 * Looks are rare: one for each time that the thread has filled the places it knew of. So a burst that
 * comes again and again finds a ring of its size, and allocates nothing.
 *
 * All of it belongs to the lane's thread. A later owner of the lane gets it by E7.
 */
#include "ingress/rings.h"

#include "memory/memory.h"

#include <pthread.h>

enum {
	GROWTH = 16,
	/* A ring is nearly empty if at most this part of its places is used. */
	CALM_PART = 2 * GROWTH,
	CALM_LOOKS = 64,
	/* A ring is full if fewer than this part of its places are free. */
	ROOM_PART = 4,
};

/*
 * Returns NULL if there is no memory. If the thread were cancelled (pthread_cancel) inside an
 * allocator, it would never leave its section.
 */
static struct twi_ring_array *array_make(struct twi_worker *worker, uint64_t mask)
{
	struct twi_ring_array *array;
	int cancel_state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	array = twi_allocate(worker->allocator, twi_ring_bytes(mask), TWI_CACHE_LINE);
	(void)pthread_setcancelstate(cancel_state, NULL);
	if (array != NULL)
		twi_tsan_release(array);
	return array;
}

static void array_free(const struct tw_allocator *allocator, struct twi_ring_array *array)
{
	int cancel_state;

	twi_tsan_acquire(array);
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	allocator->release(allocator->context, array, twi_ring_bytes(array->mask), TWI_CACHE_LINE);
	(void)pthread_setcancelstate(cancel_state, NULL);
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
 * A ring that is nearly full counts as full. Otherwise its producer would look again after a few
 * pushes, and each look takes a cache line from the worker.
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

/* Until there is enough room, or the ring has its full size, or there is no memory. */
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
		/* RELAXED: only this thread writes it. */
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
