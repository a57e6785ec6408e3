/* SPDX-License-Identifier: MIT */
/*
 * Recorded timer operations. Each operation is one line; times are in nanoseconds since the start.
 *
 *     <ns> arm <id> <delay_ns> <kind>
 *     <ns> cancel <id>
 *     <ns> fire <id>            counted, not replayed: the engine fires by itself
 *     # a comment
 *
 * Times must not go backwards. Lines that were recorded on several CPUs may be out of order,
 * because the CPUs' clocks differ. Sort them first, with `sort -s -n`.
 */
#ifndef PERF_REPLAY_TRACE_H
#define PERF_REPLAY_TRACE_H

#include <stddef.h>
#include <stdint.h>

enum trace_verb {
	TRACE_ARM,
	TRACE_CANCEL,
	TRACE_FIRE,
};

struct trace_op {
	int64_t at_ns;
	int64_t delay_ns;
	/*
	 * The number of the operation's timer. Ids are numbered from 0 without gaps, in the order
	 * of their first appearance.
	 */
	uint32_t timer;
	enum trace_verb verb;
};

struct trace {
	struct trace_op *ops;
	size_t op_count;
	uint32_t timer_count;
	uint64_t arm_count;
	uint64_t cancel_count;
	uint64_t fire_count;
};

/* Reads a trace, plain or zstd-compressed. Returns 0, or -1 after a message on stderr. */
int trace_load(const char *path, struct trace *ret_trace);

void trace_free(struct trace *trace);

/*
 * Returns the whole text of a file, with a NUL at its end. Decompresses the file if it begins like
 * a zstd file. The caller must free the text. Returns NULL after a message on stderr.
 */
char *trace_text_read(const char *path, size_t *ret_bytes);

#endif
