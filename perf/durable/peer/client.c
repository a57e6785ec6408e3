/* SPDX-License-Identifier: MIT */
/*
 * Measures one keeper: durable-client KEEPER ADDRESS SECONDS | fill COUNT | open
 *
 *     SECONDS      schedules timers for SECONDS, and cancels all of them. Then schedules timers
 *                  that become due, takes them and ends them. Prints the rates per second, as
 *                  JSON. Leaves out what the keeper cannot do.
 *     fill COUNT   schedules COUNT timers within the next hour, then waits to be killed
 *     open         prints the seconds that an open takes, then ends without a close
 */
#include "durable/common.h"
#include "durable/peer/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	HOUR_S = 3600,
	FIRE_IN_S = 4,
	/*
	 * For how long fire_rate schedules timers. Must be less than FIRE_IN_S, so that no timer is
	 * due while it schedules.
	 */
	FIRE_FOR_S = 2,
};

const char keeper_payload[KEEPER_PAYLOAD + 1] =
	"pppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp";

static const struct keeper *const keepers[] = {
	&keeper_log,      &keeper_tickwheel, &keeper_beanstalkd, &keeper_redis,
#ifdef HAVE_POSTGRES
	&keeper_postgres,
#ifdef HAVE_TICKWHEEL_POSTGRES
	&keeper_shared,
#endif
#endif
};

void keeper_fail(const char *what, const char *why)
{
	fprintf(stderr, "durable-client: %s: %s\n", what, why);
	exit(1);
}

static const struct keeper *keeper_find(const char *name)
{
	for (size_t i = 0; i < sizeof keepers / sizeof keepers[0]; i++)
		if (strcmp(keepers[i]->name, name) == 0)
			return keepers[i];
	keeper_fail(name, "no such keeper in this build");
}

static size_t schedule_for(const struct keeper *keeper, double seconds, int64_t due_s)
{
	double until_s = now_s() + seconds;
	size_t count = 0;

	for (; now_s() < until_s; count += KEEPER_BATCH)
		keeper->schedule(KEEPER_BATCH, due_s);
	return count;
}

static double wall_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/*
 * Returns how many timers a second the keeper ends, from the second at which all are due to the
 * last end.
 */
static double fire_rate(const struct keeper *keeper)
{
	int64_t due_s = (int64_t)time(NULL) + FIRE_IN_S;
	size_t count = schedule_for(keeper, FIRE_FOR_S, due_s), taken = 0;

	while (wall_s() < (double)due_s)
		usleep(200);
	while (taken < count) {
		size_t got = keeper->take(KEEPER_BATCH);

		if (got == 0)
			usleep(200);
		taken += got;
	}
	return (double)count / (wall_s() - (double)due_s);
}

static void measure(const struct keeper *keeper, double seconds)
{
	double begin_s = now_s(), cancel_s;
	size_t count = schedule_for(keeper, seconds, (int64_t)time(NULL) + HOUR_S);

	printf("{\"schedule\":%.0f", (double)count / (now_s() - begin_s));
	cancel_s = now_s();
	for (size_t i = 0; keeper->cancel != NULL && i < count; i += KEEPER_BATCH)
		keeper->cancel(KEEPER_BATCH);
	if (keeper->cancel != NULL)
		printf(",\"cancel\":%.0f", (double)count / (now_s() - cancel_s));
	if (keeper->take != NULL)
		printf(",\"fire\":%.0f", fire_rate(keeper));
	puts("}");
	keeper->close();
}

static void fill(const struct keeper *keeper, size_t count)
{
	for (size_t i = 0; i < count; i += KEEPER_BATCH)
		keeper->schedule(KEEPER_BATCH, (int64_t)time(NULL) + HOUR_S);
	puts("filled");
	fflush(stdout);
	pause();
}

int main(int argc, char **argv)
{
	const struct keeper *keeper;
	double begin_s;

	if (argc < 4)
		keeper_fail("usage", "durable-client KEEPER ADDRESS SECONDS | fill COUNT | open");
	keeper = keeper_find(argv[1]);
	begin_s = now_s();
	keeper->open(argv[2]);
	if (strcmp(argv[3], "open") == 0) {
		printf("%.4f\n", now_s() - begin_s);
		fflush(stdout);
		_exit(0);
	}
	if (strcmp(argv[3], "fill") == 0)
		fill(keeper, argc > 4 ? strtoul(argv[4], NULL, 10) : KEEPER_BATCH);
	else
		measure(keeper, strtod(argv[3], NULL));
	return 0;
}
