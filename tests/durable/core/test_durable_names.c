/* SPDX-License-Identifier: MIT */
/* The names of the outcomes and states of durable timers. */
#include "check.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <tickwheel.h>
#include <tickwheel/durable.h>

static void check_name(const char *(*name)(int), int number, const char *expected)
{
	cr_assert(strcmp(name(number), expected) == 0, "%d is '%s' instead of '%s'", number,
		  name(number), expected);
}

/* Checks numbers after the last constant, and error codes. */
static void check_others(const char *(*name)(int), int count)
{
	check_name(name, count, "unknown");
	check_name(name, INT_MAX, "unknown");
	check_name(name, -EINPROGRESS, tw_strerror(-EINPROGRESS));
	check_name(name, INT_MIN, "unknown error");
}

Test(durable_names, outcomes_have_names)
{
	check_name(tw_durable_outcome_name, TW_DURABLE_DONE, "done");
	check_name(tw_durable_outcome_name, TW_DURABLE_ABSORBED, "absorbed");
	check_name(tw_durable_outcome_name, TW_DURABLE_PRESENT, "present");
	check_name(tw_durable_outcome_name, TW_DURABLE_RUNNING, "running");
	check_name(tw_durable_outcome_name, TW_DURABLE_ATTEMPTED, "attempted");
	check_name(tw_durable_outcome_name, TW_DURABLE_ABSENT, "absent");
	check_name(tw_durable_outcome_name, TW_DURABLE_UNKNOWN, "unknown");
	check_others(tw_durable_outcome_name, TW_DURABLE_UNKNOWN + 1);
}

Test(durable_names, states_have_names)
{
	check_name(tw_durable_state_name, TW_DURABLE_STATE_OPEN, "open");
	check_name(tw_durable_state_name, TW_DURABLE_STATE_FAILED, "failed");
	check_name(tw_durable_state_name, TW_DURABLE_STATE_CLOCK_STEPPED, "clock_stepped");
	check_name(tw_durable_state_name, TW_DURABLE_STATE_FULL, "full");
	check_name(tw_durable_state_name, TW_DURABLE_STATE_SLOW, "slow");
	check_name(tw_durable_state_name, TW_DURABLE_STATE_CUT, "cut");
	check_others(tw_durable_state_name, TW_DURABLE_STATE_CUT + 1);
}
