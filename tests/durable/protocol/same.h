/* SPDX-License-Identifier: MIT */
/* Maps all states that differ only in what cannot matter any more to one state. */
#ifndef PROTOCOL_SAME_H
#define PROTOCOL_SAME_H

#include "state.h"

/* Returns the packed form of that one state. */
struct packed same_pack(const struct state *state);

#endif
