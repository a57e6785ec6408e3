/* SPDX-License-Identifier: MIT */
#include "durable/tool/print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HOUR INT64_C(3600000000000)

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

void twi_tool_id_text(struct tw_durable_id id, char text[TWI_TOOL_TEXT])
{
	snprintf(text, TWI_TOOL_TEXT, "%" PRId64 "-%" PRIu64, (int64_t)id.place, id.serial);
}

bool twi_tool_id_read(const char *text, struct tw_durable_id *ret)
{
	const char *dash = strrchr(text, '-');
	char *end;

	if (dash == NULL || dash == text || dash[1] < '0' || dash[1] > '9')
		return false;
	errno = 0;
	ret->place = (uint64_t)strtoll(text, &end, 10);
	if (end != dash || errno != 0)
		return false;
	ret->serial = strtoull(dash + 1, &end, 10);
	return *end == '\0' && errno == 0 && ret->serial != 0 && ret->serial <= INT64_MAX;
}

void twi_tool_time_text(int64_t due_ns, char text[TWI_TOOL_TEXT])
{
	time_t seconds = (time_t)(due_ns / SECOND - (due_ns % SECOND < 0));
	int64_t rest_ns = due_ns - (int64_t)seconds * SECOND;
	struct tm parts;
	size_t length = 0;

	if (gmtime_r(&seconds, &parts) != NULL && parts.tm_year < 8100)
		length = strftime(text, TWI_TOOL_TEXT, "%Y-%m-%dT%H:%M:%S", &parts);
	if (length > 0)
		snprintf(text + length, TWI_TOOL_TEXT - length, ".%03dZ",
			 (int)(rest_ns / MILLISECOND));
	else
		snprintf(text, TWI_TOOL_TEXT, "%" PRId64, due_ns);
}

static bool printable(const unsigned char *bytes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (bytes[i] < ' ' || bytes[i] > '~')
			return false;
	return true;
}

void twi_tool_json_text(FILE *out, const char *text, size_t bytes)
{
	putc('"', out);
	for (size_t i = 0; i < bytes; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte == '"' || byte == '\\')
			fprintf(out, "\\%c", byte);
		else if (byte < ' ' || byte > '~')
			fprintf(out, "\\u%04x", byte);
		else
			putc(byte, out);
	}
	putc('"', out);
}

static void hex(FILE *out, const unsigned char *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		putc(digits[bytes[i] >> 4], out);
		putc(digits[bytes[i] & 15], out);
	}
}

/*
 * Writes bytes as text if they are printable, otherwise as hexadecimal digits in the member
 * NAME_hex.
 */
static void json_bytes(FILE *out, const char *name, const void *bytes, size_t count)
{
	if (count == 0)
		return;
	if (printable(bytes, count)) {
		fprintf(out, ",\"%s\":", name);
		twi_tool_json_text(out, bytes, count);
		return;
	}
	fprintf(out, ",\"%s_hex\":\"", name);
	hex(out, bytes, count);
	putc('"', out);
}

static void print_json(FILE *out, const char *kind, const struct tw_durable_row *row,
		       const int64_t *ended_ns)
{
	char id[TWI_TOOL_TEXT], due[TWI_TOOL_TEXT];

	twi_tool_id_text(row->id, id);
	twi_tool_time_text(row->due_ns, due);
	fprintf(out, "{\"id\":\"%s\",\"due_ns\":%" PRId64 ",\"due\":\"%s\",\"kind\":", id,
		row->due_ns, due);
	twi_tool_json_text(out, kind, strlen(kind));
	fprintf(out, ",\"attempt\":%" PRIu64 ",\"version\":%" PRIu32, row->attempt, row->version);
	if (row->started)
		fputs(",\"started\":true", out);
	if (row->dead)
		fputs(",\"dead\":true", out);
	if (ended_ns != NULL)
		fprintf(out, ",\"ended_ns\":%" PRId64, *ended_ns);
	json_bytes(out, "key", row->key, row->key_bytes);
	json_bytes(out, "payload", row->payload, row->payload_bytes);
	fputs("}\n", out);
}

/* Writes bytes as text if they are printable, otherwise as "0x" and hexadecimal digits. */
static void text_bytes(FILE *out, const char *name, const void *bytes, size_t count)
{
	if (count == 0)
		return;
	fprintf(out, "  %s ", name);
	if (printable(bytes, count)) {
		fwrite(bytes, 1, count, out);
		return;
	}
	fputs("0x", out);
	hex(out, bytes, count);
}

static void print_text(FILE *out, const char *kind, const struct tw_durable_row *row,
		       const int64_t *ended_ns)
{
	char id[TWI_TOOL_TEXT], due[TWI_TOOL_TEXT], ended[TWI_TOOL_TEXT];

	twi_tool_id_text(row->id, id);
	twi_tool_time_text(row->due_ns, due);
	fprintf(out, "%s  %s  %s  attempt %" PRIu64, due, id, kind, row->attempt);
	if (row->started)
		fputs("  started", out);
	if (row->dead)
		fputs("  dead", out);
	if (ended_ns != NULL) {
		twi_tool_time_text(*ended_ns, ended);
		fprintf(out, " since %s", ended);
	}
	text_bytes(out, "key", row->key, row->key_bytes);
	if (row->payload_bytes != 0)
		fprintf(out, "  payload %" PRIu32 " bytes", row->payload_bytes);
	putc('\n', out);
}

void twi_tool_print(FILE *out, const struct twi_tool_kinds *kinds, const struct tw_durable_row *row,
		    const int64_t *ended_ns, bool json)
{
	const char *kind = twi_tool_kind(kinds, row->kind);

	if (kind == NULL)
		kind = "?";
	if (json)
		print_json(out, kind, row, ended_ns);
	else
		print_text(out, kind, row, ended_ns);
}

void twi_tool_print_count(FILE *out, const char *kind, const int64_t *hour, uint64_t count,
			  bool json)
{
	char when[TWI_TOOL_TEXT] = "dead";

	if (kind == NULL)
		kind = "?";
	if (hour != NULL)
		twi_tool_time_text(*hour * HOUR, when);
	if (!json) {
		fprintf(out, "%-24s  %12" PRIu64 "  %s\n", when, count, kind);
		return;
	}
	fputs("{\"kind\":", out);
	twi_tool_json_text(out, kind, strlen(kind));
	if (hour == NULL)
		fputs(",\"dead\":true", out);
	else
		fprintf(out, ",\"hour\":\"%s\"", when);
	fprintf(out, ",\"count\":%" PRIu64 "}\n", count);
}

static void print_one_paused(FILE *out, const char *kind, bool json)
{
	if (!json) {
		fprintf(out, "%-24s  %12s  %s\n", "paused", "", kind);
		return;
	}
	fputs("{\"kind\":", out);
	twi_tool_json_text(out, kind, strlen(kind));
	fputs(",\"paused\":true}\n", out);
}

void twi_tool_print_paused(FILE *out, const struct twi_tool_kinds *kinds, const char *wanted,
			   bool json)
{
	for (uint32_t i = 1; i < kinds->count; i++)
		if (kinds->paused[i] && twi_tool_wanted(kinds, wanted, i))
			print_one_paused(out, kinds->names[i], json);
}

void twi_tool_print_kinds(FILE *out, const struct twi_tool_kinds *kinds, bool paused)
{
	const char *comma = "";

	putc('[', out);
	for (uint32_t i = 1; i < kinds->count; i++) {
		if (kinds->names[i] == NULL || (paused && !kinds->paused[i]))
			continue;
		fputs(comma, out);
		twi_tool_json_text(out, kinds->names[i], strlen(kinds->names[i]));
		comma = ",";
	}
	putc(']', out);
}

void twi_tool_print_checked(FILE *out, uint64_t rows, uint64_t defects, bool json)
{
	fprintf(out,
		json ? "{\"rows\":%" PRIu64 ",\"defects\":%" PRIu64 "}\n"
		     : "%" PRIu64 " rows, %" PRIu64 " defects\n",
		rows, defects);
}
