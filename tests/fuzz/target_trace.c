/* SPDX-License-Identifier: MIT */
/*
 * Reads the bytes as a file of recorded timer operations (perf/replay/trace.h), plain or
 * compressed. The records that it returns must be complete. If they are printed and read again,
 * they must be the same.
 */
#include "target.h"

#include "replay/trace.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,          \
				#condition);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

/* A file in memory, which the reader opens by its path. */
struct scratch {
	int descriptor;
	char path[40];
};

static struct scratch scratch_make(const char *name)
{
	struct scratch scratch = {.descriptor = memfd_create(name, 0)};

	MUST(scratch.descriptor >= 0);
	snprintf(scratch.path, sizeof(scratch.path), "/proc/self/fd/%d", scratch.descriptor);
	return scratch;
}

static void scratch_write(const struct scratch *scratch, const void *bytes, size_t count)
{
	MUST(ftruncate(scratch->descriptor, 0) == 0);
	MUST(pwrite(scratch->descriptor, bytes, count, 0) == (ssize_t)count);
}

static void trace_judge(const struct trace *trace)
{
	uint32_t timers = 0;

	MUST(trace->op_count == trace->arm_count + trace->cancel_count + trace->fire_count);
	for (size_t i = 0; i < trace->op_count; i++) {
		const struct trace_op *op = &trace->ops[i];

		MUST(op->at_ns >= (i > 0 ? op[-1].at_ns : 0) && op->delay_ns >= 0);
		MUST(op->timer <= timers);
		timers += op->timer == timers;
	}
	MUST(timers == trace->timer_count);
}

static char *trace_print(const struct trace *trace, size_t *ret_count)
{
	static const char *const verbs[] = {"arm", "cancel", "fire"};
	char *text = NULL;
	FILE *file = open_memstream(&text, ret_count);

	MUST(file != NULL);
	fputs("# printed\n", file);
	for (size_t i = 0; i < trace->op_count; i++) {
		const struct trace_op *op = &trace->ops[i];

		fprintf(file, "%lld %s %lu", (long long)op->at_ns, verbs[op->verb],
			(unsigned long)op->timer);
		if (op->verb == TRACE_ARM)
			fprintf(file, " %lld kind", (long long)op->delay_ns);
		fputc('\n', file);
	}
	MUST(fclose(file) == 0);
	return text;
}

static void trace_compare(const struct trace *one, const struct trace *other)
{
	MUST(one->op_count == other->op_count && one->timer_count == other->timer_count);
	for (size_t i = 0; i < one->op_count; i++) {
		const struct trace_op *a = &one->ops[i];
		const struct trace_op *b = &other->ops[i];

		MUST(a->verb == b->verb && a->at_ns == b->at_ns && a->timer == b->timer);
		MUST(a->verb != TRACE_ARM || a->delay_ns == b->delay_ns);
	}
}

static void print_and_compare(const struct scratch *scratch, const struct trace *trace)
{
	struct trace again;
	size_t count;
	char *text = trace_print(trace, &count);

	scratch_write(scratch, text, count);
	free(text);
	MUST(trace_load(scratch->path, &again) == 0);
	trace_compare(trace, &again);
	trace_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
	static struct scratch scratch;
	struct trace trace;

	if (scratch.descriptor == 0)
		scratch = scratch_make("trace");
	scratch_write(&scratch, bytes, count);
	if (trace_load(scratch.path, &trace) != 0)
		return 0;
	trace_judge(&trace);
	print_and_compare(&scratch, &trace);
	trace_free(&trace);
	return 0;
}
