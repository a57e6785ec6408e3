/* SPDX-License-Identifier: MIT */
/*
 * Names of outcomes, states and ends. The switches have no default, so that the compiler warns if a
 * switch lacks a constant.
 */
#include <tickwheel/engine.h>
#include <tickwheel/error.h>
#include <tickwheel/keyed.h>
#include <tickwheel/name.h>
#include <tickwheel/retry.h>
#include <tickwheel/timeout.h>

static const char *other(int result)
{
	return result < 0 ? tw_strerror(result) : "unknown";
}

const char *tw_cancel_outcome_name(int outcome)
{
	switch ((enum tw_cancel_outcome)outcome) {
	case TW_CANCEL_DONE:
		return "done";
	case TW_CANCEL_CANCELLED:
		return "cancelled";
	case TW_CANCEL_EXPIRED:
		return "expired";
	case TW_CANCEL_RUNNING:
		return "running";
	case TW_CANCEL_STALE:
		return "stale";
	case TW_CANCEL_STOPPED:
		return "stopped";
	}
	return other(outcome);
}

const char *tw_reschedule_outcome_name(int outcome)
{
	switch ((enum tw_reschedule_outcome)outcome) {
	case TW_RESCHEDULE_DONE:
		return "done";
	case TW_RESCHEDULE_CANCELLED:
		return "cancelled";
	case TW_RESCHEDULE_EXPIRED:
		return "expired";
	case TW_RESCHEDULE_RUNNING:
		return "running";
	}
	return other(outcome);
}

const char *tw_end_name(int end)
{
	switch ((enum tw_end)end) {
	case TW_END_EXPIRED:
		return "expired";
	case TW_END_CANCELLED:
		return "cancelled";
	case TW_END_UNEXPIRED:
		return "unexpired";
	case TW_END_DROPPED:
		return "dropped";
	}
	return other(end);
}

const char *tw_state_name(int state)
{
	switch ((enum tw_state)state) {
	case TW_STATE_INIT:
		return "init";
	case TW_STATE_CANCELLED:
		return "cancelled";
	case TW_STATE_EXPIRED:
		return "expired";
	}
	return other(state);
}

const char *tw_engine_state_name(int state)
{
	switch ((enum tw_engine_state)state) {
	case TW_ENGINE_NEW:
		return "new";
	case TW_ENGINE_STARTING:
		return "starting";
	case TW_ENGINE_RUNNING:
		return "running";
	case TW_ENGINE_STALLED:
		return "stalled";
	case TW_ENGINE_FAILED:
		return "failed";
	case TW_ENGINE_STOPPING:
		return "stopping";
	case TW_ENGINE_STOPPED:
		return "stopped";
	}
	return other(state);
}

const char *tw_keyed_outcome_name(int outcome)
{
	switch ((enum tw_keyed_outcome)outcome) {
	case TW_KEYED_DONE:
		return "done";
	case TW_KEYED_ABSENT:
		return "absent";
	case TW_KEYED_PRESENT:
		return "present";
	case TW_KEYED_REPLACED:
		return "replaced";
	case TW_KEYED_RUNNING:
		return "running";
	}
	return other(outcome);
}

const char *tw_keyed_end_name(int end)
{
	switch ((enum tw_keyed_end)end) {
	case TW_KEYED_END_FIRED:
		return "fired";
	case TW_KEYED_END_CANCELLED:
		return "cancelled";
	case TW_KEYED_END_REPLACED:
		return "replaced";
	case TW_KEYED_END_DROPPED:
		return "dropped";
	case TW_KEYED_END_STOPPED:
		return "stopped";
	}
	return other(end);
}

const char *tw_retry_submit_outcome_name(int outcome)
{
	switch ((enum tw_retry_submit_outcome)outcome) {
	case TW_RETRY_SUBMIT_ACCEPTED:
		return "accepted";
	case TW_RETRY_SUBMIT_DROPPED:
		return "dropped";
	}
	return other(outcome);
}

const char *tw_retry_cancel_outcome_name(int outcome)
{
	switch ((enum tw_retry_cancel_outcome)outcome) {
	case TW_RETRY_CANCEL_DONE:
		return "done";
	case TW_RETRY_CANCEL_RUNNING:
		return "running";
	case TW_RETRY_CANCEL_ENDED:
		return "ended";
	}
	return other(outcome);
}

const char *tw_retry_end_name(int end)
{
	switch ((enum tw_retry_end)end) {
	case TW_RETRY_END_DONE:
		return "done";
	case TW_RETRY_END_GIVEN_UP:
		return "given_up";
	case TW_RETRY_END_DROPPED:
		return "dropped";
	case TW_RETRY_END_CANCELLED:
		return "cancelled";
	case TW_RETRY_END_STOPPED:
		return "stopped";
	}
	return other(end);
}
