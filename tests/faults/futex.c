/* SPDX-License-Identifier: MIT */
/*
 * Futex waits that do not end as they should: they return EINTR, they return without a wake-up, or
 * they return late. Also: late wake-ups.
 *
 * Seen to fail with these defects: twi_futex_wait treats EINTR as the end of its time, so flush and
 * cancel_wait return -ETIMEDOUT too early; stop and flush treat any return of their wait as the end
 * of the wait.
 */
#include "family.h"
#include "inject.h"

struct sleep_fault {
	const char *name;
	enum inject_kind kind;
	enum inject_wait wait;
	unsigned every;
	int64_t delay_ns;
	unsigned repeats;
};

static const struct sleep_fault *current;

static void arm(void *fault)
{
	(void)fault;
	inject_wait = current->wait;
	inject_every = current->every;
	inject_delay_ns = current->delay_ns;
	inject_all(current->kind);
}

static void sleep_fault_run(struct report *report, const struct sleep_fault *fault)
{
	struct tour_plan plan = {
		.name = fault->name,
		.arm = arm,
		.injected = inject_hits,
		.context = &inject_fault[fault->kind],
		.repeats = fault->repeats * (report->exhaustive ? 20 : 1),
	};

	current = fault;
	report_tour(report, &plan);
}

void family_futex(struct report *report)
{
	static const struct sleep_fault faults[] = {
		{"futex EINTR, each wait", INJECT_FUTEX_WAIT, WAIT_EINTR, 1, 0, 2},
		{"futex EINTR, every third wait", INJECT_FUTEX_WAIT, WAIT_EINTR, 3, 0, 10},
		{"futex spurious wake, each wait", INJECT_FUTEX_WAIT, WAIT_SPURIOUS, 1, 0, 2},
		{"futex spurious wake, every third", INJECT_FUTEX_WAIT, WAIT_SPURIOUS, 3, 0, 10},
		{"futex wait 3 ms late", INJECT_FUTEX_WAIT, WAIT_LATE, 1, 3000000, 5},
		{"futex wait 30 ms late, every 20th", INJECT_FUTEX_WAIT, WAIT_LATE, 20, 30000000,
		 5},
		{"futex wake 3 ms late", INJECT_FUTEX_WAKE, WAIT_LATE, 1, 3000000, 5},
	};
	size_t number;

	if (!inject_possible()) {
		report_left_out(report, "futex", INJECT_IMPOSSIBLE);
		return;
	}
	for (number = 0; number < sizeof faults / sizeof faults[0]; number++)
		sleep_fault_run(report, &faults[number]);
}
