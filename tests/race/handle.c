/* SPDX-License-Identifier: MIT */
/*
 * The callback frees the object that holds its handle. usage: race_handle [operations] [seed]
 * [threads] [seconds]. Ends after this many operations or seconds (0: no bound).
 *
 * In each round threads use every call that writes a handle, a life or an error code for its
 * caller. These are tw_schedule and tw_schedule_at (on the quick path and the general one), and the
 * calls of batches, chains, groups, keyed timeouts and retries. Callbacks schedule too. Nearly all
 * timeouts are due at once, and the handle is in memory that the callback, the hook or the
 * hand-back frees. In every second round the engine has a limit that rejects some timeouts. In each
 * round the engine is stopped while the calls continue.
 *
 * Allowed outcomes: when a timeout ends, in any manner, its handle has been written. A rejected
 * call leaves the handle's memory as it was; the handle of a rejected item of a batch is zeros. All
 * allocated objects are freed. If a write comes after the free, AddressSanitizer reports it. If
 * nothing orders a write before the callback, ThreadSanitizer reports it.
 *
 * Seen to fail with this defect, planted in each of the following places: the handle is written
 * after the push. At some places the defect was found with and without delays at test points, at
 * others only with delays. The places: the general path of a schedule; a batch that uses the single
 * call; the calls of a group and of a chain, which use the general path; a new keyed entry, and one
 * that is replaced in place; a retry.
 */
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <tickwheel.h>

enum { TICK_NS = 10000, BATCH = 16, THREADS_MAX = 80, KEYS = 8, TASKS = 32, LIMIT = 200 };

#define NOT_WRITTEN UINT64_MAX

/*
 * An object that a thread allocates for one timeout, entry or task. The object is freed when the
 * timeout, entry or task ends.
 */
struct object {
	struct tw_handle handle;
	struct tw_retry_handle task;
	uint64_t life;
	uint64_t chance;
	bool once;
};

/* An object for a batch. The last of its items to end frees it. */
struct batch {
	struct tw_handle handle[BATCH];
	int error[BATCH];
	struct part {
		struct batch *batch;
	} part[BATCH];
	_Atomic int left;
};

static struct tw_engine *engine;
static struct tw_group *group;
static struct tw_keyed *table;
static struct tw_retry *queue;
static _Atomic bool round_over;
static _Atomic uint64_t operations, allocated, freed, rejected, ran, unexpired;

static void add(_Atomic uint64_t *count)
{
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

static struct object *object_new(void)
{
	struct object *object = malloc(sizeof *object);

	RACE_CHECK(object != NULL);
	*object = (struct object){
		.handle = {NULL, NOT_WRITTEN},
		.task = {NULL, NOT_WRITTEN, NOT_WRITTEN},
		.life = NOT_WRITTEN,
		.chance = race_chance(),
	};
	add(&allocated);
	add(&operations);
	return object;
}

static void object_free(struct object *object)
{
	add(&freed);
	free(object);
}

/* Checks that the rejected call has written nothing. The object still belongs to the caller. */
static void object_rejected(struct object *object)
{
	RACE_CHECK(object->handle.node == NULL && object->handle.generation == NOT_WRITTEN);
	RACE_CHECK(object->task.task == NULL && object->task.generation == NOT_WRITTEN);
	RACE_CHECK(object->life == NOT_WRITTEN);
	add(&rejected);
	object_free(object);
}

static void result_check(int result)
{
	RACE_CHECK(result == 0 || result == -EAGAIN || result == -ESHUTDOWN);
}

/* The calls for single timeouts. */

static void schedule_any(void);

static void handle_check(const struct object *object, struct tw_handle handle)
{
	RACE_CHECK(object->handle.node == handle.node &&
		   object->handle.generation == handle.generation);
}

static void on_run(struct tw_handle self, void *arg)
{
	struct object *object = arg;
	bool more = object->chance % 8 == 0;

	handle_check(object, self);
	add(&ran);
	object_free(object);
	if (more && !atomic_load(&round_over))
		schedule_any();
}

static const struct tw_kind kind = TW_KIND(on_run, NULL);
static const struct tw_kind inline_kind = TW_KIND_INLINE(on_run, NULL);

static const struct tw_kind *any_kind(const struct object *object)
{
	return object->chance >> 8 & 1 ? &kind : &inline_kind;
}

static void do_schedule(void)
{
	struct object *object = object_new();
	int64_t delay_ns = (int64_t)(object->chance >> 16 & 0xff) - 64;
	int result = tw_schedule(engine, delay_ns, any_kind(object), object, &object->handle);

	result_check(result);
	if (result != 0)
		object_rejected(object);
}

static void do_schedule_at(void)
{
	struct object *object = object_new();
	int result = tw_schedule_at(engine, 0, any_kind(object), object, &object->handle);

	result_check(result);
	if (result != 0)
		object_rejected(object);
}

static void do_group(void)
{
	struct object *object = object_new();
	int result;

	if (object->chance & 64)
		result = tw_group_schedule(group, 0, any_kind(object), object, &object->handle);
	else
		result = tw_group_schedule_at(group, 0, any_kind(object), object, &object->handle);
	result_check(result);
	if (result != 0)
		object_rejected(object);
}

static void schedule_any(void)
{
	if (race_chance() % 2 == 0)
		do_schedule();
	else
		do_schedule_at();
}

/* The calls for chains of a few runs. */

static void on_run_again(struct tw_handle self, void *arg)
{
	handle_check(arg, self);
	add(&ran);
}

static void on_end(void *arg, enum tw_end end)
{
	struct object *object = arg;

	RACE_CHECK(end == TW_END_EXPIRED || end == TW_END_UNEXPIRED);
	RACE_CHECK(object->handle.generation != NOT_WRITTEN);
	object_free(object);
}

static const struct tw_kind chain_kind = TW_KIND(on_run_again, on_end);

static void do_chain(void)
{
	struct object *object = object_new();
	struct tw_period period = TW_PERIOD_RATE(TICK_NS);
	int result;

	period.first_ns = 0;
	period.runs = 1 + (object->chance >> 20 & 1);
	if (object->chance & 64)
		result =
			tw_schedule_periodic(engine, &period, &chain_kind, object, &object->handle);
	else
		result = tw_group_schedule_periodic(group, &period, &chain_kind, object,
						    &object->handle);
	result_check(result);
	if (result != 0)
		object_rejected(object);
}

/* The calls for batches. */

static void parts_done(struct batch *batch, int count)
{
	if (atomic_fetch_sub(&batch->left, count) != count)
		return;
	add(&freed);
	free(batch);
}

static void part_done(struct part *part, struct tw_handle handle)
{
	struct batch *batch = part->batch;
	ptrdiff_t at = part - batch->part;

	RACE_CHECK(batch->handle[at].node == handle.node &&
		   batch->handle[at].generation == handle.generation);
	RACE_CHECK(batch->error[at] == 0);
	batch->handle[at] = (struct tw_handle){NULL, NOT_WRITTEN};
	parts_done(batch, 1);
}

static void on_part(struct tw_handle self, void *arg)
{
	add(&ran);
	part_done(arg, self);
}

static const struct tw_kind part_kind = TW_KIND(on_part, NULL);
static const struct tw_kind part_inline_kind = TW_KIND_INLINE(on_part, NULL);

static int batch_make(struct batch *batch, struct tw_item *items)
{
	int count = 1 + (int)(race_chance() % BATCH);
	bool mixed = race_chance() % 2 == 0;

	atomic_init(&batch->left, count);
	for (int i = 0; i < count; i++) {
		const struct tw_kind *its_kind =
			mixed && race_chance() % 2 == 0 ? &part_inline_kind : &part_kind;

		batch->error[i] = 1;
		batch->handle[i] = (struct tw_handle){NULL, NOT_WRITTEN};
		batch->part[i].batch = batch;
		items[i] = (struct tw_item){0, its_kind, &batch->part[i]};
	}
	return count;
}

/* Counts the items of a batch. If every item was accepted, the batch may already be freed. */
static void batch_account(struct batch *batch, int count, int done)
{
	int not_done = 0;

	RACE_CHECK(done >= 0 && done <= count);
	if (done == count)
		return;
	for (int i = 0; i < count; i++) {
		if (batch->error[i] == 0)
			continue;
		RACE_CHECK(batch->error[i] == -EAGAIN || batch->error[i] == -ESHUTDOWN);
		RACE_CHECK(batch->handle[i].node == NULL && batch->handle[i].generation == 0);
		add(&rejected);
		not_done++;
	}
	RACE_CHECK(not_done == count - done);
	parts_done(batch, not_done);
}

static void do_batch(void)
{
	struct batch *batch = malloc(sizeof *batch);
	struct tw_item items[BATCH];
	int count, done;

	RACE_CHECK(batch != NULL);
	add(&allocated);
	add(&operations);
	count = batch_make(batch, items);
	if (race_chance() % 2 == 0)
		done = tw_schedule_many(engine, items, (size_t)count, batch->handle, batch->error);
	else
		done = tw_schedule_many_at(engine, items, (size_t)count, batch->handle,
					   batch->error);
	batch_account(batch, count, done);
}

/* The calls for keyed timeouts. */

static int64_t on_key(const struct tw_keyed_self *self, void *arg)
{
	struct object *object = arg;

	RACE_CHECK(object->life == self->life);
	add(&ran);
	if (object->once)
		return TW_KEYED_END;
	object->once = true;
	return 1;
}

static void on_key_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	struct object *object = arg;

	(void)end;
	RACE_CHECK(object->life == self->life);
	object_free(object);
}

static const struct tw_keyed_kind key_kind = TW_KEYED_KIND(on_key, on_key_ended);

static void do_key(void)
{
	struct object *object = object_new();
	uint64_t chance = object->chance;
	uint64_t key = chance >> 32 & (KEYS - 1);
	int64_t delay_ns = chance & 1 ? 0 : TICK_NS;
	int result;

	object->once = (chance >> 1 & 3) != 0;
	if (chance & 64)
		result = tw_keyed_replace(table, &key, sizeof key, delay_ns, &key_kind, object,
					  &object->life);
	else
		result = tw_keyed_schedule(table, &key, sizeof key, delay_ns, &key_kind, object,
					   &object->life);
	RACE_CHECK(result >= 0 || result == -EAGAIN || result == -ESHUTDOWN);
	if (result < 0 || result == TW_KEYED_PRESENT)
		object_rejected(object);
	else if (chance >> 40 & 1)
		(void)tw_keyed_cancel(table, &key, sizeof key, TW_KEYED_ANY);
}

/* The calls for retries. */

static int on_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct object *object = arg;

	RACE_CHECK(object->task.task == self.task && object->task.generation == self.generation);
	add(&ran);
	return attempt == 1 && object->chance & 1 ? TW_RETRY_AGAIN : TW_RETRY_DONE;
}

/*
 * Handles the end of a task. A new task that is dropped because the queue is full has a handle of
 * zeros.
 */
static void on_task_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	struct object *object = arg;

	(void)attempts;
	RACE_CHECK(object->task.generation != NOT_WRITTEN && object->task.attempt == 0);
	RACE_CHECK(object->task.task != NULL || end == TW_RETRY_END_DROPPED);
	object_free(object);
}

static const int64_t delays[] = {1, 1};
static const struct tw_retry_schedule delay_table = TW_RETRY_TABLE(delays);
static const struct tw_retry_kind task_kind =
	TW_RETRY_KIND(on_attempt, on_task_ended, &delay_table, 0);

static void do_retry(void)
{
	struct object *object = object_new();
	int result;

	if (object->chance & 64)
		result = tw_retry_submit(queue, 0, &task_kind, object, &object->task);
	else
		result = tw_retry_submit_failed(queue, &task_kind, object, &object->task);
	RACE_CHECK(result >= 0 || result == -EAGAIN || result == -ESHUTDOWN);
	if (result < 0)
		object_rejected(object);
}

static void *producer_main(void *argument)
{
	static void (*const calls[])(void) = {do_schedule, do_schedule_at, do_group, do_chain,
					      do_batch,    do_key,         do_retry};

	(void)argument;
	while (!atomic_load(&round_over)) {
		uint64_t chance = race_chance();

		calls[chance % (sizeof calls / sizeof *calls)]();
		if ((chance >> 32) % 32 == 0)
			(void)sched_yield();
	}
	return NULL;
}

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *its_kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)remaining_ns;
	/*
	 * Keyed timeouts and retries report their end through their own hooks, a chain through its
	 * finaliser.
	 */
	if (tw_keyed_owns(its_kind) || tw_retry_owns(its_kind))
		return;
	add(&unexpired);
	if (its_kind == &chain_kind) {
		handle_check(arg, handle);
	} else if (its_kind == &part_kind || its_kind == &part_inline_kind) {
		part_done(arg, handle);
	} else {
		handle_check(arg, handle);
		object_free(arg);
	}
}

static void layers_make(uint32_t policy)
{
	struct tw_retry_options retry_options;

	RACE_CHECK(tw_keyed_create(engine, NULL, &table) == 0);
	RACE_CHECK(tw_retry_options_init(&retry_options, sizeof retry_options) == 0);
	retry_options.pending_limit = TASKS;
	retry_options.policy = policy;
	RACE_CHECK(tw_retry_create(engine, &retry_options, &queue) == 0);
}

static void engines_make(uint64_t chance)
{
	struct tw_group_options group_options;
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = TICK_NS;
	options.slots = 16;
	options.check = TW_CHECK_FULL;
	options.pending_limit = chance & 1 ? LIMIT : 0;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_group_options_init(&group_options, sizeof group_options) == 0);
	group_options.engines = 2;
	group_options.engine = &options;
	RACE_CHECK(tw_group_create(&group_options, &group) == 0);
	layers_make((uint32_t)(chance >> 1) % 3);
}

static void engines_end(void)
{
	RACE_CHECK(tw_retry_destroy(queue) == 0);
	RACE_CHECK(tw_keyed_destroy(table) == 0);
	RACE_CHECK(tw_group_destroy(group) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

static uint64_t thread_count;

static void round_run(uint64_t *random)
{
	uint64_t until = atomic_load(&operations) + 1000 + race_random(random) % 20000;
	pthread_t thread[THREADS_MAX];

	atomic_store(&round_over, false);
	engines_make(race_random(random) >> 32);
	for (uint64_t i = 0; i < thread_count; i++)
		RACE_CHECK(pthread_create(&thread[i], NULL, producer_main, NULL) == 0);
	while (atomic_load(&operations) < until)
		(void)sched_yield();
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_group_stop(group, on_unexpired, NULL, TW_NEVER) == 0);
	atomic_store(&round_over, true);
	race_join(thread, thread_count);
	engines_end();
	RACE_CHECK(atomic_load(&allocated) == atomic_load(&freed));
}

static bool all_seen(void)
{
	return atomic_load(&ran) > 0 && atomic_load(&rejected) > 0;
}

int main(int argc, char **argv)
{
	uint64_t rounds;

	thread_count = race_argument(argc, argv, 3, 2);
	RACE_CHECK(thread_count >= 1 && thread_count <= THREADS_MAX);
	rounds = race_rounds(argc, argv, 4, &operations, round_run, all_seen);
	printf("operations %" PRIu64 ", rounds %" PRIu64 ", runs %" PRIu64 ", rejected %" PRIu64
	       ", handed back %" PRIu64 "; allocated %" PRIu64 ", freed %" PRIu64 "\n",
	       atomic_load(&operations), rounds, atomic_load(&ran), atomic_load(&rejected),
	       atomic_load(&unexpired), atomic_load(&allocated), atomic_load(&freed));
	RACE_CHECK(rounds < RACE_ROUNDS || all_seen());
	return 0;
}
