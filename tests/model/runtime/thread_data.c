/* SPDX-License-Identifier: MIT */
/*
 * The library's thread data, one copy per fiber. The library is built with twi_thread_self,
 * twi_timer_seen and twi_keyed_seen defined as calls of the functions of this file. These functions
 * are instrumented like the library.
 */
#include "keyed/entry.h"
#include "retry/task.h"
#include "thread/thread.h"

#include "model.h"

#include <ck_pr.h>

_Atomic unsigned model_fence;

static struct twi_thread thread_data[MODEL_FIBERS];

struct twi_thread *model_thread_self(void);

struct twi_thread *model_thread_self(void)
{
	return &thread_data[model_self()];
}

static void *timer_seen[MODEL_FIBERS];

void **model_timer_seen(void);

void **model_timer_seen(void)
{
	return &timer_seen[model_self()];
}

static void *entry_seen[MODEL_FIBERS];

void **model_keyed_seen(void);

void **model_keyed_seen(void)
{
	return &entry_seen[model_self()];
}
