/* SPDX-License-Identifier: MIT */
/*
 * Sleep against wake (thread/park.h). Each waker stores one reason, and the sleeper sleeps again
 * until it has seen all reasons. If a wake-up is lost, the sleeper's loop never ends, which GenMC
 * reports. Each time the sleeper publishes that it sleeps, the wakers make at most one system call
 * (E8).
 *
 * Seen to fail with these defects:
 * - twi_park_prepare() stores PARKED with release only;
 * - twi_park_wake() loads the park word with acquire only.
 */
#include "thread/park.h"

#include <assert.h>
#include <pthread.h>

static struct twi_park park;
static _Atomic uint32_t reasons;
static _Atomic uint32_t calls;

/*
 * Stands for the kernel's futex queue. A wake-up ends the wait of the threads that were in the
 * queue before it.
 */
int twi_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t until_ns)
{
	uint32_t seen = twi_load_seq_cst(&calls);

	(void)until_ns;
	if (twi_load_seq_cst(word) == value)
		while (twi_load_seq_cst(&calls) == seen)
			;
	return 0;
}

void twi_futex_wake(_Atomic uint32_t *word)
{
	(void)word;
	(void)twi_fetch_add_seq_cst(&calls, 1);
}

static void *wake(void *argument)
{
	(void)twi_fetch_add_seq_cst(&reasons, 1);
	twi_park_wake(&park);
	return argument;
}

int main(void)
{
	pthread_t waker[WAKERS];
	uint32_t sleeps = 0;

	twi_park_init(&park);
	for (unsigned i = 0; i < WAKERS; i++)
		pthread_create(&waker[i], NULL, wake, NULL);
	for (unsigned i = 0; i <= WAKERS; i++) {
		sleeps++;
		twi_park_prepare(&park);
		if (twi_load_seq_cst(&reasons) == WAKERS)
			break;
		twi_park_wait(&park, INT64_MAX);
	}
	twi_park_done(&park);
	for (unsigned i = 0; i < WAKERS; i++)
		pthread_join(waker[i], NULL);
	assert(twi_load_relaxed(&reasons) == WAKERS);
	assert(twi_load_relaxed(&calls) <= sleeps);
	return 0;
}
