/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	/* how many serials a model reserves in one call */
	RESERVED = 64,
};

#define SECOND INT64_C(1000000000)
#define BUCKET (64 * SECOND)
/* The model's deadlines are in a dozen buckets around this time. */
#define ORIGIN (INT64_C(1764038000) * SECOND)

const char *const model_kinds[MODEL_KINDS] = {"mail", "payment.notify", "x"};

bool model_fail(struct model *model, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (model->failure[0] == '\0')
		vsnprintf(model->failure, sizeof(model->failure), format, arguments);
	va_end(arguments);
	return false;
}

void model_init(struct model *model, const char *path, uint64_t seed)
{
	memset(model, 0, sizeof(*model));
	model->path = path;
	model->random.state = seed;
	model->now_ns = ORIGIN;
}

int model_open(struct model *model)
{
	int result = tw_durable_store_file(model->path, &model->store);

	if (result != 0)
		return result;
	model->serial = model->serials_end = 0;
	result = model->store.ops->open(model->store.store, model_kinds, MODEL_KINDS,
					&model->opened);
	if (result != 0)
		model->store.ops->close(model->store.store, 0);
	model->open = result == 0;
	return result;
}

void model_close(struct model *model, bool clean)
{
	if (model->open)
		model->store.ops->close(model->store.store, clean);
	model->open = false;
}

void model_key_text(int key, char text[8])
{
	text[0] = 'k';
	text[1] = (char)('0' + key);
	text[2] = '\0';
}

/* Computes the payload from the id, so that the test notices the payload of another timer. */
void model_payload_fill(const struct model_timer *timer, unsigned char *bytes)
{
	for (uint32_t i = 0; i < timer->payload_bytes; i++)
		bytes[i] = (unsigned char)(timer->id.serial * 31 + i * 7 + timer->version);
}

struct model_timer *model_find(struct model_state *state, struct tw_durable_id id)
{
	for (size_t i = 0; i < state->count; i++)
		if (state->timers[i].id.serial == id.serial &&
		    state->timers[i].id.place == id.place)
			return &state->timers[i];
	return NULL;
}

struct model_timer *model_find_key(struct model_state *state, int key)
{
	for (size_t i = 0; i < state->count; i++)
		if (state->timers[i].key == key && !state->timers[i].dead)
			return &state->timers[i];
	return NULL;
}

static void drop(struct model_state *state, struct model_timer *timer)
{
	*timer = state->timers[--state->count];
}

static int64_t due_choose(struct model *model)
{
	/* Now and then chooses a time before 1970, or at the end of the range. */
	switch (random_below(&model->random, 64)) {
	case 0:
		return -315619200 * SECOND + (int64_t)random_below(&model->random, 100);
	case 1:
		return INT64_MAX - 1 - (int64_t)random_below(&model->random, 3);
	default:
		return ORIGIN + (int64_t)random_below(&model->random, 12 * BUCKET);
	}
}

static int64_t bucket_of(int64_t due_ns)
{
	return due_ns / BUCKET - (due_ns % BUCKET < 0);
}

static int serials_get(struct model *model)
{
	uint64_t first;
	int result;

	if (model->serial != model->serials_end)
		return 0;
	result = model->store.ops->reserve(model->store.store, RESERVED, &first);
	if (result != 0)
		return result;
	if (first <= model->serial_top)
		model_fail(model, "serial %llu is given twice", (unsigned long long)first);
	model->serial = first;
	model->serials_end = first + RESERVED;
	model->serial_top = model->serials_end - 1;
	return 0;
}

/* Applies a put to the model. Returns the outcome and sets `ret_id`, both as the store must. */
static int32_t expect_put(struct model_state *state, const struct model_timer *timer,
			  struct tw_durable_id *ret_id)
{
	struct model_timer *same = timer->key < 0 ? NULL : model_find_key(state, timer->key);

	if (same == NULL)
		same = model_find(state, timer->id);
	if (same != NULL) {
		*ret_id = same->id;
		return TW_DURABLE_PRESENT;
	}
	if (state->count == MODEL_TIMERS)
		abort();
	state->timers[state->count++] = *timer;
	return TW_DURABLE_DONE;
}

static int32_t expect_old(struct model_state *state, const struct tw_durable_op *op, int64_t now_ns)
{
	struct model_timer *timer = model_find(state, op->row.id);
	bool dead = op->type == TW_DURABLE_OP_REVIVE || op->type == TW_DURABLE_OP_DROP;

	if (timer == NULL || (timer->dead != 0) != dead)
		return TW_DURABLE_ABSENT;
	if (op->type == TW_DURABLE_OP_DELETE || op->type == TW_DURABLE_OP_DROP) {
		bool attempted = op->type == TW_DURABLE_OP_DELETE && timer->attempt != 0 &&
				 (op->flags & TW_DURABLE_OP_OWN) == 0;

		drop(state, timer);
		return attempted ? TW_DURABLE_ATTEMPTED : TW_DURABLE_DONE;
	}
	timer->attempt = op->type == TW_DURABLE_OP_REVIVE ? 0 : op->row.attempt;
	timer->started = op->type == TW_DURABLE_OP_START;
	timer->dead = op->type == TW_DURABLE_OP_BURY;
	timer->ended_ns = now_ns;
	if (op->type == TW_DURABLE_OP_REVIVE)
		timer->key = -1;
	if (op->type == TW_DURABLE_OP_MOVE || op->type == TW_DURABLE_OP_REVIVE)
		timer->due_ns = op->row.due_ns;
	return TW_DURABLE_DONE;
}

/* Memory to which the rows of a batch point. */
struct bytes {
	char keys[MODEL_BATCH][8];
	unsigned char payloads[MODEL_BATCH][MODEL_PAYLOAD];
};

static void put_choose(struct model *model, struct tw_durable_op *op, struct model_timer *timer,
		       struct bytes *bytes, int at)
{
	int64_t due_ns = due_choose(model);
	struct random *random = &model->random;

	*timer = (struct model_timer){
		.id = {(uint64_t)bucket_of(due_ns), model->serial++},
		.due_ns = due_ns,
		.kind = (uint32_t)random_below(random, MODEL_KINDS),
		.version = (uint32_t)random_below(random, 5),
		.payload_bytes = (uint32_t)random_below(random, MODEL_PAYLOAD + 1),
		.key = random_below(random, 8) == 0 ? (int)random_below(random, MODEL_KEYS) : -1,
	};
	/*
	 * Now and then the timer ran before it was stored. Then its deadline is in another bucket
	 * than its id.
	 */
	if (random_below(random, 16) == 0) {
		timer->attempt = 1;
		timer->due_ns = due_choose(model);
	}
	/*
	 * Now and then schedules a timer again under its id, as a caller does after an unknown
	 * outcome.
	 */
	if (random_below(random, 16) == 0 && model->next.count > 0)
		timer->id = model->next.timers[random_below(random, model->next.count)].id;
	model_payload_fill(timer, bytes->payloads[at]);
	op->row = (struct tw_durable_row){
		.id = timer->id,
		.due_ns = timer->due_ns,
		.attempt = timer->attempt,
		.kind = timer->kind,
		.version = timer->version,
		.payload = bytes->payloads[at],
		.payload_bytes = timer->payload_bytes,
	};
	if (timer->key >= 0) {
		model_key_text(timer->key, bytes->keys[at]);
		op->row.key = bytes->keys[at];
		op->row.key_bytes = (uint32_t)strlen(bytes->keys[at]);
	}
}

static void old_choose(struct model *model, struct tw_durable_op *op)
{
	struct model_state *state = &model->next;

	op->row.id = (struct tw_durable_id){1, 1 + random_below(&model->random, 1000)};
	if (state->count > 0 && random_below(&model->random, 32) != 0)
		op->row.id = state->timers[random_below(&model->random, state->count)].id;
	/*
	 * Now and then chooses a timer that has ended. Some of its rows may still be in the file.
	 */
	if (model->gone_count > 0 && random_below(&model->random, 8) == 0)
		op->row.id = model->gone[random_below(&model->random, model->gone_count < MODEL_GONE
									      ? model->gone_count
									      : MODEL_GONE)];
	op->row.due_ns = due_choose(model);
	op->row.attempt = random_below(&model->random, 9);
}

static uint32_t type_choose(struct model *model, bool puts)
{
	static const uint32_t types[] = {
		TW_DURABLE_OP_DELETE, TW_DURABLE_OP_DELETE, TW_DURABLE_OP_DELETE,
		TW_DURABLE_OP_MOVE,   TW_DURABLE_OP_MOVE,   TW_DURABLE_OP_START,
		TW_DURABLE_OP_BURY,   TW_DURABLE_OP_REVIVE, TW_DURABLE_OP_DROP,
	};
	uint64_t put = model->next.count < MODEL_TIMERS / 3 ? 2 : 4;

	if (puts && model->next.count < MODEL_TIMERS - 1 && random_below(&model->random, put) == 0)
		return TW_DURABLE_OP_PUT;
	return types[random_below(&model->random, sizeof(types) / sizeof(types[0]))];
}

/* The results that the store must return. */
struct answer {
	int32_t outcome;
	struct tw_durable_id id;
};

static int batch_choose(struct model *model, struct tw_durable_op *ops, struct answer *answers,
			struct bytes *bytes, bool puts)
{
	int count = 1 + (int)random_below(&model->random, MODEL_BATCH - 1);

	for (int i = 0; i < count; i++) {
		struct model_timer timer;

		ops[i] = (struct tw_durable_op){.type = type_choose(model, puts), .outcome = -1};
		if (ops[i].type == TW_DURABLE_OP_PUT) {
			if (model->serial == model->serials_end)
				return i;
			put_choose(model, &ops[i], &timer, bytes, i);
			answers[i].id = timer.id;
			answers[i].outcome = expect_put(&model->next, &timer, &answers[i].id);
		} else {
			old_choose(model, &ops[i]);
			answers[i].id = ops[i].row.id;
			answers[i].outcome = expect_old(&model->next, &ops[i], model->now_ns);
		}
	}
	return count;
}

/*
 * Returns whether a commit changes anything. A commit that changes nothing need not sync, so a trim
 * before it may still be lost.
 */
static bool changed(const struct tw_durable_op *ops, int count)
{
	for (int i = 0; i < count; i++)
		if (ops[i].outcome == TW_DURABLE_DONE || ops[i].outcome == TW_DURABLE_ATTEMPTED)
			return true;
	return false;
}

static void gone_note(struct model *model, const struct tw_durable_op *op)
{
	if (op->outcome != TW_DURABLE_ABSENT && op->type == TW_DURABLE_OP_DELETE)
		model->gone[model->gone_count++ % MODEL_GONE] = op->row.id;
}

static void answers_compare(struct model *model, const struct tw_durable_op *ops,
			    const struct answer *answers, int count)
{
	for (int i = 0; i < count; i++) {
		gone_note(model, &ops[i]);
		if (ops[i].outcome != answers[i].outcome)
			model_fail(model, "operation %u of serial %llu: outcome %d, must be %d",
				   ops[i].type, (unsigned long long)answers[i].id.serial,
				   ops[i].outcome, answers[i].outcome);
		if (ops[i].row.id.serial != answers[i].id.serial)
			model_fail(model, "operation %u: serial %llu, must be %llu", ops[i].type,
				   (unsigned long long)ops[i].row.id.serial,
				   (unsigned long long)answers[i].id.serial);
	}
}

/*
 * Returns whether the store may have made the commit. After two codes, -EAGAIN and -ENOSPC, it did
 * nothing.
 */
static bool unknown_after(int result)
{
	return result != 0 && result != -EAGAIN && result != -ENOSPC;
}

static int commit(struct model *model, bool puts)
{
	static struct bytes bytes;
	struct tw_durable_op ops[MODEL_BATCH];
	struct answer answers[MODEL_BATCH];
	int count, result;

	if (puts) {
		result = serials_get(model);
		if (result != 0)
			return result;
	}
	model->next = model->now;
	model->now_ns += (int64_t)random_below(&model->random, SECOND / 2);
	count = batch_choose(model, ops, answers, &bytes, puts);
	result = model->store.ops->commit(model->store.store, ops, (size_t)count, model->now_ns);
	model->unknown = unknown_after(result);
	if (result != 0)
		return result;
	answers_compare(model, ops, answers, count);
	model->now = model->next;
	model->trimmed = model->trimmed && !changed(ops, count);
	return model->store.ops->upkeep(model->store.store);
}

static bool ended_earlier(const struct model_timer *a, const struct model_timer *b)
{
	if (a->ended_ns != b->ended_ns)
		return a->ended_ns < b->ended_ns;
	if (a->id.place != b->id.place)
		return (int64_t)a->id.place < (int64_t)b->id.place;
	return a->id.serial < b->id.serial;
}

/* Returns the dead letter that ended first, and sets the number of dead letters. */
static struct model_timer *dead_oldest(struct model_state *state, uint64_t *ret_count)
{
	struct model_timer *oldest = NULL;

	*ret_count = 0;
	for (size_t i = 0; i < state->count; i++) {
		struct model_timer *timer = &state->timers[i];

		*ret_count += timer->dead;
		if (timer->dead && (oldest == NULL || ended_earlier(timer, oldest)))
			oldest = timer;
	}
	return oldest;
}

/* Removes dead letters in the model. Returns how many. */
static int expect_trim(struct model_state *state, uint64_t most, int64_t before_ns, int max)
{
	int removed = 0;

	for (; removed < max; removed++) {
		uint64_t count;
		struct model_timer *oldest = dead_oldest(state, &count);

		if (oldest == NULL || (oldest->ended_ns >= before_ns && count <= most))
			break;
		drop(state, oldest);
	}
	return removed;
}

static int trim(struct model *model)
{
	uint64_t most = random_below(&model->random, 4);
	int64_t before_ns = model->now_ns - (int64_t)random_below(&model->random, 4 * SECOND);
	int max = 1 + (int)random_below(&model->random, 8), removed, result;

	model->next = model->now;
	removed = expect_trim(&model->next, most, before_ns, max);
	result = model->store.ops->dead_trim(model->store.store, most, before_ns, (size_t)max);
	if (result < 0) {
		model->unknown = unknown_after(result);
		return model->unknown ? result : 0;
	}
	if (result != removed)
		model_fail(model, "%d dead letters are removed, must be %d", result, removed);
	model->before = model->now;
	model->now = model->next;
	model->trimmed = true;
	return 0;
}

struct tw_durable_clock model_clock_make(int number)
{
	struct tw_durable_clock clock = {.base_ns = number, .step_ns = -number};

	snprintf(clock.boot, sizeof(clock.boot), "boot %d", number);
	return clock;
}

static int clock_keep(struct model *model)
{
	struct tw_durable_clock clock;
	int result;

	model->next = model->now;
	clock = model_clock_make(++model->next.clock);
	result = model->store.ops->clock_set(model->store.store, &clock);
	if (result < 0) {
		model->unknown = unknown_after(result);
		return model->unknown ? result : 0;
	}
	model->now = model->next;
	model->trimmed = false;
	return 0;
}

int model_commit(struct model *model)
{
	int result = commit(model, true);

	if (result == 0 && random_below(&model->random, 4) == 0)
		result = trim(model);
	if (result == 0 && random_below(&model->random, 8) == 0)
		result = clock_keep(model);
	return result;
}

int model_commit_ends(struct model *model)
{
	return commit(model, false);
}
