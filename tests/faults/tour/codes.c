/* SPDX-License-Identifier: MIT */
/* The table of every public call with its error codes. */
#include "codes.h"

#include <errno.h>

static const struct {
	int error;
	const char *name;
} codes[CODES] = {
	{-EINVAL, "EINVAL"},         {-ERANGE, "ERANGE"},       {-ENOMEM, "ENOMEM"},
	{-EAGAIN, "EAGAIN"},         {-ESHUTDOWN, "ESHUTDOWN"}, {-EBUSY, "EBUSY"},
	{-ETIMEDOUT, "ETIMEDOUT"},   {-ESTALE, "ESTALE"},       {-EPERM, "EPERM"},
	{-EDEADLK, "EDEADLK"},       {-ECHILD, "ECHILD"},       {-E2BIG, "E2BIG"},
	{-EOPNOTSUPP, "EOPNOTSUPP"},
};

#define MAKES_THREAD (CODE_ENOMEM | CODE_EPERM)
#define SCHEDULES                                                                                  \
	(CODE_EINVAL | CODE_ERANGE | CODE_EAGAIN | CODE_ESHUTDOWN | CODE_ECHILD | CODE_E2BIG |     \
	 MAKES_THREAD)
#define LOOPS (CODE_EINVAL | CODE_EBUSY | CODE_ECHILD)

/* clang-format off */
static const struct {
	const char *name;
	uint32_t codes;
} calls[CALLS] = {
	[CALL_OPTIONS_INIT] = {"tw_options_init", CODE_EINVAL | CODE_E2BIG},
	[CALL_CREATE] = {"tw_engine_create", CODE_EINVAL | CODE_ERANGE | CODE_ENOMEM | CODE_EBUSY | CODE_EDEADLK | CODE_E2BIG | CODE_EOPNOTSUPP},
	[CALL_START] = {"tw_engine_start", CODE_EINVAL | CODE_ESHUTDOWN | CODE_ECHILD | MAKES_THREAD},
	[CALL_STOP] = {"tw_engine_stop", CODE_EINVAL | CODE_ETIMEDOUT | CODE_EDEADLK | CODE_ECHILD},
	[CALL_DESTROY] = {"tw_engine_destroy", CODE_EBUSY | CODE_EDEADLK},
	[CALL_FLUSH] = {"tw_engine_flush", CODE_EINVAL | CODE_ESHUTDOWN | CODE_ETIMEDOUT | CODE_EDEADLK | CODE_ECHILD | MAKES_THREAD},
	[CALL_RUN_UNTIL] = {"tw_engine_run_until", CODE_EDEADLK | CODE_ESHUTDOWN | LOOPS | MAKES_THREAD},
	[CALL_DEFAULT_ENGINE] = {"tw_default_engine", 0},
	[CALL_DEFAULT_OPTIONS] = {"tw_default_options_set", CODE_EINVAL | CODE_ERANGE | CODE_ENOMEM | CODE_EBUSY | CODE_E2BIG},
	[CALL_NOW] = {"tw_engine_now", CODE_EINVAL},
	[CALL_PENDING] = {"tw_engine_pending", CODE_EINVAL | CODE_ECHILD},
	[CALL_STATE] = {"tw_engine_state", CODE_EINVAL | CODE_ECHILD},
	[CALL_STATS] = {"tw_stats_get", CODE_EINVAL | CODE_ECHILD},
	[CALL_DUMP] = {"tw_engine_dump", CODE_EINVAL | CODE_ESHUTDOWN | CODE_ETIMEDOUT | CODE_ECHILD},
	[CALL_HISTOGRAM_GET] = {"tw_histogram_get", CODE_EINVAL | CODE_ECHILD},
	[CALL_HISTOGRAM_RECORD] = {"tw_histogram_record", CODE_EINVAL},
	[CALL_HISTOGRAM_PERCENTILE] = {"tw_histogram_percentile", CODE_EINVAL | CODE_ERANGE},
	[CALL_HISTOGRAM_MERGE] = {"tw_histogram_merge", CODE_EINVAL},
	[CALL_HISTOGRAM_SUBTRACT] = {"tw_histogram_subtract", CODE_EINVAL | CODE_ERANGE},
	[CALL_HISTOGRAM_PRINT] = {"tw_histogram_print", CODE_EINVAL},
	[CALL_STATS_PRINT] = {"tw_stats_print", CODE_EINVAL},
	[CALL_WATCH] = {"tw_engine_watch", CODE_EINVAL | CODE_ECHILD},
	[CALL_DUE_RUN] = {"tw_due_run", CODE_EINVAL | CODE_ESTALE | CODE_ECHILD},
	[CALL_SCHEDULE] = {"tw_schedule", SCHEDULES},
	[CALL_SCHEDULE_AT] = {"tw_schedule_at", SCHEDULES},
	[CALL_SCHEDULE_MANY] = {"tw_schedule_many", SCHEDULES},
	[CALL_SCHEDULE_MANY_AT] = {"tw_schedule_many_at", SCHEDULES},
	[CALL_SCHEDULE_PERIODIC] = {"tw_schedule_periodic", SCHEDULES},
	[CALL_SCHEDULE_WALL] = {"tw_schedule_wall", SCHEDULES | CODE_EOPNOTSUPP},
	[CALL_PERIOD_NEXT] = {"tw_period_next", CODE_EINVAL | CODE_ERANGE | CODE_EPERM | CODE_ECHILD},
	[CALL_PERIOD_SET] = {"tw_period_set", CODE_EINVAL | CODE_ERANGE | CODE_EPERM | CODE_ECHILD},
	[CALL_RUN_GET] = {"tw_run_get", CODE_EINVAL | CODE_EPERM},
	[CALL_CANCEL] = {"tw_cancel", CODE_EINVAL | CODE_EPERM | CODE_ECHILD},
	[CALL_CANCEL_MANY] = {"tw_cancel_many", CODE_EINVAL | CODE_ERANGE | CODE_EPERM | CODE_ECHILD},
	[CALL_CANCEL_WAIT] = {"tw_cancel_wait", CODE_EINVAL | CODE_ETIMEDOUT | CODE_EPERM | CODE_ECHILD},
	[CALL_RESCHEDULE] = {"tw_reschedule", CODE_EPERM | CODE_EINVAL | CODE_ERANGE | CODE_ESTALE | CODE_ECHILD},
	[CALL_RESCHEDULE_AT] = {"tw_reschedule_at", CODE_EPERM | CODE_EINVAL | CODE_ERANGE | CODE_ESTALE | CODE_ECHILD},
	[CALL_TIMEOUT_STATE] = {"tw_timeout_state", CODE_EINVAL | CODE_ESTALE | CODE_ECHILD},
	[CALL_TIMEOUT_GET] = {"tw_timeout_get", CODE_EINVAL | CODE_ESTALE | CODE_ECHILD},
	[CALL_TIMEOUT_TEXT] = {"tw_timeout_text", CODE_EINVAL},
	[CALL_HANDLE_IS_SET] = {"tw_handle_is_set", 0},
	[CALL_HANDLE_EQUAL] = {"tw_handle_equal", 0},
	[CALL_ID_SCHEDULE] = {"tw_id_schedule", SCHEDULES},
	[CALL_ID_SCHEDULE_AT] = {"tw_id_schedule_at", SCHEDULES},
	[CALL_ID_SCHEDULE_PERIODIC] = {"tw_id_schedule_periodic", SCHEDULES},
	[CALL_ID_CANCEL] = {"tw_id_cancel", CODE_EINVAL | CODE_EPERM | CODE_ECHILD},
	[CALL_ID_RESCHEDULE] = {"tw_id_reschedule", CODE_EPERM | CODE_EINVAL | CODE_ERANGE | CODE_ESTALE | CODE_ECHILD},
	[CALL_ID_RESCHEDULE_AT] = {"tw_id_reschedule_at", CODE_EPERM | CODE_EINVAL | CODE_ERANGE | CODE_ESTALE | CODE_ECHILD},
	[CALL_ID_STATE] = {"tw_id_state", CODE_EINVAL | CODE_ESTALE | CODE_ECHILD},
	[CALL_ID_HANDLE] = {"tw_id_handle", 0},
	[CALL_ID_OF] = {"tw_id_of", 0},
	[CALL_POLL] = {"tw_engine_poll", CODE_ESHUTDOWN | CODE_EDEADLK | LOOPS},
	[CALL_POLL_AT] = {"tw_engine_poll_at", CODE_ESHUTDOWN | CODE_EDEADLK | LOOPS},
	[CALL_NEXT_DUE] = {"tw_engine_next_due", CODE_ESHUTDOWN | LOOPS},
	[CALL_FD] = {"tw_engine_fd", CODE_ENOMEM | CODE_ESHUTDOWN | LOOPS},
	[CALL_POLL_FOR] = {"tw_engine_poll_for", CODE_ESHUTDOWN | CODE_EDEADLK | LOOPS},
	[CALL_ENTER] = {"tw_loop_enter", CODE_ESHUTDOWN | LOOPS},
	[CALL_EXIT] = {"tw_loop_exit", CODE_EINVAL | CODE_EPERM | CODE_EDEADLK | CODE_ECHILD},
	[CALL_CLOCK_CREATE] = {"tw_clock_create_virtual", CODE_EINVAL | CODE_ENOMEM},
	[CALL_CLOCK_CREATE_SYSTEM] = {"tw_clock_create", CODE_EINVAL | CODE_ENOMEM | CODE_EOPNOTSUPP},
	[CALL_CLOCK_NOW] = {"tw_clock_now", CODE_EINVAL},
	[CALL_CLOCK_TYPE] = {"tw_clock_type", CODE_EINVAL},
	[CALL_CLOCK_LAG] = {"tw_clock_lag", CODE_EINVAL},
	[CALL_CLOCK_SET] = {"tw_clock_set", CODE_EINVAL},
	[CALL_CLOCK_SET_WALL] = {"tw_clock_set_wall", CODE_EINVAL},
	[CALL_CLOCK_DESTROY] = {"tw_clock_destroy", CODE_EBUSY},
	[CALL_LOG_SET] = {"tw_log_set", CODE_EINVAL},
	[CALL_ALLOCATOR_SET] = {"tw_memory_allocator_set", CODE_EINVAL},
	[CALL_RESERVE] = {"tw_memory_reserve", CODE_ENOMEM},
	[CALL_REINIT] = {"tw_fork_reinit", CODE_EINVAL | CODE_ENOMEM | CODE_ESHUTDOWN | CODE_EBUSY | CODE_EPERM | CODE_EDEADLK | CODE_EOPNOTSUPP},
	[CALL_FORK_HANDLERS] = {"tw_fork_handlers_enable", 0},
	[CALL_FORK_GENERATION] = {"tw_fork_generation", 0},
	[CALL_KEYED_OPTIONS_INIT] = {"tw_keyed_options_init", CODE_EINVAL | CODE_E2BIG},
	[CALL_KEYED_CREATE] = {"tw_keyed_create", CODE_EINVAL | CODE_ECHILD | CODE_E2BIG | MAKES_THREAD},
	[CALL_KEYED_DESTROY] = {"tw_keyed_destroy", CODE_EBUSY},
	[CALL_KEYED_SCHEDULE] = {"tw_keyed_schedule", SCHEDULES},
	[CALL_KEYED_REPLACE] = {"tw_keyed_replace", SCHEDULES},
	[CALL_KEYED_CANCEL] = {"tw_keyed_cancel", CODE_EINVAL | CODE_ECHILD},
	[CALL_KEYED_RESCHEDULE] = {"tw_keyed_reschedule", CODE_EINVAL | CODE_ERANGE | CODE_ECHILD},
	[CALL_KEYED_GET] = {"tw_keyed_get", CODE_EINVAL | CODE_ECHILD},
	[CALL_KEYED_COUNT] = {"tw_keyed_count", CODE_EINVAL},
	[CALL_KEYED_EACH] = {"tw_keyed_each", CODE_EINVAL | CODE_ECHILD},
	[CALL_KEYED_OWNS] = {"tw_keyed_owns", 0},
	[CALL_RETRY_OPTIONS_INIT] = {"tw_retry_options_init", CODE_EINVAL | CODE_E2BIG},
	[CALL_RETRY_CREATE] = {"tw_retry_create", CODE_EINVAL | CODE_ENOMEM | CODE_ECHILD | CODE_E2BIG},
	[CALL_RETRY_DESTROY] = {"tw_retry_destroy", CODE_EBUSY},
	[CALL_RETRY_SUBMIT] = {"tw_retry_submit", SCHEDULES},
	[CALL_RETRY_SUBMIT_FAILED] = {"tw_retry_submit_failed", CODE_EINVAL | CODE_EAGAIN | CODE_ESHUTDOWN | CODE_ECHILD | CODE_E2BIG | MAKES_THREAD},
	[CALL_RETRY_COMPLETE] = {"tw_retry_complete", CODE_EINVAL | CODE_ESTALE | CODE_ECHILD},
	[CALL_RETRY_CANCEL] = {"tw_retry_cancel", CODE_EINVAL | CODE_ECHILD},
	[CALL_RETRY_PENDING] = {"tw_retry_pending", CODE_EINVAL | CODE_ECHILD},
	[CALL_RETRY_DELAY] = {"tw_retry_delay", CODE_EINVAL | CODE_ERANGE | CODE_E2BIG},
	[CALL_RETRY_OWNS] = {"tw_retry_owns", 0},
	[CALL_GROUP_OPTIONS_INIT] = {"tw_group_options_init", CODE_EINVAL | CODE_E2BIG},
	[CALL_GROUP_CREATE] = {"tw_group_create", CODE_EINVAL | CODE_ERANGE | CODE_EBUSY | CODE_EDEADLK | CODE_E2BIG | CODE_EOPNOTSUPP | MAKES_THREAD},
	[CALL_GROUP_STOP] = {"tw_group_stop", CODE_EINVAL | CODE_ETIMEDOUT | CODE_EDEADLK | CODE_ECHILD},
	[CALL_GROUP_DESTROY] = {"tw_group_destroy", CODE_EBUSY | CODE_EDEADLK},
	[CALL_GROUP_ENGINES] = {"tw_group_engines", CODE_EINVAL},
	[CALL_GROUP_ENGINE] = {"tw_group_engine", 0},
	[CALL_GROUP_HERE] = {"tw_group_here", 0},
	[CALL_GROUP_SCHEDULE] = {"tw_group_schedule", SCHEDULES},
	[CALL_GROUP_SCHEDULE_AT] = {"tw_group_schedule_at", SCHEDULES},
	[CALL_GROUP_SCHEDULE_PERIODIC] = {"tw_group_schedule_periodic", SCHEDULES},
	[CALL_GROUP_PENDING] = {"tw_group_pending", CODE_EINVAL | CODE_ECHILD},
	[CALL_GROUP_STATS] = {"tw_group_stats_get", CODE_EINVAL | CODE_ECHILD},
	[CALL_GROUP_HISTOGRAM] = {"tw_group_histogram_get", CODE_EINVAL | CODE_ECHILD},
	[CALL_SCALED_CREATE] = {"tw_scaled_create", CODE_EINVAL | CODE_ERANGE | CODE_EAGAIN | CODE_ESHUTDOWN | CODE_ECHILD | MAKES_THREAD},
	[CALL_SCALED_SCHEDULE] = {"tw_scaled_schedule", CODE_EINVAL | CODE_ENOMEM | CODE_EAGAIN | CODE_ESHUTDOWN | CODE_ECHILD | CODE_E2BIG},
	[CALL_SCALED_TOUCH] = {"tw_scaled_touch", CODE_EINVAL | CODE_ESTALE | CODE_ECHILD},
	[CALL_SCALED_DEADLINE] = {"tw_scaled_deadline", CODE_EINVAL | CODE_ESTALE | CODE_ECHILD},
	[CALL_SCALED_FACTOR_SET] = {"tw_scaled_factor_set", CODE_EINVAL | CODE_ERANGE | CODE_ECHILD},
	[CALL_SCALED_FACTOR_GET] = {"tw_scaled_factor_get", CODE_EINVAL | CODE_ECHILD},
	[CALL_SCALED_PENDING] = {"tw_scaled_pending", CODE_EINVAL | CODE_ECHILD},
	[CALL_SCALED_STOP] = {"tw_scaled_stop", CODE_EINVAL | CODE_ETIMEDOUT | CODE_EDEADLK | CODE_ECHILD},
	[CALL_SCALED_DESTROY] = {"tw_scaled_destroy", CODE_EBUSY | CODE_EDEADLK},
	[CALL_SCALED_OWNS] = {"tw_scaled_owns", 0},
	[CALL_SCOPE_CREATE] = {"tw_scope_create", CODE_EINVAL | CODE_ENOMEM | CODE_ECHILD},
	[CALL_SCOPE_SCHEDULE] = {"tw_scope_schedule", SCHEDULES},
	[CALL_SCOPE_SCHEDULE_AT] = {"tw_scope_schedule_at", SCHEDULES},
	[CALL_SCOPE_END] = {"tw_scope_end", CODE_EINVAL | CODE_ECHILD},
	[CALL_SCOPE_END_WAIT] = {"tw_scope_end_wait", CODE_EINVAL | CODE_ETIMEDOUT | CODE_ECHILD},
	[CALL_SCOPE_COUNT] = {"tw_scope_count", CODE_EINVAL | CODE_ECHILD},
	[CALL_SCOPE_DESTROY] = {"tw_scope_destroy", CODE_EBUSY},
	[CALL_ATTACH] = {"tw_thread_attach", CODE_ENOMEM},
	[CALL_DETACH] = {"tw_thread_detach", CODE_EBUSY},
	[CALL_CAP_SET] = {"tw_memory_cap_set", 0},
	[CALL_SLAB_BYTES] = {"tw_memory_slab_bytes", 0},
	[CALL_STRERROR] = {"tw_strerror", 0},
	[CALL_CANCEL_OUTCOME_NAME] = {"tw_cancel_outcome_name", 0},
	[CALL_RESCHEDULE_OUTCOME_NAME] = {"tw_reschedule_outcome_name", 0},
	[CALL_END_NAME] = {"tw_end_name", 0},
	[CALL_STATE_NAME] = {"tw_state_name", 0},
	[CALL_ENGINE_STATE_NAME] = {"tw_engine_state_name", 0},
	[CALL_KEYED_OUTCOME_NAME] = {"tw_keyed_outcome_name", 0},
	[CALL_KEYED_END_NAME] = {"tw_keyed_end_name", 0},
	[CALL_RETRY_SUBMIT_OUTCOME_NAME] = {"tw_retry_submit_outcome_name", 0},
	[CALL_RETRY_CANCEL_OUTCOME_NAME] = {"tw_retry_cancel_outcome_name", 0},
	[CALL_RETRY_END_NAME] = {"tw_retry_end_name", 0},
	[CALL_VERSION] = {"tw_version", 0},
	[CALL_VERSION_STRING] = {"tw_version_string", 0},
};
/* clang-format on */

const char *call_name(enum call call)
{
	return calls[call].name;
}

uint32_t call_codes(enum call call)
{
	return calls[call].codes;
}

uint32_t code_bit(int64_t error)
{
	unsigned number;

	for (number = 0; number < CODES; number++)
		if (codes[number].error == error)
			return UINT32_C(1) << number;
	return 0;
}

const char *code_name(unsigned number)
{
	return codes[number].name;
}
