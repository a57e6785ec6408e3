/* SPDX-License-Identifier: MIT */
/*
 * The macros for units of time: constants, signs, fractions, and numbers of every type.
 *
 * Seen to fail with these defects: a factor has no 64-bit type, so that an int overflows; a
 * fraction is cut off before the multiplication.
 */
#include "check.h"

#include <tickwheel.h>

_Static_assert(TW_US(1) == 1000 && TW_MS(1) == 1000 * TW_US(1) && TW_S(1) == 1000 * TW_MS(1), "");
_Static_assert(TW_MINUTES(1) == 60 * TW_S(1) && TW_HOURS(1) == 60 * TW_MINUTES(1), "");

Test(units, multiply_an_int_in_64_bits)
{
	int many = 2000000000;
	unsigned more = 4000000000u;

	check_int(TW_US(many), INT64_C(2000000000000));
	check_int(TW_MS(more), INT64_C(4000000000000000));
	check_int(TW_S(-many), INT64_C(-2000000000000000000));
	check_int(TW_HOURS(2562047), INT64_C(9223369200000000000));
}

Test(units, unit_macros_keep_fractions)
{
	double half = 0.5;

	check_int(TW_US(half), 500);
	check_int(TW_MS(1.5), 1500000);
	check_int(TW_MINUTES(-half), -TW_S(30));
}

Test(units, take_an_expression_as_a_whole)
{
	int a = 1, b = 2;

	check_int(TW_S(a + b), INT64_C(3000000000));
	check_int(2 * TW_HOURS(b - a), TW_HOURS(2));
}
