/* SPDX-License-Identifier: MIT */
/*
 * The tour's batches: schedules and cancels some timeouts of each engine. Each item has an entry of
 * its own in the ledger (ledger.h).
 */
#include "tour_inner.h"

#include <errno.h>

enum { BATCH = 40 };

struct many {
	struct entry *entry[BATCH];
	struct tw_item item[BATCH];
	struct tw_handle handle[BATCH];
	int error[BATCH];
};

static void many_make(struct many *many, struct tw_engine *engine, int64_t base_ns, int64_t step_ns)
{
	for (int i = 0; i < BATCH; i++) {
		struct entry *entry = entry_new(engine, &many->item[i].kind);

		many->entry[i] = entry;
		many->item[i].time_ns = base_ns + i * step_ns;
		many->item[i].arg = entry;
	}
}

/* Checks the result of the call, and of each item. */
static void many_judge(struct many *many, enum call call, uint32_t expected, int64_t scheduled)
{
	int64_t accepted = 0;

	RACE_CHECK(tour_code(call, 0, scheduled) >= 0);
	for (int i = 0; i < BATCH; i++) {
		struct entry *entry = many->entry[i];

		if (tour_code(call, expected, many->error[i]) != 0)
			continue;
		accepted++;
		entry->handle = many->handle[i];
		atomic_store(&entry->accepted, true);
	}
	RACE_CHECK(accepted == scheduled);
}

static void many_cancel(const struct many *many, int count)
{
	int outcome[BATCH];
	int64_t cancelled = tw_cancel_many(many->handle, (size_t)count, outcome);

	RACE_CHECK(tour_code(CALL_CANCEL_MANY, 0, cancelled) >= 0);
	for (int i = 0; i < count; i++) {
		uint32_t expected = many->error[i] == 0 ? 0 : CODE_EINVAL;

		if (tour_code(CALL_CANCEL_MANY, expected, outcome[i]) != TW_CANCEL_DONE)
			continue;
		cancelled--;
		entry_cancelled(many->entry[i]);
	}
	RACE_CHECK(cancelled == 0);
}

static void bad_ones(void)
{
	struct tw_item item = {0};

	tour_exactly(CALL_SCHEDULE_MANY, tw_schedule_many(tour.real, &item, 0, NULL, NULL),
		     -EINVAL);
	tour_exactly(CALL_SCHEDULE_MANY,
		     tw_schedule_many(tour.real, &item, (size_t)1 << 31, NULL, NULL), -ERANGE);
	tour_exactly(CALL_SCHEDULE_MANY_AT, tw_schedule_many_at(tour.real, NULL, 1, NULL, NULL),
		     -EINVAL);
	tour_exactly(CALL_CANCEL_MANY, tw_cancel_many(NULL, 1, NULL), -EINVAL);
}

void step_batches(void)
{
	struct many many;
	int64_t now_ns = tour_code(CALL_NOW, 0, tw_engine_now(tour.real));

	many_make(&many, tour.real, TW_NEVER - BATCH, 1);
	many_judge(&many, CALL_SCHEDULE_MANY, 0,
		   tw_schedule_many(tour.real, many.item, BATCH, many.handle, many.error));
	many_cancel(&many, BATCH / 2);
	many_make(&many, tour.real, now_ns + 1000 * MS, MS);
	many_judge(&many, CALL_SCHEDULE_MANY_AT, 0,
		   tw_schedule_many_at(tour.real, many.item, BATCH, many.handle, many.error));
	many_make(&many, tour.moved, 0, MS);
	many_judge(&many, CALL_SCHEDULE_MANY, CODE_EAGAIN,
		   tw_schedule_many(tour.moved, many.item, BATCH, many.handle, many.error));
	many_cancel(&many, BATCH / 2);
	bad_ones();
}
