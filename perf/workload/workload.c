/* SPDX-License-Identifier: MIT */
/* The table of workloads, with their sizes and repeats if the command line gives none. */
#include "workload/workload.h"

#include "workload/keyed.h"

#include <string.h>

#define PENDING_PAIR(label, what, function, live)                                                  \
	{                                                                                          \
		.name = (label), .summary = (what), .run = (function), .parameter = (live),        \
		.ops = 2000000, .repeat = 5, .beside_clock = true, .loop_able = true,              \
	}

#define PENDING(size, live, words)                                                                 \
	PENDING_PAIR("pending-" size, "cancel a random one and schedule one, " words " pending",   \
		     workload_pending, live),                                                      \
		PENDING_PAIR("pending-fresh-" size,                                                \
			     "schedule one and cancel that one, " words " pending",                \
			     workload_pending_fresh, live)

#define LOOP(size, live, words)                                                                    \
	{                                                                                          \
		.name = "loop-" size,                                                              \
		.summary = "a loop's own: schedule, cancel at once, " words " pending",            \
		.run = workload_loop, .kind = WORKLOAD_KIND_LOOP, .parameter = (live),             \
		.ops = 5000000, .repeat = 5, .loop_able = true,                                    \
	}

#define DATE(name_end, what, work)                                                                 \
	{                                                                                          \
		.name = "date-" name_end, .summary = (what), .run = workload_date,                 \
		.parameter = (work), .ops = 1000000, .repeat = 5, .in_turns = true,                \
	}

#define BATCH(label, what, bits)                                                                   \
	{                                                                                          \
		.name = (label), .summary = (what), .run = workload_batch, .parameter = (bits),    \
		.ops = 5242880, .repeat = 5, .in_turns = true,                                     \
	}

#define BATCHES(size, number)                                                                      \
	BATCH("batch-" size, "schedule " size " for 30 s by one call, cancel them by one",         \
	      number),                                                                             \
		BATCH("batch-scope-" size, "schedule " size " for 30 s into a scope, end it",      \
		      (number) | WORKLOAD_BATCH_SCOPE),                                            \
		BATCH("batch-single-" size, "the same by single calls",                            \
		      (number) | WORKLOAD_BATCH_SINGLE),                                           \
		BATCH("batch-live-" size,                                                          \
		      "1 M live: cancel the oldest " size ", schedule as many",                    \
		      (number) | WORKLOAD_BATCH_LIVE),                                             \
		BATCH("batch-live-single-" size, "the same by single calls",                       \
		      (number) | WORKLOAD_BATCH_LIVE | WORKLOAD_BATCH_SINGLE)

#define KEYED(label, words, work)                                                                  \
	{                                                                                          \
		.name = "keyed-" label,                                                            \
		.summary = "1 M keys: " words " a random one",                                     \
		.run = workload_keyed,                                                             \
		.parameter = (work),                                                               \
		.ops = 1000000,                                                                    \
		.repeat = 5,                                                                       \
	},                                                                                         \
	{                                                                                          \
		.name = "keyed-bare-" label, .summary = "the same with the hash table alone",      \
		.run = workload_keyed_bare, .parameter = (work), .ops = 1000000, .repeat = 5,      \
	}

#define GROUP(engines, number)                                                                     \
	{                                                                                          \
		.name = "group-" engines,                                                          \
		.summary = "schedule for 1-50 ms through a group, engines: " engines ", all fire", \
		.run = workload_group, .parameter = (number), .ops = 4000000, .producers = 4,      \
		.in_turns = true, .repeat = 5,                                                     \
	}

#define THREADS(label, number, percent)                                                            \
	{                                                                                          \
		.name = "threads-" label,                                                          \
		.summary = label " threads, 100 pending each: cancel the oldest, schedule one",    \
		.run = workload_threads, .parameter = (percent), .ops = 10000000,                  \
		.producers = (number), .in_turns = true, .repeat = 3,                              \
	}

const struct workload workloads[] = {
	{
		.name = "schedule-cancel",
		.summary = "schedule for 30 s, cancel at once",
		.run = workload_schedule_cancel,
		.kind = WORKLOAD_KIND_SCHEDULE_CANCEL,
		.loop_able = true,
		.ops = 10000000,
		.repeat = 5,
		.beside_clock = true,
	},
	{
		.name = "live-ring",
		.summary = "1 M live: cancel the oldest, schedule a new one for 30-60 s",
		.run = workload_live_ring,
		.kind = WORKLOAD_KIND_LIVE_RING,
		.loop_able = true,
		.parameter = 1000000,
		.ops = 5000000,
		.repeat = 5,
		.beside_clock = true,
	},
	{
		.name = "fire",
		.summary = "schedule for 1-1000 ms as fast as possible, all fire",
		.run = workload_fire,
		.kind = WORKLOAD_KIND_FIRE,
		.ops = 5000000,
		.repeat = 5,
		.beside_clock = true,
	},
	{
		.name = "light",
		.summary = "1,000 a second for 1-50 ms, all fire: lateness",
		.run = workload_light,
		.kind = WORKLOAD_KIND_LIGHT,
		.ops = 3000,
		.repeat = 1,
	},
	{
		.name = "idle",
		.summary = "one for 60 s: wake-ups and CPU during 3 s",
		.run = workload_idle,
		.ops = 1,
		.repeat = 1,
		.fixed_size = true,
	},
	{
		.name = "crowded",
		.summary = "light, while a million in one far slot move nearer: lateness",
		.run = workload_light,
		.parameter = 1000000,
		.ops = 9000,
		.repeat = 1,
		.tick_ns = 500000,
	},
	{
		.name = "held",
		.summary = "10 M for 600-3600 s: wake-ups and CPU during the first minute",
		.run = workload_idle,
		.parameter = 10000000,
		.ops = 1,
		.repeat = 1,
		.fixed_size = true,
	},
	{
		.name = "reschedule-later",
		.summary = "1,000 pending: push one out to 60 s from now",
		.run = workload_reschedule,
		.loop_able = true,
		.ops = 10000000,
		.repeat = 5,
		.beside_clock = true,
	},
	{
		.name = "reschedule-earlier",
		.summary = "1,000 pending: give one an earlier deadline",
		.run = workload_reschedule,
		.loop_able = true,
		.parameter = 1,
		.ops = 5000000,
		.repeat = 5,
		.beside_clock = true,
	},
	{
		.name = "periodic",
		.summary = "1 M chains of 1 s: CPU per run during 2 s",
		.run = workload_periodic,
		.ops = 1000000,
		.repeat = 3,
	},
	{
		.name = "periodic-skip",
		.summary = "the same, missed runs are skipped",
		.run = workload_periodic,
		.parameter = WORKLOAD_PERIODIC_SKIP,
		.ops = 1000000,
		.repeat = 3,
	},
	{
		.name = "periodic-delay",
		.summary = "the same with a fixed delay",
		.run = workload_periodic,
		.parameter = WORKLOAD_PERIODIC_DELAY,
		.ops = 1000000,
		.repeat = 3,
	},
	DATE("at", "schedule for 1-2 h by a deadline, until it is in the wheel", WORKLOAD_DATE_AT),
	DATE("wall", "the same by a date", WORKLOAD_DATE_WALL),
	DATE("step", "1 M dates, the wall clock is set: file one anew", WORKLOAD_DATE_STEP),
	BATCHES("8", 8),
	BATCHES("64", 64),
	BATCHES("1024", 1024),
	KEYED("replace", "schedule or replace", KEYED_REPLACE),
	KEYED("replace-any", "schedule or replace (earlier, too)", KEYED_REPLACE_ANY),
	KEYED("cancel", "cancel", KEYED_CANCEL),
	KEYED("get", "look up", KEYED_GET),
	GROUP("1", 1),
	GROUP("2", 2),
	GROUP("4", 4),
	THREADS("1", 1, 0),
	THREADS("8", 8, 0),
	THREADS("63", 63, 0),
	THREADS("200", 200, 0),
	THREADS("1000", 1000, 0),
	THREADS("200-fire", 200, 10),
	PENDING("1k", 1000, "1 k"),
	PENDING("10k", 10000, "10 k"),
	PENDING("100k", 100000, "100 k"),
	PENDING("1m", 1000000, "1 M"),
	PENDING("10m", 10000000, "10 M"),
	LOOP("1k", 1000, "1 k"),
	LOOP("10k", 10000, "10 k"),
	LOOP("100k", 100000, "100 k"),
	LOOP("1m", 1000000, "1 M"),
	LOOP("10m", 10000000, "10 M"),
	{.name = NULL},
};

bool workload_matches(const struct workload *workload, const char *operand)
{
	static const char *const families[] = {"batch", "date",    "group",      "keyed",
					       "loop",  "pending", "reschedule", "threads"};

	if (strcmp(workload->name, operand) == 0)
		return true;
	for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
		if (strcmp(families[i], operand) == 0)
			return strncmp(workload->name, operand, strlen(operand)) == 0;
	return false;
}
