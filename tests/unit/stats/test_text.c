/* SPDX-License-Identifier: MIT */
/* The texts of error codes, and the version. */
#include "check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>

static const int codes[] = {EINVAL, ERANGE, ENOMEM,  EAGAIN, ESHUTDOWN, EBUSY,     ETIMEDOUT,
			    ESTALE, EPERM,  EDEADLK, ECHILD, E2BIG,     EOPNOTSUPP};
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

	/* EPERM is 1, which is an outcome, too (test_names.c). */
	for (i = 0; i < CODE_COUNT; i++)
		if (codes[i] != EPERM)
			check_true(strcmp(tw_strerror(codes[i]), tw_strerror(-codes[i])) == 0);
}

Test(text, codes_outside_the_vocabulary_are_unknown)
{
	check_true(is_unknown(-ENOENT));
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
