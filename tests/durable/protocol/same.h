/* SPDX-License-Identifier: MIT */
/* Maps states to one state if they differ only in something that can no longer matter. */
#ifndef PROTOCOL_SAME_H
#define PROTOCOL_SAME_H

#include "state.h"

/* Returns that one state for `state`, packed. */
struct packed same_pack(const struct state *state);

#endif
