/* SPDX-License-Identifier: MIT */
#include "durable/tool/postgres/server.h"

#include "durable/tool/line.h"
#include "durable/tool/print.h"
#include "durable/tool/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/*
 * The columns of a timer and of a dead letter. If an attempt began and did not end, the timer is
 * printed as "started", as for a file.
 */
#define COLUMNS "place, serial, due, attempt, version, kind, open, key, payload"
#define COLUMNS_DEAD "place, serial, due, attempt, version, kind, false, key, payload, ended"

enum column { PLACE, SERIAL, DUE, ATTEMPT, VERSION, KIND, OPEN, KEY, PAYLOAD, ENDED };

struct listing {
	struct twi_tool_server *server;
	const struct twi_tool_output *output;
	struct twi_tool_progress progress;
	uint64_t count;
	bool dead;
};

static void row_read(const PGresult *from, bool dead, struct tw_durable_row *ret)
{
	*ret = (struct tw_durable_row){
		.id = {(uint64_t)twi_value_int8(from, 0, PLACE),
		       (uint64_t)twi_value_int8(from, 0, SERIAL)},
		.due_ns = twi_value_int8(from, 0, DUE),
		.attempt = (uint64_t)twi_value_int8(from, 0, ATTEMPT),
		.version = (uint32_t)twi_value_int8(from, 0, VERSION),
		.kind = (uint32_t)twi_value_int4(from, 0, KIND),
		.started = twi_value_bool(from, 0, OPEN),
		.dead = dead,
		.key = PQgetvalue(from, 0, KEY),
		.key_bytes = (uint32_t)PQgetlength(from, 0, KEY),
		.payload = PQgetvalue(from, 0, PAYLOAD),
		.payload_bytes = (uint32_t)PQgetlength(from, 0, PAYLOAD),
	};
}

static int row_print(void *to, const PGresult *from)
{
	struct listing *listing = to;
	const struct twi_tool_output *output = listing->output;
	struct tw_durable_row row;
	int64_t ended_ns = 0;

	row_read(from, listing->dead, &row);
	if (listing->dead)
		ended_ns = twi_value_int8(from, 0, ENDED);
	twi_tool_print(output->out, &listing->server->kinds, &row, listing->dead ? &ended_ns : NULL,
		       output->json);
	twi_tool_progress(&listing->progress, ++listing->count);
	return 0;
}

/*
 * Adds the number of the wanted kind as an argument, or 0 for all kinds. Returns false if there is
 * no kind of this name.
 */
static bool kind_argument(struct listing *listing)
{
	const char *kind = listing->output->kind;
	uint32_t number = kind == NULL ? 0 : twi_tool_kind_number(&listing->server->kinds, kind);

	twi_values_begin(&listing->server->values);
	twi_values_int4(&listing->server->values, (int32_t)number);
	return kind == NULL || number != 0;
}

static void limit_argument(struct listing *listing)
{
	size_t limit = listing->output->limit;

	twi_values_int8(&listing->server->values, limit > INT64_MAX ? INT64_MAX : (int64_t)limit);
}

/* Prints how many timers of a kind are pending in an hour, or how many dead letters a kind has. */
static int count_print(void *to, const PGresult *from)
{
	const struct listing *listing = to;
	int64_t hour = twi_value_int8(from, 0, 1);

	twi_tool_print_count(
		listing->output->out,
		twi_tool_kind(&listing->server->kinds, (uint32_t)twi_value_int4(from, 0, 0)),
		listing->dead ? NULL : &hour, (uint64_t)twi_value_int8(from, 0, 2),
		listing->output->json);
	return 0;
}

static int count_run(struct listing *listing, bool dead, const char *text)
{
	listing->dead = dead;
	return kind_argument(listing)
		       ? twi_tool_server_rows(listing->server, text, count_print, listing)
		       : 0;
}

int twi_tool_server_count(struct twi_tool_server *server, const struct twi_tool_output *output)
{
	struct listing listing = {.server = server, .output = output};
	int error = count_run(
		&listing, false,
		"SELECT kind, (due - CASE WHEN due < 0 THEN 3599999999999 ELSE 0 END) / "
		"3600000000000 AS hour, count(*) FROM @.timer WHERE $1::integer IN (0, kind) "
		"GROUP BY kind, hour ORDER BY kind, hour");

	if (error == 0)
		error = count_run(&listing, true,
				  "SELECT kind, 0::bigint, count(*) FROM @.dead WHERE $1::integer "
				  "IN (0, kind) GROUP BY kind ORDER BY kind");
	if (error == 0)
		twi_tool_print_paused(output->out, &server->kinds, output->kind, output->json);
	return error;
}

/*
 * Lists the next timers. An index has the free timers of each kind in the order of deadlines. The
 * claimed timers have no such index, but they are few, so the server sorts them.
 */
int twi_tool_server_list(struct twi_tool_server *server, const struct twi_tool_output *output)
{
	struct listing listing = {.server = server, .output = output};

	if (!kind_argument(&listing))
		return 0;
	limit_argument(&listing);
	return twi_tool_server_rows(
		server,
		"SELECT " COLUMNS
		" FROM ((SELECT l.* FROM @.kind k CROSS JOIN LATERAL (SELECT * FROM "
		"@.timer WHERE session = 0 AND kind = k.id ORDER BY due, place, serial LIMIT $2) "
		"AS l "
		"WHERE $1::integer IN (0, k.id)) UNION ALL (SELECT * FROM @.timer WHERE session <> "
		"0 "
		"AND $1 IN (0, kind) ORDER BY due, place, serial LIMIT $2)) AS t "
		"ORDER BY due, place, serial LIMIT $2",
		row_print, &listing);
}

int twi_tool_server_dead(struct twi_tool_server *server, const struct twi_tool_output *output)
{
	struct listing listing = {.server = server, .output = output, .dead = true};

	if (!kind_argument(&listing))
		return 0;
	limit_argument(&listing);
	return twi_tool_server_rows(server,
				    "SELECT " COLUMNS_DEAD " FROM @.dead WHERE $1::integer IN (0, "
				    "kind) ORDER BY place, serial LIMIT $2",
				    row_print, &listing);
}

static int one_print(struct listing *listing, bool dead, const char *text)
{
	listing->dead = dead;
	return listing->count != 0
		       ? 0
		       : twi_tool_server_rows(listing->server, text, row_print, listing);
}

int twi_tool_server_show(struct twi_tool_server *server, const struct twi_tool_output *output,
			 struct tw_durable_id id)
{
	struct listing listing = {.server = server, .output = output};
	int error;

	twi_values_begin(&server->values);
	twi_values_int8(&server->values, (int64_t)id.place);
	twi_values_int8(&server->values, (int64_t)id.serial);
	error = one_print(&listing, false,
			  "SELECT " COLUMNS " FROM @.timer WHERE place = $1 AND serial = $2");
	if (error == 0)
		error = one_print(&listing, true,
				  "SELECT " COLUMNS_DEAD
				  " FROM @.dead WHERE place = $1 AND serial = $2");
	return error == 0 && listing.count == 0 ? -ENOENT : error;
}

int twi_tool_server_find(struct twi_tool_server *server, const struct twi_tool_output *output,
			 const char *key)
{
	struct listing listing = {.server = server, .output = output};
	int error;

	twi_values_begin(&server->values);
	twi_values_bytes(&server->values, TWI_TYPE_BYTEA, key, strlen(key));
	error = one_print(&listing, false, "SELECT " COLUMNS " FROM @.timer WHERE key = $1");
	return error == 0 && listing.count == 0 ? -ENOENT : error;
}

/*
 * Prints the head. The serial in the head is greater than all others, so that a file made from the
 * dump assigns no serial twice.
 */
static int head_print(void *to, const PGresult *from)
{
	const struct listing *listing = to;
	const struct twi_tool_kinds *kinds = &listing->server->kinds;
	FILE *out = listing->output->out;

	fprintf(out,
		"{\"tickwheel_durable_dump\":%d,\"serial\":%" PRId64 ",\"clean\":true,\"kinds\":",
		TWI_TOOL_FORMAT, twi_value_int8(from, 0, 0));
	twi_tool_print_kinds(out, kinds, false);
	if (twi_tool_any_paused(kinds)) {
		fputs(",\"paused\":", out);
		twi_tool_print_kinds(out, kinds, true);
	}
	fputs("}\n", out);
	return 0;
}

static int dump_rows(struct listing *listing, bool dead, const char *text)
{
	listing->dead = dead;
	return kind_argument(listing)
		       ? twi_tool_server_rows(listing->server, text, row_print, listing)
		       : 0;
}

int twi_tool_server_dump(struct twi_tool_server *server, const struct twi_tool_output *output)
{
	struct listing listing = {.server = server, .output = output};
	int error;

	twi_tool_progress_begin(&listing.progress, "rows", 0);
	twi_values_begin(&server->values);
	error = twi_tool_server_rows(
		server,
		"SELECT greatest(m.serial, (SELECT max(serial) + 1 FROM @.timer), "
		"(SELECT max(serial) + 1 FROM @.dead)) FROM @.meta m",
		head_print, &listing);
	if (error == 0)
		error = dump_rows(&listing, false,
				  "SELECT " COLUMNS " FROM @.timer WHERE $1::integer IN (0, kind) "
				  "ORDER BY place, serial");
	if (error == 0)
		error = dump_rows(&listing, true,
				  "SELECT " COLUMNS_DEAD " FROM @.dead WHERE $1::integer IN (0, "
				  "kind) ORDER BY place, serial");
	twi_tool_progress_end(&listing.progress);
	if (error == 0)
		fprintf(output->out, "{\"rows\":%" PRIu64 "}\n", listing.count);
	return error;
}

static int session_print(void *to, const PGresult *from)
{
	const struct twi_tool_output *output = to;
	int64_t number = twi_value_int8(from, 0, 0);
	const char *name = PQgetvalue(from, 0, 1);
	int32_t pid = twi_value_int4(from, 0, 2);
	double left_s = (double)twi_value_int8(from, 0, 3) / 1e9;
	int64_t held = twi_value_int8(from, 0, 4), running = twi_value_int8(from, 0, 5);

	if (!output->json) {
		fprintf(output->out,
			"%" PRId64 "  %s %.1f s  %12" PRId64 " timers  %6" PRId64
			" running  backend %d  %s\n",
			number, left_s > 0 ? "ends in" : "over for", left_s > 0 ? left_s : -left_s,
			held, running, (int)pid, name);
		return 0;
	}
	fprintf(output->out,
		"{\"session\":%" PRId64 ",\"left_s\":%.3f,\"timers\":%" PRId64
		",\"running\":%" PRId64 ",\"backend\":%d,\"name\":",
		number, left_s, held, running, (int)pid);
	twi_tool_json_text(output->out, name, strlen(name));
	fputs("}\n", output->out);
	return 0;
}

int twi_tool_server_sessions(struct twi_tool_server *server, const struct twi_tool_output *output)
{
	twi_values_begin(&server->values);
	return twi_tool_server_rows(
		server,
		"SELECT s.id, s.name, s.pid, b.expires - @.now_ns(), coalesce(t.held, 0), "
		"coalesce(t.running, 0) FROM @.session s JOIN @.beat b ON b.session = s.id LEFT "
		"JOIN "
		"(SELECT session, count(*) AS held, count(*) FILTER (WHERE started) AS running "
		"FROM "
		"@.timer WHERE session <> 0 GROUP BY session) AS t ON t.session = s.id ORDER BY "
		"s.id",
		session_print, (void *)(uintptr_t)output);
}

struct check {
	const struct twi_tool_output *output;
	uint64_t rows, defects;
};

static int defect_print(void *to, const PGresult *from)
{
	struct check *check = to;

	fprintf(check->output->json ? stderr : check->output->out, "%s\n", PQgetvalue(from, 0, 0));
	check->defects++;
	return 0;
}

static int rows_note(void *to, const PGresult *from)
{
	struct check *check = to;

	check->rows = (uint64_t)twi_value_int8(from, 0, 0);
	return 0;
}

/* The server's own indexes check keys and serials, so there is no statement for them. */
static const char *const check_texts[] = {
	"SELECT 'timer ' || place || '-' || serial || ': is of a kind that has no name' FROM "
	"@.timer "
	"WHERE kind NOT IN (SELECT id FROM @.kind)",
	"SELECT 'dead ' || place || '-' || serial || ': is of a kind that has no name' FROM @.dead "
	"WHERE kind NOT IN (SELECT id FROM @.kind)",
	"SELECT 'timer ' || place || '-' || serial || ': is of a session that is not there' FROM "
	"@.timer WHERE session <> 0 AND session NOT IN (SELECT session FROM @.beat)",
	"SELECT 'timer ' || place || '-' || serial || ': runs, and no session has it' FROM @.timer "
	"WHERE session = 0 AND started",
	"SELECT t || ' ' || place || '-' || r.serial || ': has a serial that was not given out' "
	"FROM "
	"(SELECT 'timer' AS t, place, serial FROM @.timer UNION ALL SELECT 'dead', place, serial "
	"FROM "
	"@.dead) AS r, @.meta m WHERE r.serial >= m.serial AND r.serial < 4611686018427387904",
	"SELECT 'session ' || coalesce(s.id, b.session) || ': is half there' FROM @.session s FULL "
	"JOIN @.beat b ON b.session = s.id WHERE s.id IS NULL OR b.session IS NULL",
};

int twi_tool_server_check(struct twi_tool_server *server, const struct twi_tool_output *output)
{
	struct check check = {.output = output};
	int error;

	twi_values_begin(&server->values);
	error = twi_tool_server_rows(
		server, "SELECT (SELECT count(*) FROM @.timer) + (SELECT count(*) FROM @.dead)",
		rows_note, &check);
	for (size_t i = 0; i < sizeof(check_texts) / sizeof(*check_texts) && error == 0; i++) {
		twi_values_begin(&server->values);
		error = twi_tool_server_rows(server, check_texts[i], defect_print, &check);
	}
	if (error != 0)
		return error;
	twi_tool_print_checked(output->out, check.rows, check.defects, output->json);
	return check.defects != 0 ? -ENOENT : 0;
}
