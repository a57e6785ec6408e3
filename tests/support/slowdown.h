/* SPDX-License-Identifier: MIT */
/*
 * How many times slower than usual this run is, because of valgrind, a sanitizer or an emulator.
 * The build or the setup sets TESTS_SLOWDOWN in the environment. Large tests divide their sizes by
 * it, and watchdogs multiply their limits by it.
 */
#ifndef TESTS_SLOWDOWN_H
#define TESTS_SLOWDOWN_H

#include <stdint.h>
#include <stdlib.h>

/* Returns how many times slower this run is: 1 or more. */
static inline unsigned int slowdown(void)
{
	const char *text = getenv("TESTS_SLOWDOWN");
	unsigned long times = text != NULL ? strtoul(text, NULL, 10) : 1;

	return times >= 1 && times <= 1000 ? (unsigned int)times : 1;
}

/* Scales the `count` of a usual run down to this run, to at least 1. */
static inline uint64_t slowed(uint64_t count)
{
	return count / slowdown() > 0 ? count / slowdown() : 1;
}

#endif
