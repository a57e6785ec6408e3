/* SPDX-License-Identifier: MIT */
#include "runtime/explore.h"

#include "runtime/memory.h"
#include "runtime/order.h"
#include "runtime/system.h"
#include "runtime/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CHOICES_MAX = 40000,
	/*
	 * In random runs, one out of ODDS_PREEMPT points interrupts the fiber, and one out of
	 * ODDS_WEAK loads does not return the newest store.
	 */
	ODDS_PREEMPT = 12,
	ODDS_WEAK = 6,
	/*
	 * Every second random run gives the fibers priorities. The priorities change at
	 * PRIORITY_CHANGES of the first PRIORITY_STEPS steps.
	 */
	PRIORITY_CHANGES = 3,
	PRIORITY_STEPS = 200,
};

enum mode { MODE_EXHAUSTIVE, MODE_WALK, MODE_PRIORITY, MODE_REPLAY };

struct choice {
	uint32_t number; /* counts all places at which there could be a choice */
	uint8_t taken;
	uint8_t count;
};

static struct {
	const struct model_harness *harness;
	struct explore_bounds bounds;
	enum mode mode;
	struct choice choice[CHOICES_MAX];
	uint32_t number; /* the number of the place that this run has reached */
	size_t at;       /* the index of this run's next choice */
	size_t known;    /* how many choices the replayed prefix has */
	unsigned weak;
	bool grown;
	uint64_t random;
	uint64_t change_step[PRIORITY_CHANGES];
	uint64_t runs;
	uint64_t restarts;
} state MODEL_STATE;

static uint64_t random_next(void)
{
	uint64_t z = (state.random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static unsigned random_below(unsigned count)
{
	return (unsigned)(random_next() % count);
}

/*
 * Returns the replayed choice for this place. A replay finds its choices by the numbers of their
 * places. So it also works if the search has already learned which memory is contended.
 */
static unsigned choice_repeat(unsigned count)
{
	const struct choice *choice = &state.choice[state.at];

	if (state.at >= state.known || choice->number != state.number)
		return 0;
	state.at++;
	if (choice->taken >= count)
		model_fail("this replay is of another program: choice %u of %u", choice->taken,
			   count);
	return choice->taken;
}

/* Records the choice. While a prefix is replayed, the prefix decides. */
static unsigned choice_make(unsigned count, unsigned otherwise)
{
	struct choice *choice = &state.choice[state.at];

	if (state.mode == MODE_REPLAY)
		return choice_repeat(count);
	if (count < 2)
		return 0;
	if (state.at == CHOICES_MAX || count > UINT8_MAX)
		model_fail("too many choices in one run");
	if (state.at++ >= state.known) {
		*choice = (struct choice){.number = state.number,
					  .taken = (uint8_t)otherwise,
					  .count = (uint8_t)count};
		return otherwise;
	}
	if (choice->number != state.number || choice->count != count)
		model_fail("a run does not repeat: choice %zu has %u ways, had %u", state.at - 1,
			   count, choice->count);
	return choice->taken;
}

bool explore_may_preempt(bool contended)
{
	if (state.mode == MODE_REPLAY)
		return true;
	if (contended &&
	    (state.mode != MODE_EXHAUSTIVE || fibers.preemptions < state.bounds.preemptions))
		return true;
	state.number++;
	return false;
}

static unsigned schedule_by_priority(struct fiber **list, unsigned count)
{
	unsigned best = 0;

	for (unsigned i = 0; i < PRIORITY_CHANGES; i++) {
		if (fibers.steps == state.change_step[i])
			fibers.current->priority = i;
	}
	for (unsigned i = 1; i < count; i++) {
		if (list[i]->priority > list[best]->priority)
			best = i;
	}
	return best;
}

unsigned explore_schedule(struct fiber **list, unsigned count, bool preempts)
{
	unsigned otherwise = 0;

	state.number++;
	if (count > 1 && state.mode == MODE_PRIORITY)
		otherwise = schedule_by_priority(list, count);
	else if (count > 1 && state.mode == MODE_WALK &&
		 (!preempts || random_below(ODDS_PREEMPT) == 0))
		otherwise = random_below(count);
	return choice_make(count, otherwise);
}

unsigned explore_weak(unsigned count)
{
	unsigned otherwise = 0;
	unsigned taken;

	state.number++;
	if (state.mode == MODE_EXHAUSTIVE && state.weak >= state.bounds.weak)
		return 0;
	if (count > 1 && (state.mode == MODE_WALK || state.mode == MODE_PRIORITY) &&
	    random_below(ODDS_WEAK) == 0)
		otherwise = random_below(count);
	taken = choice_make(count, otherwise);
	state.weak += taken != 0;
	return taken;
}

unsigned explore_choose(unsigned count)
{
	bool random = state.mode == MODE_WALK || state.mode == MODE_PRIORITY;

	state.number++;
	return choice_make(count, random && count > 1 ? random_below(count) : 0);
}

unsigned model_choose(unsigned count)
{
	return explore_choose(count);
}

const struct model_harness *explore_harness(void)
{
	return state.harness;
}

void explore_fiber_made(struct fiber *fiber)
{
	fiber->priority = PRIORITY_CHANGES + random_next() % 1000000;
}

void explore_grown(void)
{
	state.grown = true;
}

void explore_print_choices(void)
{
	const char *separator = "";

	if (state.runs == 0 && state.number == 0) {
		printf("(in setup)\n");
		return;
	}
	printf("to see it again: %s --replay ", state.harness->name);
	for (size_t i = 0; i < state.at; i++) {
		if (state.choice[i].taken == 0)
			continue;
		printf("%s%u:%u", separator, state.choice[i].number, state.choice[i].taken);
		separator = ",";
	}
	printf("%s\n", *separator == '\0' ? "-" : "");
}

static void *harness_worker(void *argument)
{
	(void)argument;
	state.harness->worker();
	return NULL;
}

static void *harness_thread(void *argument)
{
	struct fiber *self = fiber_self();

	(void)argument;
	state.harness->thread[self->number - 1]();
	return NULL;
}

static bool threads_ended(struct fiber *self)
{
	(void)self;
	for (unsigned i = 0; i < MODEL_THREADS && state.harness->thread[i] != NULL; i++) {
		if (fibers.fiber[i + 1].life == FIBER_ALIVE)
			return false;
	}
	return true;
}

static void *main_body(void *argument)
{
	(void)argument;
	for (unsigned i = 0; i < MODEL_THREADS && state.harness->thread[i] != NULL; i++)
		(void)fiber_make(harness_thread, NULL);
	if (state.harness->worker != NULL)
		(void)fiber_make(harness_worker, NULL);
	(void)fiber_wait(threads_ended, NULL, "the threads of the harness", INT64_MAX);
	for (unsigned i = 1; i < fibers.count; i++) {
		if (fibers.fiber[i].life == FIBER_ENDED)
			fiber_acquire(fiber_self(), &fibers.fiber[i].now);
	}
	if (state.harness->finish != NULL)
		state.harness->finish();
	return NULL;
}

static void run_once(void)
{
	state.at = 0;
	state.number = 0;
	state.weak = 0;
	trace_begin();
	memory_begin();
	order_begin();
	system_begin();
	fibers_run(main_body);
	memory_end();
	state.runs++;
}

/* Moves to the next prefix, depth first. Returns false if there is none. */
static bool prefix_next(void)
{
	size_t count = state.at;

	while (count > 0 && state.choice[count - 1].taken + 1 == state.choice[count - 1].count)
		count--;
	if (count == 0)
		return false;
	state.choice[count - 1].taken++;
	state.known = count;
	return true;
}

/* Returns true if it made every run within the bounds. */
static bool search_exhaustive(void)
{
	state.mode = MODE_EXHAUSTIVE;
	state.known = 0;
	for (;;) {
		state.grown = false;
		run_once();
		if (state.grown) {
			state.restarts++;
			state.known = 0;
		} else if (!prefix_next()) {
			return true;
		}
		if (state.bounds.runs_max != 0 && state.runs >= state.bounds.runs_max)
			return false;
	}
}

static void search_random(void)
{
	state.known = 0;
	for (uint64_t run = 0; run < state.bounds.random_runs; run++) {
		state.random = state.bounds.seed + run;
		state.mode = run % 2 == 0 ? MODE_WALK : MODE_PRIORITY;
		for (unsigned i = 0; i < PRIORITY_CHANGES; i++)
			state.change_step[i] = random_below(PRIORITY_STEPS);
		run_once();
	}
}

/*
 * Replays a run. `text` has its choices as "number:taken,number:taken"; "-" stands for the run
 * without any choice.
 */
static void replay(const char *text)
{
	char *end;

	state.mode = MODE_REPLAY;
	for (state.known = 0; *text != '\0' && *text != '-'; text = end + (*end == ',')) {
		struct choice *choice = &state.choice[state.known++];

		choice->number = (uint32_t)strtoul(text, &end, 10);
		choice->taken = (uint8_t)(*end == ':' ? strtoul(end + 1, &end, 10) : 0);
	}
	run_once();
	trace_print();
}

void explore(const struct model_harness *harness, const struct explore_bounds *bounds)
{
	bool all;
	uint64_t runs;

	state.harness = harness;
	state.bounds = *bounds;
	if (bounds->replay != NULL) {
		replay(bounds->replay);
		return;
	}
	all = search_exhaustive();
	runs = state.runs;
	search_random();
	printf("passed %s: %llu runs, %s within %u preemptions and %u weak answers; %llu random\n",
	       harness->name, (unsigned long long)runs, all ? "all" : "not all",
	       bounds->preemptions, bounds->weak, (unsigned long long)(state.runs - runs));
}
