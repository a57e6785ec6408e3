/* SPDX-License-Identifier: MIT */
/* The harness with an external engine. Shell scripts stand for the external program. */
#include "check.h"
#include "peer/external.h"
#include "workload/workload.h"

#include <errno.h>
#include <math.h>
#include <string.h>

static struct sample sample;

#define WHOLE                                                                                      \
	"echo version $*; echo ns_per_op 12.5; echo cpu_ns_per_op 30; echo scheduled 3 6; "        \
	"echo expired 1 3; echo cancelled 2 3; "

static int outcome(const char *script)
{
	const char *const command[] = {"/bin/sh", "-c", script, "program", NULL};
	const struct peer peer = {.name = "played", .run = external_run, .command = command};
	const struct workload workload = {
		.name = "live-ring", .kind = WORKLOAD_KIND_LIVE_RING, .parameter = 1000};
	const struct options options = {.ops = 7, .producers = 2};
	const struct peer_task task = {.workload = &workload, .options = &options};

	return external_run(&peer, &task, &sample);
}

Test(external, figures_are_read)
{
	check_int(outcome(WHOLE "echo lateness 5000 3; echo lateness -1 2; echo end"), 0);
	check_true(sample.ns_per_op == 12.5);
	check_true(sample.cpu_ns_per_op == 30);
	check_int(sample.account.scheduled.count, 3);
	check_int(sample.account.scheduled.id_sum, 6);
	check_int(sample.account.expired.id_sum, 3);
	check_int(sample.account.cancelled.count, 2);
	check_int(sample.lateness_ns.count, 5);
	check_int(sample.lateness_ns.early_count, 2);
	check_int(sample.lateness_ns.max, 5000);
	check_true(sample.peak_rss_bytes > 0);
}

Test(external, program_gets_the_workload_as_arguments)
{
	check_int(outcome(WHOLE "echo end"), 0);
	check_int(strcmp(sample.version, "live-ring ops=7 producers=2 live=1000 seed=0"), 0);
}

Test(external, sums_may_have_64_bits)
{
	check_int(outcome(WHOLE "echo scheduled 1 18446744073709551615; echo end"), 0);
	check_true(sample.account.scheduled.id_sum == UINT64_MAX);
}

Test(external, half_a_story_is_an_error)
{
	static const char *const scripts[] = {
		WHOLE,
		WHOLE "echo end; exit 3",
		WHOLE "echo end; kill -9 $$",
		WHOLE "echo end; echo version 2",
		WHOLE "echo nonsense 1; echo end",
		WHOLE "echo nonsense; echo end",
		WHOLE "echo ns_per_op x; echo end",
		WHOLE "echo ns_per_op nan; echo end",
		WHOLE "echo ns_per_op -1; echo end",
		WHOLE "echo expired 1; echo end",
		WHOLE "echo expired 1 2 3; echo end",
		WHOLE "echo lateness 5; echo end",
		"echo version 1; echo ns_per_op 1; echo scheduled 1 1; echo end",
		"echo version 1; echo ns_per_op 1; echo cpu_ns_per_op 1; echo end",
		"echo ns_per_op 1; echo cpu_ns_per_op 1; echo scheduled 1 1; echo end",
		"echo end",
		"",
		"exit 1",
	};

	for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++)
		check_int(outcome(scripts[i]), -EIO);
}

/*
 * After its error, the program fills the pipe with output. So a harness that waits for the
 * program's end would hang.
 */
Test(external, an_error_does_not_wait_for_the_rest)
{
	check_int(outcome("echo nonsense 1; while :; do echo version 1; done"), -EIO);
}

Test(external, missing_program_is_an_error)
{
	const char *const command[] = {"/nonexistent/program", NULL};
	const struct peer peer = {.name = "absent", .run = external_run, .command = command};
	const struct workload workload = {.name = "fire", .kind = WORKLOAD_KIND_FIRE};
	const struct options options = {.ops = 1, .producers = 1};
	const struct peer_task task = {.workload = &workload, .options = &options};

	check_int(external_run(&peer, &task, &sample), -EIO);
}
