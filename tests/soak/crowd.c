/* SPDX-License-Identifier: MIT */
/*
 * The crowd: many threads that do little, as in a server with one thread for each connection. A
 * tenth of them is replaced each second, the oldest first. So lanes are taken, given back, and used
 * again.
 */
#include "soak.h"

#include <time.h>

enum {
	OPERATIONS_PER_HOLD = 16,
	NAP_NS = 50 * 1000000,
	/* one in this many threads of the crowd is replaced each second */
	REPLACED = 10,
};

struct guest {
	pthread_t thread;
	uint32_t number;
	_Atomic bool leaves;
	struct random random;
};

static struct guest guests[CROWD_MAX];
static uint32_t guest_count;
static pthread_t host;
static _Atomic bool closing;

static void nap(long ns)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void *guest_main(void *argument)
{
	struct guest *guest = argument;

	while (!atomic_load(&guest->leaves)) {
		engines_hold();
		for (int i = 0; i < OPERATIONS_PER_HOLD; i++)
			item_treat(&crowd_items[guest->number]
					       [random_below(&guest->random, CROWD_ITEMS)],
				   &guest->random);
		engines_release();
		nap(NAP_NS);
	}
	return NULL;
}

static void guest_enter(struct guest *guest)
{
	atomic_store(&guest->leaves, false);
	RACE_CHECK(pthread_create(&guest->thread, NULL, guest_main, guest) == 0);
}

static void guest_leave(struct guest *guest)
{
	RACE_CHECK(pthread_join(guest->thread, NULL) == 0);
	atomic_fetch_add(&books.threads, 1);
}

static void *host_main(void *argument)
{
	(void)argument;
	for (uint32_t oldest = 0; !atomic_load(&closing); oldest = (oldest + 1) % guest_count) {
		/*
		 * Asks a thread to leave REPLACED turns before it is joined, so that the join need
		 * not wait.
		 */
		atomic_store(&guests[(oldest + REPLACED) % guest_count].leaves, true);
		if (atomic_load(&guests[oldest].leaves)) {
			guest_leave(&guests[oldest]);
			guest_enter(&guests[oldest]);
		}
		nap(NS_PER_SECOND * REPLACED / guest_count);
	}
	return NULL;
}

void crowd_open(uint32_t count, uint64_t seed)
{
	guest_count = count;
	for (uint32_t number = 0; number < count; number++) {
		guests[number].number = number;
		guests[number].random.state = seed * CROWD_MAX + number;
		guest_enter(&guests[number]);
	}
	if (count > 0)
		RACE_CHECK(pthread_create(&host, NULL, host_main, NULL) == 0);
}

void crowd_close(void)
{
	atomic_store(&closing, true);
	if (guest_count > 0)
		RACE_CHECK(pthread_join(host, NULL) == 0);
	for (uint32_t number = 0; number < guest_count; number++)
		atomic_store(&guests[number].leaves, true);
	for (uint32_t number = 0; number < guest_count; number++)
		guest_leave(&guests[number]);
}
