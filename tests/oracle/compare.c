/* SPDX-License-Identifier: MIT */
/*
 * Compares everything that a user can observe with the model.
 */
#include "play.h"

#include <errno.h>

static bool has_ended(const struct play *play, int id)
{
	enum model_state state = play->model.timeout[id].state;

	return state == MODEL_EXPIRED || state == MODEL_CANCELLED || state == MODEL_HANDED_BACK;
}

/*
 * Returns the expected result of a call with a handle. A handle becomes stale when its node serves
 * another timeout. Usually a later handle with that node shows this. But a rejected schedule also
 * uses up a node and leaves no handle. So the test accepts at most as many unexplained stale
 * handles as there were rejections.
 */
int play_expected(struct play *play, int id, int actual, int stale_code, int fresh_code)
{
	struct record *record = &play->record[id];

	if (record->reborn || record->stale)
		return stale_code;
	if (actual != stale_code || !has_ended(play, id))
		return fresh_code;
	record->stale = true;
	if (++play->stale_unseen > play->rejections)
		play_fail(play, "timeout %d is stale, and nothing has used its memory", id);
	return stale_code;
}

static void fields_compare(struct play *play, int id, const struct tw_timeout *seen)
{
	const struct record *record = &play->record[id];

	if (seen->engine != record->engine || seen->kind != record->kind || seen->arg != record)
		play_fail(play, "engine, kind or argument of timeout %d is another's", id);
	play_expect(play, id, "the deadline", seen->deadline_ns,
		    play->model.timeout[id].deadline_ns);
	play_expect(play, id, "the state", seen->state, model_state_of(&play->model, id));
}

void play_compare_handle(struct play *play, int id)
{
	struct record *record = &play->record[id];
	struct tw_timeout seen = {.size = sizeof(seen)};
	int state = tw_timeout_state(record->handle);
	int code = tw_timeout_get(record->handle, &seen);
	int fresh = (int)model_state_of(&play->model, id);

	play_expect(play, id, "tw_timeout_state", state,
		    play_expected(play, id, state, -ESTALE, fresh));
	play_expect(play, id, "tw_timeout_get", code, state == -ESTALE ? -ESTALE : 0);
	if (code == 0)
		fields_compare(play, id, &seen);
}

/* Checks that a finaliser has run once if the timeout has ended, and otherwise not at all. */
static void finaliser_compare(struct play *play, int id)
{
	const struct record *record = &play->record[id];
	bool final = record->kind->finaliser != NULL;

	play_expect(play, id, "runs of the finaliser", record->finalised,
		    final && has_ended(play, id));
}

static void counts_expect(struct play *play, const struct tw_stats *stats)
{
	const struct model_counts *counts = &play->model.counts;
	const struct {
		const char *what;
		uint64_t actual;
		uint64_t expected;
	} rows[] = {
		{"scheduled", stats->scheduled, counts->scheduled},
		{"rejected", stats->rejected, counts->rejected},
		{"expired", stats->expired, counts->expired},
		{"cancelled", stats->cancelled, counts->cancelled},
		{"unexpired", stats->unexpired, counts->unexpired},
		{"pending", stats->pending, counts->pending},
		{"check_failures", stats->check_failures, 0},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		play_expect(play, MODEL_NOBODY, rows[i].what, (long long)rows[i].actual,
			    (long long)rows[i].expected);
}

/*
 * Checks values that depend on the worker's turns: only their bounds, and that they have not
 * fallen. There may be one transfer more than turns, because a turn counts only at its end. A loop
 * may have any number of transfers more, because its new owner transfers outside of turns.
 */
static void turns_bound(struct play *play, const struct tw_stats *stats)
{
	const struct tw_stats *before = &play->stats;

	if (stats->transferred > stats->scheduled || stats->transferred < play->model.counts.seen)
		play_fail(play, "transferred is %llu", (unsigned long long)stats->transferred);
	if (stats->turns < play->flushes)
		play_fail(play, "%llu turns have served %llu flushes",
			  (unsigned long long)stats->turns, (unsigned long long)play->flushes);
	if ((stats->transfers > stats->turns + 1 && !play->model.loop) ||
	    stats->largest_transfer > play->batch)
		play_fail(play, "%llu transfers in %llu turns, the largest of %llu",
			  (unsigned long long)stats->transfers, (unsigned long long)stats->turns,
			  (unsigned long long)stats->largest_transfer);
	if (stats->turns < before->turns || stats->parks < before->parks ||
	    stats->transfers < before->transfers || stats->transferred < before->transferred)
		play_fail(play, "a counter has fallen");
}

void play_compare_counts(struct play *play)
{
	struct tw_stats stats = {.size = sizeof(stats)};

	play_expect(play, MODEL_NOBODY, "tw_stats_get", tw_stats_get(play->engine, &stats), 0);
	counts_expect(play, &stats);
	turns_bound(play, &stats);
	play->stats = stats;
	play_expect(play, MODEL_NOBODY, "tw_engine_pending", tw_engine_pending(play->engine),
		    (long long)play->model.counts.pending);
	play_expect(play, MODEL_NOBODY, "tw_engine_now", tw_engine_now(play->engine),
		    play->model.now_ns);
}

static void life_compare(struct play *play)
{
	static const int states[] = {
		[MODEL_NEW] = TW_ENGINE_NEW,
		[MODEL_OPEN] = TW_ENGINE_RUNNING,
		[MODEL_STOPPING] = TW_ENGINE_STOPPING,
		[MODEL_STOPPED] = TW_ENGINE_STOPPED,
	};
	int state = tw_engine_state(play->engine);

	/*
	 * The model has no state STARTING. As long as the engine may be in this state, it counts as
	 * RUNNING. A worker leaves STARTING at a moment that the test cannot see, at the latest in
	 * the first flush. A loop leaves it only inside a bracket.
	 */
	if (state == TW_ENGINE_STARTING && (play->flushes == 0 || play->loop))
		state = TW_ENGINE_RUNNING;
	play_expect(play, MODEL_NOBODY, "tw_engine_state", state, states[play->model.life]);
}

void play_compare(struct play *play)
{
	for (int id = 0; id < play->model.count; id++) {
		play_compare_handle(play, id);
		finaliser_compare(play, id);
	}
	if (play->engine == NULL)
		return;
	play_compare_counts(play);
	life_compare(play);
}
