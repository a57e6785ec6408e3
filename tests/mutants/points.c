/* SPDX-License-Identifier: MIT */
/*
 * Test points in the builds of mutants. Between the halves of a step that a mutant has split, a
 * thread yields its processor about every second time. At the other points it sometimes spins, and
 * rarely yields. It yields there more often in the race tests (race/harness/delays.c). That would
 * take seconds here, if other programs use the machine.
 */
#include "race.h"

#include <sched.h>

#include "base/test_point.h"

static uint64_t dice_of_1024(void)
{
	static _Thread_local uint64_t random;

	if (random == 0)
		random = (uint64_t)(uintptr_t)&random | 1;
	return race_random(&random) % 1024;
}

/* The point that the mutants add (orders.h). */
void mutant_between(void);
void mutant_between(void)
{
	if (dice_of_1024() % 2 == 0)
		sched_yield();
}

void twi_test_point(const char *name)
{
	uint64_t dice = dice_of_1024();

	(void)name;
	if (dice == 0)
		sched_yield();
	else if (dice < 48)
		for (volatile uint64_t spins = dice * 30; spins > 0; spins--)
			;
}
