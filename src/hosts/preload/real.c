/* SPDX-License-Identifier: MIT */
#include "hosts/preload/real.h"

#include "base/compiler.h"

#include <dlfcn.h>
#include <stddef.h>

struct twi_uv_real twi_uv_real;

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
	{"uv_timer_init", offsetof(struct twi_uv_real, timer_init)},
	{"uv_timer_start", offsetof(struct twi_uv_real, timer_start)},
	{"uv_timer_stop", offsetof(struct twi_uv_real, timer_stop)},
	{"uv_timer_again", offsetof(struct twi_uv_real, timer_again)},
	{"uv_timer_get_due_in", offsetof(struct twi_uv_real, timer_get_due_in)},
	{"uv_is_active", offsetof(struct twi_uv_real, is_active)},
	{"uv_ref", offsetof(struct twi_uv_real, ref)},
	{"uv_unref", offsetof(struct twi_uv_real, unref)},
	{"uv_close", offsetof(struct twi_uv_real, close)},
	{"uv_loop_fork", offsetof(struct twi_uv_real, loop_fork)},
	{"uv_loop_close", offsetof(struct twi_uv_real, loop_close)},
};

void twi_uv_find(void)
{
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
		*(void **)((char *)&twi_uv_real + functions[i].offset) =
			dlsym(RTLD_NEXT, functions[i].name);
}

/* Runs before the program's first statement, while the program has only one thread. */
static TWI_CONSTRUCTOR void find(void)
{
	twi_uv_find();
}
