/* SPDX-License-Identifier: MIT */
/*
 * Plays sequences in a child process, because a sequence may end the process or hang. The parent
 * itself never uses the library, so it may fork as often as it likes.
 */
#ifndef ORACLE_ATTEMPT_H
#define ORACLE_ATTEMPT_H

#include "op.h"

#include <stdbool.h>
#include <stdint.h>

/* A failed sequence and its cause. */
struct failure {
	uint64_t seed;
	/*
	 * the number of the operation that failed, from 0; if equal to the sequence's `count`:
	 * play_finish failed
	 */
	int at;
	char what[300];
};

/*
 * Plays a sequence. Returns false if it fails. If it takes more than `seconds`, it counts as a hang
 * and fails.
 */
bool attempt_sequence(const struct sequence *sequence, unsigned seconds,
		      struct failure *ret_failure);

/* Plays one seed after the other until one fails. */
bool attempt_seeds(uint64_t from, uint64_t count, struct failure *ret_failure);

/* shrink.c: removes parts of a failing sequence as long as it still fails. */
void sequence_shrink(struct sequence *sequence, struct failure *failure);

#endif
