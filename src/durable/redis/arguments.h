/* SPDX-License-Identifier: MIT */
/*
 * The arguments of a script. Values are passed as bytes only, so no value is ever part of a Lua
 * text.
 */
#ifndef TWI_DURABLE_REDIS_ARGUMENTS_H
#define TWI_DURABLE_REDIS_ARGUMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The arguments keep their memory from one use to the next. */
struct twi_arguments {
	size_t count, room; /* elements of `ends`: used, and allocated */
	size_t bytes, bytes_room;
	size_t *ends; /* where each argument ends */
	char *at;
	bool failed; /* true if there was no memory */
};

void twi_arguments_begin(struct twi_arguments *arguments);
void twi_arguments_free(struct twi_arguments *arguments);

/* Add bytes to the present argument, which twi_argument_end() ends. */
void twi_argument_bytes(struct twi_arguments *arguments, const void *bytes, size_t count);
void twi_argument_byte(struct twi_arguments *arguments, unsigned byte);
/*
 * Add a number in such a form that the bytes sort as the numbers do: big-endian, and a signed
 * number with its highest bit inverted.
 */
void twi_argument_4(struct twi_arguments *arguments, uint32_t number);
void twi_argument_8(struct twi_arguments *arguments, uint64_t number);
void twi_argument_signed(struct twi_arguments *arguments, int64_t number);
void twi_argument_end(struct twi_arguments *arguments);

/* Add a whole argument. */
void twi_arguments_text(struct twi_arguments *arguments, const char *text);
void twi_arguments_number(struct twi_arguments *arguments, int64_t number);
void twi_arguments_8(struct twi_arguments *arguments, uint64_t number);

/* Returns the bytes of argument `at`. */
const char *twi_arguments_get(const struct twi_arguments *arguments, size_t at, size_t *ret_bytes);

/* Read the numbers of a row. */
uint32_t twi_redis_get4(const char *at);
uint64_t twi_redis_get8(const char *at);
int64_t twi_redis_get_signed(const char *at);

#endif
