/* SPDX-License-Identifier: MIT */
/*
 * Named places where a test may freeze or delay the thread that passes. Normal builds have none of
 * them. The freeze test links a build of the library with TWI_TEST_POINTS, in which each place
 * calls the test's hook.
 */
#ifndef TWI_BASE_TEST_POINT_H
#define TWI_BASE_TEST_POINT_H

#ifdef TWI_TEST_POINTS
void twi_test_point(const char *name);
#define TWI_TEST_POINT(name) twi_test_point(name)
#else
#define TWI_TEST_POINT(name) ((void)0)
#endif

#endif
