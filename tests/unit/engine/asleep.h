/* SPDX-License-Identifier: MIT */
/*
 * Waits until another thread sleeps in the kernel, because a call of the library makes that thread
 * wait, or until that thread has changed the engine's state. So a test need not guess how long the
 * thread takes. If a thread ends instead of sleeping, the wait ends at once.
 */
#ifndef TESTS_ASLEEP_H
#define TESTS_ASLEEP_H

#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's id of a thread; 0 until the thread has announced itself. */
typedef atomic_int asleep_thread;

/*
 * Stores the calling thread's id. The thread calls this right before the call in which it should
 * wait.
 */
static inline void asleep_announce(asleep_thread *thread)
{
	atomic_store(thread, (int)syscall(SYS_gettid));
}

/* Returns the letter of the thread's state (proc(5)), or 0 if it has ended. */
static inline char asleep_state(int number)
{
	char path[64], text[512];
	const char *name_end;
	size_t length;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", number);
	file = fopen(path, "r");
	if (!file)
		return 0;
	length = fread(text, 1, sizeof(text) - 1, file);
	(void)fclose(file);
	text[length] = '\0';
	name_end = strrchr(text, ')');
	return name_end && name_end[1] == ' ' ? name_end[2] : (char)0;
}

/*
 * Waits until the thread sleeps. Returns false if it has ended, or does not sleep within
 * PATIENCE_NS.
 */
static inline bool asleep_await(asleep_thread *thread)
{
	int64_t limit_ns = monotonic_ns() + PATIENCE_NS;

	if (!wait_until_at_least(thread, 1))
		return false;
	while (monotonic_ns() < limit_ns) {
		char state = asleep_state(atomic_load(thread));

		if (state == 'S' || state == 0)
			return state == 'S';
		sleep_ns(100 * NS_PER_US);
	}
	return false;
}

/* Waits until the engine is in that state. Returns false if this takes longer than PATIENCE_NS. */
static inline bool engine_state_await(struct tw_engine *engine, int state)
{
	int64_t limit_ns = monotonic_ns() + PATIENCE_NS;

	while (tw_engine_state(engine) != state) {
		if (monotonic_ns() > limit_ns)
			return false;
		sleep_ns(100 * NS_PER_US);
	}
	return true;
}

/*
 * Waits until the worker is parked. A worker that a call has woken, and that has not run yet, still
 * counts as parked.
 */
static inline bool asleep_park_await(struct tw_engine *engine)
{
	int64_t limit_ns = monotonic_ns() + PATIENCE_NS;

	while (monotonic_ns() < limit_ns) {
		struct tw_stats stats = stats_of(engine);

		if (stats.parks > stats.woken_by_deadline + stats.woken_by_producer +
					  stats.woken_by_call + stats.woken_otherwise)
			return true;
		sleep_ns(100 * NS_PER_US);
	}
	return false;
}

#endif
