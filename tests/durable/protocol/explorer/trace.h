/* SPDX-License-Identifier: MIT */
#ifndef PROTOCOL_TRACE_H
#define PROTOCOL_TRACE_H

#include "explorer/search.h"

/* Prints the steps that lead to the found state. Returns how many. */
int trace_print(const struct table *table, const struct found *found);

#endif
