/* SPDX-License-Identifier: MIT */
#include "thread/log.h"

#include "base/atomic.h"
#include "base/tsan.h"

#include <stddef.h>

static _Atomic(const struct tw_log *) current_log; /* [atomic E11] */

void twi_log_set(const struct tw_log *log)
{
	twi_tsan_release(&current_log);
	/*
	 * E11: pairs with twi_log(). Publishes the struct. Otherwise a thread could read a
	 * half-written struct and call a wrong hook.
	 */
	twi_store_release(&current_log, log);
}

bool twi_log_wanted(void)
{
	/* RELAXED: the pointer is compared, not followed. */
	return twi_load_relaxed(&current_log) != NULL;
}

void twi_log(enum tw_log_level level, const char *text)
{
	/* E11: pairs with twi_log_set(). */
	const struct tw_log *log = twi_load_acquire(&current_log);

	twi_tsan_acquire(&current_log);
	if (log != NULL)
		log->hook(log->context, level, text);
}
