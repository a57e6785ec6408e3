/* SPDX-License-Identifier: MIT */
#include "steps.h"

#include "checks.h"
#include "options.h"

#include <stdio.h>
#include <stdlib.h>

struct options options = {.timers = TIMERS, .faults = 2, .cancels = TIMERS};

struct state *steps_add(struct steps *steps, enum step step, int actor, int timer)
{
	struct next *next = &steps->next[steps->count];

	if (++steps->count > STEPS_MOST) {
		fprintf(stderr, "more than %d steps from a state\n", STEPS_MOST);
		exit(2);
	}
	next->step = step;
	next->actor = actor;
	next->timer = timer;
	next->state = *steps->from;
	return &next->state;
}

void steps_of(const struct state *from, struct steps *steps)
{
	steps->from = from;
	steps->count = 0;
	user_steps(steps);
	io_steps(steps);
	session_steps(steps);
	run_steps(steps);
	server_steps(steps);
	if (from->faults_left > 0)
		fault_steps(steps);
	for (int i = 0; i < steps->count; i++)
		check_timers(&steps->next[i].state);
}
