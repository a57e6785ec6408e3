/* SPDX-License-Identifier: MIT */
/* Orders that close by themselves, unless they are paid before. An open order is a durable timer. */
#ifndef ORDERS_H
#define ORDERS_H

#include <stddef.h>
#include <stdint.h>

enum { ORDERS_LISTED = 100, ORDER_NAME = 40 };

struct order {
	char name[ORDER_NAME];
	int64_t due_ns; /* since 1970 */
};

/* The order is open, paid, ..., and that survives a crash. */
enum order_code {
	ORDER_DONE,
	ORDER_GONE,    /* it is closed, was paid before, or never was */
	ORDER_REFUSED, /* no space, or too much work: try again later */
	ORDER_FAILED,  /* the file has failed: restart */
};

/* `closed`: each order that closes is written there, a line each. Returns 0 or a negative code. */
int orders_begin(const char *file, const char *closed, int64_t close_after_ns);
/* Open orders stay in the file. */
void orders_end(void);

enum order_code order_open(struct order *ret);
enum order_code order_pay(const char *name);
/* The orders that close first. Returns how many, or a negative code. */
int orders_list(struct order *ret);
/* "open", "full", ... */
const char *orders_state(void);

#endif
