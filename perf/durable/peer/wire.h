/* SPDX-License-Identifier: MIT */
/* A connection to a server that speaks lines: requests are collected, sent at once, and answered in order. */
#ifndef PERF_DURABLE_WIRE_H
#define PERF_DURABLE_WIRE_H

#include <stddef.h>

/* A Unix socket. */
void wire_open(const char *path);
void wire_close(void);
void wire_put(const char *format, ...);
void wire_bytes(const char *bytes, size_t count);
/* Sends what was put. */
void wire_send(void);
/* The next line of an answer, without its end. It is valid until the next call. */
const char *wire_line(void);
/* Skips bytes and the end of the line behind them. */
void wire_skip(size_t count);

#endif
