/* SPDX-License-Identifier: MIT */
/*
 * Runs a year of timers in seconds, with the same result each time (docs/testing-your-code.md). The
 * program tests a small reminder service. Each of a hundred users gets a reminder every few hours,
 * and after every tenth reminder none for a week.
 */
#include <inttypes.h>
#include <stdio.h>
#include <tickwheel.h>

#define DAY TW_HOURS(24)

enum { USERS = 100 };

struct user {
	struct tw_engine *engine;
	int64_t every_ns;
	uint64_t reminders;
};

static uint64_t digest = 1;
static int64_t count;

static void on_remind(struct tw_handle self, void *arg);
static const struct tw_kind remind = TW_KIND(on_remind, NULL);

static void on_remind(struct tw_handle self, void *arg)
{
	struct user *user = arg;
	int64_t now_ns = tw_engine_now(user->engine);
	int64_t pause_ns = ++user->reminders % 10 == 0 ? 7 * DAY : user->every_ns;

	(void)self;
	count++;
	/* The digest depends on which callbacks run, in which order, and when. */
	digest = (digest ^ (uint64_t)now_ns ^ (uint64_t)user->every_ns) * UINT64_C(1099511628211);
	tw_schedule(user->engine, pause_ns, &remind, user, NULL);
}

int main(void)
{
	static struct user users[USERS];
	struct tw_options options;
	struct tw_engine *engine;
	struct tw_clock *clock;

	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	options.wheel = TW_WHEEL_HIERARCHICAL;
	if (tw_clock_create_virtual(0, &clock) != 0)
		return 1;
	options.clock = clock;
	if (tw_engine_create(&options, &engine) != 0)
		return 1;
	for (int i = 0; i < USERS; i++) {
		users[i] = (struct user){.engine = engine, .every_ns = TW_HOURS(1 + i % 48)};
		tw_schedule(engine, users[i].every_ns, &remind, &users[i], NULL);
	}
	/* The clock jumps from one due time to the next, so time without timeouts costs nothing. */
	if (tw_engine_run_until(engine, 365 * DAY) != 0)
		return 1;
	printf("%" PRId64 " reminders in a year, digest %016" PRIx64 "\n", count, digest);
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	tw_engine_destroy(engine);
	tw_clock_destroy(clock);
	return 0;
}
