/* SPDX-License-Identifier: MIT */
/*
 * A connection to a server with a line protocol. The client collects requests and sends them all at
 * once. The server answers in the same order.
 */
#ifndef PERF_DURABLE_WIRE_H
#define PERF_DURABLE_WIRE_H

#include <stddef.h>

/* Connects to a server's Unix socket. */
void wire_open(const char *path);
void wire_close(void);
void wire_put(const char *format, ...);
void wire_bytes(const char *bytes, size_t count);
/* Sends all requests that were put since the last call. */
void wire_send(void);
/* Returns the next line of an answer, without its line end. It is valid until the next call. */
const char *wire_line(void);
/* Skips `count` bytes of an answer and the line end after them. */
void wire_skip(size_t count);

#endif
