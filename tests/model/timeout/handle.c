/* SPDX-License-Identifier: MIT */
/*
 * A call that schedules writes its results before the callback can run: the handle, the life of a
 * keyed timeout, or the error code of a batch's item. It writes nothing there afterwards. If the
 * call fails, the old values stay there.
 *
 * The callback checks this: it reads the object that holds the results, and then clears the object,
 * as a free would. The object is ordinary memory. So a handle that is written too late is a race,
 * or a wrong value.
 *
 * Seen to fail:
 * - An earlier library wrote the handle after the push. With it, all harnesses failed except
 *   handle_quick and those of batches; of the latter, handle_batch_single did fail.
 * - handle_quick and the harnesses of batches failed when the write was moved after the push in the
 *   present library.
 * - handle_keyed_stop and handle_retry_stop failed without the step that restores the old value.
 */
#include "group/group.h"
#include "keyed/reclaim.h"
#include "world.h"

#include <errno.h>
#include <string.h>

enum { FEW = 2, MANY = TWI_RING_ENTRIES + 2 };

/* The object that belongs to a timeout, an entry, or a task. Calls write their results into it. */
struct object {
	struct tw_handle handle;
	struct tw_retry_handle task;
	uint64_t life;
	int error;
	unsigned ran;
	unsigned ended;
};

static struct object objects[MANY], filler;
static int told[MODEL_FIBERS];

static void on_run(struct tw_handle self, void *arg)
{
	struct object *object = arg;

	MODEL_CHECK(object->handle.node == self.node &&
		    object->handle.generation == self.generation);
	object->handle = (struct tw_handle){0};
	object->ran++;
}

static const struct tw_kind kind = TW_KIND(on_run, NULL);
/* A kind that runs inline. For such a kind, a batch uses the call for single timeouts. */
static const struct tw_kind inline_kind = TW_KIND_INLINE(on_run, NULL);
static const struct tw_period once = {
	.size = sizeof once, .period_ns = WORLD_TICK_NS, .runs = 1, .seed = 1};

static void open_world(uint64_t limit)
{
	struct tw_options options = world_options();

	options.pending_limit = limit;
	world_open(&options);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
}

static void open_free(void)
{
	open_world(0);
}

/*
 * Opens an engine with a limit of pending timeouts, because producers then do not use the quick
 * path.
 */
static void open_limited(void)
{
	open_world(MANY);
}

static void schedule(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &kind, objects,
				   &objects[0].handle) == 0);
}

/*
 * Moves the clock first, then makes turns. If the schedule reads the clock after that, its timeout
 * is due after these turns.
 */
static void turn_later(void)
{
	world_time_goes_on();
	world_turn();
	world_turn();
}

static void turn_twice(void)
{
	world_turn();
	world_turn();
}

static void time_ends(void)
{
	MODEL_CHECK(tw_clock_set(world.clock, WORLD_NOW_NS + 10 * WORLD_TICK_NS) == 0);
	turn_twice();
}

static void ran_once(const struct object *object, int count)
{
	for (int i = 0; i < count; i++) {
		MODEL_CHECK(object[i].ran == 1 && object[i].error == 0);
		MODEL_CHECK(object[i].handle.node == NULL && object[i].handle.generation == 0);
	}
}

static void one_ran(void)
{
	time_ends();
	ran_once(objects, 1);
	world_close();
}

MODEL_HARNESS(handle_push, .proves = "schedule writes the handle before it pushes the timeout",
	      .setup = open_limited, .thread = {schedule, turn_twice}, .finish = one_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

/*
 * In the next harnesses, an entry in the lane's ring already names the node. So the worker may find
 * the timeout through that entry, before the push.
 */

static void schedule_and_cancel(void)
{
	struct tw_handle handle;

	MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &kind, &filler, &handle) == 0);
	MODEL_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
}

static void open_stale(void)
{
	open_limited();
	model_as(0, schedule_and_cancel);
}

/* Opens an engine without a limit, so that the producer uses the quick path. */
static void open_quick(void)
{
	open_free();
	model_as(0, schedule_and_cancel);
}

MODEL_HARNESS(handle_quick, .proves = "the quick path writes the handle before it pushes",
	      .setup = open_quick, .thread = {schedule, turn_twice}, .finish = one_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(handle_stale, .proves = "a stale entry finds the handle already written",
	      .setup = open_stale, .thread = {schedule, turn_twice}, .finish = one_ran,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

/* In the next harness, a lane without a ring pushes to its link queue. */

static void share_lane(void)
{
	twi_thread()->lane = TWI_LANE_SHARED;
	twi_thread()->presence = NULL;
}

static void open_linked(void)
{
	open_free();
	model_as(0, share_lane);
}

MODEL_HARNESS(handle_linked, .proves = "a push to the link queue comes after the handle's write",
	      .setup = open_linked, .thread = {schedule, turn_twice}, .finish = one_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 500);

/* The next harnesses schedule batches. The call writes arrays; each callback reads its element. */

static struct tw_handle handles[MANY];
static int errors[MANY];

static void on_run_many(struct tw_handle self, void *arg)
{
	struct object *object = arg;
	ptrdiff_t at = object - objects;

	MODEL_CHECK(handles[at].node == self.node && handles[at].generation == self.generation);
	MODEL_CHECK(errors[at] == 0);
	handles[at] = (struct tw_handle){0};
	errors[at] = 1;
	object->ran++;
}

static const struct tw_kind many_kind = TW_KIND(on_run_many, NULL);
static const struct tw_kind many_inline_kind = TW_KIND_INLINE(on_run_many, NULL);

static void batch_of(const struct tw_kind *item_kind, int count)
{
	struct tw_item items[MANY];

	for (int i = 0; i < count; i++)
		items[i] = (struct tw_item){WORLD_DUE_NS, item_kind, &objects[i]};
	MODEL_CHECK(tw_schedule_many_at(world.engine, items, (size_t)count, handles, errors) ==
		    count);
}

static void batch_few(void)
{
	batch_of(&many_kind, FEW);
}

static void batch_single(void)
{
	batch_of(&many_inline_kind, FEW);
}

/* Schedules a batch. The ring has no room for its last items. */
static void batch_many(void)
{
	batch_of(&many_kind, MANY);
}

static void many_ran(int count)
{
	time_ends();
	ran_once(objects, count);
	for (int i = 0; i < count; i++)
		MODEL_CHECK(handles[i].node == NULL && errors[i] == 1);
	world_close();
}

static void few_ran(void)
{
	many_ran(FEW);
}

static void all_ran(void)
{
	many_ran(MANY);
}

/* Fills `errors` with another value than 0, so that only a code that was written counts. */
static void open_batch(void)
{
	open_free();
	memset(errors, 2, sizeof errors);
}

MODEL_HARNESS(handle_batch, .proves = "a batch writes each handle and code before the item can run",
	      .setup = open_batch, .thread = {batch_few, turn_twice}, .finish = few_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(handle_batch_chain, .proves = "a full ring: the batch writes before a run",
	      .setup = open_batch, .thread = {batch_many, turn_twice}, .finish = all_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 500);

/*
 * In the next harness, entries of the ring already name the nodes that the batch takes. So the
 * worker may run the items before the batch ends.
 */

static void schedule_and_cancel_few(void)
{
	struct tw_handle handle[FEW];

	for (int i = 0; i < FEW; i++)
		MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &kind, &filler, &handle[i]) ==
			    0);
	for (int i = 0; i < FEW; i++)
		MODEL_CHECK(tw_cancel(handle[i]) == TW_CANCEL_DONE);
}

static void open_batch_stale(void)
{
	open_batch();
	model_as(0, schedule_and_cancel_few);
}

MODEL_HARNESS(handle_batch_stale, .proves = "stale entries: the batch writes before a run",
	      .setup = open_batch_stale, .thread = {batch_few, turn_twice}, .finish = few_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(handle_batch_single, .proves = "items by the single call have their handles",
	      .setup = open_batch, .thread = {batch_single, turn_twice}, .finish = few_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 500);

/* The next harnesses schedule periodic timeouts, and timeouts of groups. */

static void schedule_chain(void)
{
	MODEL_CHECK(tw_schedule_periodic(world.engine, &once, &kind, objects, &objects[0].handle) ==
		    0);
}

MODEL_HARNESS(handle_chain, .proves = "a chain's handle is written before its first run",
	      .setup = open_free, .thread = {schedule_chain, turn_later}, .finish = one_ran,
	      .preemptions = 1, .weak = 0, .random_runs = 500);

static _Alignas(struct tw_group) char group_memory[sizeof(struct tw_group) + sizeof(void *)];

static struct tw_group *group(void)
{
	return (struct tw_group *)(void *)group_memory;
}

static void open_group(void)
{
	open_limited();
	group()->id = 1;
	group()->rule = TW_GROUP_BY_THREAD;
	group()->count = 1;
	group()->engine[0] = world.engine;
}

static void schedule_group(void)
{
	MODEL_CHECK(tw_group_schedule_at(group(), WORLD_DUE_NS, &inline_kind, objects,
					 &objects[0].handle) == 0);
}

static void schedule_group_chain(void)
{
	MODEL_CHECK(tw_group_schedule_periodic(group(), &once, &kind, objects,
					       &objects[0].handle) == 0);
}

MODEL_HARNESS(handle_group, .proves = "the handle of a group's timeout is written before it runs",
	      .setup = open_group, .thread = {schedule_group, turn_twice}, .finish = one_ran,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(handle_group_chain, .proves = "a group writes a chain's handle before its run",
	      .setup = open_group, .thread = {schedule_group_chain, turn_later}, .finish = one_ran,
	      .preemptions = 1, .weak = 0, .random_runs = 500);

/*
 * The next harnesses schedule keyed timeouts. The call must write the life before the callback and
 * before the hook.
 */

static struct tw_keyed *table;

static void life_seen(const struct tw_keyed_self *self, struct object *object)
{
	MODEL_CHECK(object->life == self->life);
}

static int64_t on_key(const struct tw_keyed_self *self, void *arg)
{
	struct object *object = arg;

	life_seen(self, object);
	object->ran++;
	return TW_KEYED_END;
}

static void on_key_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	struct object *object = arg;

	(void)end;
	life_seen(self, object);
	object->life = 0;
	object->ended++;
}

static const struct tw_keyed_kind key_kind = TW_KEYED_KIND(on_key, on_key_ended);

static void put(int at, int64_t delay_ns)
{
	told[model_self()] = tw_keyed_replace(table, "k", 1, delay_ns, &key_kind, &objects[at],
					      &objects[at].life);
}

static void open_table(void)
{
	struct tw_keyed_options options;

	world_open_layer();
	MODEL_CHECK(twi_reclaim_claim());
	MODEL_CHECK(tw_keyed_options_init(&options, sizeof options) == 0);
	options.seed = 1;
	options.reserve = 1;
	options.allocator = &world_pages;
	MODEL_CHECK(tw_keyed_create(world.engine, &options, &table) == 0);
}

/* Opens with a waiting entry under the key. */
static void open_key(void)
{
	open_table();
	put(0, TW_NEVER);
	world_turn();
}

/*
 * Opens with a due entry under the key. A replace that changes the entry in place may find that the
 * entry is due already.
 */
static void open_key_due(void)
{
	open_table();
	put(0, 0);
	world_turn();
	world_time_goes_on();
}

static void open_key_stop(void)
{
	open_key();
	world_life(TW_ENGINE_STARTING);
}

static void put_first(void)
{
	put(0, 0);
}

static void put_second(void)
{
	put(1, 0);
}

static void cancel_key(void)
{
	(void)tw_keyed_cancel(table, "k", 1, TW_KEYED_ANY);
}

static void table_closed(void)
{
	world_close();
	while (twi_reclaim_turn())
		;
	MODEL_CHECK(tw_keyed_destroy(table) == 0);
}

/*
 * Checks that each accepted entry has ended once. The hook has set `life` to 0. If it is not 0 now,
 * the call that schedules wrote the life after the hook.
 */
static void keys_ended(int count)
{
	time_ends();
	table_closed();
	for (int i = 0; i < count; i++)
		MODEL_CHECK(objects[i].ended == 1 && objects[i].life == 0);
}

static void key_ended(void)
{
	keys_ended(1);
}

static void both_keys_ended(void)
{
	keys_ended(2);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, NULL, NULL, TW_NEVER) == 0);
}

static void key_stopped(void)
{
	bool rejected = told[1] < 0;

	table_closed();
	MODEL_CHECK(!rejected || told[1] == -ESHUTDOWN);
	MODEL_CHECK(objects[0].ended == 1 && objects[0].life == 0);
	MODEL_CHECK(objects[1].ended == !rejected && objects[1].life == 0);
}

MODEL_HARNESS(handle_keyed, .proves = "an entry's life is written before it runs",
	      .setup = open_table, .thread = {put_first, turn_later}, .finish = key_ended,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(handle_keyed_cancel, .proves = "an entry's life is written before a cancel's hook",
	      .setup = open_table, .thread = {put_first, cancel_key}, .finish = key_ended,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(handle_keyed_replace, .proves = "a replace writes the life before the run",
	      .setup = open_key, .thread = {put_second, turn_later}, .finish = both_keys_ended,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(handle_keyed_late,
	      .proves = "a replace of a due entry writes the life before the run",
	      .setup = open_key_due, .thread = {put_second, turn_twice, cancel_key},
	      .finish = both_keys_ended, .preemptions = 1, .weak = 0, .random_runs = 500);
MODEL_HARNESS(handle_keyed_stop, .proves = "a replace that stop rejects leaves the life unchanged",
	      .setup = open_key_stop, .thread = {put_second, stop}, .worker = world_work,
	      .finish = key_stopped, .preemptions = 1, .weak = 0, .random_runs = 1000);

/*
 * The next harnesses submit retries. The call must write the handle before an attempt and before
 * the hook.
 */

static struct tw_retry *queue;

static void task_seen(struct object *object)
{
	MODEL_CHECK(object->task.task != NULL && object->task.generation != 0);
	MODEL_CHECK(object->task.attempt == 0);
}

static int on_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct object *object = arg;

	(void)attempt;
	MODEL_CHECK(object->task.task == self.task && object->task.generation == self.generation);
	object->ran++;
	return TW_RETRY_DONE;
}

static void on_task_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	struct object *object = arg;

	(void)end;
	(void)attempts;
	task_seen(object);
	object->task = (struct tw_retry_handle){0};
	object->ended++;
}

static const int64_t delays[] = {1};
static const struct tw_retry_schedule delay_table = TW_RETRY_TABLE(delays);
static const struct tw_retry_kind task_kind =
	TW_RETRY_KIND(on_attempt, on_task_ended, &delay_table, 0);

static void submit(int at)
{
	told[model_self()] = tw_retry_submit(queue, 1, &task_kind, &objects[at], &objects[at].task);
}

static void submit_first(void)
{
	submit(0);
}

static void submit_second(void)
{
	submit(1);
}

static void open_queue(void)
{
	struct tw_retry_options options;

	world_open_layer();
	MODEL_CHECK(tw_retry_options_init(&options, sizeof options) == 0);
	options.pending_limit = 1;
	options.policy = TW_RETRY_DROP_OLDEST;
	options.seed = 1;
	options.allocator = &world_pages;
	MODEL_CHECK(tw_retry_create(world.engine, &options, &queue) == 0);
}

static void open_queue_stop(void)
{
	open_queue();
	world_life(TW_ENGINE_STARTING);
}

static void queue_closed(void)
{
	world_close();
	MODEL_CHECK(tw_retry_destroy(queue) == 0);
	for (int i = 0; i < 2; i++)
		MODEL_CHECK(objects[i].task.task == NULL && objects[i].task.generation == 0);
}

static void task_ended(void)
{
	time_ends();
	queue_closed();
	MODEL_CHECK(objects[0].ended == 1 && objects[0].ran == 1);
}

/* Checks that each accepted task has ended once. One task may have been dropped for the other. */
static void both_tasks_ended(void)
{
	time_ends();
	queue_closed();
	for (int i = 0; i < 2; i++) {
		MODEL_CHECK(told[i + 1] == 0 || told[i + 1] == -EAGAIN);
		MODEL_CHECK(objects[i].ended == (told[i + 1] == 0));
	}
}

static void task_stopped(void)
{
	queue_closed();
	MODEL_CHECK(told[1] == 0 || told[1] == -ESHUTDOWN);
	MODEL_CHECK(objects[0].ended == (told[1] == 0));
}

MODEL_HARNESS(handle_retry, .proves = "a task's handle is written before its attempt",
	      .setup = open_queue, .thread = {submit_first, turn_later}, .finish = task_ended,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(handle_retry_drop, .proves = "a task's handle is written before the hook of a drop",
	      .setup = open_queue, .thread = {submit_first, submit_second},
	      .finish = both_tasks_ended, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(handle_retry_stop, .proves = "a submit that stop rejects leaves the handle unchanged",
	      .setup = open_queue_stop, .thread = {submit_first, stop}, .worker = world_work,
	      .finish = task_stopped, .preemptions = 1, .weak = 0, .random_runs = 1000);
