/* SPDX-License-Identifier: MIT */
/* Checks that each timeout ends exactly once (ledger.h). */
#include "ledger.h"

#include "race.h"

#include <stdio.h>
#include <string.h>

struct ledger ledger;

void ledger_reset(void)
{
	memset(ledger.entry, 0, ledger.count * sizeof ledger.entry[0]);
	atomic_store(&ledger.count, 0);
	atomic_store(&ledger.early, 0);
}

static void on_entry(struct tw_handle self, void *arg)
{
	(void)self;
	entry_expired(arg);
}

const struct tw_kind entry_kind = TW_KIND(on_entry, NULL);
const struct tw_kind entry_final_kind = TW_KIND(on_entry, entry_finaliser);

struct entry *entry_new(struct tw_engine *engine, const struct tw_kind **ret_kind)
{
	unsigned number = atomic_fetch_add(&ledger.count, 1);
	struct entry *entry = &ledger.entry[number];

	RACE_CHECK(number < LEDGER_ENTRIES);
	entry->engine = engine;
	entry->has_finaliser = number % 2 != 0;
	entry->deadline_ns = TW_NEVER;
	entry->due_by_ns = INT64_MAX;
	*ret_kind = entry->has_finaliser ? &entry_final_kind : &entry_kind;
	return entry;
}

void entry_expired(struct entry *entry)
{
	if (entry->deadline_ns != TW_NEVER && tw_engine_now(entry->engine) < entry->deadline_ns)
		atomic_fetch_add(&ledger.early, 1);
	atomic_fetch_add(&entry->expired, 1);
}

void entry_finaliser(void *arg, enum tw_end end)
{
	struct entry *entry = arg;

	atomic_fetch_add(&entry->finalised, 1 + (unsigned)end);
}

void entry_cancelled(struct entry *entry)
{
	atomic_fetch_add(&entry->cancelled, 1);
}

void ledger_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		      int64_t remaining_ns)
{
	struct entry *entry = arg;

	(void)context;
	(void)handle;
	(void)kind;
	(void)remaining_ns;
	atomic_fetch_add(&entry->unexpired, 1);
}

bool entry_ended(const struct entry *entry)
{
	return entry->expired + entry->cancelled + entry->unexpired > 0;
}

/* Returns the value that `finalised` must have (ledger.h), as far as the other fields show it. */
static unsigned finalised_expected(const struct entry *entry)
{
	if (!entry->has_finaliser)
		return 0;
	return entry->expired * (1 + TW_END_EXPIRED) + entry->cancelled * (1 + TW_END_CANCELLED) +
	       entry->unexpired * (1 + TW_END_UNEXPIRED);
}

static void entry_print(const struct entry *entry)
{
	fprintf(stderr,
		"timeout %td of %u: %saccepted, %u expired, %u cancelled, %u handed back, "
		"finalised %u, "
		"deadline %lld\n",
		entry - ledger.entry, ledger.count, entry->accepted ? "" : "not ", entry->expired,
		entry->cancelled, entry->unexpired, entry->finalised,
		(long long)entry->deadline_ns);
}

static void entry_add(const struct entry *entry, struct ledger_sums *sums)
{
	unsigned ends = entry->expired + entry->cancelled + entry->unexpired;
	unsigned accepted = entry->accepted ? 1 : 0;
	bool lost = ends < accepted;
	bool wrong = ends > accepted || entry->finalised != finalised_expected(entry);

	sums->accepted += accepted;
	sums->expired += entry->expired;
	sums->cancelled += entry->cancelled;
	sums->unexpired += entry->unexpired;
	sums->lost += lost;
	sums->wrong += wrong;
	if (lost || wrong)
		entry_print(entry);
}

struct ledger_sums ledger_sum(void)
{
	struct ledger_sums sums = {0};
	unsigned number;

	for (number = 0; number < ledger.count; number++)
		entry_add(&ledger.entry[number], &sums);
	return sums;
}

size_t ledger_overdue(const struct tw_engine *engine, int64_t now_ns)
{
	size_t overdue = 0;
	unsigned number;

	for (number = 0; number < ledger.count; number++) {
		const struct entry *entry = &ledger.entry[number];

		/*
		 * Reads `accepted` first. Before it is set, a callback may still be writing the
		 * entry.
		 */
		overdue += entry->accepted && entry->engine == engine && !entry_ended(entry) &&
			   entry->due_by_ns <= now_ns;
	}
	return overdue;
}
