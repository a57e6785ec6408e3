/* SPDX-License-Identifier: MIT */
/*
 * group: several threads schedule through a group of engines, as fast as they can, and all timeouts
 * fire.
 *
 * One operation is a schedule with the run of its callback. ns per operation is the wall time from
 * the first schedule until the last callback has run, divided by the number of timeouts. The delays
 * are only 1-50 ms. So if there are so many timeouts that the run takes much longer than 50 ms, the
 * workers' speed decides the result.
 */
#include "harness/bench.h"
#include "harness/crew.h"
#include "harness/expiry.h"
#include "harness/measure.h"
#include "harness/shape.h"
#include "workload/workload.h"

#include <string.h>

enum { ENGINES_MOST = 16 };

#define POLL_NS INT64_C(200000)
#define STOP_NS INT64_C(60000000000)

static struct tw_group *group;
/* The counts of the workers, one for each, in the order of their first callbacks. */
static struct expiry expiries[ENGINES_MOST];
static _Atomic uint32_t expiries_taken;
static int64_t caught_up_ns;

static void on_expire(struct tw_handle self, void *arg)
{
	static _Thread_local struct expiry *mine;

	(void)self;
	if (mine == NULL)
		mine = &expiries[atomic_fetch_add(&expiries_taken, 1)];
	expiry_add(mine, id_of_arg(arg));
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static int run(struct producer *producer)
{
	struct tally scheduled = {0, 0};
	int error = 0;

	for (uint64_t i = 0; i < producer->ops && !error; i++) {
		uint64_t id = producer->first_id + i;

		error = tw_group_schedule(group, light_delay_ns(&producer->random), &kind,
					  id_to_arg(id), NULL);
		if (!error)
			tally_add(&scheduled, id);
	}
	producer->scheduled = scheduled;
	return error;
}

static uint64_t expired(void)
{
	uint64_t count = 0;

	for (int i = 0; i < ENGINES_MOST; i++)
		count += expiry_count(&expiries[i]);
	return count;
}

/*
 * Waits until all timeouts have fired. The wait is bounded, so that a lost timeout does not hang
 * the program.
 */
static int caught_up(void *context)
{
	const struct crew *crew = context;
	int64_t end_ns = measure_now_ns() + FIRE_WAIT_NS;

	while (expired() < crew->plan.ops && measure_now_ns() < end_ns)
		measure_sleep_ns(POLL_NS);
	caught_up_ns = measure_now_ns();
	return 0;
}

static int group_open(const struct options *options, uint32_t engines)
{
	struct tw_group_options group_options;
	struct tw_options engine;
	int error = tw_options_init(&engine, sizeof(engine));

	if (!error)
		error = tw_group_options_init(&group_options, sizeof(group_options));
	if (error)
		return error;
	engine.tick_ns = options->tick_ns;
	engine.wheel = options->wheel;
	group_options.engines = engines;
	group_options.engine = &engine;
	return tw_group_create(&group_options, &group);
}

static int group_close(struct sample *sample)
{
	int error = tw_group_stop(group, NULL, NULL, STOP_NS);

	if (!error)
		error = tw_group_destroy(group);
	for (int i = 0; i < ENGINES_MOST; i++)
		tally_merge(&sample->account.expired,
			    (struct tally){expiry_count(&expiries[i]), expiries[i].id_sum});
	return error;
}

static double wall_ns(const struct crew *crew)
{
	int64_t started_ns = INT64_MAX;

	for (unsigned i = 0; i < crew->plan.count; i++)
		if (crew->producers[i].started_ns < started_ns)
			started_ns = crew->producers[i].started_ns;
	return (double)(caught_up_ns - started_ns);
}

int workload_group(const struct options *options, uint64_t engines, struct sample *ret_sample)
{
	struct crew crew;
	struct crew_plan plan = {.count = options->producers,
				 .ops = options->ops,
				 .run = run,
				 .caught_up = caught_up,
				 .context = &crew};
	int close_error;
	int error;

	*ret_sample = sample_empty();
	error = group_open(options, (uint32_t)engines);
	if (error)
		return error;
	error = crew_init(&crew, &plan);
	if (!error)
		error = crew_run(&crew, ret_sample);
	if (!error)
		ret_sample->ns_per_op = wall_ns(&crew) / (double)options->ops;
	crew_done(&crew);
	close_error = group_close(ret_sample);
	return error ? error : close_error;
}
