/* SPDX-License-Identifier: MIT */
/*
 * usage: edges [SCENE]
 *
 * Accesses of timeouts and engines that only the library orders. ThreadSanitizer must not report
 * any of them.
 */
#include "pool.h"

static struct loose_handle loose;

static int cancel_late(struct tw_handle handle)
{
	int outcome = tw_cancel(handle);

	return outcome == TW_CANCEL_EXPIRED || outcome == TW_CANCEL_STALE;
}

/*
 * Waits until the n-th callback has returned. A cancel that comes too late then acquires the
 * callback's writes.
 */
static void ended_await(struct tw_handle handle, int number)
{
	await(done_now() >= number);
	await(cancel_late(handle));
}

/*
 * In the next scenes, a callback must see the writes of the scheduling thread, and a canceller that
 * comes too late must see those of the callback.
 */

static int run_before, run_after;

static void run_callback(struct tw_handle self, void *arg)
{
	(void)self;
	must(*(int *)arg == 1);
	run_after = 2;
}

static void run_finaliser(void *arg, enum tw_end end)
{
	must(end == TW_END_EXPIRED && *(int *)arg == 1);
	run_after++;
	done_note();
}

static void schedule_run_cancel(void)
{
	static const struct tw_kind kind = TW_KIND(run_callback, run_finaliser);
	struct tw_engine *engine = engine_begin(NULL);
	struct tw_handle handle;

	for (int at = 0; at < 2; at++) {
		run_before = 1;
		if (at == 0)
			must(tw_schedule(engine, 0, &kind, &run_before, &handle) == 0);
		else
			must(tw_schedule_at(engine, 0, &kind, &run_before, &handle) == 0);
		ended_await(handle, at + 1);
		must(run_after == 3);
		run_after = run_before = 0;
	}
	engine_end(engine);
}

static int waited;

static void wait_callback(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	step(1);
	step_await(2);
	nap();
	waited = 1;
}

static void cancel_wait(void)
{
	static const struct tw_kind kind = TW_KIND(wait_callback, NULL);
	struct tw_engine *engine = engine_begin(NULL);
	struct tw_handle handle;

	must(tw_schedule(engine, 0, &kind, NULL, &handle) == 0);
	step_await(1);
	must(tw_cancel(handle) == TW_CANCEL_RUNNING);
	step(2);
	must(tw_cancel_wait(handle, TW_NEVER) == TW_CANCEL_EXPIRED);
	must(waited == 1);
	engine_end(engine);
}

/* In the next scenes, another thread cancels, in a ring and in the wheel, or reschedules. */

static int written;

static void never_callback(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	must(false);
}

static void written_finaliser(void *arg, enum tw_end end)
{
	(void)arg;
	must(end == TW_END_CANCELLED && written == 1);
}

static const struct tw_kind never_kind = TW_KIND(never_callback, NULL);

static int cancelled[2];

static void *other_cancels(void *unused)
{
	for (int at = 1; at < 5; at += 2) {
		step_await(at);
		cancelled[at / 2] = 1;
		must(tw_cancel(loose_get(&loose)) == TW_CANCEL_DONE);
		step(at + 1);
	}
	return unused;
}

static void cancelled_by_another(void)
{
	struct tw_engine *engine = engine_begin(NULL);
	pthread_t other = thread_begin(other_cancels, NULL);
	struct tw_handle handle;

	for (int at = 1; at < 5; at += 2) {
		must(tw_schedule(engine, TW_NEVER, &never_kind, NULL, &handle) == 0);
		if (at > 1)
			must(tw_engine_flush(engine, TW_NEVER) == 0);
		loose_put(&loose, handle);
		step(at);
		step_await(at + 1);
		if (at == 1)
			must(tw_timeout_state(handle) == TW_STATE_CANCELLED);
		else
			must(tw_cancel(handle) == TW_CANCEL_CANCELLED);
		must(cancelled[at / 2] == 1);
	}
	thread_end(other);
	engine_end(engine);
}

static int hastened[3];

static void hastened_finaliser(void *arg, enum tw_end end)
{
	(void)arg;
	must(end == TW_END_CANCELLED && hastened[1] == 1);
}

static void *other_hastens(void *unused)
{
	for (int at = 1; at < 7; at += 2) {
		step_await(at);
		hastened[at / 2] = 1;
		must(tw_reschedule(loose_get(&loose), at == 5 ? 0 : 1000000 * MS) ==
		     TW_RESCHEDULE_DONE);
		step(at + 1);
	}
	return unused;
}

static void hastened_callback(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	must(hastened[2] == 1);
	hastened[2] = 2;
	done_note();
}

static void rescheduled_by_another(void)
{
	static const struct tw_kind kinds[] = {
		TW_KIND(never_callback, NULL),
		TW_KIND(never_callback, hastened_finaliser),
		TW_KIND(hastened_callback, NULL),
	};
	struct tw_engine *engine = engine_begin(NULL);
	pthread_t other = thread_begin(other_hastens, NULL);
	struct tw_handle handle;

	for (int at = 1; at < 7; at += 2) {
		must(tw_schedule(engine, TW_NEVER, &kinds[at / 2], NULL, &handle) == 0);
		must(tw_engine_flush(engine, TW_NEVER) == 0);
		loose_put(&loose, handle);
		step(at);
		if (at < 5) {
			step_await(at + 1);
			must(tw_cancel(handle) == TW_CANCEL_DONE);
			must(hastened[at / 2] == 1);
		}
	}
	ended_await(handle, 1);
	must(hastened[2] == 2);
	thread_end(other);
	engine_end(engine);
}

/*
 * In the next scene, a batch cancels timeouts that another thread has rescheduled. Its finalisers
 * must see that thread's writes.
 */

static void *other_postpones(void *unused)
{
	step_await(1);
	written = 1;
	must(tw_reschedule(loose_get(&loose), 2000000 * MS) == TW_RESCHEDULE_DONE);
	step(2);
	return unused;
}

static void batch_callback(struct tw_handle self, void *arg)
{
	(void)self;
	must(*(int *)arg == 7);
	*(int *)arg = 8;
	done_note();
}

enum { BATCH = 200 };

static void batches(void)
{
	static const struct tw_kind due_kind = TW_KIND(batch_callback, NULL);
	static const struct tw_kind kind = TW_KIND(never_callback, written_finaliser);
	struct tw_engine *engine = engine_begin(NULL);
	pthread_t other = thread_begin(other_postpones, NULL);
	static int values[BATCH];
	struct tw_handle handles[BATCH];
	struct tw_item items[BATCH];

	for (int i = 0; i < BATCH; i++) {
		values[i] = 7;
		items[i] = (struct tw_item){.kind = &due_kind, .arg = &values[i]};
	}
	must(tw_schedule_many(engine, items, BATCH, handles, NULL) == BATCH);
	for (int i = 0; i < BATCH; i++) {
		ended_await(handles[i], BATCH);
		must(values[i] == 8);
	}
	items[0] = (struct tw_item){.kind = &kind, .time_ns = TW_NEVER};
	must(tw_schedule_many(engine, items, 1, handles, NULL) == 1);
	loose_put(&loose, handles[0]);
	step(1);
	step_await(2);
	must(tw_cancel_many(handles, 1, NULL) == 1);
	thread_end(other);
	engine_end(engine);
}

/*
 * In the next scene, a periodic timeout runs in two threads in turn. The dispatch hook reads the
 * timeout's argument.
 */

struct chain {
	int runs;
	int group;
};

static void chain_callback(struct tw_handle self, void *arg)
{
	struct chain *chain = arg;

	(void)self;
	chain->runs++;
}

static void chain_finaliser(void *arg, enum tw_end end)
{
	struct chain *chain = arg;

	must(end != TW_END_EXPIRED || chain->runs == 20);
	chain->runs += 1000;
	done_note();
}

static size_t looking_dispatch(void *pool, const struct tw_due *due, size_t count)
{
	for (size_t i = 0; i < count; i++)
		must(((struct chain *)due[i].arg)->group == 7);
	return pool_dispatch(pool, due, count);
}

static const struct tw_kind chain_kind = TW_KIND(chain_callback, chain_finaliser);

static void periodic_in_executors(void)
{
	struct tw_period period = TW_PERIOD_DELAY(MS);
	struct tw_options options = options_default();
	struct chain chain = {0};
	struct tw_engine *engine;
	struct tw_handle handle;
	struct pool pool;

	pool_begin(&pool);
	options.dispatch = looking_dispatch;
	options.dispatch_context = &pool;
	engine = engine_begin(&options);
	period.runs = 20;
	chain = (struct chain){.group = 7};
	must(tw_schedule_periodic(engine, &period, &chain_kind, &chain, &handle) == 0);
	ended_await(handle, 1);
	must(chain.runs == 1020);
	period.runs = 0;
	chain.runs = 0;
	must(tw_schedule_periodic(engine, &period, &chain_kind, &chain, &handle) == 0);
	for (int i = 0; i < 200; i++)
		nap();
	must(tw_cancel_wait(handle, TW_NEVER) == TW_CANCEL_DONE);
	must(chain.runs > 1000);
	chain.runs = 0;
	must(tw_schedule_periodic(engine, &period, &chain_kind, &chain, &handle) == 0);
	for (int i = 0; i < 100; i++)
		nap();
	must(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	must(chain.runs >= 1000);
	must(tw_engine_destroy(engine) == 0);
	pool_end(&pool);
}

/*
 * In the next scene, a periodic timeout is cancelled while it waits for an executor. The executor's
 * finaliser must run after the cancel, and see its writes.
 */

static int stopped_by;

static void stopped_finaliser(void *arg, enum tw_end end)
{
	(void)arg;
	must(end == TW_END_CANCELLED && stopped_by == 1);
	stopped_by = 2;
}

static void stopped_before_its_run(void)
{
	static const struct tw_kind kind = TW_KIND(never_callback, stopped_finaliser);
	struct tw_period period = TW_PERIOD_DELAY(MS);
	struct tw_options options = options_default();
	struct tw_engine *engine;
	struct tw_handle handle;
	struct pool pool;

	pool_begin(&pool);
	pool_set(&pool.held, 1);
	options.dispatch = pool_dispatch;
	options.dispatch_context = &pool;
	engine = engine_begin(&options);
	must(tw_schedule_periodic(engine, &period, &kind, NULL, &handle) == 0);
	await(pool_look(&pool.place[0].full) != 0);
	stopped_by = 1;
	must(tw_cancel(handle) == TW_CANCEL_STOPPED);
	pool_set(&pool.held, 0);
	must(tw_cancel_wait(handle, TW_NEVER) == TW_CANCEL_CANCELLED);
	must(stopped_by == 2);
	engine_end(engine);
	pool_end(&pool);
}

/*
 * The next scenes stop the engine. The hand-back must see the writes of the scheduling thread.
 * After stop the caller must see the writes of all callbacks, on any thread.
 */

static int handed[2];

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)handle;
	(void)kind;
	(void)remaining_ns;
	must(*(int *)context == 1 && *(int *)arg == 1);
	*(int *)arg = 2;
}

static void stop_hands_back(void)
{
	struct tw_engine *engine = engine_begin(NULL);

	handed[0] = 1;
	must(tw_schedule(engine, TW_NEVER, &never_kind, &handed[0], NULL) == 0);
	must(tw_engine_flush(engine, TW_NEVER) == 0);
	handed[1] = 1;
	must(tw_engine_stop(engine, on_unexpired, &handed[1], TW_NEVER) == 0);
	must(handed[0] == 2);
	must(tw_engine_destroy(engine) == 0);
}

static void count_callback(struct tw_handle self, void *arg)
{
	(void)self;
	++*(int *)arg;
	step(step_now() + 1);
}

static const struct tw_kind count_kind = TW_KIND(count_callback, NULL);

/* Stands for a user's hook that creates threads. No thread joins the worker. */
static int detached_thread(void *context, void *(*body)(void *), void *arg)
{
	pthread_t thread;
	int error = pthread_create(&thread, NULL, body, arg);

	(void)context;
	return error == 0 ? -pthread_detach(thread) : -error;
}

static struct tw_engine *shared_engine;

static void *other_stops(void *unused)
{
	step_await(1);
	must(tw_engine_stop(shared_engine, NULL, NULL, TW_NEVER) == 0);
	step(2);
	return unused;
}

static void stop_publishes(void)
{
	struct tw_options options = options_default();
	struct tw_engine *engine;
	pthread_t other;
	struct pool pool;
	int count = 0;

	options.thread = detached_thread;
	engine = engine_begin(&options);
	must(tw_schedule(engine, 0, &count_kind, &count, NULL) == 0);
	step_await(1);
	must(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	must(count == 1);
	must(tw_engine_destroy(engine) == 0);

	step(0);
	pool_begin(&pool);
	options.dispatch = pool_dispatch;
	options.dispatch_context = &pool;
	engine = engine_begin(&options);
	must(tw_schedule(engine, 0, &count_kind, &count, NULL) == 0);
	step_await(1);
	must(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	must(count == 2);
	must(tw_engine_destroy(engine) == 0);
	pool_end(&pool);

	step(0);
	options = options_default();
	options.thread = detached_thread;
	shared_engine = engine = engine_begin(&options);
	other = thread_begin(other_stops, NULL);
	must(tw_schedule(engine, 0, &count_kind, &count, NULL) == 0);
	step_await(2);
	must(tw_engine_state(engine) == TW_ENGINE_STOPPED);
	must(count == 3);
	must(tw_engine_destroy(engine) == 0);
	thread_end(other);
}

static void destroy_publishes(void)
{
	struct tw_options options = options_default();
	pthread_t other;
	int count = 0;

	options.thread = detached_thread;
	shared_engine = engine_begin(&options);
	other = thread_begin(other_stops, NULL);
	must(tw_schedule(shared_engine, 0, &count_kind, &count, NULL) == 0);
	step_await(2);
	must(tw_engine_destroy(shared_engine) == 0);
	must(count == 1);
	thread_end(other);
}

static int died_after;

static void dying_callback(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	died_after = 1;
	pthread_exit(NULL);
}

static void worker_died(void)
{
	static const struct tw_kind kind = TW_KIND(dying_callback, NULL);
	struct tw_engine *engine = engine_begin(NULL);

	must(tw_schedule(engine, 0, &kind, NULL, NULL) == 0);
	await(tw_engine_state(engine) == TW_ENGINE_FAILED);
	must(died_after == 1);
	engine_end(engine);
}

static const struct scene scenes[] = {
	{"schedule_run_cancel", schedule_run_cancel},
	{"cancel_wait", cancel_wait},
	{"cancelled_by_another", cancelled_by_another},
	{"rescheduled_by_another", rescheduled_by_another},
	{"batches", batches},
	{"periodic_in_executors", periodic_in_executors},
	{"stopped_before_its_run", stopped_before_its_run},
	{"stop_hands_back", stop_hands_back},
	{"stop_publishes", stop_publishes},
	{"destroy_publishes", destroy_publishes},
	{"worker_died", worker_died},
};

int main(int argc, char **argv)
{
	return SCENES_RUN(scenes, argc, argv);
}
