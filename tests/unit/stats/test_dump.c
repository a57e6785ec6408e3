/* SPDX-License-Identifier: MIT */
/*
 * The dump of an engine as text, in virtual time: its exact figures, which threads may ask for it
 * and when, and the result if the worker cannot write it.
 *
 * Seen to fail with these defects:
 * - the number of a slot's chunks is reported as that of its entries;
 * - an age is off by a factor of ten;
 * - cancelled timeouts count as waiting;
 * - the emptiest slots are listed first;
 * - a request stays after its thread has given up;
 * - the owner of a loop waits for itself;
 * - a sleeping worker is reported as awake, or as woken by any deadline, or its state is read after
 *   the dump;
 * - a request is reported as placed although another one is there.
 */
#include "asleep.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 16384 };

struct text {
	size_t bytes;
	char at[TEXT_BYTES];
};

static void on_text(void *context, const char *text, size_t bytes)
{
	struct text *all = context;

	if (bytes >= sizeof all->at - all->bytes)
		return;
	memcpy(all->at + all->bytes, text, bytes);
	all->bytes += bytes;
	all->at[all->bytes] = '\0';
}

static int dump(struct tw_engine *engine, struct text *text, int64_t timeout_ns)
{
	text->bytes = 0;
	text->at[0] = '\0';
	return tw_engine_dump(engine, on_text, text, timeout_ns);
}

/* Returns the number after `words`, or -1 if there is none. */
static long long figure(const struct text *text, const char *words)
{
	const char *at = strstr(text->at, words);
	long long number;

	return at != NULL && sscanf(at + strlen(words), "%lld", &number) == 1 ? number : -1;
}

/* Counts the lines that begin with `begin`. */
static int lines_of(const struct text *text, const char *begin)
{
	int count = 0;

	for (const char *at = text->at; at != NULL; at = strchr(at, '\n')) {
		at += *at == '\n';
		count += strncmp(at, begin, strlen(begin)) == 0;
	}
	return count;
}

static void open_with(struct fixture *fixture, uint32_t wheel, uint64_t flags)
{
	struct tw_options options = fixture_options();

	options.wheel = wheel;
	options.flags = flags;
	fixture_open(fixture, &options);
}

static atomic_int runs;

static void schedule_many(struct fixture *fixture, int count, int64_t delay_ns)
{
	for (int i = 0; i < count; i++)
		must_schedule(fixture->engine, delay_ns, &count_kind, &runs);
}

Test(dump, dump_without_engine_or_hook_is_rejected)
{
	struct fixture fixture;
	struct text text = {0};

	open_with(&fixture, TW_WHEEL_HASHED, 0);
	check_int(tw_engine_dump(NULL, on_text, &text, 0), -EINVAL);
	check_int(tw_engine_dump(fixture.engine, NULL, NULL, 0), -EINVAL);
	check_int(text.bytes, 0);
	fixture_close(&fixture);
}

Test(dump, new_and_stopped_are_empty)
{
	struct fixture fixture;
	struct text text;

	open_with(&fixture, TW_WHEEL_HASHED, 0);
	check_int(dump(fixture.engine, &text, 0), 0);
	check_true(strstr(text.at, ": new\n") != NULL);
	check_int(figure(&text, "wheel: "), 0);
	schedule_many(&fixture, 5, NS_PER_S);
	fixture_stop(&fixture);
	check_int(dump(fixture.engine, &text, 0), 0);
	check_true(strstr(text.at, ": stopped\n") != NULL);
	check_int(figure(&text, "wheel: "), 0);
	check_int(figure(&text, "handed back "), 5);
	fixture_close(&fixture);
}

Test(dump, dump_counts_by_level_and_by_time_left)
{
	struct fixture fixture;
	struct text text;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, 0);
	schedule_many(&fixture, 2, 5 * NS_PER_MS);
	schedule_many(&fixture, 3, 10 * NS_PER_MS);
	schedule_many(&fixture, 200, 2 * NS_PER_S);
	schedule_many(&fixture, 7, 150 * NS_PER_S);
	schedule_many(&fixture, 4, TW_NEVER);
	fixture_flush(&fixture);
	check_int(dump(fixture.engine, &text, PATIENCE_NS), 0);
	check_int(figure(&text, "timeouts: pending "), 216);
	check_int(figure(&text, "wheel: "), 216);
	check_int(figure(&text, "level 0: "), 5);
	check_int(figure(&text, "level 1: "), 200);
	check_int(figure(&text, "level 2: "), 7);
	check_int(lines_of(&text, "level "), 4);
	check_int(figure(&text, "due below 10 ms: "), 2);
	check_int(figure(&text, "due below 100 ms: "), 3);
	check_int(figure(&text, "due below 10 s: "), 200);
	check_int(figure(&text, "due below 1000 s: "), 7);
	check_int(figure(&text, "due never: "), 4);
	check_int(lines_of(&text, "due "), 5);
	check_int(figure(&text, "cancelled, not reclaimed: "), 0);
	check_int(figure(&text, "in rings "), 0);
	fixture_close(&fixture);
}

/* More slots are occupied than the dump lists. */
Test(dump, dump_names_the_fullest_slots_first)
{
	static const char fullest[] = "slot 8 of level 0: 66\nslot 14 of level 0: 62\n"
				      "slot 7 of level 0: 55\nslot 13 of level 0: 51\n"
				      "slot 6 of level 0: 44\nslot 12 of level 0: 40\n"
				      "slot 5 of level 0: 33\nslot 11 of level 0: 29\n"
				      "slot 4 of level 0: 22\nslot 10 of level 0: 18\n";
	struct fixture fixture;
	struct text text;

	open_with(&fixture, TW_WHEEL_HASHED, 0);
	for (int tick = 1; tick <= 12; tick++)
		schedule_many(&fixture, 10 * (tick % 7) + tick, tick * NS_PER_MS + 1);
	fixture_flush(&fixture);
	check_int(dump(fixture.engine, &text, PATIENCE_NS), 0);
	check_int(lines_of(&text, "slot "), 10);
	check_true(strstr(text.at, fullest) != NULL);
	check_int(figure(&text, "level 0: "), 438);
	fixture_close(&fixture);
}

/* The dump that the callback on the worker gets. */
static struct text inner;
static int inner_said;

static void on_dump(struct tw_handle self, void *arg)
{
	struct gate *gate = arg;
	struct tw_timeout timeout = {.size = sizeof timeout};

	if (gate != NULL) {
		sem_post(&gate->entered);
		sem_wait(&gate->leave);
	}
	if (tw_timeout_get(self, &timeout) >= 0)
		inner_said = dump(timeout.engine, &inner, 0);
}

static const struct tw_kind dump_kind = TW_KIND(on_dump, NULL);

Test(dump, cancelled_and_not_reclaimed)
{
	struct tw_handle handle[3];
	struct fixture fixture;
	struct gate gate;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, 0);
	gate_init(&gate);
	for (int i = 0; i < 3; i++)
		handle[i] = must_schedule(fixture.engine, (5 - i) * NS_PER_S, &count_kind, &runs);
	schedule_many(&fixture, 4, NS_PER_S);
	fixture_flush(&fixture);
	must_schedule(fixture.engine, 1, &dump_kind, &gate);
	check_int(tw_clock_set(fixture.clock, NS_PER_MS), 0);
	gate_await(&gate);
	for (int i = 0; i < 3; i++)
		check_int(tw_cancel(handle[i]), TW_CANCEL_DONE);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(inner_said, 0);
	check_int(figure(&inner, "cancelled, not reclaimed: "), 3);
	check_int(figure(&inner, "oldest cancelled: deadline "), 3 * NS_PER_S);
	check_int(figure(&inner, "wheel: "), 7);
	check_int(figure(&inner, "due below 1 s: "), 4);
	check_int(lines_of(&inner, "due "), 1);
	check_int(figure(&inner, "in rings "), 3);
	check_int(figure(&inner, "of these to be taken out "), 3);
	check_int(figure(&inner, "lanes "), 1);
	/* Afterwards the worker has reclaimed the cancelled timeouts. */
	check_int(dump(fixture.engine, &inner, PATIENCE_NS), 0);
	check_int(figure(&inner, "cancelled, not reclaimed: "), 0);
	check_int(figure(&inner, "wheel: "), 4);
	fixture_close(&fixture);
}

/* When the callback asks for a dump, the other timeouts of its batch have left the wheel. */
Test(dump, dump_counts_timeouts_about_to_run)
{
	struct fixture fixture;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, TW_ENGINE_ORDERED);
	must_schedule(fixture.engine, NS_PER_MS, &dump_kind, NULL);
	schedule_many(&fixture, 6, NS_PER_MS + 1);
	fixture_flush(&fixture);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	check_int(inner_said, 0);
	check_int(figure(&inner, "about to run "), 6);
	check_int(figure(&inner, "due overdue: "), 6);
	check_int(figure(&inner, "timeouts: pending "), 6);
	check_int(figure(&inner, "wheel: "), 0);
	fixture_close(&fixture);
}

/* Dumps until the worker sleeps. Waits between two dumps, because each dump wakes the worker. */
static bool sleeps_until(struct fixture *fixture, const char *words)
{
	struct text text;

	for (int i = 0; i < 10000; i++) {
		if (dump(fixture->engine, &text, PATIENCE_NS) != 0)
			return false;
		if (strstr(text.at, "worker: a thread, asleep") != NULL)
			return strstr(text.at, words) != NULL && lines_of(&text, "worker: ") == 2;
		check_int(lines_of(&text, "worker: "), 1);
		sleep_ns(NS_PER_MS);
	}
	return false;
}

Test(dump, dump_shows_which_deadlines_wake_the_worker)
{
	struct fixture fixture;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, 0);
	check_int(tw_engine_start(fixture.engine), 0);
	check_true(sleeps_until(&fixture, "worker: is woken for any deadline\n"));
	schedule_many(&fixture, 1, 5 * fixture.tick_ns);
	fixture_flush(&fixture);
	check_true(sleeps_until(&fixture, "worker: is woken for a deadline before "));
	fixture_close(&fixture);
}

Test(dump, dump_times_out_while_a_callback_blocks)
{
	struct fixture fixture;
	struct text text;
	struct gate gate;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, 0);
	gate_init(&gate);
	gate_hold(&fixture, &gate);
	schedule_many(&fixture, 3, NS_PER_S);
	check_int(dump(fixture.engine, &text, NS_PER_MS), -ETIMEDOUT);
	check_int(figure(&text, "timeouts: pending "), 3);
	check_true(strstr(text.at, "wheel: not looked at: not done in time\n") != NULL);
	check_true(strstr(text.at, "worker: a thread, awake") != NULL);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(dump(fixture.engine, &text, PATIENCE_NS), 0);
	check_int(figure(&text, "level 1: "), 3);
	fixture_close(&fixture);
}

struct asker {
	struct tw_engine *engine;
	pthread_t thread;
	asleep_thread number;
	struct text text;
	int said;
};

static void *ask(void *arg)
{
	struct asker *asker = arg;

	asleep_announce(&asker->number);
	asker->said = dump(asker->engine, &asker->text, PATIENCE_NS);
	return NULL;
}

static void asker_begin(struct asker *asker, struct tw_engine *engine)
{
	asker->engine = engine;
	atomic_store(&asker->number, 0);
	check_int(pthread_create(&asker->thread, NULL, ask, asker), 0);
}

static void asker_end(struct asker *asker, int said)
{
	check_int(pthread_join(asker->thread, NULL), 0);
	check_int(asker->said, said);
}

/*
 * Only one request can be placed at a time. The second thread waits until the first is served. The
 * third waits for a moment only, and times out.
 */
Test(dump, two_dumps_at_once_both_end)
{
	static struct asker asker[2];
	struct fixture fixture;
	struct text text;
	struct gate gate;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, 0);
	gate_init(&gate);
	schedule_many(&fixture, 3, NS_PER_S);
	gate_hold(&fixture, &gate);
	for (int i = 0; i < 2; i++)
		asker_begin(&asker[i], fixture.engine);
	for (int i = 0; i < 2; i++)
		check_true(asleep_await(&asker[i].number));
	check_int(dump(fixture.engine, &text, NS_PER_MS), -ETIMEDOUT);
	gate_open(&gate);
	for (int i = 0; i < 2; i++) {
		asker_end(&asker[i], 0);
		check_int(figure(&asker[i].text, "wheel: "), 3);
	}
	fixture_close(&fixture);
}

Test(dump, stop_ends_a_waiting_dump_with_eshutdown)
{
	static struct asker asker;
	struct fixture fixture;
	struct gate gate;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, 0);
	gate_init(&gate);
	gate_hold(&fixture, &gate);
	asker_begin(&asker, fixture.engine);
	check_true(asleep_await(&asker.number));
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, 0), -ETIMEDOUT);
	asker_end(&asker, -ESHUTDOWN);
	check_true(strstr(asker.text.at, ": stopping\n") != NULL);
	gate_open(&gate);
	fixture_stop(&fixture);
	fixture_close(&fixture);
}

static void on_exit_thread(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	pthread_exit(NULL);
}

Test(dump, dump_of_a_failed_engine_returns_eshutdown)
{
	static const struct tw_kind exit_kind = TW_KIND(on_exit_thread, NULL);
	struct fixture fixture;
	struct text text;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, 0);
	must_schedule(fixture.engine, 1, &exit_kind, NULL);
	check_int(tw_clock_set(fixture.clock, 2 * NS_PER_MS), 0);
	check_int(tw_engine_flush(fixture.engine, PATIENCE_NS), -ESHUTDOWN);
	check_int(dump(fixture.engine, &text, PATIENCE_NS), -ESHUTDOWN);
	check_true(strstr(text.at, ": failed") != NULL);
	fixture_close(&fixture);
}

static void poll_until(struct asker *asker, _Atomic bool *ended)
{
	while (!atomic_load(ended))
		check_int(tw_engine_poll(asker->engine, 0), 0);
}

static _Atomic bool ask_ended;

static void *ask_and_tell(void *arg)
{
	(void)ask(arg);
	atomic_store(&ask_ended, true);
	return NULL;
}

/* The owner writes the dump itself. Another thread must wait for the owner's poll. */
Test(dump, owner_and_another_thread_can_dump_a_loop)
{
	static struct asker asker;
	struct fixture fixture;
	struct text text;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, TW_ENGINE_LOOP);
	check_int(tw_engine_start(fixture.engine), 0);
	schedule_many(&fixture, 5, NS_PER_S);
	check_int(dump(fixture.engine, &text, 0), 0);
	check_int(figure(&text, "timeouts: pending "), 5);
	check_int(figure(&text, "wheel: ") + figure(&text, "fresh "), 5);
	check_int(figure(&text, "due below 10 s: "), 5);
	asker.engine = fixture.engine;
	check_int(pthread_create(&asker.thread, NULL, ask_and_tell, &asker), 0);
	poll_until(&asker, &ask_ended);
	asker_end(&asker, 0);
	check_int(figure(&asker.text, "wheel: "), 5);
	fixture_close(&fixture);
}

Test(dump, dump_of_an_unpolled_loop_times_out)
{
	struct fixture fixture;
	struct text text;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, TW_ENGINE_LOOP);
	check_int(tw_loop_exit(fixture.engine), 0);
	schedule_many(&fixture, 2, NS_PER_S);
	check_int(dump(fixture.engine, &text, NS_PER_MS), -ETIMEDOUT);
	check_int(figure(&text, "timeouts: pending "), 2);
	fixture_close(&fixture);
}

enum { PRODUCERS = 3, EACH = 20000 };

static void *produce(void *arg)
{
	struct fixture *fixture = arg;

	for (int i = 0; i < EACH; i++) {
		struct tw_handle handle;

		if (tw_schedule(fixture->engine, i % 3 * NS_PER_S + 1, &count_kind, &runs,
				&handle) == 0 &&
		    i % 2 == 0)
			(void)tw_cancel(handle);
	}
	return NULL;
}

/* Dumps must not lose a timeout. When all threads are quiet, the figures must be right. */
Test(dump, dumps_during_a_storm_lose_no_timeout)
{
	pthread_t producer[PRODUCERS];
	struct fixture fixture;
	struct text text;

	open_with(&fixture, TW_WHEEL_HIERARCHICAL, 0);
	check_int(tw_engine_start(fixture.engine), 0);
	for (int i = 0; i < PRODUCERS; i++)
		check_int(pthread_create(&producer[i], NULL, produce, &fixture), 0);
	for (int i = 0; i < 20; i++)
		check_int(dump(fixture.engine, &text, PATIENCE_NS), 0);
	for (int i = 0; i < PRODUCERS; i++)
		check_int(pthread_join(producer[i], NULL), 0);
	fixture_flush(&fixture);
	check_int(dump(fixture.engine, &text, PATIENCE_NS), 0);
	check_int(figure(&text, "scheduled "), PRODUCERS * EACH);
	check_int(figure(&text, "cancelled "), PRODUCERS * EACH / 2);
	check_int(figure(&text, "timeouts: pending "), PRODUCERS * EACH / 2);
	check_int(figure(&text, "wheel: "), PRODUCERS * EACH / 2);
	check_int(figure(&text, "in rings "), 0);
	fixture_close(&fixture);
}
