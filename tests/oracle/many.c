/* SPDX-License-Identifier: MIT */
/*
 * Batches: the engine gets one call, and the model gets single calls in the same order.
 *
 * A rejected item shares its record with the next accepted one, because only one of the two is ever
 * used.
 */
#include "play.h"

#include "op.h"

/* The batch. It is static, because there is one player and one batch. */
static struct {
	int count;
	int id[BURST_MAX];
	int expected[BURST_MAX]; /* the model's results */
	struct tw_item item[BURST_MAX];
	struct tw_handle handle[BURST_MAX];
	int told[BURST_MAX];
} many;

void play_many_begin(struct play *play)
{
	(void)play;
	many.count = 0;
}

void play_many_add(struct play *play, const struct scheduling *what)
{
	int id = play->model.count;
	int at = many.count;

	if (id == MODEL_TIMEOUTS_MAX)
		return;
	many.id[at] = id;
	many.expected[at] = play_schedule_ask(play, what);
	many.item[at] = (struct tw_item){what->time_ns, play->record[id].kind, &play->record[id]};
	many.handle[at] = (struct tw_handle){.node = &many, .generation = 5};
	many.told[at] = 1;
	many.count++;
}

void play_many_schedule(struct play *play, bool by_delay)
{
	size_t count = (size_t)many.count;
	int scheduled, accepted = 0;

	if (count == 0)
		return;
	scheduled =
		by_delay ? tw_schedule_many(play->engine, many.item, count, many.handle, many.told)
			 : tw_schedule_many_at(play->engine, many.item, count, many.handle,
					       many.told);
	for (int i = 0; i < many.count; i++) {
		int id = many.id[i];

		play_expect(play, id, "an item of a batch", many.told[i], many.expected[i]);
		play_scheduled(play, id, many.told[i], many.handle[i]);
		accepted += many.told[i] == 0;
		if (many.told[i] != 0 &&
		    (many.handle[i].node != NULL || many.handle[i].generation != 0))
			play_fail(play, "an item that was rejected has a handle");
	}
	play_expect(play, MODEL_NOBODY, "a batch", scheduled, accepted);
}

void play_many_add_handle(struct play *play, int id)
{
	if (id == MODEL_NOBODY)
		return;
	many.id[many.count] = id;
	many.expected[many.count] = model_cancel(&play->model, id);
	many.handle[many.count] = play->record[id].handle;
	many.told[many.count++] = -1;
}

void play_many_cancel(struct play *play)
{
	int cancelled, done = 0;

	if (many.count == 0)
		return;
	cancelled = tw_cancel_many(many.handle, (size_t)many.count, many.told);
	for (int i = 0; i < many.count; i++) {
		int id = many.id[i];

		play_expect(
			play, id, "a cancel of a batch", many.told[i],
			play_expected(play, id, many.told[i], TW_CANCEL_STALE, many.expected[i]));
		done += many.told[i] == TW_CANCEL_DONE;
	}
	play_expect(play, MODEL_NOBODY, "a batch of cancels", cancelled, done);
}
