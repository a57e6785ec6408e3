/* SPDX-License-Identifier: MIT */
/* The scripts that the server runs (lua/). Each is the text of clock.lua, common.lua and its own. */
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
	/* Parts of the others. */
	TWI_REDIS_CLOCK = TWI_REDIS_SCRIPT_COUNT,
	TWI_REDIS_COMMON,
	TWI_REDIS_LINES_COUNT,
};

enum {
	TWI_REDIS_KEYS = 14,
	TWI_REDIS_PREFIX_MAX = 32,
	TWI_REDIS_KEY_MAX = TWI_REDIS_PREFIX_MAX + 16,
	/* More rows would hold up all that the server does meanwhile for some ten milliseconds. */
	TWI_REDIS_ROWS_MAX = 1000,
};

/* The lines of each, and NULL. Made when the library is built. */
extern const char *const *const twi_redis_lines[TWI_REDIS_LINES_COUNT];

/* The text of a script with this clock (NULL: the server's). The caller frees it. NULL: no memory. */
char *twi_redis_script_text(enum twi_redis_script script, const char *clock);
/* The same of a script whose lines are elsewhere. */
char *twi_redis_lines_text(const char *const *lines, const char *clock);

/* The names of the keys, as the scripts number them: `{PREFIX:0}:NAME`. In braces is what a cluster
 * places them by: one partition's are together. */
void twi_redis_keys(const char *prefix, char (*ret_keys)[TWI_REDIS_KEY_MAX]);

/* 1 to 32 characters of a-z, 0-9 and '_'. */
bool twi_redis_prefix_right(const char *prefix);

#endif
