/* SPDX-License-Identifier: MIT */
#include "durable/redis/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[TWI_REDIS_KEYS] = {
	"meta", "session", "beat", "outcomes", "timer", "run",  "free",
	"held", "key",     "dead", "buried",   "ended", "kind", "paused",
};

static size_t lines_bytes(const char *const *lines)
{
	size_t bytes = 0;

	for (; *lines != NULL; lines++)
		bytes += strlen(*lines);
	return bytes;
}

static char *lines_copy(char *at, const char *const *lines)
{
	for (; *lines != NULL; lines++)
		at = stpcpy(at, *lines);
	return at;
}

char *twi_redis_lines_text(const char *const *lines, const char *clock)
{
	const char *const other_clock[] = {clock, NULL};
	const char *const *first = clock == NULL ? twi_redis_lines[TWI_REDIS_CLOCK] : other_clock;
	const char *const *common = twi_redis_lines[TWI_REDIS_COMMON];
	char *text = malloc(lines_bytes(first) + lines_bytes(common) + lines_bytes(lines) + 1);

	if (text != NULL)
		(void)lines_copy(lines_copy(lines_copy(text, first), common), lines);
	return text;
}

char *twi_redis_script_text(enum twi_redis_script script, const char *clock)
{
	return twi_redis_lines_text(twi_redis_lines[script], clock);
}

void twi_redis_keys(const char *prefix, char (*ret_keys)[TWI_REDIS_KEY_MAX])
{
	for (int i = 0; i < TWI_REDIS_KEYS; i++)
		snprintf(ret_keys[i], TWI_REDIS_KEY_MAX, "{%s:0}:%s", prefix, names[i]);
}

bool twi_redis_prefix_right(const char *prefix)
{
	size_t length;

	if (prefix == NULL)
		return false;
	length = strspn(prefix, "abcdefghijklmnopqrstuvwxyz0123456789_");
	return length > 0 && length <= TWI_REDIS_PREFIX_MAX && prefix[length] == '\0';
}
