/* SPDX-License-Identifier: MIT */
/* Makes one state of all states that differ only in what cannot matter any more. */
#ifndef PROTOCOL_SAME_H
#define PROTOCOL_SAME_H

#include "state.h"

/* The packed form of that state. */
struct packed same_pack(const struct state *state);

#endif
