/* SPDX-License-Identifier: MIT */
/*
 * The scripts that the server runs (lua/). Each consists of the texts of clock.lua, of common.lua
 * and of its own file.
 */
#ifndef TWI_DURABLE_REDIS_SCRIPT_H
#define TWI_DURABLE_REDIS_SCRIPT_H

#include <stdbool.h>

enum twi_redis_script {
	TWI_REDIS_OPEN,
	TWI_REDIS_CHECK,
	TWI_REDIS_SESSION,
	TWI_REDIS_BEAT,
	TWI_REDIS_LOOK,
	TWI_REDIS_END,
	TWI_REDIS_RESERVE,
	TWI_REDIS_COMMIT,
	TWI_REDIS_CLAIM,
	TWI_REDIS_RELEASE,
	TWI_REDIS_HELD,
	TWI_REDIS_ROWS,
	TWI_REDIS_FIND_KEY,
	TWI_REDIS_NEAR,
	TWI_REDIS_DEAD,
	TWI_REDIS_TRIM,
	TWI_REDIS_SCRIPT_COUNT,
	/* Texts that are parts of all scripts. */
	TWI_REDIS_CLOCK = TWI_REDIS_SCRIPT_COUNT,
	TWI_REDIS_COMMON,
	TWI_REDIS_LINES_COUNT,
};

enum {
	TWI_REDIS_KEYS = 14,
	TWI_REDIS_PREFIX_MAX = 32,
	TWI_REDIS_KEY_MAX = TWI_REDIS_PREFIX_MAX + 16,
	/*
	 * The most rows of a script. With more, the server would do nothing else for some ten
	 * milliseconds.
	 */
	TWI_REDIS_ROWS_MAX = 1000,
};

/* The lines of each text, and NULL at the end. The build makes the arrays (embed.py). */
extern const char *const *const twi_redis_lines[TWI_REDIS_LINES_COUNT];

/*
 * Returns the text of a script, which the caller frees, or NULL if there is no memory. `clock`: the
 * Lua text that reads the clock, or NULL for that of clock.lua.
 */
char *twi_redis_script_text(enum twi_redis_script script, const char *clock);
/* Returns the text of a script that has these lines, in the same way. */
char *twi_redis_lines_text(const char *const *lines, const char *clock);

/*
 * Makes the names of the keys, in the order of the scripts' KEYS: `{PREFIX:0}:NAME`. A cluster
 * places keys by the part in braces, so that the keys of one partition are together.
 */
void twi_redis_keys(const char *prefix, char (*ret_keys)[TWI_REDIS_KEY_MAX]);

/* Returns whether a prefix has 1 to 32 characters of a-z, 0-9 and '_'. */
bool twi_redis_prefix_right(const char *prefix);

#endif
