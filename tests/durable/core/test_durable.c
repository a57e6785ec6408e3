/* SPDX-License-Identifier: MIT */
/*
 * Schedules, runs, cancels and reschedules timers of one set in virtual time, and checks the
 * contents of the store afterwards.
 */
#include "scene.h"

static int cancel(struct tw_durable_id id, void *context)
{
	return tw_durable_cancel(scene.set, id, context);
}

static struct tw_durable_stats stats(void)
{
	struct tw_durable_stats ret;

	check_int(tw_durable_stats_get(scene.set, &ret, sizeof ret), 0);
	return ret;
}

Test(durable, runs_at_its_deadline_and_leaves_the_store, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_id id;

	scene_open();
	id = scene_schedule(&plain, 5 * SECOND, "a");
	scene_settle();
	check_int(scene_ack("a").outcome, TW_DURABLE_DONE);
	cr_assert(scene_ack("a").id.serial == id.serial);
	cr_assert(disk_find(scene.disk, id) != NULL);
	scene_pass(5 * SECOND - 1);
	check_int(scene.run_count, 0);
	scene_pass(SECOND);
	check_int(scene.run_count, 1);
	check_int(scene.runs[0].attempt, 1);
	check_int(scene.runs[0].first, 'a');
	check_int(scene.runs[0].due_ns, WALL_START + 5 * SECOND);
	check_int(scene.disk->rows, 0);
	check_int(stats().in_memory, 0);
	check_int(stats().staged_bytes, 0);
}

Test(durable, cancelled_before_the_commit_writes_nothing, .init = scene_make, .fini = scene_end)
{
	static int other;

	scene_open();
	for (int i = 0; i < 100; i++)
		check_int(cancel(scene_schedule(&plain, SECOND, "a"), &other), TW_DURABLE_ABSORBED);
	scene_settle();
	check_int(scene.disk->commits, 0);
	check_int(scene.disk->bytes, 0);
	check_int(scene.ack_count, 100);
	check_int(scene_ack("a").outcome, TW_DURABLE_ABSORBED);
	check_int(stats().absorbed, 100);
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 0);
}

Test(durable, due_within_the_window_runs_before_the_commit, .init = scene_make, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&plain, 0, "a");
	check_int(tw_clock_set(scene.clock, NS_PER_MS), 0);
	check_int(tw_engine_poll(scene.engine, 0), 1);
	check_int(scene.run_count, 1);
	scene_settle();
	check_int(scene_ack("a").outcome, TW_DURABLE_ABSORBED);
	check_int(scene.disk->commits, 0);
}

Test(durable, cancel_of_a_stored_one_is_acknowledged_when_it_is_gone, .init = scene_make,
     .fini = scene_end)
{
	static int mine;
	struct tw_durable_id id;

	scene_open();
	id = scene_schedule(&plain, 5 * SECOND, "a");
	scene_settle();
	check_int(cancel(id, &mine), TW_DURABLE_DONE);
	cr_assert(disk_find(scene.disk, id) != NULL);
	check_int(cancel(id, &mine), TW_DURABLE_ABSENT);
	scene_settle();
	check_int(scene_ack(&mine).outcome, TW_DURABLE_DONE);
	cr_assert(disk_find(scene.disk, id) == NULL);
	scene_pass(10 * SECOND);
	check_int(scene.run_count, 0);
	check_int(stats().in_memory, 0);
	check_int(cancel(id, &mine), -EINPROGRESS);
	scene_settle();
	check_int(scene_ack(&mine).outcome, TW_DURABLE_ABSENT);
}

Test(durable, far_ones_are_not_in_memory_and_come_back_in_time, .init = scene_make,
     .fini = scene_end)
{
	struct tw_durable_id id, gone;
	static int mine;

	scene_open();
	id = scene_schedule(&plain, 3600 * SECOND, "a");
	gone = scene_schedule(&plain, 3600 * SECOND, "b");
	scene_settle();
	check_int(stats().in_memory, 0);
	check_int(cancel(gone, &mine), -EINPROGRESS);
	scene_settle();
	check_int(scene_ack(&mine).outcome, TW_DURABLE_DONE);
	scene_pass(3600 * SECOND - 1);
	check_int(scene.run_count, 0);
	check_int(stats().in_memory, 1);
	scene_pass(SECOND);
	check_int(scene.run_count, 1);
	cr_assert(scene.runs[0].id.serial == id.serial);
}

Test(durable, again_waits_for_its_delays_then_is_a_dead_letter, .init = scene_make,
     .fini = scene_end)
{
	struct tw_durable_id id;

	scene_open();
	scene.result = TW_RETRY_AGAIN;
	id = scene_schedule(&retried, SECOND, "a");
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 1);
	check_int(disk_find(scene.disk, id)->attempt, 1);
	scene_pass(10 * SECOND);
	check_int(scene.run_count, 2);
	scene_pass(21 * SECOND);
	check_int(scene.run_count, 3);
	check_int(scene.runs[2].attempt, 3);
	check_int(scene.runs[2].due_ns - scene.runs[1].wall_ns, 20 * SECOND);
	check_int(disk_find(scene.disk, id)->dead, 1);
	check_int(stats().dead, 1);
	check_int(stats().in_memory, 0);
}

Test(durable, again_while_staged_is_stored_with_its_next_deadline, .init = scene_make,
     .fini = scene_end)
{
	struct tw_durable_id id;

	scene_open();
	scene.result = TW_RETRY_AGAIN;
	id = scene_schedule(&retried, 0, "a");
	check_int(tw_clock_set(scene.clock, NS_PER_MS), 0);
	check_int(tw_engine_poll(scene.engine, 0), 1);
	scene_settle();
	check_int(scene_ack("a").outcome, TW_DURABLE_DONE);
	check_int(disk_find(scene.disk, id)->attempt, 1);
	check_int(disk_find(scene.disk, id)->due_ns, scene_wall() + 10 * SECOND);
	scene.result = TW_RETRY_GIVE_UP;
	(void)scene_schedule(&retried, 0, "b");
	check_int(tw_clock_set(scene.clock, 3 * NS_PER_MS), 0);
	check_int(tw_engine_poll(scene.engine, 0), 1);
	scene_settle();
	check_int(disk_dead(scene.disk), 1);
	scene.result = TW_RETRY_DONE;
	scene_pass(11 * SECOND);
	check_int(scene.run_count, 3);
	check_int(scene.disk->rows, 1);
}

Test(durable, dead_letters_are_revived_and_dropped, .init = scene_make, .fini = scene_end)
{
	static int mine;
	struct tw_durable_id id, other;

	scene_open();
	scene.result = TW_RETRY_GIVE_UP;
	id = scene_schedule(&plain, SECOND, "a");
	other = scene_schedule(&plain, SECOND, "b");
	scene_pass(2 * SECOND);
	check_int(disk_dead(scene.disk), 2);
	scene.result = TW_RETRY_DONE;
	check_int(tw_durable_dead_revive(scene.set, id, scene_wall() + SECOND, &mine),
		  -EINPROGRESS);
	check_int(tw_durable_dead_drop(scene.set, other, NULL), -EINPROGRESS);
	scene_settle();
	check_int(scene_ack(&mine).outcome, TW_DURABLE_DONE);
	check_int(disk_dead(scene.disk), 0);
	scene_pass(2 * SECOND);
	check_int(scene.run_count, 3);
	check_int(scene.runs[2].attempt, 1);
	check_int(tw_durable_dead_drop(scene.set, id, &mine), -EINPROGRESS);
	scene_settle();
	check_int(scene_ack(&mine).outcome, TW_DURABLE_ABSENT);
	check_int(scene.disk->rows, 0);
}

Test(durable, moves_near_far_and_into_the_past, .init = scene_make, .fini = scene_end)
{
	static int mine;
	struct tw_durable_id id;

	scene_open();
	id = scene_schedule(&plain, 5 * SECOND, "a");
	/* The reschedule is in the same batch as the schedule of its timer. */
	check_int(tw_durable_reschedule(scene.set, id, scene_wall() + 6 * SECOND, &mine),
		  -EINPROGRESS);
	scene_pass(5500 * NS_PER_MS);
	check_int(scene_ack(&mine).outcome, TW_DURABLE_DONE);
	check_int(scene.run_count, 0);
	check_int(tw_durable_reschedule(scene.set, id, scene_wall() + 3600 * SECOND, &mine),
		  -EINPROGRESS);
	scene_settle();
	check_int(stats().in_memory, 0);
	check_int(tw_durable_reschedule(scene.set, id, scene_wall() - SECOND, &mine), -EINPROGRESS);
	scene_settle();
	scene_pass(2 * NS_PER_MS);
	check_int(scene.run_count, 1);
	check_int(tw_durable_reschedule(scene.set, id, scene_wall(), &mine), -EINPROGRESS);
	scene_settle();
	check_int(scene_ack(&mine).outcome, TW_DURABLE_ABSENT);
	check_int(scene.disk->rows, 0);
}

Test(durable, a_period_keeps_its_id_and_counts_its_attempts_anew, .init = scene_make,
     .fini = scene_end)
{
	struct tw_durable_id id;

	scene_open();
	scene.result = TW_DURABLE_NEXT;
	scene.next_ns = WALL_START + 60 * SECOND;
	id = scene_schedule(&plain, SECOND, "a");
	scene_pass(2 * SECOND);
	check_int(disk_find(scene.disk, id)->due_ns, WALL_START + 60 * SECOND);
	scene.next_ns = WALL_START + 4000 * SECOND;
	scene_pass(60 * SECOND);
	check_int(scene.run_count, 2);
	check_int(scene.runs[1].attempt, 1);
	cr_assert(scene.runs[1].id.serial == id.serial);
	check_int(stats().in_memory, 0);
}

Test(durable, pending_waits_for_its_completion, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_id id;

	scene_open();
	scene.result = TW_RETRY_PENDING;
	id = scene_schedule(&retried, SECOND, "a");
	check_int(tw_durable_complete(scene.set, id, 1, TW_RETRY_DONE), -ESTALE);
	scene_pass(100 * SECOND);
	check_int(scene.run_count, 1);
	check_int(disk_find(scene.disk, id)->started, 1);
	check_int(cancel(id, NULL), TW_DURABLE_RUNNING);
	check_int(tw_durable_complete(scene.set, id, 2, TW_RETRY_DONE), -ESTALE);
	check_int(tw_durable_complete(scene.set, id, 1, TW_RETRY_AGAIN), 0);
	check_int(tw_durable_complete(scene.set, id, 1, TW_RETRY_AGAIN), -ESTALE);
	scene_pass(11 * SECOND);
	check_int(scene.run_count, 2);
	check_int(tw_durable_complete(scene.set, id, 2, TW_RETRY_DONE), 0);
	scene_settle();
	check_int(scene.disk->rows, 0);
	check_int(tw_durable_complete(scene.set, id, 2, TW_RETRY_DONE), -ESTALE);
}

static int complete_early(struct scene *of, const struct tw_durable_self *self)
{
	of->error = tw_durable_complete(self->durable, self->id, self->attempt, TW_RETRY_DONE);
	of->states = tw_durable_cancel(self->durable, self->id, NULL);
	return TW_RETRY_PENDING;
}

Test(durable, completion_may_come_before_the_callback_returns, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	scene.within = complete_early;
	(void)scene_schedule(&plain, SECOND, "a");
	scene_pass(2 * SECOND);
	check_int(scene.error, 0);
	check_int(scene.states, TW_DURABLE_RUNNING);
	check_int(scene.disk->rows, 0);
}

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

Test(durable, a_key_has_one_timer, .init = scene_make, .fini = scene_end)
{
	static int first, second, third, cancelled;
	struct tw_durable_id id;

	scene_open();
	id = keyed("order-1", 5 * SECOND, &first);
	(void)keyed("order-1", 9 * SECOND, &second);
	/* The outcome of a cancel is unknown until the store has answered. */
	check_int(cancel(id, &cancelled), -EINPROGRESS);
	check_int(tw_durable_cancel_key(scene.set, "order-1", 7, &third), -EINPROGRESS);
	scene_settle();
	check_int(scene_ack(&first).outcome, TW_DURABLE_DONE);
	check_int(scene_ack(&second).outcome, TW_DURABLE_PRESENT);
	cr_assert(scene_ack(&second).id.serial == id.serial);
	check_int(scene_ack(&cancelled).outcome, TW_DURABLE_DONE);
	check_int(scene_ack(&third).outcome, TW_DURABLE_ABSENT);
	(void)keyed("order-1", SECOND, &third);
	scene_pass(2 * SECOND);
	check_int(scene_ack(&third).outcome, TW_DURABLE_DONE);
	check_int(scene.run_count, 1);
	id = keyed("order-1", 5 * SECOND, &first);
	scene_settle();
	check_int(tw_durable_cancel_key(scene.set, "order-1", 7, &cancelled), -EINPROGRESS);
	scene_settle();
	check_int(scene_ack(&cancelled).outcome, TW_DURABLE_DONE);
	cr_assert(scene_ack(&cancelled).id.serial == id.serial);
	scene_pass(10 * SECOND);
	check_int(scene.run_count, 1);
	check_int(scene.disk->rows, 0);
}

Test(durable, paused_kinds_wait_and_others_run, .init = scene_make, .fini = scene_end)
{
	scene_open();
	check_int(tw_durable_pause(scene.set, &plain), 0);
	(void)scene_schedule(&plain, SECOND, "a");
	(void)scene_schedule(&plain, 0, "b");
	(void)scene_schedule(&retried, SECOND, "c");
	check_int(cancel(scene_schedule(&plain, SECOND, "d"), NULL), TW_DURABLE_ABSORBED);
	scene_pass(60 * SECOND);
	check_int(scene.run_count, 1);
	check_int(scene.runs[0].first, 'c');
	check_int(tw_durable_resume(scene.set, &plain), 0);
	scene_pass(NS_PER_MS);
	check_int(scene.run_count, 3);
	check_int(scene.disk->rows, 0);
}

Test(durable, a_cancel_of_a_paused_one_is_certain, .init = scene_make, .fini = scene_end)
{
	static int mine;
	struct tw_durable_id id;

	scene_open();
	check_int(tw_durable_pause(scene.set, &plain), 0);
	id = scene_schedule(&plain, SECOND, "a");
	scene_pass(2 * SECOND);
	check_int(cancel(id, &mine), TW_DURABLE_DONE);
	scene_settle();
	check_int(tw_durable_resume(scene.set, &plain), 0);
	scene_pass(SECOND);
	check_int(scene.run_count, 0);
	check_int(stats().in_memory, 0);
}

Test(durable, no_more_run_at_once_than_the_bound, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_id ids[3];

	scene_open();
	scene.result = TW_RETRY_PENDING;
	ids[0] = scene_schedule(&single, SECOND, "a");
	ids[1] = scene_schedule(&single, 2 * SECOND, "b");
	ids[2] = scene_schedule(&single, 0, "c");
	scene_pass(5 * SECOND);
	check_int(scene.run_count, 1);
	check_int(scene.runs[0].first, 'c');
	check_int(tw_durable_complete(scene.set, ids[2], 1, TW_RETRY_DONE), 0);
	scene_pass(10 * NS_PER_MS);
	check_int(scene.run_count, 2);
	check_int(scene.runs[1].first, 'a');
	check_int(tw_durable_complete(scene.set, ids[0], 1, TW_RETRY_AGAIN), 0);
	scene_pass(10 * NS_PER_MS);
	check_int(scene.runs[2].first, 'b');
	check_int(tw_durable_complete(scene.set, ids[1], 1, TW_RETRY_DONE), 0);
	scene_pass(20 * SECOND);
	check_int(scene.run_count, 4);
	check_int(tw_durable_complete(scene.set, ids[0], 2, TW_RETRY_AGAIN), 0);
	scene_settle();
	/* attempts_max is 2, so the timer is now a dead letter. */
	check_int(disk_dead(scene.disk), 1);
}

Test(durable, at_most_once_starts_in_the_store_first, .init = scene_make, .fini = scene_end)
{
	struct tw_durable_id id;

	scene_open();
	id = scene_schedule(&once, 0, "a");
	check_int(tw_clock_set(scene.clock, 5 * NS_PER_MS), 0);
	(void)tw_engine_poll(scene.engine, 0);
	check_int(scene.run_count, 0);
	scene.result = TW_RETRY_PENDING;
	scene_pass(NS_PER_MS);
	check_int(scene.run_count, 1);
	check_int(scene.disk->starts, 1);
	check_int(disk_find(scene.disk, id)->started, 1);
	check_int(tw_durable_complete(scene.set, id, 1, TW_RETRY_DONE), 0);
	scene_settle();
	check_int(scene.disk->rows, 0);
}
