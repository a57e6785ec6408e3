/* SPDX-License-Identifier: MIT */
/*
 * Makes races more likely. In the library with test points, each thread that passes a point
 * sometimes spins or yields its CPU. At the end of the process, the account of node blocks is
 * checked (account.h).
 */
#include "account.h"
#include "race.h"

#include <sched.h>

#include "base/test_point.h"

void twi_test_point(const char *name)
{
	static _Thread_local uint64_t random;
	uint64_t dice;

	(void)name;
	if (random == 0)
		random = (uint64_t)(uintptr_t)&random | 1;
	dice = race_random(&random) % 64;
	if (dice == 0)
		sched_yield();
	else if (dice < 4)
		for (volatile uint64_t spins = dice * 400; spins > 0; spins--)
			;
}

/*
 * Requests the check of the account at exit. The programs of this folder must have destroyed their
 * engines when they exit.
 */
__attribute__((constructor)) static void account_at_end(void)
{
	account_begin();
}
