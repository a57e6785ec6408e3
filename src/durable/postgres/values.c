/* SPDX-License-Identifier: MIT */
#include "durable/postgres/values.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
	FIRST_ROOM = 256,
	HEADER = 20, /* bytes of an array's header */
	AT_COUNT = 12,
};

static void put4(unsigned char *at, uint32_t number)
{
	for (int i = 0; i < 4; i++)
		at[i] = (unsigned char)(number >> (24 - 8 * i));
}

static void put8(unsigned char *at, uint64_t number)
{
	put4(at, (uint32_t)(number >> 32));
	put4(at + 4, (uint32_t)number);
}

uint32_t twi_get4(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

uint64_t twi_get8(const unsigned char *at)
{
	return (uint64_t)twi_get4(at) << 32 | twi_get4(at + 4);
}

void twi_values_begin(struct twi_values *values)
{
	values->count = 0;
	values->failed = false;
}

void twi_values_free(struct twi_values *values)
{
	for (int i = 0; i < TWI_VALUES_MAX; i++)
		free(values->values[i].at);
	*values = (struct twi_values){.count = 0};
}

/* Returns the place for `bytes` more bytes of a value, or NULL if there is no memory. */
static unsigned char *more(struct twi_values *values, struct twi_value *value, size_t bytes)
{
	unsigned char *at;
	size_t room = value->room < FIRST_ROOM ? FIRST_ROOM : value->room;

	while (room - value->bytes < bytes)
		room *= 2;
	if (room != value->room) {
		at = room > INT_MAX ? NULL : realloc(value->at, room);
		if (at == NULL) {
			values->failed = true;
			return NULL;
		}
		value->at = at;
		value->room = room;
	}
	at = value->at + value->bytes;
	value->bytes += bytes;
	return at;
}

static struct twi_value *add(struct twi_values *values, unsigned type)
{
	struct twi_value *value = &values->values[values->count++];

	value->type = type;
	value->bytes = 0;
	value->count = 0;
	return value;
}

void twi_values_int8(struct twi_values *values, int64_t number)
{
	unsigned char *at = more(values, add(values, TWI_TYPE_INT8), 8);

	if (at != NULL)
		put8(at, (uint64_t)number);
}

void twi_values_int4(struct twi_values *values, int32_t number)
{
	unsigned char *at = more(values, add(values, TWI_TYPE_INT4), 4);

	if (at != NULL)
		put4(at, (uint32_t)number);
}

void twi_values_bytes(struct twi_values *values, unsigned type, const void *bytes, size_t count)
{
	unsigned char *at = more(values, add(values, type), count);

	if (at != NULL && count != 0)
		memcpy(at, bytes, count);
}

static unsigned element_of(unsigned array)
{
	switch (array) {
	case TWI_TYPE_ARRAY_BOOL:
		return TWI_TYPE_BOOL;
	case TWI_TYPE_ARRAY_BYTEA:
		return TWI_TYPE_BYTEA;
	case TWI_TYPE_ARRAY_INT4:
		return TWI_TYPE_INT4;
	default:
		return TWI_TYPE_INT8;
	}
}

int twi_values_array(struct twi_values *values, unsigned type)
{
	struct twi_value *value = add(values, type);
	unsigned char *at = more(values, value, HEADER);

	if (at != NULL) {
		put4(at, 1); /* dimensions */
		put4(at + 4, 0);
		put4(at + 8, element_of(type));
		put4(at + AT_COUNT, 0);
		put4(at + 16, 1); /* the first index */
	}
	return values->count - 1;
}

/* Adds an element to an array. Returns the place for its bytes, or NULL if there is no memory. */
static unsigned char *element(struct twi_values *values, int array, size_t bytes)
{
	struct twi_value *value = &values->values[array];
	unsigned char *at = values->failed ? NULL : more(values, value, 4 + bytes);

	if (at == NULL)
		return NULL;
	put4(at, (uint32_t)bytes);
	value->count++;
	return at + 4;
}

void twi_array_int8(struct twi_values *values, int array, int64_t number)
{
	unsigned char *at = element(values, array, 8);

	if (at != NULL)
		put8(at, (uint64_t)number);
}

void twi_array_int4(struct twi_values *values, int array, int32_t number)
{
	unsigned char *at = element(values, array, 4);

	if (at != NULL)
		put4(at, (uint32_t)number);
}

void twi_array_bool(struct twi_values *values, int array, bool truth)
{
	unsigned char *at = element(values, array, 1);

	if (at != NULL)
		*at = truth;
}

void twi_array_bytes(struct twi_values *values, int array, const void *bytes, size_t count)
{
	unsigned char *at = element(values, array, count);

	if (at != NULL && count != 0)
		memcpy(at, bytes, count);
}

/* Completes the header of an array. An array without elements has no dimension. */
static void array_end(struct twi_value *value)
{
	if (value->type < TWI_TYPE_ARRAY_BOOL)
		return;
	put4(value->at + AT_COUNT, value->count);
	if (value->count == 0) {
		put4(value->at, 0);
		value->bytes = AT_COUNT;
	}
}

int twi_values_send(struct twi_values *values, PGconn *connection, const char *text)
{
	const char *bytes[TWI_VALUES_MAX];
	int lengths[TWI_VALUES_MAX], formats[TWI_VALUES_MAX];
	Oid types[TWI_VALUES_MAX];

	if (values->failed)
		return -ENOMEM;
	for (int i = 0; i < values->count; i++) {
		array_end(&values->values[i]);
		bytes[i] = (const char *)values->values[i].at;
		lengths[i] = (int)values->values[i].bytes;
		formats[i] = 1;
		types[i] = values->values[i].type;
	}
	return PQsendQueryParams(connection, text, values->count, types, bytes, lengths, formats,
				 1) == 1
		       ? 0
		       : -ECONNRESET;
}

static const unsigned char *field(const PGresult *result, int row, int column, int bytes)
{
	return PQgetlength(result, row, column) == bytes
		       ? (const unsigned char *)PQgetvalue(result, row, column)
		       : NULL;
}

int64_t twi_value_int8(const PGresult *result, int row, int column)
{
	const unsigned char *at = field(result, row, column, 8);

	return at == NULL ? 0 : (int64_t)twi_get8(at);
}

int32_t twi_value_int4(const PGresult *result, int row, int column)
{
	const unsigned char *at = field(result, row, column, 4);

	return at == NULL ? 0 : (int32_t)twi_get4(at);
}

bool twi_value_bool(const PGresult *result, int row, int column)
{
	const unsigned char *at = field(result, row, column, 1);

	return at != NULL && *at != 0;
}
