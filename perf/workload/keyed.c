/* SPDX-License-Identifier: MIT */
/*
 * keyed-replace, keyed-cancel, keyed-get: there are a million keys of 16 bytes, each with an entry
 * for 30 to 60 s. An operation replaces a random entry, cancels one, or looks one up. A replace is
 * always for 60 s, like an idle timeout that is extended. In keyed-replace-any a replace is for 30
 * to 60 s, so half of the replaces set an earlier deadline. keyed-bare-… does the same with
 * liburcu's hash table alone, which is the lower bound of the cost.
 *
 * KEYED_BATCH operations are timed together. Between the batches, the workload schedules the
 * cancelled entries again. The CPU time includes these schedules, the wall time does not.
 */
#include "workload/keyed.h"
#include "harness/bench.h"
#include "harness/measure.h"
#include "workload/workload.h"

#include <errno.h>

#define NEAR_US 30000000
#define FAR_US 60000000
#define FAR_NS INT64_C(60000000000)
#define FLUSH_TIMEOUT_NS INT64_C(60000000000)

/* The state of the run. It is global, because a process makes only one run. */
static struct {
	struct bench bench;
	struct tw_keyed *table;
	enum keyed_work work;
	bool bare;
	uint64_t keys_each;
} scene;

struct own {
	uint32_t *order;
	uint64_t next_id;
};

static _Thread_local struct producer *self;

static int64_t on_run(const struct tw_keyed_self *entry, void *arg)
{
	(void)entry;
	(void)arg;
	return TW_KEYED_END;
}

static void on_ended(const struct tw_keyed_self *entry, void *arg, enum tw_keyed_end end)
{
	(void)entry;
	if (end == TW_KEYED_END_STOPPED || end == TW_KEYED_END_FIRED)
		bench_count_unexpired(id_of_arg(arg));
	else
		tally_add(&self->cancelled, id_of_arg(arg));
}

static const struct tw_keyed_kind kind = TW_KEYED_KIND(on_run, on_ended);

static int put(struct producer *producer, uint32_t number)
{
	struct keyed_key key = keyed_key(number);
	struct own *own = producer->own;
	uint64_t id = producer->first_id + own->next_id++;
	int64_t delay_ns = scene.work == KEYED_REPLACE
				   ? FAR_NS
				   : random_delay_ns(&producer->random, NEAR_US, FAR_US);
	int outcome = tw_keyed_replace(scene.table, &key, sizeof(key), delay_ns, &kind,
				       id_to_arg(id), NULL);

	if (outcome >= 0)
		tally_add(&producer->scheduled, id);
	return outcome < 0 ? outcome : 0;
}

static int step_one(struct producer *producer, uint32_t number)
{
	struct keyed_key key = keyed_key(number);
	int outcome;

	if (scene.work == KEYED_REPLACE || scene.work == KEYED_REPLACE_ANY)
		return put(producer, number);
	if (scene.work == KEYED_GET) {
		outcome = tw_keyed_get(scene.table, &key, sizeof(key), NULL);
		return outcome == TW_KEYED_PRESENT ? 0 : -EIO;
	}
	outcome = tw_keyed_cancel(scene.table, &key, sizeof(key), TW_KEYED_ANY);
	return outcome == TW_KEYED_DONE ? 0 : -EIO;
}

static int step(struct producer *producer, const uint32_t *order, uint64_t count)
{
	int error = 0;

	if (scene.bare)
		keyed_bare_step(scene.work, producer->index, order, count);
	else
		for (uint64_t i = 0; error == 0 && i < count; i++)
			error = step_one(producer, order[i]);
	return error;
}

static int put_all(struct producer *producer, const uint32_t *order, uint64_t count)
{
	int error = 0;

	if (scene.bare)
		keyed_bare_put(producer->index, order, count);
	else
		for (uint64_t i = 0; error == 0 && i < count; i++)
			error = put(producer, order[i]);
	return error;
}

static int prepare(struct producer *producer)
{
	struct own *own = calloc(1, sizeof(*own));
	int error;

	if (own == NULL)
		return -ENOMEM;
	self = producer;
	producer->own = own;
	own->order = keyed_order(producer, producer->index * scene.keys_each);
	if (own->order == NULL)
		return -ENOMEM;
	error = put_all(producer, own->order, producer->live_count);
	/*
	 * Entries lie in memory in the order in which they were put. In that order the processor
	 * would prefetch the next entry, so the operations use another order.
	 */
	keyed_shuffle(producer, own->order);
	return error;
}

static int run(struct producer *producer)
{
	struct own *own = producer->own;
	uint64_t at = 0;
	int error = 0;

	for (uint64_t done = 0; error == 0 && done < producer->ops; done += KEYED_BATCH) {
		const uint32_t *order = own->order + at;
		uint64_t left = producer->ops - done;
		uint64_t count = left < KEYED_BATCH ? left : KEYED_BATCH;
		int64_t before_ns = measure_now_ns();

		error = step(producer, order, count);
		producer->inside_ns += measure_now_ns() - before_ns;
		if (error == 0 && scene.work == KEYED_CANCEL)
			error = put_all(producer, order, count);
		if (scene.bare)
			keyed_bare_flush(producer->index);
		at += KEYED_BATCH;
		if (at + KEYED_BATCH > producer->live_count)
			at = 0;
	}
	return error;
}

static int end(struct producer *producer)
{
	struct own *own = producer->own;

	free(own->order);
	free(own);
	return 0;
}

static int flush(void *unused)
{
	(void)unused;
	return scene.bare ? 0 : tw_engine_flush(scene.bench.engine, FLUSH_TIMEOUT_NS);
}

static int prepared(void *unused)
{
	int error = flush(unused);

	if (!scene.bare)
		bench_note_memory(&scene.bench);
	return error;
}

static int open_scene(const struct options *options, uint64_t keys)
{
	struct tw_keyed_options table_options;
	int error;

	if (scene.bare)
		return keyed_bare_open(keys, options->producers);
	error = bench_open(options, 0, &scene.bench);
	if (!error)
		error = tw_keyed_options_init(&table_options, sizeof(table_options));
	if (error)
		return error;
	table_options.expected_keys = (uint32_t)keys;
	table_options.seed = 1;
	return tw_keyed_create(scene.bench.engine, &table_options, &scene.table);
}

static int close_scene(struct sample *sample)
{
	int error;

	if (scene.bare) {
		keyed_bare_close();
		return 0;
	}
	error = bench_stop(&scene.bench);
	if (!error)
		error = tw_keyed_destroy(scene.table);
	return error ? error : bench_close(&scene.bench, sample);
}

static int workload(const struct options *options, struct sample *ret_sample)
{
	uint64_t keys = WORKLOAD_KEYED_KEYS;
	struct crew crew;
	int error = crew_init(&crew, &(struct crew_plan){
					     .count = options->producers,
					     .ops = options->ops,
					     .live_count = keys,
					     .prepare = prepare,
					     .run = run,
					     .end = end,
					     .prepared = prepared,
					     .caught_up = flush,
				     });
	int close_error;

	*ret_sample = sample_empty();
	scene.keys_each = keys / options->producers + 1;
	if (!error)
		error = open_scene(options, keys);
	if (error)
		return error;
	error = crew_run(&crew, ret_sample);
	close_error = close_scene(ret_sample);
	crew_done(&crew);
	return error ? error : close_error;
}

int workload_keyed(const struct options *options, uint64_t work, struct sample *ret_sample)
{
	scene.work = (enum keyed_work)work;
	return workload(options, ret_sample);
}

int workload_keyed_bare(const struct options *options, uint64_t work, struct sample *ret_sample)
{
	scene.bare = true;
	scene.work = (enum keyed_work)work;
	return workload(options, ret_sample);
}
