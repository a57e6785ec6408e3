/* SPDX-License-Identifier: MIT */
/* The items: schedules, ends and counts them, and measures how late their callbacks ran. */
#include "soak.h"

#include "harness/histogram.h"

#include <errno.h>
#include <stdio.h>

enum {
	NS_PER_MS = 1000000,
	/*
	 * A timeout that is later than this counts as forgotten. Shorter delays occur when a shared
	 * machine stands still.
	 */
	FORGOTTEN_S = 30,
};

static pthread_mutex_t lateness_lock = PTHREAD_MUTEX_INITIALIZER;
static struct histogram lateness;

static void lateness_note(int64_t late_ns)
{
	RACE_CHECK(late_ns >= 0);
	RACE_CHECK(late_ns < FORGOTTEN_S * INT64_C(1000000000));
	pthread_mutex_lock(&lateness_lock);
	histogram_add(&lateness, late_ns);
	pthread_mutex_unlock(&lateness_lock);
}

static double percentile_us(double fraction)
{
	return lateness.count > 0 ? histogram_percentile(&lateness, fraction) / 1000 : 0;
}

void lateness_tell(void)
{
	pthread_mutex_lock(&lateness_lock);
	printf("late us p50 %.0f p99 %.0f p99.9 %.0f max %.0f of %lu", percentile_us(0.5),
	       percentile_us(0.99), percentile_us(0.999), (double)lateness.max / 1000,
	       (unsigned long)lateness.count);
	lateness = (struct histogram){.count = 0};
	pthread_mutex_unlock(&lateness_lock);
}

/* Ends the item; called exactly once for each timeout. */
static void item_end(struct item *item, enum tw_end end, enum life next)
{
	_Atomic uint64_t *const count[] = {
		[TW_END_EXPIRED] = &books.expired,
		[TW_END_CANCELLED] = &books.cancelled,
		[TW_END_UNEXPIRED] = &books.unexpired,
	};

	atomic_fetch_add(count[end], 1);
	RACE_CHECK(atomic_exchange(&item->life, next) == LIFE_PENDING);
}

static int64_t random_delay_ns(struct random *random)
{
	uint64_t dice = random_below(random, 100);

	if (dice < 5)
		return TW_NEVER;
	if (dice < 40)
		return (int64_t)random_below(random, 5 * NS_PER_MS) - 1000;
	if (dice < 70)
		return (int64_t)random_below(random, 200 * UINT64_C(1000000));
	return (int64_t)random_below(random, UINT64_C(600000000000));
}

static void on_expire(struct tw_handle self, void *arg);
static void on_final(void *arg, enum tw_end end);

static const struct tw_kind plain_kind = TW_KIND(on_expire, NULL);
static const struct tw_kind final_kind = TW_KIND(on_expire, on_final);

/*
 * Schedules the item. Sets its life to PENDING first, because another thread may end it at once.
 * Returns false if the schedule is rejected; then the caller must set the life.
 */
static bool item_offer(struct item *item, int64_t deadline_ns, struct tw_handle *ret_handle)
{
	int result;

	atomic_store(&item->deadline_ns, deadline_ns);
	atomic_store(&item->life, LIFE_PENDING);
	atomic_fetch_add(&books.scheduled, 1);
	result = tw_schedule_at(engine_of(item->engine), deadline_ns,
				item->counted_by_finaliser ? &final_kind : &plain_kind, item,
				ret_handle);
	if (result == 0)
		return true;
	RACE_CHECK(result == -ESHUTDOWN);
	atomic_fetch_sub(&books.scheduled, 1);
	atomic_fetch_add(&books.rejected, 1);
	return false;
}

static int64_t deadline_of(const struct item *item, int64_t delay_ns)
{
	if (delay_ns == TW_NEVER)
		return TW_NEVER;
	return tw_engine_now(engine_of(item->engine)) + delay_ns;
}

void item_schedule(struct item *item, uint32_t engine, struct random *random)
{
	item->engine = engine;
	/*
	 * No thread cancels a chained item. Only its last run or a stop ends it, so each run must
	 * be due soon.
	 */
	item->chained = random_below(random, 16) == 0;
	item->links = item->chained ? 3 : 0;
	item->counted_by_finaliser = !item->chained && random_below(random, 2) == 0;
	if (!item_offer(item,
			deadline_of(item, item->chained ? NS_PER_MS : random_delay_ns(random)),
			item->chained ? NULL : &item->handle))
		atomic_store(&item->life, LIFE_FREE);
}

static void link_next(struct item *item)
{
	item_end(item, TW_END_EXPIRED, LIFE_BETWEEN);
	item->links--;
	if (!item_offer(item, deadline_of(item, NS_PER_MS), NULL))
		atomic_store(&item->life, LIFE_FREE);
}

static void on_expire(struct tw_handle self, void *arg)
{
	struct item *item = arg;

	(void)self;
	lateness_note(tw_engine_now(engine_of(item->engine)) - atomic_load(&item->deadline_ns));
	if (item->counted_by_finaliser)
		return;
	if (item->links > 0)
		link_next(item);
	else
		item_end(item, TW_END_EXPIRED, LIFE_FREE);
}

static void on_final(void *arg, enum tw_end end)
{
	item_end(arg, end, LIFE_FREE);
}

void item_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		    int64_t remaining_ns)
{
	struct item *item = arg;

	(void)context;
	(void)handle;
	(void)kind;
	RACE_CHECK(remaining_ns > -FORGOTTEN_S * INT64_C(1000000000));
	if (!item->counted_by_finaliser)
		item_end(item, TW_END_UNEXPIRED, LIFE_FREE);
}

void item_cancel(struct item *item, bool wait)
{
	bool counted_by_finaliser = item->counted_by_finaliser;
	int outcome = wait ? tw_cancel_wait(item->handle, TW_NEVER) : tw_cancel(item->handle);

	RACE_CHECK(outcome >= 0 && outcome <= TW_CANCEL_STALE);
	if (outcome == TW_CANCEL_DONE && !counted_by_finaliser)
		item_end(item, TW_END_CANCELLED, LIFE_FREE);
}

void item_treat(struct item *item, struct random *random)
{
	uint64_t dice = random_below(random, 16);
	uint32_t engine = (uint32_t)random_below(random, ENGINES);

	if (atomic_load(&item->life) == LIFE_PENDING && !item->chained && dice < 12)
		item_cancel(item, dice == 0);
	/* The item is free if this cancel or another thread has ended it. */
	if (atomic_load(&item->life) == LIFE_FREE && dice >= 6)
		item_schedule(item, engine, random);
}
