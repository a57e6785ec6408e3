/* SPDX-License-Identifier: MIT */
/*
 * Lines of a dump. The first is the head: the number of the format, the record of the file, and the
 * names of its kinds. The last line has the number of timers and dead letters, so that an
 * incomplete dump is recognised. Each line in between is a timer or a dead letter.
 */
#ifndef TWI_DURABLE_TOOL_LINE_H
#define TWI_DURABLE_TOOL_LINE_H

#include "durable/file/database.h"

#include <tickwheel/durable_store.h>

enum {
	TWI_TOOL_FORMAT = 1,
	TWI_TOOL_KEY_MAX = 255, /* as in the calls of tickwheel/durable.h */
};

/* The members that a line may have. */
enum twi_tool_member {
	TWI_TOOL_DUMP,
	TWI_TOOL_SERIAL,
	TWI_TOOL_CLEAN,
	TWI_TOOL_HIGHEST,
	TWI_TOOL_BOOT,
	TWI_TOOL_BASE,
	TWI_TOOL_STEP,
	TWI_TOOL_KINDS,
	TWI_TOOL_PAUSED,
	TWI_TOOL_ROWS,
	TWI_TOOL_ID,
	TWI_TOOL_DUE_NS,
	TWI_TOOL_DUE,
	TWI_TOOL_KIND,
	TWI_TOOL_ATTEMPT,
	TWI_TOOL_VERSION,
	TWI_TOOL_STARTED,
	TWI_TOOL_IS_DEAD,
	TWI_TOOL_ENDED,
	TWI_TOOL_KEY,
	TWI_TOOL_KEY_HEX,
	TWI_TOOL_PAYLOAD,
	TWI_TOOL_PAYLOAD_HEX,
	TWI_TOOL_MEMBERS,
};

struct twi_tool_text {
	char *bytes; /* the text, with a NUL behind it */
	size_t count, room;
};

struct twi_tool_line {
	sqlite3_stmt *walk;
	uint32_t seen; /* a bit for each member that the line has */
	int64_t numbers[TWI_TOOL_MEMBERS];
	struct twi_tool_text texts[TWI_TOOL_MEMBERS];
	const char *wrong; /* why the line was rejected */
};

/*
 * Prepares the reader. Returns -EOPNOTSUPP if SQLite, which reads the JSON, was built without JSON.
 */
int twi_tool_line_open(struct twi_tool_line *line, struct twi_database *database);
void twi_tool_line_close(struct twi_tool_line *line);

/* Reads a line. Returns 0, -EINVAL if it is no line of a dump (see `wrong`), or a code. */
int twi_tool_line_read(struct twi_tool_line *line, const char *text, size_t bytes);
/* Checks that the line has all members of `needs`, and no others but those of `may`. */
int twi_tool_line_check(struct twi_tool_line *line, uint32_t needs, uint32_t may);

/*
 * Makes the row of a checked line, except its kind. Returns 0, or -EINVAL (see `wrong`). The row is
 * valid until the next line is read.
 */
int twi_tool_line_row(struct twi_tool_line *line, struct tw_durable_row *ret);

#define TWI_TOOL_BIT(member) (UINT32_C(1) << (member))

#endif
