/* SPDX-License-Identifier: MIT */
/*
 * Seats, as for the connections of a server. Each seat has one thread at a time, which works for a
 * while and ends. Then another thread takes the seat, and takes over the timeouts of the previous
 * thread.
 */
#include "soak.h"

#include <time.h>

enum {
	OPERATIONS_PER_HOLD = 256,
	/* How often a thread holds the engines (engines_hold) at most; takes about two seconds. */
	HOLDS_MAX = 1500,
};

struct seat {
	pthread_t keeper;
	uint32_t number;
	struct random random;
};

static struct seat seats[SEATS];
static _Atomic bool closing;

static void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void *thread_main(void *argument)
{
	struct seat *seat = argument;
	uint64_t holds = 1 + random_below(&seat->random, HOLDS_MAX);

	for (uint64_t i = 0; i < holds && !atomic_load(&closing); i++) {
		engines_hold();
		for (int k = 0; k < OPERATIONS_PER_HOLD; k++)
			item_treat(&items[seat->number][random_below(&seat->random, ITEMS)],
				   &seat->random);
		engines_release();
		nap();
	}
	if (random_below(&seat->random, 2) == 0)
		RACE_CHECK(tw_thread_detach() == 0);
	return NULL;
}

static void *keeper_main(void *argument)
{
	struct seat *seat = argument;

	while (!atomic_load(&closing)) {
		pthread_t thread;

		RACE_CHECK(pthread_create(&thread, NULL, thread_main, seat) == 0);
		RACE_CHECK(pthread_join(thread, NULL) == 0);
		atomic_fetch_add(&books.threads, 1);
	}
	return NULL;
}

void seats_open(uint64_t seed)
{
	for (uint32_t number = 0; number < SEATS; number++) {
		struct seat *seat = &seats[number];

		seat->number = number;
		seat->random.state = seed * SEATS + number;
		RACE_CHECK(pthread_create(&seat->keeper, NULL, keeper_main, seat) == 0);
	}
}

void seats_close(void)
{
	atomic_store(&closing, true);
	for (uint32_t number = 0; number < SEATS; number++)
		RACE_CHECK(pthread_join(seats[number].keeper, NULL) == 0);
}
