/* SPDX-License-Identifier: MIT */
/*
 * The texts of error codes, and the version. The test `codes` of tests/docs checks that each code
 * of a public header has a text.
 */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>

/* The codes from EINPROGRESS on are those of durable timers. */
static const int codes[] = {EINVAL,     ERANGE,       ENOMEM,     EAGAIN,       ESHUTDOWN, EBUSY,
			    ETIMEDOUT,  ESTALE,       EPERM,      EDEADLK,      ECHILD,    E2BIG,
			    EOPNOTSUPP, EINPROGRESS,  EIO,        ENOSPC,       EMSGSIZE,  ENOENT,
			    ETIME,      EUCLEAN,      EEXIST,     EMFILE,       ENFILE,    EISDIR,
			    ENOTDIR,    ELOOP,        EMLINK,     ENAMETOOLONG, EROFS,     EDQUOT,
			    EACCES,     ECONNREFUSED, ECONNRESET, EPROTO};
enum { CODE_COUNT = sizeof(codes) / sizeof(codes[0]) };

static bool is_unknown(int error)
{
	return strcmp(tw_strerror(error), "unknown error") == 0;
}

Test(text, each_code_has_its_own_text)
{
	int i;
	int j;

	for (i = 0; i < CODE_COUNT; i++) {
		check_true(!is_unknown(-codes[i]));
		check_true(strlen(tw_strerror(-codes[i])) > 0);
		for (j = 0; j < i; j++)
			check_true(strcmp(tw_strerror(-codes[i]), tw_strerror(-codes[j])) != 0);
	}
}

Test(text, absolute_value_is_understood)
{
	int i;

	/* Numbers up to TW_ENGINE_STOPPED, such as EPERM, are outcomes, too (test_names.c). */
	for (i = 0; i < CODE_COUNT; i++)
		if (codes[i] > TW_ENGINE_STOPPED)
			check_true(strcmp(tw_strerror(codes[i]), tw_strerror(-codes[i])) == 0);
}

/* Seen to fail when -ENOTSUP had the text "the system has no such clock". */
Test(text, a_code_of_several_calls_has_a_text_for_all_of_them)
{
	check_true(strstr(tw_strerror(-ENOTSUP), "store") != NULL);
	check_true(strstr(tw_strerror(-EAGAIN), "pending") == NULL);
	check_true(strstr(tw_strerror(-ESHUTDOWN), "engine") == NULL);
	check_true(strstr(tw_strerror(-ECHILD), "engine") == NULL);
}

Test(text, codes_outside_the_vocabulary_are_unknown)
{
	check_true(is_unknown(-ENOTTY));
	check_true(is_unknown(-(EDQUOT + 1)));
	check_true(is_unknown(-99999));
	check_true(is_unknown(INT32_MIN));
	check_true(is_unknown(INT32_MAX));
}

Test(text, zero_is_no_failure)
{
	check_true(tw_strerror(0) != NULL);
}

Test(text, version_of_header_and_library)
{
	char text[32];

	check_int(tw_version(), TW_VERSION);
	snprintf(text, sizeof(text), "%d.%d.%d", TW_VERSION_MAJOR, TW_VERSION_MINOR,
		 TW_VERSION_PATCH);
	check_true(strcmp(tw_version_string(), text) == 0);
}
