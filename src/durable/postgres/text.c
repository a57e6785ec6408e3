/* SPDX-License-Identifier: MIT */
#include "durable/postgres/text.h"

#include <stdlib.h>
#include <string.h>

char *twi_postgres_text(const char *text, const char *schema)
{
	size_t marks = 0, length = strlen(schema);
	char *made, *at;

	for (const char *each = text; *each != '\0'; each++)
		marks += *each == '@';
	made = malloc(strlen(text) + marks * length + 1);
	if (made == NULL)
		return NULL;
	at = made;
	for (; *text != '\0'; text++) {
		if (*text != '@') {
			*at++ = *text;
			continue;
		}
		memcpy(at, schema, length);
		at += length;
	}
	*at = '\0';
	return made;
}
