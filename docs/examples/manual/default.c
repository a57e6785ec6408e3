/* SPDX-License-Identifier: MIT */
/* A library that uses the default engine of the process, and a
 * program that chooses its options. */
#include "check.h"

/* The library's data about one cache. */
struct cache {
	const char *name;
	int refreshes;
	int64_t late_ns;
};

static void cache_refresh(struct cache *cache, int64_t late_ns)
{
	cache->refreshes++;
	cache->late_ns = late_ns;
}

/* example: tw_run_get */
/* The kind's context is the cache, so the timeouts' arguments are
 * free for other uses. */
static void on_refresh(struct tw_handle self, void *arg)
{
	struct tw_run run = {.size = sizeof(run)};

	if (tw_run_get(&run) == 0)
		cache_refresh(run.context, run.late_ns);
	(void)self, (void)arg;
}
/* end */

static struct cache names = {.name = "names"};
static const struct tw_kind refresh =
	TW_KIND_WITH(.callback = on_refresh, .context = &names);

/* example: tw_default_engine */
/* The library creates no engine, so it has none to free. */
static int cache_refresh_later(int64_t delay_ns)
{
	struct tw_engine *engine = tw_default_engine();

	if (engine == NULL)
		return -ENOMEM;
	return tw_schedule(engine, delay_ns, &refresh, NULL, NULL);
}
/* end */

/* example: tw_default_options_set */
/* The program calls this before a library asks for the engine. */
static void engine_choose(struct tw_clock *clock)
{
	struct tw_options options;

	tw_options_init(&options, sizeof(options));
	options.clock = clock;
	options.thread_name = "timeouts";
	if (tw_default_options_set(&options) == -EBUSY)
		puts("a library was faster");
}
/* end */

/* example: tw_engine_run_until */
/* A test: lets a day of virtual time pass. */
static void day_pass(struct tw_clock *clock)
{
	int64_t end_ns = tw_clock_now(clock) + TW_HOURS(24);

	if (tw_engine_run_until(tw_default_engine(), end_ns) < 0)
		puts("the clock is not virtual");
}
/* end */

int main(void)
{
	struct tw_clock *clock;

	CHECK(tw_clock_create_virtual(0, &clock) == 0);
	engine_choose(clock);
	CHECK(cache_refresh_later(TW_HOURS(1)) == 0);
	CHECK(cache_refresh_later(TW_HOURS(23)) == 0);
	engine_choose(clock);
	day_pass(clock);
	CHECK(names.refreshes == 2 && names.late_ns >= 0);
	CHECK(tw_engine_stop(tw_default_engine(), NULL, NULL,
			     TW_S(60)) == 0);
	return 0;
}
