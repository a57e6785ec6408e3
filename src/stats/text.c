/* SPDX-License-Identifier: MIT */
/* Collects text and passes it to a hook. */
#include "stats/text.h"

#include "base/tick.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { PUT_MAX = TWI_TEXT_BYTES / 2 };

void twi_text_end(struct twi_text *text)
{
	if (text->used > 0)
		text->hook(text->context, text->piece, text->used);
	text->used = 0;
}

void twi_text_put(struct twi_text *text, const char *format, ...)
{
	va_list arguments;
	int bytes;

	if (text->used > TWI_TEXT_BYTES - PUT_MAX)
		twi_text_end(text);
	va_start(arguments, format);
	bytes = vsnprintf(&text->piece[text->used], PUT_MAX, format, arguments);
	va_end(arguments);
	if (bytes > 0)
		text->used += bytes < PUT_MAX ? (size_t)bytes : PUT_MAX - 1;
}

static void letter_put(struct twi_text *text, char letter, bool json)
{
	if (letter == '"' || letter == '\\')
		twi_text_put(text, "\\%c", letter);
	else if (letter == '\n')
		twi_text_put(text, "\\n");
	else if (json && (unsigned char)letter < ' ')
		twi_text_put(text, "\\u%04x", (unsigned char)letter);
	else
		twi_text_put(text, "%c", letter);
}

void twi_text_quote(struct twi_text *text, const char *words, bool json)
{
	twi_text_put(text, "\"");
	for (; words != NULL && *words != '\0'; words++)
		letter_put(text, *words, json);
	twi_text_put(text, "\"");
}

void twi_text_seconds(struct twi_text *text, uint64_t ns)
{
	twi_text_put(text, "%" PRIu64 ".%09" PRIu64, ns / TWI_NS_PER_S, ns % TWI_NS_PER_S);
}
