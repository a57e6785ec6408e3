/* SPDX-License-Identifier: MIT */
/*
 * The measurements of a set, and counters that other files do not test.
 *
 * Seen to fail with these defects: the time of an acknowledgement is measured from the commit
 * instead of the schedule; a refused timer is measured too; a failed commit is measured; unknown
 * outcomes are not counted; a clock that was set back counts as a long time; lateness is measured
 * only for late runs.
 */
#include "scene.h"

static struct tw_durable_stats stats(void)
{
	struct tw_durable_stats ret;

	check_int(tw_durable_stats_get(scene.set, &ret, sizeof ret), 0);
	return ret;
}

static const struct tw_histogram *measured(uint32_t measurement)
{
	static struct tw_histogram ret;

	ret.size = sizeof ret;
	check_int(tw_durable_histogram_get(scene.set, measurement, &ret), 0);
	return &ret;
}

Test(durable_stats, each_stored_timer_counts_from_its_schedule, .init = scene_make,
     .fini = scene_end)
{
	const struct tw_histogram *ack;

	scene_open();
	check_int(measured(TW_DURABLE_MEASUREMENT_ACK)->count, 0);
	for (int i = 0; i < 5; i++)
		(void)scene_schedule(&plain, 3600 * SECOND, "far");
	scene_settle();
	ack = measured(TW_DURABLE_MEASUREMENT_ACK);
	check_int(ack->count, 5);
	check_int(ack->max_ns, 0);
	/* For 3 s the I/O thread makes no step, while the wall clock advances too. */
	(void)scene_schedule(&plain, 3600 * SECOND, "far");
	check_int(tw_clock_set(scene.clock, tw_clock_now(scene.clock) + 3 * SECOND), 0);
	scene_settle();
	ack = measured(TW_DURABLE_MEASUREMENT_ACK);
	check_int(ack->count, 6);
	check_int(ack->max_ns, 3 * SECOND);
	check_int(ack->sum_ns, 3 * SECOND);
	check_int(measured(TW_DURABLE_MEASUREMENT_COMMIT)->count, stats().commits);
}

Test(durable_stats, a_clock_that_is_set_back_counts_as_no_time, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&plain, 3600 * SECOND, "far");
	scene.wall_step_ns -= 5 * SECOND;
	scene_settle();
	check_int(measured(TW_DURABLE_MEASUREMENT_ACK)->count, 1);
	check_int(measured(TW_DURABLE_MEASUREMENT_ACK)->max_ns, 0);
}

Test(durable_stats, each_run_counts_as_late_as_it_was, .init = scene_make, .fini = scene_end)
{
	const struct tw_histogram *lateness;

	scene_open();
	(void)scene_schedule(&plain, 2 * SECOND, "a");
	scene_pass(2 * SECOND + SECOND / 100);
	lateness = measured(TW_DURABLE_MEASUREMENT_LATENESS);
	check_int(lateness->count, 1);
	check_at_most(lateness->max_ns, SECOND / 100);
	(void)scene_schedule(&plain, 2 * SECOND, "b");
	scene_settle();
	check_int(tw_clock_set(scene.clock, tw_clock_now(scene.clock) + 9 * SECOND), 0);
	scene_settle();
	lateness = measured(TW_DURABLE_MEASUREMENT_LATENESS);
	check_int(lateness->count, stats().runs);
	check_int(lateness->max_ns, 7 * SECOND);
	check_int(lateness->max_ns, stats().lag_max_ns);
}

Test(durable_stats, a_refused_timer_has_no_acknowledgement_time, .init = scene_make,
     .fini = scene_end)
{
	scene_open();
	scene.disk->fault_at = scene.disk->commits + 1;
	scene.disk->fault_count = 1;
	scene.disk->fault = -ENOSPC;
	(void)scene_schedule(&plain, 3600 * SECOND, "a");
	scene_settle();
	check_int(measured(TW_DURABLE_MEASUREMENT_ACK)->count, 0);
}

Test(durable_stats, unknown_outcomes_are_counted, .init = scene_make, .fini = scene_end)
{
	scene_open();
	(void)scene_schedule(&plain, 3600 * SECOND, "a");
	(void)scene_schedule(&plain, 3600 * SECOND, "b");
	scene.disk->fault_at = scene.disk->commits + 1;
	scene.disk->fault_count = 1;
	scene.disk->fault = -EIO;
	scene_settle();
	check_int(stats().unknown, 2);
	check_int(stats().state, TW_DURABLE_STATE_FAILED);
	check_int(measured(TW_DURABLE_MEASUREMENT_ACK)->count, 0);
	check_int(measured(TW_DURABLE_MEASUREMENT_COMMIT)->count, 0);
	check_int(tw_durable_close(scene.set, 0), -EIO);
	scene.set = NULL;
}

Test(durable_stats, kinds_that_only_the_store_has_are_counted, .init = scene_make,
     .fini = scene_end)
{
	scene.elapsed = true;
	scene_open();
	check_int(stats().unknown_kinds, 0);
	scene_close();
	scene.elapsed = false;
	scene_open();
	check_int(stats().unknown_kinds, 1);
}

Test(durable_stats, wrong_arguments_are_rejected, .init = scene_make, .fini = scene_end)
{
	struct tw_histogram histogram = {.size = sizeof histogram, .count = 7};

	scene_open();
	check_int(tw_durable_histogram_get(NULL, 0, &histogram), -EINVAL);
	check_int(tw_durable_histogram_get(scene.set, 3, &histogram), -EINVAL);
	check_int(tw_durable_histogram_get(scene.set, 0, NULL), -EINVAL);
	histogram.size--;
	check_int(tw_durable_histogram_get(scene.set, 0, &histogram), -EINVAL);
	check_int(histogram.count, 7);
}

static void on_text(void *context, const char *text, size_t bytes)
{
	(void)text;
	*(size_t *)context += bytes;
}

Test(durable_stats, print_rejects_wrong_arguments_and_writes_nothing)
{
	static struct tw_histogram good = {.size = sizeof good}, bad = {.size = 1};
	struct tw_durable_stats of = {0};
	struct tw_durable_reading reading = {"set", &of, sizeof of, &good, &good, &good};
	size_t bytes = 0;

	check_int(tw_durable_stats_print(NULL, 1, TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	check_int(tw_durable_stats_print(&reading, 1, TW_PRINT_TEXT, NULL, NULL), -EINVAL);
	check_int(tw_durable_stats_print(&reading, 1, TW_PRINT_PERCENTILES, on_text, &bytes),
		  -EINVAL);
	reading.lateness = &bad;
	check_int(tw_durable_stats_print(&reading, 1, TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	reading.lateness = NULL;
	reading.stats_bytes--;
	check_int(tw_durable_stats_print(&reading, 1, TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	reading.stats_bytes++;
	reading.stats = NULL;
	check_int(tw_durable_stats_print(&reading, 1, TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	check_int(bytes, 0);
	reading.stats = &of;
	check_int(tw_durable_stats_print(&reading, 1, TW_PRINT_TEXT, on_text, &bytes), 0);
	check_true(bytes > 0);
}
