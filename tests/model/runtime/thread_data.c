/* SPDX-License-Identifier: MIT */
/*
 * The library's thread data, per fiber. It is built with twi_thread_self defined as a call of this,
 * and is instrumented like the library.
 */
#include "mech/thread.h"

#include "model.h"

static struct twi_thread thread_data[MODEL_FIBERS];

struct twi_thread *model_thread_self(void);

struct twi_thread *model_thread_self(void)
{
	return &thread_data[model_self()];
}
