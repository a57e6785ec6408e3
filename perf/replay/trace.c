/* SPDX-License-Identifier: MIT */
/*
 * Parses a trace into an array, so that a replay spends its time in the engine.
 */
#include "replay/trace.h"

#include "replay/id_map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The bound keeps the sum of a time and a delay from overflowing. */
#define NUMBER_MAX (INT64_MAX / 4)

struct parser {
	struct trace *trace;
	struct id_map timers;
	size_t room;
};

static bool parse_number(const char *word, int64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoll(word, &end, 10);
	return end != word && *end == '\0' && errno == 0 && *ret_number >= 0 &&
	       *ret_number <= NUMBER_MAX;
}

static bool parse_verb(const char *word, enum trace_verb *ret_verb)
{
	static const char *const verbs[] = {"arm", "cancel", "fire"};

	for (unsigned i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strcmp(word, verbs[i]) == 0) {
			*ret_verb = (enum trace_verb)i;
			return true;
		}
	return false;
}

/* Returns a text that names the error in the line, or NULL. */
static const char *parse_op(char *line, struct trace_op *op, int64_t *ret_id)
{
	char *rest = NULL;
	const char *words[4];

	for (int i = 0; i < 4; i++)
		words[i] = strtok_r(i ? NULL : line, " \t\r", &rest);
	if (!words[0] || !words[1] || !words[2])
		return "fewer than three words";
	if (!parse_number(words[0], &op->at_ns))
		return "the time is not a number of nanoseconds";
	if (!parse_verb(words[1], &op->verb))
		return "the operation is not arm, cancel or fire";
	if (!parse_number(words[2], ret_id))
		return "the id is not a number";
	if (op->verb == TRACE_ARM && (!words[3] || !parse_number(words[3], &op->delay_ns)))
		return "the delay is not a number of nanoseconds";
	return NULL;
}

static bool append(struct parser *parser, struct trace_op op)
{
	struct trace *trace = parser->trace;

	if (trace->op_count == parser->room) {
		size_t room = parser->room ? parser->room * 2 : 4096;
		struct trace_op *ops = realloc(trace->ops, room * sizeof(*ops));

		if (!ops)
			return false;
		trace->ops = ops;
		parser->room = room;
	}
	trace->ops[trace->op_count++] = op;
	trace->arm_count += op.verb == TRACE_ARM;
	trace->cancel_count += op.verb == TRACE_CANCEL;
	trace->fire_count += op.verb == TRACE_FIRE;
	return true;
}

static int64_t last_ns(const struct trace *trace)
{
	return trace->op_count > 0 ? trace->ops[trace->op_count - 1].at_ns : 0;
}

static const char *parse_line(struct parser *parser, char *line)
{
	struct trace_op op = {0};
	int64_t id = 0;
	const char *problem;

	if (line[0] == '#' || line[strspn(line, " \t\r")] == '\0')
		return NULL;
	problem = parse_op(line, &op, &id);
	if (problem)
		return problem;
	if (op.at_ns < last_ns(parser->trace))
		return "the time is before that of the operation before it (sort -s -n puts lines "
		       "in order)";
	if (id_map_number(&parser->timers, (uint64_t)id, &op.timer) || !append(parser, op))
		return strerror(ENOMEM);
	return NULL;
}

static int parse(const char *path, char *text, struct parser *parser)
{
	size_t number = 0;

	for (char *line = text; line;) {
		char *end = strchr(line, '\n');
		const char *problem;

		if (end)
			*end = '\0';
		number++;
		problem = parse_line(parser, line);
		if (problem) {
			fprintf(stderr, "tickwheel-perf: %s:%zu: %s\n", path, number, problem);
			return -1;
		}
		line = end ? end + 1 : NULL;
	}
	return 0;
}

int trace_load(const char *path, struct trace *ret_trace)
{
	struct parser parser = {.trace = ret_trace};
	size_t bytes = 0;
	char *text = trace_text_read(path, &bytes);
	int error = -1;

	*ret_trace = (struct trace){0};
	if (text && strlen(text) != bytes)
		fprintf(stderr, "tickwheel-perf: %s: not a text\n", path);
	else if (text)
		error = parse(path, text, &parser);
	ret_trace->timer_count = parser.timers.count;
	id_map_done(&parser.timers);
	free(text);
	if (error)
		trace_free(ret_trace);
	return error;
}

void trace_free(struct trace *trace)
{
	free(trace->ops);
	*trace = (struct trace){0};
}
