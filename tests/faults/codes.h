/* SPDX-License-Identifier: MIT */
/*
 * Every public call, and the error codes that it may return: the table of docs/errors.md as the
 * tour holds the library to it (the test `tour_complete` compares the two).
 */
#ifndef FAULTS_CODES_H
#define FAULTS_CODES_H

#include <stddef.h>
#include <stdint.h>

enum call {
	CALL_OPTIONS_INIT,
	CALL_CREATE,
	CALL_START,
	CALL_STOP,
	CALL_DESTROY,
	CALL_SETTLE,
	CALL_NOW,
	CALL_PENDING,
	CALL_STATE,
	CALL_STATS,
	CALL_WATCH,
	CALL_DUE_RUN,
	CALL_SCHEDULE,
	CALL_SCHEDULE_AT,
	CALL_SCHEDULE_MANY,
	CALL_SCHEDULE_MANY_AT,
	CALL_SCHEDULE_PERIODIC,
	CALL_PERIOD_NEXT,
	CALL_CANCEL,
	CALL_CANCEL_MANY,
	CALL_CANCEL_WAIT,
	CALL_RESCHEDULE,
	CALL_RESCHEDULE_AT,
	CALL_TIMEOUT_STATE,
	CALL_TIMEOUT_GET,
	CALL_POLL,
	CALL_POLL_AT,
	CALL_NEXT_DUE,
	CALL_FD,
	CALL_LEAVE,
	CALL_CLOCK_CREATE,
	CALL_CLOCK_CREATE_SYSTEM,
	CALL_CLOCK_NOW,
	CALL_CLOCK_TYPE,
	CALL_CLOCK_LAG,
	CALL_CLOCK_SET,
	CALL_CLOCK_DESTROY,
	CALL_LOG_SET,
	CALL_ALLOCATOR_SET,
	CALL_RESERVE,
	CALL_REINIT,
	CALL_FORK_HANDLERS,
	CALL_FORK_GENERATION,
	CALL_KEYED_OPTIONS_INIT,
	CALL_KEYED_CREATE,
	CALL_KEYED_DESTROY,
	CALL_KEYED_SCHEDULE,
	CALL_KEYED_REPLACE,
	CALL_KEYED_CANCEL,
	CALL_KEYED_RESCHEDULE,
	CALL_KEYED_GET,
	CALL_KEYED_COUNT,
	CALL_KEYED_EACH,
	CALL_KEYED_OWNS,
	CALL_RETRY_OPTIONS_INIT,
	CALL_RETRY_CREATE,
	CALL_RETRY_DESTROY,
	CALL_RETRY_SUBMIT,
	CALL_RETRY_SUBMIT_FAILED,
	CALL_RETRY_COMPLETE,
	CALL_RETRY_CANCEL,
	CALL_RETRY_PENDING,
	CALL_RETRY_DELAY,
	CALL_RETRY_OWNS,
	CALL_ATTACH,
	CALL_DETACH,
	CALL_CAP_SET,
	CALL_SLAB_BYTES,
	CALL_STRERROR,
	CALL_VERSION,
	CALL_VERSION_STRING,
	CALLS
};

/* A set of codes has a bit for each. */
enum code {
	CODE_EINVAL = 1 << 0,
	CODE_ERANGE = 1 << 1,
	CODE_ENOMEM = 1 << 2,
	CODE_EAGAIN = 1 << 3,
	CODE_ESHUTDOWN = 1 << 4,
	CODE_EBUSY = 1 << 5,
	CODE_ETIMEDOUT = 1 << 6,
	CODE_ESTALE = 1 << 7,
	CODE_EPERM = 1 << 8,
	CODE_EDEADLK = 1 << 9,
	CODE_ECHILD = 1 << 10,
	CODE_E2BIG = 1 << 11,
	CODE_EOPNOTSUPP = 1 << 12,
	CODES = 13
};

/* The public name, and the set of codes that the documentation allows it. */
const char *call_name(enum call call);
uint32_t call_codes(enum call call);

/* The bit of a negative errno value; 0 for one outside the vocabulary. */
uint32_t code_bit(int64_t error);

/* The name of the code with bit number `number`. */
const char *code_name(unsigned number);

#endif
