/* SPDX-License-Identifier: MIT */
/*
 * Plays sequences in a child process: what is played may end the process, or hang. The parent never
 * uses the library, so that it may fork as often as it likes.
 */
#ifndef ORACLE_ATTEMPT_H
#define ORACLE_ATTEMPT_H

#include "op.h"

#include <stdbool.h>
#include <stdint.h>

/* How it went wrong. */
struct failure {
	uint64_t seed;
	int at; /* the operation, from 0; `count` of the sequence: while taking it all down */
	char what[300];
};

/* False: it went wrong. `seconds`: more is a hang. */
bool attempt_sequence(const struct sequence *sequence, unsigned seconds,
		      struct failure *ret_failure);

/* Seeds one after the other, until one goes wrong. */
bool attempt_seeds(uint64_t from, uint64_t count, struct failure *ret_failure);

/* shrink.c: takes out of a sequence that goes wrong what it does not need for that. */
void sequence_shrink(struct sequence *sequence, struct failure *failure);

#endif
