/* SPDX-License-Identifier: MIT */
/*
 * Sequences as text: `name key=value ...`. A value that is left out is 0. Some values can be
 * written as names.
 */
#include "op.h"

#include "variant.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct field {
	const char *name;
	const char *(*word)(int64_t number);
};

struct shape {
	const char *name;
	struct field field[OP_VALUES_MAX];
};

static const char *base_word(int64_t number)
{
	static const char *const words[BASES] = {
		[BASE_NOW] = "now",      [BASE_GRID] = "grid", [BASE_SAME] = "same",
		[BASE_START] = "start",  [BASE_ZERO] = "zero", [BASE_NEVER] = "never",
		[BASE_REJECTED] = "min",
	};

	return number >= 0 && number < BASES ? words[number] : NULL;
}

static const char *act_word(int64_t number)
{
	static const char *const words[ACTS] = {
		[ACT_NOTHING] = "nothing", [ACT_REARM] = "rearm", [ACT_LATE] = "late",
		[ACT_PEER] = "peer",       [ACT_PEERS] = "peers", [ACT_SELF] = "self",
		[ACT_CLOCK] = "clock",     [ACT_CALLS] = "calls", [ACT_MOVE] = "move",
	};

	return number >= 0 && number < ACTS ? words[number] : NULL;
}

static const char *wheel_word(int64_t number)
{
	return number >= 0 && number < variant_count ? variants[number].name : NULL;
}

static const struct shape shapes[OP_CODES] = {
	[OP_CREATE] = {"create",
		       {{"wheel", wheel_word},
			{"tick", NULL},
			{"slots", NULL},
			{"batch", NULL},
			{"limit", NULL},
			{"start", NULL},
			{"check", NULL},
			{"dispatch", NULL},
			{"poor", NULL},
			{"owned", NULL},
			{"outside", NULL}}},
	[OP_DESTROY] = {"destroy", {{NULL, NULL}}},
	[OP_START] = {"start", {{NULL, NULL}}},
	[OP_STOP] = {"stop", {{"hook", NULL}}},
	[OP_SCHEDULE] = {"schedule",
			 {{"base", base_word},
			  {"turns", NULL},
			  {"ticks", NULL},
			  {"ns", NULL},
			  {"count", NULL},
			  {"stride", NULL},
			  {"final", NULL},
			  {"hold", NULL},
			  {"aside", NULL},
			  {"act", act_word},
			  {"argument", NULL},
			  {"then", act_word},
			  {"again", NULL},
			  {"many", NULL}}},
	[OP_CANCEL] = {"cancel",
		       {{"which", NULL},
			{"count", NULL},
			{"step", NULL},
			{"wait", NULL},
			{"aside", NULL},
			{"many", NULL}}},
	[OP_CLOCK] = {"clock",
		      {{"base", base_word},
		       {"turns", NULL},
		       {"ticks", NULL},
		       {"ns", NULL},
		       {"flush", NULL}}},
	[OP_FLUSH] = {"flush", {{NULL, NULL}}},
	[OP_RELEASE] = {"release", {{NULL, NULL}}},
	[OP_DUE] = {"due", {{"runs", NULL}, {"accept", NULL}}},
	[OP_MEMORY] = {"memory", {{"there", NULL}}},
	[OP_MISUSE] = {"misuse", {{NULL, NULL}}},
	[OP_RESCHEDULE] = {"reschedule",
			   {{"base", base_word},
			    {"turns", NULL},
			    {"ticks", NULL},
			    {"ns", NULL},
			    {"which", NULL},
			    {"count", NULL},
			    {"step", NULL},
			    {"aside", NULL}}},
};

int op_value_count(enum op_code code)
{
	int count = 0;

	while (count < OP_VALUES_MAX && shapes[code].field[count].name != NULL)
		count++;
	return count;
}

static void value_print(const struct field *field, int64_t value, FILE *file)
{
	const char *word = field->word != NULL ? field->word(value) : NULL;

	if (word != NULL)
		fprintf(file, " %s=%s", field->name, word);
	else
		fprintf(file, " %s=%lld", field->name, (long long)value);
}

void op_print(const struct op *op, FILE *file)
{
	const struct shape *shape = &shapes[op->code];

	fputs(shape->name, file);
	for (int i = 0; i < op_value_count(op->code); i++) {
		if (op->value[i] != 0)
			value_print(&shape->field[i], op->value[i], file);
	}
	fputc('\n', file);
}

void sequence_print(const struct sequence *sequence, FILE *file)
{
	for (int i = 0; i < sequence->count; i++)
		op_print(&sequence->op[i], file);
}

static bool value_read(const struct field *field, const char *text, int64_t *ret_value)
{
	char *end;

	for (int64_t number = 0; field->word != NULL && field->word(number) != NULL; number++) {
		if (strcmp(field->word(number), text) == 0) {
			*ret_value = number;
			return true;
		}
	}
	errno = 0;
	*ret_value = strtoll(text, &end, 10);
	return field->word == NULL && end != text && *end == '\0' && errno == 0;
}

/* Reads `key=value`. */
static bool pair_read(struct op *op, char *pair)
{
	const struct shape *shape = &shapes[op->code];
	char *value = strchr(pair, '=');

	if (value == NULL)
		return false;
	*value++ = '\0';
	for (int i = 0; i < op_value_count(op->code); i++) {
		if (strcmp(shape->field[i].name, pair) == 0)
			return value_read(&shape->field[i], value, &op->value[i]);
	}
	return false;
}

static bool name_read(struct op *op, const char *name)
{
	for (int code = 0; code < OP_CODES; code++) {
		if (strcmp(shapes[code].name, name) == 0) {
			*op = (struct op){.code = (enum op_code)code};
			return true;
		}
	}
	return false;
}

static bool line_read(struct sequence *sequence, char *line)
{
	char *rest = NULL;
	char *word = strtok_r(line, " \t\r\n", &rest);
	struct op op;

	if (word == NULL || word[0] == '#')
		return true;
	if (sequence->count == SEQUENCE_OPS_MAX || !name_read(&op, word))
		return false;
	while ((word = strtok_r(NULL, " \t\r\n", &rest)) != NULL) {
		if (!pair_read(&op, word))
			return false;
	}
	sequence->op[sequence->count++] = op;
	return true;
}

int sequence_read(struct sequence *ret_sequence, FILE *file)
{
	char line[512];

	ret_sequence->count = 0;
	for (int number = 1; fgets(line, sizeof(line), file) != NULL; number++) {
		if (!line_read(ret_sequence, line))
			return number;
	}
	return 0;
}
