/* SPDX-License-Identifier: MIT */
/* Orders that close by themselves if they are not paid before. An open order is a durable timer. */
#ifndef ORDERS_H
#define ORDERS_H

#include <stddef.h>
#include <stdint.h>

enum { ORDERS_LISTED = 100, ORDER_NAME = 40 };

struct order {
	char name[ORDER_NAME];
	int64_t due_ns; /* since 1970 */
};

/* The result of a call. ORDER_DONE: the change is done, and survives a crash. */
enum order_code {
	ORDER_DONE,
	ORDER_GONE,    /* the order is closed, was paid before, or never existed */
	ORDER_REFUSED, /* no space, or too much work: try again later */
	ORDER_FAILED,  /* the file has failed: restart */
};

/*
 * Opens the file with the orders. When an order closes, its name is written to the file `closed`,
 * on a line of its own. Returns 0 or a negative code.
 */
int orders_begin(const char *file, const char *closed, int64_t close_after_ns);
/* Closes the file. Open orders stay in it. */
void orders_end(void);

enum order_code order_open(struct order *ret);
enum order_code order_pay(const char *name);
/* Reads the open orders that close first. Returns how many, or a negative code. */
int orders_list(struct order *ret);
/* Returns the state of the file as text: "open", "full", ... */
const char *orders_state(void);

#endif
