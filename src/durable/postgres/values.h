/* SPDX-License-Identifier: MIT */
/*
 * The arguments of a statement and the values of its rows, in PostgreSQL's binary format. So no
 * value is ever part of an SQL text. An array is a header (dimensions, nulls, type, count, lower
 * bound) and, for each element, its length and its bytes; all numbers are big-endian.
 */
#ifndef TWI_DURABLE_POSTGRES_VALUES_H
#define TWI_DURABLE_POSTGRES_VALUES_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	TWI_VALUES_MAX = 12,
	/* Numbers of types in PostgreSQL's catalogue. */
	TWI_TYPE_BOOL = 16,
	TWI_TYPE_BYTEA = 17,
	TWI_TYPE_INT8 = 20,
	TWI_TYPE_INT4 = 23,
	TWI_TYPE_TEXT = 25,
	TWI_TYPE_ARRAY_BOOL = 1000,
	TWI_TYPE_ARRAY_BYTEA = 1001,
	TWI_TYPE_ARRAY_INT4 = 1007,
	TWI_TYPE_ARRAY_INT8 = 1016,
};

/* One argument. Its bytes grow when elements are added. */
struct twi_value {
	unsigned type;
	size_t bytes, room;
	unsigned char *at;
	uint32_t count; /* number of elements, if it is an array */
};

/* The arguments of one statement. The struct keeps its memory from one use to the next. */
struct twi_values {
	int count;
	bool failed; /* there was no memory */
	struct twi_value values[TWI_VALUES_MAX];
};

void twi_values_begin(struct twi_values *values);
void twi_values_free(struct twi_values *values);

/* Adds an argument. */
void twi_values_int8(struct twi_values *values, int64_t number);
void twi_values_int4(struct twi_values *values, int32_t number);
void twi_values_bytes(struct twi_values *values, unsigned type, const void *bytes, size_t count);
/* Adds an empty array (TWI_TYPE_ARRAY_...), and returns its number. */
int twi_values_array(struct twi_values *values, unsigned type);

/* Adds an element to an array. */
void twi_array_int8(struct twi_values *values, int array, int64_t number);
void twi_array_int4(struct twi_values *values, int array, int32_t number);
void twi_array_bool(struct twi_values *values, int array, bool truth);
void twi_array_bytes(struct twi_values *values, int array, const void *bytes, size_t count);

/*
 * Sends a statement with these arguments, and asks for rows in the binary format. Returns 0,
 * -ENOMEM, or -ECONNRESET.
 */
int twi_values_send(struct twi_values *values, PGconn *connection, const char *text);

/* Return the value of a row. NULL counts as 0. */
int64_t twi_value_int8(const PGresult *result, int row, int column);
int32_t twi_value_int4(const PGresult *result, int row, int column);
bool twi_value_bool(const PGresult *result, int row, int column);

/* Read the numbers of a row. */
uint32_t twi_get4(const unsigned char *at);
uint64_t twi_get8(const unsigned char *at);

#endif
