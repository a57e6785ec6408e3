/* SPDX-License-Identifier: MIT */
/*
 * Calls every public function from every place where the library runs user code: a callback on the
 * worker and in an executor, their finalisers, the dispatch hook, the hand-back and its finaliser,
 * and the finaliser of a cancel. Each call must return as docs/threading.md says, and none may
 * hang.
 *
 * Seen to fail with these defects: stop recognises only the worker's own thread, so a stop in an
 * executor's callback waits for itself; twi_worker_finish() does not mark its thread as the worker,
 * so a flush in a hand-back hangs.
 */
#include "calls.h"
#include "exported.h"

#include <string.h>

static const struct call *const tables[] = {process_calls, timeout_calls, layer_calls};

#define TABLES ((int)(sizeof(tables) / sizeof(tables[0])))

/* Returns the call with that number, or NULL after the last one. */
static const struct call *call_at(int number)
{
	for (int table = 0; table < TABLES; table++)
		for (const struct call *call = tables[table]; call->name != NULL; call++)
			if (number-- == 0)
				return call;
	return NULL;
}

/* Makes all calls and records their results. The test asserts them afterwards, because only its
 * own thread may assert. */
static void tour_make(struct tour *tour, enum moment moment)
{
	if (tour->moment != moment)
		return;
	for (int i = 0; call_at(i) != NULL; i++)
		tour->result[i] = call_at(i)->make(tour);
	tour->tours++;
}

static void on_tour(struct tw_handle self, void *arg)
{
	(void)self;
	tour_make(arg, AT_CALLBACK);
}

static void on_tour_end(void *arg, enum tw_end end)
{
	(void)end;
	tour_make(arg, AT_FINALISER);
}

static const struct tw_kind tour_kind = TW_KIND(on_tour, on_tour_end);

static size_t tour_dispatch(void *context, const struct tw_due *due, size_t count)
{
	struct tour *tour = context;

	(void)count;
	tour_make(tour, AT_DISPATCH);
	tour->due = due[0];
	return tour->place == IN_EXECUTOR ? 1 : 0;
}

static void tour_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind,
			   void *arg, int64_t remaining_ns)
{
	(void)handle;
	(void)kind;
	(void)arg;
	(void)remaining_ns;
	tour_make(context, AT_HAND_BACK);
}

static void tour_open(struct tour *tour, enum place place, enum moment moment)
{
	struct tw_options options = fixture_options();

	memset(tour, 0, sizeof(*tour));
	check_true(call_at(CALLS_MAX) == NULL);
	if (place == IN_EXECUTOR || moment == AT_DISPATCH)
		options.dispatch = tour_dispatch;
	options.dispatch_context = tour;
	fixture_open(&tour->fixture, &options);
	tour->place = place;
	tour->moment = moment;
	/* The timeout runs at the next boundary. If it is to be handed back or cancelled, it
	 * gets a later deadline. */
	tour->self = must_schedule(tour->fixture.engine, place >= IN_HAND_BACK ? NS_PER_S : 1,
				   &tour_kind, tour);
	fixture_flush(&tour->fixture);
	tour->fixture.now_ns += place >= IN_HAND_BACK ? 0 : NS_PER_MS;
}

static void tour_close(struct tour *tour)
{
	check_int(tour->tours, 1);
	for (int i = 0; call_at(i) != NULL; i++)
		cr_assert(tour->result[i] == call_at(i)->expected[tour->place],
			  "%s: %lld instead of %lld", call_at(i)->name, (long long)tour->result[i],
			  (long long)call_at(i)->expected[tour->place]);
	fixture_close(&tour->fixture);
	check_int(tw_clock_destroy(tour->other_clock), 0);
}

static struct tour tour;

static void expire_and_check(enum place place, enum moment moment)
{
	tour_open(&tour, place, moment);
	fixture_advance_to(&tour.fixture, tour.fixture.now_ns);
	if (place == IN_EXECUTOR)
		check_int(tw_due_run(&tour.due), 0);
	tour_close(&tour);
}

Test(callback_calls, in_a_callback_on_the_worker)
{
	expire_and_check(ON_WORKER, AT_CALLBACK);
}

Test(callback_calls, in_its_finaliser)
{
	expire_and_check(ON_WORKER, AT_FINALISER);
}

Test(callback_calls, in_the_dispatch_hook)
{
	expire_and_check(ON_WORKER, AT_DISPATCH);
}

Test(callback_calls, in_a_callback_in_an_executor)
{
	expire_and_check(IN_EXECUTOR, AT_CALLBACK);
}

Test(callback_calls, in_its_finaliser_in_an_executor)
{
	expire_and_check(IN_EXECUTOR, AT_FINALISER);
}

static void hand_back_and_check(enum moment moment)
{
	tour_open(&tour, IN_HAND_BACK, moment);
	check_int(tw_engine_stop(tour.fixture.engine, tour_hand_back, &tour, PATIENCE_NS), 0);
	tour_close(&tour);
}

Test(callback_calls, in_a_hand_back)
{
	hand_back_and_check(AT_HAND_BACK);
}

Test(callback_calls, in_the_finaliser_of_a_hand_back)
{
	hand_back_and_check(AT_FINALISER);
}

Test(callback_calls, in_the_finaliser_of_a_cancel)
{
	tour_open(&tour, IN_CANCEL, AT_FINALISER);
	check_int(tw_cancel(tour.self), TW_CANCEL_DONE);
	tour_close(&tour);
}

/* Stops the engine, which the finaliser may do because the cancelling thread is not the worker. */
static void on_stop_end(void *arg, enum tw_end end)
{
	struct tour *own = arg;

	if (end == TW_END_CANCELLED)
		own->result[0] = tw_engine_stop(own->fixture.engine, NULL, NULL, TW_NEVER);
}

static const struct tw_kind stop_end_kind = TW_KIND(on_tour, on_stop_end);

Test(callback_calls, stop_in_the_finaliser_of_a_cancel)
{
	struct tw_handle handle;

	memset(&tour, 0, sizeof(tour));
	fixture_open(&tour.fixture, NULL);
	handle = must_schedule(tour.fixture.engine, NS_PER_S, &stop_end_kind, &tour);
	fixture_flush(&tour.fixture);
	tour.result[0] = NOT_CALLED;
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tour.result[0], 0);
	check_int(tw_engine_state(tour.fixture.engine), TW_ENGINE_STOPPED);
	fixture_close(&tour.fixture);
}

/*
 * Returns whether the call has this function's name: at the start of the call's name, or after a
 * comma.
 */
static bool named(const struct call *call, const char *name)
{
	size_t length = strlen(name);

	for (const char *part = call->name; part != NULL; part = strchr(part, ',')) {
		part += strspn(part, ", ");
		if (strncmp(part, name, length) == 0 && strchr(", ", part[length]) != NULL)
			return true;
	}
	return false;
}

static bool is_called(const char *name)
{
	for (int i = 0; call_at(i) != NULL; i++)
		if (named(call_at(i), name))
			return true;
	return false;
}

Test(callback_calls, each_function_is_called)
{
	check_at_least(exported_check(is_called), 80);
}
