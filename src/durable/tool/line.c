/* SPDX-License-Identifier: MIT */
#include "durable/tool/line.h"

#include "durable/tool/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum type {
	NUMBER,
	TEXT,
	TRUTH,
	HEX,
	ARRAY,
};

static const struct member {
	const char *name;
	enum type type;
} members[TWI_TOOL_MEMBERS] = {
	[TWI_TOOL_DUMP] = {"tickwheel_durable_dump", NUMBER},
	[TWI_TOOL_SERIAL] = {"serial", NUMBER},
	[TWI_TOOL_CLEAN] = {"clean", TRUTH},
	[TWI_TOOL_HIGHEST] = {"highest_ns", NUMBER},
	[TWI_TOOL_BOOT] = {"boot", TEXT},
	[TWI_TOOL_BASE] = {"base_ns", NUMBER},
	[TWI_TOOL_STEP] = {"step_ns", NUMBER},
	[TWI_TOOL_KINDS] = {"kinds", ARRAY},
	[TWI_TOOL_PAUSED] = {"paused", ARRAY},
	[TWI_TOOL_ROWS] = {"rows", NUMBER},
	[TWI_TOOL_ID] = {"id", TEXT},
	[TWI_TOOL_DUE_NS] = {"due_ns", NUMBER},
	[TWI_TOOL_DUE] = {"due", TEXT},
	[TWI_TOOL_KIND] = {"kind", TEXT},
	[TWI_TOOL_ATTEMPT] = {"attempt", NUMBER},
	[TWI_TOOL_VERSION] = {"version", NUMBER},
	[TWI_TOOL_STARTED] = {"started", TRUTH},
	[TWI_TOOL_IS_DEAD] = {"dead", TRUTH},
	[TWI_TOOL_ENDED] = {"ended_ns", NUMBER},
	[TWI_TOOL_KEY] = {"key", TEXT},
	[TWI_TOOL_KEY_HEX] = {"key_hex", HEX},
	[TWI_TOOL_PAYLOAD] = {"payload", TEXT},
	[TWI_TOOL_PAYLOAD_HEX] = {"payload_hex", HEX},
};

int twi_tool_line_open(struct twi_tool_line *line, struct twi_database *database)
{
	int code = sqlite3_prepare_v2(database->sqlite,
				      "SELECT key, type, atom, value FROM json_each(?)", -1,
				      &line->walk, NULL);

	return code == SQLITE_ERROR ? -EOPNOTSUPP : twi_database_error(code);
}

void twi_tool_line_close(struct twi_tool_line *line)
{
	sqlite3_finalize(line->walk);
	for (int i = 0; i < TWI_TOOL_MEMBERS; i++)
		free(line->texts[i].bytes);
	*line = (struct twi_tool_line){.walk = NULL};
}

static int rejected(struct twi_tool_line *line, const char *wrong)
{
	line->wrong = wrong;
	return -EINVAL;
}

static int text_set(struct twi_tool_text *text, const void *bytes, size_t count)
{
	if (count >= text->room) {
		char *more = realloc(text->bytes, 2 * count + 1);

		if (more == NULL)
			return -ENOMEM;
		text->bytes = more;
		text->room = 2 * count + 1;
	}
	if (count > 0)
		memcpy(text->bytes, bytes, count);
	text->bytes[count] = '\0';
	text->count = count;
	return 0;
}

/* Returns the value of a hexadecimal digit, or -1. Dumps have lower-case digits only. */
static int digit_of(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static int hex_read(struct twi_tool_line *line, struct twi_tool_text *text)
{
	if (text->count % 2 != 0)
		return rejected(line, "has an odd number of hexadecimal digits");
	for (size_t i = 0; i < text->count; i += 2) {
		int high = digit_of(text->bytes[i]), low = digit_of(text->bytes[i + 1]);

		if (high < 0 || low < 0)
			return rejected(line, "has wrong hexadecimal digits");
		text->bytes[i / 2] = (char)(high << 4 | low);
	}
	text->count /= 2;
	return 0;
}

static bool type_is(enum type type, const char *there)
{
	switch (type) {
	case NUMBER:
		return strcmp(there, "integer") == 0;
	case TRUTH:
		return strcmp(there, "true") == 0 || strcmp(there, "false") == 0;
	case ARRAY:
		return strcmp(there, "array") == 0;
	case TEXT:
	case HEX:
	default:
		return strcmp(there, "text") == 0;
	}
}

static int value_read(struct twi_tool_line *line, size_t member)
{
	enum type type = members[member].type;
	int result;

	if (!type_is(type, (const char *)sqlite3_column_text(line->walk, 1)))
		return rejected(line, "has a member of the wrong type");
	if (type == NUMBER || type == TRUTH) {
		line->numbers[member] = sqlite3_column_int64(line->walk, 2);
		return 0;
	}
	result = text_set(&line->texts[member], sqlite3_column_text(line->walk, 3),
			  (size_t)sqlite3_column_bytes(line->walk, 3));
	return result == 0 && type == HEX ? hex_read(line, &line->texts[member]) : result;
}

static int member_read(struct twi_tool_line *line)
{
	const char *name = (const char *)sqlite3_column_text(line->walk, 0);

	for (size_t i = 0; i < TWI_TOOL_MEMBERS && name != NULL; i++) {
		if (strcmp(members[i].name, name) != 0)
			continue;
		if ((line->seen & TWI_TOOL_BIT(i)) != 0)
			return rejected(line, "has a member twice");
		line->seen |= TWI_TOOL_BIT(i);
		return value_read(line, i);
	}
	return rejected(line, "has a member that a dump of this version does not have");
}

/*
 * Returns whether a text has the escape of a NUL. SQLite would treat the part before it as the
 * whole text.
 */
static bool has_nul(const char *text, size_t bytes)
{
	static const char escape[] = "\\u0000";
	const char *at = text, *end = text + bytes;

	while ((at = memmem(at, (size_t)(end - at), escape, sizeof escape - 1)) != NULL) {
		size_t before = 0;

		/*
		 * In JSON two backslashes stand for one. So the escape counts only behind an even
		 * number of them.
		 */
		while (at > text + before && at[-1 - (ptrdiff_t)before] == '\\')
			before++;
		if (before % 2 == 0)
			return true;
		at++;
	}
	return false;
}

int twi_tool_line_read(struct twi_tool_line *line, const char *text, size_t bytes)
{
	int code, result = 0;

	line->seen = 0;
	/* SQLite's JSON reader treats the part before a NUL as the whole line. */
	if (bytes > INT32_MAX || memchr(text, '\0', bytes) != NULL)
		return rejected(line, "is not JSON");
	if (has_nul(text, bytes))
		return rejected(line, "has a NUL in a text: write such bytes as digits");
	sqlite3_bind_text(line->walk, 1, text, (int)bytes, SQLITE_STATIC);
	while (result == 0 && (code = sqlite3_step(line->walk)) == SQLITE_ROW)
		result = member_read(line);
	sqlite3_reset(line->walk);
	if (result != 0 || code == SQLITE_DONE)
		return result;
	return code == SQLITE_ERROR ? rejected(line, "is not JSON") : twi_database_error(code);
}

int twi_tool_line_check(struct twi_tool_line *line, uint32_t needs, uint32_t may)
{
	if ((line->seen & needs) != needs)
		return rejected(line, "lacks a member");
	return (line->seen & ~(needs | may)) == 0 ? 0
						  : rejected(line, "has a member of another line");
}

/* Returns the bytes that the line has as text or as hexadecimal digits, or none. */
static const struct twi_tool_text *bytes_of(const struct twi_tool_line *line,
					    enum twi_tool_member text, enum twi_tool_member hex)
{
	static const struct twi_tool_text none;

	if ((line->seen & TWI_TOOL_BIT(text)) != 0)
		return &line->texts[text];
	return (line->seen & TWI_TOOL_BIT(hex)) != 0 ? &line->texts[hex] : &none;
}

static bool both(const struct twi_tool_line *line, enum twi_tool_member one,
		 enum twi_tool_member other)
{
	uint32_t bits = TWI_TOOL_BIT(one) | TWI_TOOL_BIT(other);

	return (line->seen & bits) == bits;
}

static bool is_true(const struct twi_tool_line *line, enum twi_tool_member member)
{
	return (line->seen & TWI_TOOL_BIT(member)) != 0 && line->numbers[member] != 0;
}

int twi_tool_line_row(struct twi_tool_line *line, struct tw_durable_row *ret)
{
	const struct twi_tool_text *key = bytes_of(line, TWI_TOOL_KEY, TWI_TOOL_KEY_HEX);
	const struct twi_tool_text *payload =
		bytes_of(line, TWI_TOOL_PAYLOAD, TWI_TOOL_PAYLOAD_HEX);
	int64_t version = line->numbers[TWI_TOOL_VERSION];

	*ret = (struct tw_durable_row){
		.due_ns = line->numbers[TWI_TOOL_DUE_NS],
		.attempt = (uint64_t)line->numbers[TWI_TOOL_ATTEMPT],
		.version = (uint32_t)version,
		.started = is_true(line, TWI_TOOL_STARTED),
		.dead = is_true(line, TWI_TOOL_IS_DEAD),
		.key = key->bytes,
		.key_bytes = (uint32_t)key->count,
		.payload = payload->bytes,
		.payload_bytes = (uint32_t)payload->count,
	};
	if (!twi_tool_id_read(line->texts[TWI_TOOL_ID].bytes, &ret->id))
		return rejected(line, "has no id");
	if (both(line, TWI_TOOL_KEY, TWI_TOOL_KEY_HEX) ||
	    both(line, TWI_TOOL_PAYLOAD, TWI_TOOL_PAYLOAD_HEX))
		return rejected(line, "has a member as text and as digits");
	if (line->numbers[TWI_TOOL_ATTEMPT] < 0 || version < 0 || version > UINT32_MAX)
		return rejected(line, "has a number out of range");
	if (ret->due_ns == INT64_MAX || ret->due_ns == INT64_MIN)
		return rejected(line, "has a deadline out of range");
	if (key->count > TWI_TOOL_KEY_MAX)
		return rejected(line, "has a key of more than 255 bytes");
	if ((line->seen & TWI_TOOL_BIT(TWI_TOOL_ENDED)) != 0 ? !ret->dead : ret->dead)
		return rejected(line, "is a dead letter without ended_ns, or the reverse");
	return ret->dead && ret->started ? rejected(line, "is a dead letter that runs") : 0;
}
