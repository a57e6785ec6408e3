/* SPDX-License-Identifier: MIT */
/*
 * Names of outcomes and states. The switches have no default, so that the compiler warns if a
 * switch lacks a constant.
 */
#include <tickwheel/durable.h>
#include <tickwheel/durable_name.h>
#include <tickwheel/error.h>

static const char *other(int result)
{
	return result < 0 ? tw_strerror(result) : "unknown";
}

const char *tw_durable_outcome_name(int outcome)
{
	switch ((enum tw_durable_outcome)outcome) {
	case TW_DURABLE_DONE:
		return "done";
	case TW_DURABLE_ABSORBED:
		return "absorbed";
	case TW_DURABLE_PRESENT:
		return "present";
	case TW_DURABLE_RUNNING:
		return "running";
	case TW_DURABLE_ATTEMPTED:
		return "attempted";
	case TW_DURABLE_ABSENT:
		return "absent";
	case TW_DURABLE_UNKNOWN:
		return "unknown";
	}
	return other(outcome);
}

const char *tw_durable_state_name(int state)
{
	switch ((enum tw_durable_state)state) {
	case TW_DURABLE_STATE_OPEN:
		return "open";
	case TW_DURABLE_STATE_FAILED:
		return "failed";
	case TW_DURABLE_STATE_CLOCK_STEPPED:
		return "clock_stepped";
	case TW_DURABLE_STATE_FULL:
		return "full";
	case TW_DURABLE_STATE_SLOW:
		return "slow";
	case TW_DURABLE_STATE_CUT:
		return "cut";
	}
	return other(state);
}
