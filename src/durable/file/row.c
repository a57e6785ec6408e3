/* SPDX-License-Identifier: MIT */
#include "durable/file/row.h"

#include "durable/file/crc.h"

#include <errno.h>

enum {
	BUCKET,
	SERIAL,
	PLACE,
	DUE,
	KIND,
	ATTEMPT,
	VERSION,
	STARTED,
	KEY,
	PAYLOAD,
	CRC,
};

static uint32_t row_crc(const struct tw_durable_row *row)
{
	const uint64_t numbers[] = {
		row->id.place, row->id.serial, (uint64_t)row->due_ns, row->attempt,       row->kind,
		row->version,  row->started,   row->key_bytes,        row->payload_bytes,
	};
	uint32_t crc = 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		crc = twi_crc32c_number(crc, numbers[i]);
	crc = twi_crc32c(crc, row->key, row->key_bytes);
	return twi_crc32c(crc, row->payload, row->payload_bytes);
}

static void bind_bytes(sqlite3_stmt *statement, int column, const void *bytes, uint32_t count)
{
	if (count == 0)
		sqlite3_bind_null(statement, column + 1);
	else
		sqlite3_bind_blob(statement, column + 1, bytes, (int)count, SQLITE_STATIC);
}

void twi_row_bind(sqlite3_stmt *statement, const struct tw_durable_row *row)
{
	int64_t bucket = twi_bucket(row->due_ns);

	sqlite3_bind_int64(statement, BUCKET + 1, bucket);
	sqlite3_bind_int64(statement, SERIAL + 1, twi_serial(row->id));
	/* NULL needs no byte in the row, and few timers have moved. */
	if (twi_place(row->id) == bucket)
		sqlite3_bind_null(statement, PLACE + 1);
	else
		sqlite3_bind_int64(statement, PLACE + 1, twi_place(row->id));
	sqlite3_bind_int64(statement, DUE + 1, row->due_ns);
	sqlite3_bind_int64(statement, KIND + 1, row->kind);
	sqlite3_bind_int64(statement, ATTEMPT + 1, (int64_t)row->attempt);
	sqlite3_bind_int64(statement, VERSION + 1, row->version);
	sqlite3_bind_int64(statement, STARTED + 1, row->started);
	bind_bytes(statement, KEY, row->key, row->key_bytes);
	bind_bytes(statement, PAYLOAD, row->payload, row->payload_bytes);
	/* A signed number of 32 bits takes 4 bytes in the row; an unsigned one may take 6. */
	sqlite3_bind_int64(statement, CRC + 1, (int32_t)row_crc(row));
}

static const void *bytes_of(sqlite3_stmt *statement, int column, uint32_t *ret_count)
{
	const void *bytes = sqlite3_column_blob(statement, column);

	*ret_count = (uint32_t)sqlite3_column_bytes(statement, column);
	return *ret_count == 0 ? NULL : bytes;
}

int twi_row_read(sqlite3_stmt *statement, struct tw_durable_row *ret)
{
	int64_t bucket = sqlite3_column_int64(statement, BUCKET);
	struct tw_durable_row row = {
		.id = {(uint64_t)bucket, (uint64_t)sqlite3_column_int64(statement, SERIAL)},
		.due_ns = sqlite3_column_int64(statement, DUE),
		.kind = (uint32_t)sqlite3_column_int64(statement, KIND),
		.attempt = (uint64_t)sqlite3_column_int64(statement, ATTEMPT),
		.version = (uint32_t)sqlite3_column_int64(statement, VERSION),
		.started = (uint32_t)sqlite3_column_int64(statement, STARTED),
	};

	if (sqlite3_column_type(statement, PLACE) != SQLITE_NULL)
		row.id.place = (uint64_t)sqlite3_column_int64(statement, PLACE);
	row.key = bytes_of(statement, KEY, &row.key_bytes);
	row.payload = bytes_of(statement, PAYLOAD, &row.payload_bytes);
	if (sqlite3_column_int64(statement, CRC) != (int32_t)row_crc(&row) ||
	    bucket != twi_bucket(row.due_ns))
		return -EUCLEAN;
	*ret = row;
	return 0;
}
