/* SPDX-License-Identifier: MIT */
/* The names of outcomes, states and ends, and the text that tw_strerror returns for them. */
#include "check.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <tickwheel.h>

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
	check_name(name, -ESTALE, tw_strerror(-ESTALE));
	check_name(name, INT_MIN, "unknown error");
}

#define check_names(name, ...)                                                                     \
	do {                                                                                       \
		static const char *const names[] = {__VA_ARGS__};                                  \
		int count = (int)(sizeof names / sizeof *names);                                   \
                                                                                                   \
		for (int i = 0; i < count; i++)                                                    \
			check_name(name, i, names[i]);                                             \
		check_others(name, count);                                                         \
	} while (0)

Test(names, outcomes_ends_and_states_of_a_timeout_have_names)
{
	check_names(tw_cancel_outcome_name, "done", "cancelled", "expired", "running", "stale",
		    "stopped");
	check_names(tw_reschedule_outcome_name, "done", "cancelled", "expired", "running");
	check_names(tw_end_name, "expired", "cancelled", "unexpired", "dropped");
	check_names(tw_state_name, "init", "cancelled", "expired");
}

Test(names, states_of_an_engine_have_names)
{
	check_names(tw_engine_state_name, "new", "starting", "running", "stalled", "failed",
		    "stopping", "stopped");
}

Test(names, outcomes_and_ends_of_keys_have_names)
{
	check_names(tw_keyed_outcome_name, "done", "absent", "present", "replaced", "running");
	check_names(tw_keyed_end_name, "fired", "cancelled", "replaced", "dropped", "stopped");
}

Test(names, outcomes_and_ends_of_retries_have_names)
{
	check_names(tw_retry_submit_outcome_name, "accepted", "dropped");
	check_names(tw_retry_cancel_outcome_name, "done", "running", "ended");
	check_names(tw_retry_end_name, "done", "given_up", "dropped", "cancelled", "stopped");
}

/*
 * The lists above must have the order of the header. So this test checks some names by their
 * constants.
 */
Test(names, names_follow_the_constants)
{
	check_name(tw_cancel_outcome_name, TW_CANCEL_RUNNING, "running");
	check_name(tw_cancel_outcome_name, TW_CANCEL_STOPPED, "stopped");
	check_name(tw_end_name, TW_END_UNEXPIRED, "unexpired");
	check_name(tw_engine_state_name, TW_ENGINE_STALLED, "stalled");
	check_name(tw_keyed_outcome_name, TW_KEYED_REPLACED, "replaced");
	check_name(tw_retry_end_name, TW_RETRY_END_GIVEN_UP, "given_up");
}

/*
 * Seen to fail with these defects: tw_strerror returns "unknown error" for outcomes; it returns
 * "not permitted" for 1, which is an outcome and also EPERM.
 */
Test(names, strerror_of_an_outcome_points_to_them)
{
	for (int i = 1; i <= TW_ENGINE_STOPPED; i++) {
		check_true(strstr(tw_strerror(i), "an outcome or a state") != NULL);
		check_true(strstr(tw_strerror(i), "name.h") != NULL);
	}
	check_true(strcmp(tw_strerror(-EPERM), tw_strerror(1)) != 0);
	check_true(strcmp(tw_strerror(E2BIG), tw_strerror(-E2BIG)) == 0);
}
