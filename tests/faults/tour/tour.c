/* SPDX-License-Identifier: MIT */
/*
 * The tour: a table of steps, which together make every public call, and the checks of their
 * results.
 */
#include "tour_inner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct tour tour;
_Thread_local bool tour_exempt;

void tour_sleep_ns(int64_t duration_ns)
{
	struct timespec left = {.tv_sec = duration_ns / (1000 * MS),
				.tv_nsec = duration_ns % (1000 * MS)};

	while (nanosleep(&left, &left) == -1 && errno == EINTR)
		;
}

int64_t tour_code(enum call call, uint32_t expected, int64_t result)
{
	uint32_t bit = result < 0 ? code_bit(result) : 0;

	atomic_fetch_add_explicit(&tour.result->calls, 1, memory_order_relaxed);
	tour.result->call = call_name(call);
	tour.calls_made[call] = true;
	if (result >= 0)
		return result;
	if ((bit & call_codes(call) & (expected | tour.plan->codes)) == 0) {
		fprintf(stderr, "%s: step %s: %s returned %lld (%s)\n", tour.plan->name,
			tour.result->step, call_name(call), (long long)result,
			tw_strerror((int)result));
		race_fail(__FILE__, __LINE__, "a code that is documented, and has a reason");
	}
	if ((bit & expected) == 0)
		atomic_fetch_add(&tour.result->code_count[__builtin_ctz(bit)], 1);
	return result;
}

void tour_exactly(enum call call, int64_t result, int64_t expected)
{
	tour.calls_made[call] = true;
	atomic_fetch_add_explicit(&tour.result->calls, 1, memory_order_relaxed);
	if (result == expected)
		return;
	fprintf(stderr, "%s: step %s: %s returned %lld, must be %lld\n", tour.plan->name,
		tour.result->step, call_name(call), (long long)result, (long long)expected);
	race_fail(__FILE__, __LINE__, "the one right answer");
}

void tour_relent(void)
{
	if (tour.plan->relent != NULL)
		tour.plan->relent(tour.plan->context);
}

bool tour_thread_make(void *(*body)(void *), void *arg, void *ret_thread)
{
	pthread_attr_t attributes;
	int error;

	tour_exempt = true;
	RACE_CHECK(pthread_attr_init(&attributes) == 0);
	if (tour.plan != NULL && tour.plan->stack_bytes != 0)
		RACE_CHECK(pthread_attr_setstacksize(&attributes, tour.plan->stack_bytes) == 0);
	error = pthread_create(ret_thread, &attributes, body, arg);
	(void)pthread_attr_destroy(&attributes);
	tour_exempt = false;
	return error == 0;
}

static const struct {
	const char *name;
	void (*run)(void);
} steps[] = {
	{"create", step_create},       {"prepare", step_prepare},
	{"schedule", step_schedule},   {"schedule_at", step_schedule_at},
	{"limit", step_limit},         {"batches", step_batches},
	{"keys", step_keys},           {"cancel", step_cancel},
	{"producers", step_producers}, {"callbacks", step_callbacks},
	{"groups", step_groups},       {"retries", step_retries},
	{"scopes", step_scopes},       {"scaled", step_scaled},
	{"waits", step_waits},         {"detach", step_detach},
	{"usable", step_usable},       {"stop", step_stop},
	{"destroy", step_destroy},
};

/* Checks the ledger, the engines' own counters, and the calls made. */
static void accounts_check(struct tour_result *result)
{
	struct ledger_sums sums = ledger_sum();
	int call;

	atomic_fetch_add(&result->accepted, (long long)sums.accepted);
	atomic_fetch_add(&result->ended, (long long)(sums.accepted - sums.lost));
	atomic_fetch_add(&result->lost, (long long)sums.lost);
	RACE_CHECK(sums.lost == 0 && sums.wrong == 0);
	RACE_CHECK(ledger.early == 0);
	RACE_CHECK(tour.books.scheduled == sums.accepted);
	RACE_CHECK(tour.books.expired == sums.expired);
	RACE_CHECK(tour.books.cancelled == sums.cancelled);
	RACE_CHECK(tour.books.unexpired == sums.unexpired);
	for (call = 0; call < CALLS && tour.plan->course == TOUR_RECOVERS; call++)
		RACE_CHECK(tour.calls_made[call]);
}

static void tour_once(const struct tour_plan *plan, struct tour_result *result)
{
	size_t number;

	race_watchdog(TOUR_HUNG_S);
	memset(&tour, 0, sizeof tour);
	ledger_reset();
	tour.plan = plan;
	tour.result = result;
	tour.patience_ns = plan->patience_ns != 0 ? plan->patience_ns : TOUR_PATIENCE_NS;
	tour.result->step = "process";
	step_process();
	if (plan->arm != NULL)
		plan->arm(plan->context);
	for (number = 0; number < sizeof steps / sizeof steps[0]; number++) {
		tour.result->step = steps[number].name;
		steps[number].run();
	}
	tour_relent();
	accounts_check(result);
	atomic_fetch_add(&result->tours, 1);
}

void tour_run(const struct tour_plan *plan, struct tour_result *ret_result)
{
	unsigned repeats = plan->repeats != 0 ? plan->repeats : 1;

	while (repeats-- > 0)
		tour_once(plan, ret_result);
	if (plan->injected != NULL)
		atomic_fetch_add(&ret_result->injected, plan->injected(plan->context));
	ret_result->complete = true;
}
