/* SPDX-License-Identifier: MIT */
#include "stand.h"

#include "base/test_point.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

static _Thread_local struct stand *armed;

void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

void stand_arm(struct stand *stand)
{
	armed = stand;
}

void stand_disarm(void)
{
	armed = NULL;
}

void twi_test_point(const char *name)
{
	struct stand *stand = armed;

	if (stand == NULL)
		return;
	if (stand->passed != NULL)
		stand->passed(name);
	if (strcmp(name, stand->point) != 0 || atomic_exchange(&stand->stands, true))
		return;
	while (!atomic_load(&stand->released))
		nap();
	/*
	 * The thread stops at a stand only once. The stand may be gone when the thread passes the
	 * next point.
	 */
	if (stand->passed == NULL)
		armed = NULL;
}

bool stand_await(const struct stand *stand, int64_t patience_ms)
{
	int64_t until_ms = now_ms() + patience_ms;

	while (!atomic_load(&stand->stands)) {
		if (now_ms() > until_ms)
			return false;
		nap();
	}
	return true;
}

void stand_release(struct stand *stand)
{
	atomic_store(&stand->released, true);
}
