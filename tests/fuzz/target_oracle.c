/* SPDX-License-Identifier: MIT */
/*
 * Decodes the bytes into a sequence of operations and compares the engine with the reference model
 * (tests/oracle). If they differ, it prints the sequence as text and ends the process.
 */
#include "target.h"

#include "play.h"

#include <stdbool.h>
#include <stdlib.h>

static void differs(const struct sequence *sequence, int at, const char *what)
{
	fprintf(stderr, "operation %d: %s\n", at + 1, what);
	sequence_print(sequence, stderr);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static struct sequence sequence;
	static bool prepared;

	if (!prepared) {
		play_failed = differs;
		play_prepare();
		prepared = true;
	}
	sequence_decode(&sequence, bytes, count);
	play_run(&sequence);
	return 0;
}
