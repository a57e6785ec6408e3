/* SPDX-License-Identifier: MIT */
/*
 * For each alert of docs/monitoring/durable.rules.yml, brings a set of durable timers into the
 * alert's condition. Writes the set's metrics twice, for check_alerts.py: to FOLDER/CONDITION.0
 * before the set is in the condition, and to FOLDER/CONDITION.1 while it is. The environment
 * variable ALERTS_FOLDER names the folder.
 */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>

static void on_text(void *file, const char *text, size_t bytes)
{
	check_int(fwrite(text, 1, bytes, file), bytes);
}

static void metrics_write(const char *condition, int part)
{
	struct tw_durable_stats stats;
	const struct tw_durable_reading reading = {
		.set = "set", .stats = &stats, .stats_bytes = sizeof stats};
	char path[4096];
	FILE *file;

	check_true(getenv("ALERTS_FOLDER") != NULL);
	snprintf(path, sizeof path, "%s/%s.%d", getenv("ALERTS_FOLDER"), condition, part);
	file = fopen(path, "w");
	check_true(file != NULL);
	check_int(tw_durable_stats_get(scene.set, &stats, sizeof stats), 0);
	check_int(tw_durable_stats_print(&reading, 1, TW_PRINT_PROMETHEUS, on_text, file), 0);
	check_int(fclose(file), 0);
}

/* Opens a set in which one timer has run, and one waits. */
static void begin(const char *condition)
{
	scene_open();
	(void)scene_schedule(&plain, SECOND, "runs");
	(void)scene_schedule(&plain, 3600 * SECOND, "waits");
	scene_pass(2 * SECOND);
	metrics_write(condition, 0);
}

static void fail_next_commit(int error)
{
	scene.disk->fault_at = scene.disk->commits + 1;
	scene.disk->fault_count = 1;
	scene.disk->fault = error;
	(void)scene_schedule(&plain, 3600 * SECOND, "new");
	scene_settle();
}

Test(alerts, good, .init = scene_make, .fini = scene_end)
{
	begin("good");
	(void)scene_schedule(&plain, SECOND, "runs");
	scene_pass(2 * SECOND);
	metrics_write("good", 1);
}

Test(alerts, failed, .init = scene_make, .fini = scene_end)
{
	begin("failed");
	fail_next_commit(-EIO);
	metrics_write("failed", 1);
	check_int(tw_durable_close(scene.set, 0), -EIO);
	scene.set = NULL;
}

Test(alerts, full, .init = scene_make, .fini = scene_end)
{
	begin("full");
	fail_next_commit(-ENOSPC);
	metrics_write("full", 1);
}

Test(alerts, slow, .init = scene_make, .fini = scene_end)
{
	begin("slow");
	scene.disk->log_bytes = UINT64_MAX;
	scene_pass(2 * SECOND);
	metrics_write("slow", 1);
}

Test(alerts, clock_stepped, .init = scene_make, .fini = scene_end)
{
	begin("clock_stepped");
	scene.wall_step_ns += 2 * 86400 * SECOND;
	scene_pass(2 * SECOND);
	metrics_write("clock_stepped", 1);
}

/* The set's thread makes no more progress. */
Test(alerts, stuck, .init = scene_make, .fini = scene_end)
{
	begin("stuck");
	(void)scene_schedule(&plain, 3600 * SECOND, "staged");
	metrics_write("stuck", 1);
}

/* The set's thread made no progress for two minutes, then continues. */
Test(alerts, late, .init = scene_make, .fini = scene_end)
{
	begin("late");
	(void)scene_schedule(&plain, SECOND, "late");
	scene_settle();
	check_int(tw_clock_set(scene.clock, tw_clock_now(scene.clock) + 120 * SECOND), 0);
	scene_settle();
	metrics_write("late", 1);
}

Test(alerts, dead_letters, .init = scene_make, .fini = scene_end)
{
	begin("dead_letters");
	scene.result = TW_RETRY_GIVE_UP;
	for (int i = 0; i < 20; i++)
		(void)scene_schedule(&plain, SECOND, "bad");
	scene_pass(2 * SECOND);
	metrics_write("dead_letters", 1);
}

Test(alerts, unknown_kinds, .init = scene_make, .fini = scene_end)
{
	scene.elapsed = true;
	begin("unknown_kinds");
	scene_close();
	scene.elapsed = false;
	scene_open();
	metrics_write("unknown_kinds", 1);
}
