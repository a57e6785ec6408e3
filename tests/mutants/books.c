/* SPDX-License-Identifier: MIT */
/*
 * Linked into every program that checks mutants. It counts the engines that exist, and at the
 * program's end checks that all node blocks are free (race/harness/account.h). The linker's --wrap
 * redirects the program's calls to this file.
 */
#include "account.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <tickwheel.h>
#include <unistd.h>

int __real_tw_engine_create(const struct tw_options *options, struct tw_engine **ret_engine);
int __wrap_tw_engine_create(const struct tw_options *options, struct tw_engine **ret_engine);
int __real_tw_engine_destroy(struct tw_engine *engine);
int __wrap_tw_engine_destroy(struct tw_engine *engine);
int __real_tw_group_create(const struct tw_group_options *options, struct tw_group **ret_group);
int __wrap_tw_group_create(const struct tw_group_options *options, struct tw_group **ret_group);
int __real_tw_group_destroy(struct tw_group *group);
int __wrap_tw_group_destroy(struct tw_group *group);

/* A group counts as one engine, because the library creates the engines in it. */
static atomic_int engines;

int account_engines(void)
{
	return atomic_load(&engines);
}

int __wrap_tw_engine_create(const struct tw_options *options, struct tw_engine **ret_engine)
{
	int error = __real_tw_engine_create(options, ret_engine);

	if (error == 0)
		atomic_fetch_add(&engines, 1);
	return error;
}

int __wrap_tw_engine_destroy(struct tw_engine *engine)
{
	int error = __real_tw_engine_destroy(engine);

	if (error == 0 && engine != NULL)
		atomic_fetch_sub(&engines, 1);
	return error;
}

int __wrap_tw_group_create(const struct tw_group_options *options, struct tw_group **ret_group)
{
	int error = __real_tw_group_create(options, ret_group);

	if (error == 0)
		atomic_fetch_add(&engines, 1);
	return error;
}

int __wrap_tw_group_destroy(struct tw_group *group)
{
	int error = __real_tw_group_destroy(group);

	if (error == 0 && group != NULL)
		atomic_fetch_sub(&engines, 1);
	return error;
}

#ifndef __SANITIZE_THREAD__
/*
 * Children of tests end with _exit, which runs no exit handlers. ThreadSanitizer has an _exit of
 * its own.
 */
void _exit(int code)
{
	if (code == 0)
		account_judge();
	(void)syscall(SYS_exit_group, code);
	__builtin_unreachable();
}
#endif

__attribute__((constructor)) static void books_begin(void)
{
	account_begin();
}
