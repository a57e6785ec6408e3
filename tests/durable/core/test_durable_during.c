/* SPDX-License-Identifier: MIT */
/*
 * Tests several calls for one timer in one batch, and calls and runs that come during the commit of
 * that batch. The test makes each step itself. In the middle of a commit the store calls a function
 * of the test.
 *
 * Seen to fail: each test, on the code before its defect was fixed. The comments of the tests
 * describe what that code did.
 */
#include "scene.h"

#include "durable/run.h"
#include "durable/stage.h"

static struct tw_durable_id one;
static int outcome, mine, other, third;

static struct tw_durable_id keyed(const char *key, int64_t delay_ns, void *context)
{
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = &plain,
		.due_ns = delay_ns,
		.key = key,
		.key_bytes = (uint32_t)strlen(key),
		.context = context,
	};
	struct tw_durable_id id;

	check_int(tw_durable_schedule(scene.set, &spec, &id), 0);
	return id;
}

static void move_to(struct tw_durable_id id, int64_t delay_ns, void *context)
{
	check_int(tw_durable_reschedule(scene.set, id, scene_wall() + delay_ns, context),
		  -EINPROGRESS);
}

static uint64_t in_memory(void)
{
	struct tw_durable_stats stats;

	check_int(tw_durable_stats_get(scene.set, &stats, sizeof stats), 0);
	return stats.in_memory;
}

/*
 * Both reschedules must be done in one batch. Before the fix, the second reschedule waited for the
 * next batch, and a flush did not wait for that batch.
 */
Test(durable_during, two_reschedules_of_one_batch_are_done_in_it, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	one = scene_schedule(&plain, 5 * SECOND, "a");
	move_to(one, 6 * SECOND, &mine);
	move_to(one, 7 * SECOND, &other);
	(void)twi_io_step(scene.set);
	check_int(scene_ack(&mine).outcome, TW_DURABLE_DONE);
	check_int(scene_ack(&other).outcome, TW_DURABLE_DONE);
	check_int(disk_find(scene.disk, one)->due_ns, WALL_START + 7 * SECOND);
	scene_pass(7 * SECOND - 1);
	check_int(scene.run_count, 0);
	scene_pass(1);
	check_int(scene.run_count, 1);
	check_int(scene.disk->rows, 0);
}

/* Returns how many timeouts the set has scheduled in the engine so far. */
static uint64_t armed(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	check_int(tw_stats_get(scene.engine, &stats), 0);
	return stats.scheduled;
}

Test(durable_during, cancel_behind_a_reschedule_of_its_batch, .init = scene_make, .fini = scene_end)
{
	uint64_t before;

	scene_open();
	one = keyed("k", 5 * SECOND, &third);
	before = armed();
	move_to(one, 0, &mine);
	check_int(tw_durable_cancel(scene.set, one, &other), -EINPROGRESS);
	move_to(one, SECOND, &outcome);
	(void)twi_io_step(scene.set);
	/* No timeout may be armed in the engine: it could run before the DELETE is committed. */
	check_int(armed(), before);
	check_int(scene_ack(&third).outcome, TW_DURABLE_DONE);
	check_int(scene_ack(&mine).outcome, TW_DURABLE_DONE);
	check_int(scene_ack(&other).outcome, TW_DURABLE_DONE);
	check_int(scene_ack(&outcome).outcome, TW_DURABLE_ABSENT);
	scene_pass(10 * SECOND);
	check_int(scene.run_count, 0);
	check_int(scene.disk->rows, 0);
	check_int(in_memory(), 0);
}

/* Before the fix, the rejected timer ran, although another timer has the key. */
Test(durable_during, timer_whose_key_was_taken_does_not_run_when_moved, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	(void)keyed("k", 5 * SECOND, &mine);
	one = keyed("k", 6 * SECOND, &other);
	move_to(one, SECOND, &third);
	scene_settle();
	check_int(scene_ack(&other).outcome, TW_DURABLE_PRESENT);
	check_int(scene_ack(&third).outcome, TW_DURABLE_ABSENT);
	check_int(in_memory(), 1);
	scene_pass(10 * SECOND);
	check_int(scene.run_count, 1);
	check_int(scene.runs[0].due_ns, WALL_START + 5 * SECOND);
}

Test(durable_during, timer_without_space_does_not_run_when_moved, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	scene.disk->fault_at = scene.disk->commits + 1;
	scene.disk->fault_count = 1;
	scene.disk->fault = -ENOSPC;
	one = scene_schedule(&plain, 5 * SECOND, "a");
	move_to(one, 6 * SECOND, &mine);
	scene_settle();
	check_int(scene_ack("a").status, -ENOSPC);
	check_int(scene_ack(&mine).outcome, TW_DURABLE_ABSENT);
	scene_pass(10 * SECOND);
	check_int(scene.run_count, 0);
	check_int(in_memory(), 0);
}

Test(durable_during, moved_and_cancelled_in_the_batch_of_its_retry, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	scene.result = TW_RETRY_AGAIN;
	one = scene_schedule(&retried, SECOND, "a");
	scene_settle();
	check_int(tw_clock_set(scene.clock, SECOND), 0);
	check_int(tw_engine_poll(scene.engine, 0), 1);
	move_to(one, 3 * SECOND, &mine);
	(void)twi_io_step(scene.set);
	check_int(scene_ack(&mine).outcome, TW_DURABLE_DONE);
	check_int(disk_find(scene.disk, one)->due_ns, WALL_START + 4 * SECOND);
	check_int(disk_find(scene.disk, one)->attempt, 1);
	scene_pass(3 * SECOND);
	check_int(scene.run_count, 2);
}

static void run_it(void)
{
	scene.disk->during = NULL;
	check_int(tw_clock_set(scene.clock, 2 * NS_PER_MS), 0);
	check_int(tw_engine_poll(scene.engine, 0), 1);
}

/*
 * Before the fix, the start of a run that began during the commit was never stored. So after a
 * crash the timer ran again with the same attempt number.
 */
Test(durable_during, run_that_begins_during_the_commit_is_stored_as_started, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	scene.result = TW_RETRY_PENDING;
	one = scene_schedule(&plain, 0, "a");
	scene.disk->during = run_it;
	scene_settle();
	check_int(scene.run_count, 1);
	check_int(disk_find(scene.disk, one)->started, 1);
	check_int(disk_find(scene.disk, one)->attempt, 1);
	scene.result = TW_RETRY_DONE;
	scene_kill();
	scene_pass(SECOND);
	check_int(scene.run_count, 2);
	check_int(scene.runs[1].attempt, 2);
	check_int(scene.disk->rows, 0);
}

Test(durable_during, run_that_begins_and_ends_during_the_commit, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&plain, 0, "a");
	scene.disk->during = run_it;
	scene_settle();
	check_int(scene.run_count, 1);
	check_int(scene_ack("a").outcome, TW_DURABLE_DONE);
	check_int(scene.disk->rows, 0);
	check_int(in_memory(), 0);
}

static void cancel_it(void)
{
	scene.disk->during = NULL;
	outcome = tw_durable_cancel(scene.set, one, &mine);
}

Test(durable_during, cancel_during_the_commit_is_certain, .init = scene_make, .fini = scene_end)
{
	scene_open();
	one = scene_schedule(&plain, SECOND, "a");
	scene.disk->during = cancel_it;
	scene_settle();
	check_int(outcome, TW_DURABLE_DONE);
	check_int(scene_ack("a").outcome, TW_DURABLE_DONE);
	check_int(scene_ack(&mine).outcome, TW_DURABLE_DONE);
	scene_pass(5 * SECOND);
	check_int(scene.run_count, 0);
	check_int(scene.disk->rows, 0);
	check_int(in_memory(), 0);
}

static struct twi_durable_timer *held;

static void hold_it(void)
{
	scene.disk->during = NULL;
	held = twi_timer_find(scene.set, one);
	cr_assert(held != NULL && twi_durable_hold(&held->word));
}

/*
 * The test holds the timer, like a callback that finds its kind paused. Before the fix, the timer
 * ran later, although the store had no space for it and its caller had received -ENOSPC.
 */
Test(durable_during, timer_without_space_that_its_callback_held_does_not_run, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	scene.disk->fault_at = scene.disk->commits + 1;
	scene.disk->fault_count = 1;
	scene.disk->fault = -ENOSPC;
	one = scene_schedule(&plain, SECOND, "a");
	scene.disk->during = hold_it;
	(void)twi_io_step(scene.set);
	check_int(scene_ack("a").status, -ENOSPC);
	if (twi_durable_let_go(&held->word, TWI_DURABLE_WAITING, TWI_DURABLE_DUE, true))
		twi_stage(scene.set, &held->item, TWI_DURABLE_CALL_BYTES, false);
	scene_pass(5 * SECOND);
	check_int(scene.run_count, 0);
	check_int(in_memory(), 0);
}

/* A request that must wait for a callback keeps its place. No later request may overtake it. */
Test(durable_during, requests_behind_a_held_timer_keep_their_order, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	one = scene_schedule(&plain, 100 * SECOND, "a");
	scene_settle();
	hold_it();
	move_to(one, 200 * SECOND, &mine);
	move_to(one, 300 * SECOND, &other);
	(void)keyed("b", SECOND, NULL);
	for (int i = 0; i < 3; i++)
		(void)twi_io_step(scene.set);
	check_int(scene.ack_count, 1);
	move_to(one, 400 * SECOND, &third);
	check_int(twi_durable_let_go(&held->word, TWI_DURABLE_WAITING, 0, false), false);
	scene_settle();
	check_int(scene.ack_count, 5);
	check_int(scene_ack(&third).outcome, TW_DURABLE_DONE);
	check_int(disk_find(scene.disk, one)->due_ns, WALL_START + 400 * SECOND);
}

/*
 * Before the fix, the moved timer stayed in the list of its kind. A resume scheduled a timeout for
 * the timer although the timer's run had not completed, and the timer was freed before that timeout
 * expired.
 */
Test(durable_during, parked_timer_that_is_moved_leaves_its_list, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	scene.result = TW_RETRY_PENDING;
	check_int(tw_durable_pause(scene.set, &plain), 0);
	one = scene_schedule(&plain, SECOND, "a");
	scene_pass(2 * SECOND);
	move_to(one, SECOND, NULL);
	scene_settle();
	check_int(tw_clock_set(scene.clock, 3 * SECOND), 0);
	check_int(tw_durable_resume(scene.set, &plain), 0);
	check_int(tw_engine_poll(scene.engine, 0), 1);
	check_int(scene.run_count, 1);
	(void)twi_io_step(scene.set);
	check_int(tw_durable_complete(scene.set, one, 1, TW_RETRY_DONE), 0);
	(void)twi_io_step(scene.set);
	check_int(in_memory(), 0);
	check_int(tw_clock_set(scene.clock, 4 * SECOND), 0);
	check_int(tw_engine_poll(scene.engine, 0), 0);
}

/* Before the fix, the timer did not run until the next open. */
Test(durable_during, moved_timer_that_could_not_be_loaded_is_loaded_later, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	one = scene_schedule(&plain, 3600 * SECOND, "a");
	scene_settle();
	move_to(one, SECOND, &mine);
	/* The first find reads the timer's attempts; the second one fails. */
	scene.disk->find_fault_in = 2;
	scene.disk->find_fault = -ENOMEM;
	scene_settle();
	check_int(scene_ack(&mine).outcome, TW_DURABLE_DONE);
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 1);
}

Test(durable_during, reschedule_that_cannot_read_the_store_is_unknown, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	one = scene_schedule(&plain, 3600 * SECOND, "a");
	scene_settle();
	move_to(one, SECOND, &mine);
	scene.disk->find_fault_in = 1;
	scene.disk->find_fault = -EIO;
	scene_settle();
	check_int(scene_ack(&mine).outcome, TW_DURABLE_UNKNOWN);
	check_int(scene_ack(&mine).status, -EIO);
}

/*
 * Before the fix, the stored start counted as an attempt. The next open found no end of that
 * attempt, and made a dead letter of a timer that had never run.
 */
Test(durable_during, start_without_a_run_is_taken_back_by_a_close, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	one = scene_schedule(&once, SECOND, "a");
	scene_settle();
	check_int(tw_clock_set(scene.clock, SECOND), 0);
	check_int(tw_engine_poll(scene.engine, 0), 1);
	(void)twi_io_step(scene.set);
	check_int(disk_find(scene.disk, one)->started, 1);
	check_int(scene.run_count, 0);
	scene_close();
	check_int(disk_find(scene.disk, one)->started, 0);
	check_int(disk_find(scene.disk, one)->attempt, 0);
	scene_open();
	scene_pass(SECOND);
	check_int(scene.run_count, 1);
	check_int(scene.runs[0].attempt, 1);
	check_int(disk_dead(scene.disk), 0);
	check_int(scene.disk->rows, 0);
}

static int flush_while_closing(struct scene *of, const struct tw_durable_self *self)
{
	struct tw_durable_info info = {.size = sizeof info};

	twi_store_relaxed(&self->durable->closing, 1);
	of->error = tw_durable_flush(self->durable, 0);
	outcome = tw_durable_find(self->durable, self->id, &info, 0);
	twi_store_relaxed(&self->durable->closing, 0);
	return TW_RETRY_DONE;
}

/* Before the fix, a flush in a run returned -ESHUTDOWN or -EDEADLK, depending on the timing. */
Test(durable_during, flush_in_a_run_is_a_deadlock_also_during_a_close, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	scene.within = flush_while_closing;
	(void)scene_schedule(&plain, SECOND, "a");
	scene_pass(2 * SECOND);
	check_int(scene.error, -EDEADLK);
	check_int(outcome, -EDEADLK);
}

/* The time between the earliest deadline and now does not fit into 64 bits. */
Test(durable_during, deadlines_before_all_times, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.flags = TW_DURABLE_AT,
		.kind = &plain,
		.due_ns = INT64_MIN + 1,
	};

	scene_open();
	check_int(tw_durable_schedule(scene.set, &spec, &one), 0);
	scene_pass(SECOND);
	check_int(scene.run_count, 1);
	check_int(tw_durable_pause(scene.set, &plain), 0);
	check_int(tw_durable_schedule(scene.set, &spec, &one), 0);
	scene_settle();
	check_int(tw_durable_reschedule(scene.set, one, INT64_MIN, NULL), -EINPROGRESS);
	scene_settle();
	scene_close();
	scene.options.near_max = 1;
	scene_open();
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 2);
	check_int(scene.runs[1].due_ns, INT64_MIN);
}
