/* SPDX-License-Identifier: MIT */
/*
 * Makes a failing sequence small, by delta debugging. It removes parts as long as the sequence
 * still fails: halves first, single operations last. Then it makes values small. Any failure
 * counts, even a different one.
 */
#include "attempt.h"

#include <string.h>
#include <time.h>

enum {
	/* longer than any sequence takes; each attempt that hangs takes this long */
	ATTEMPT_SECONDS = 3,
	BUDGET_SECONDS = 60,
	/* Each candidate must fail this many times in a row. If threads race, it must still fail
	 * when a reader replays it. */
	FAILURES = 3,
};

struct shrinking {
	struct sequence *sequence;
	struct failure *failure;
	time_t until;
};

static bool goes_wrong(const struct sequence *candidate, struct failure *ret_failure)
{
	for (int i = 0; i < FAILURES; i++) {
		if (attempt_sequence(candidate, ATTEMPT_SECONDS, ret_failure))
			return false;
	}
	return true;
}

/*
 * Tries a candidate, if time is left. If the candidate fails, it replaces the sequence, and the
 * function returns true.
 */
static bool replace(struct shrinking *shrinking, const struct sequence *candidate)
{
	struct failure failure;

	if (time(NULL) >= shrinking->until || !goes_wrong(candidate, &failure))
		return false;
	*shrinking->sequence = *candidate;
	*shrinking->failure = failure;
	return true;
}

static bool without(struct shrinking *shrinking, int at, int count)
{
	static struct sequence candidate;

	candidate = *shrinking->sequence;
	memmove(&candidate.op[at], &candidate.op[at + count],
		sizeof(candidate.op[0]) * (size_t)(candidate.count - at - count));
	candidate.count -= count;
	return replace(shrinking, &candidate);
}

/* Begins at the end, because most operations there are not needed for the failure. */
static bool parts_drop(struct shrinking *shrinking, int size)
{
	bool dropped = false;

	for (int at = shrinking->sequence->count - size; at >= 0; at -= size) {
		if (at + size <= shrinking->sequence->count)
			dropped |= without(shrinking, at, size);
	}
	return dropped;
}

static bool ops_drop(struct shrinking *shrinking)
{
	bool dropped = false;

	for (int size = shrinking->sequence->count / 2; size > 0; size /= 2)
		dropped |= parts_drop(shrinking, size);
	return dropped;
}

static bool value_try(struct shrinking *shrinking, int at, int number, int64_t value)
{
	static struct sequence candidate;

	candidate = *shrinking->sequence;
	candidate.op[at].value[number] = value;
	return replace(shrinking, &candidate);
}

static bool value_shrink(struct shrinking *shrinking, int at, int number)
{
	const int64_t *value = &shrinking->sequence->op[at].value[number];
	bool shrunk = false;

	if (*value == 0)
		return false;
	if (value_try(shrinking, at, number, 0))
		return true;
	if (*value != 1 && value_try(shrinking, at, number, 1))
		return true;
	while ((*value > 2 || *value < -2) && value_try(shrinking, at, number, *value / 2))
		shrunk = true;
	while (*value > 2 && *value < 100 && value_try(shrinking, at, number, *value - 1))
		shrunk = true;
	return shrunk;
}

static bool values_shrink(struct shrinking *shrinking)
{
	bool shrunk = false;

	for (int at = 0; at < shrinking->sequence->count; at++) {
		int count = op_value_count(shrinking->sequence->op[at].code);

		for (int number = 0; number < count; number++)
			shrunk |= value_shrink(shrinking, at, number);
	}
	return shrunk;
}

void sequence_shrink(struct sequence *sequence, struct failure *failure)
{
	struct shrinking shrinking = {sequence, failure, time(NULL) + BUDGET_SECONDS};

	bool shrunk = true;

	while (shrunk) {
		shrunk = ops_drop(&shrinking);
		shrunk |= values_shrink(&shrinking);
	}
}
