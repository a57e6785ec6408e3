/* SPDX-License-Identifier: MIT */
/*
 * What the server does with its tables. A function changes the state or the process that it
 * receives, unless the parameter is const.
 */
#ifndef PROTOCOL_SERVER_H
#define PROTOCOL_SERVER_H

#include "state.h"

void server_row_delete(struct state *state, int timer);
/* Makes a row visible. If `session` is 0, the row is free. */
void server_row_insert(struct state *state, int timer, uint8_t session, bool started);
/* Returns true if a request of this session is between its first statement and its commit. */
bool server_locked(const struct state *state, uint8_t session);
/*
 * Does the first statement of a process's request, for this session. Returns false if the server
 * refuses the request.
 */
bool server_begins(const struct state *state, int p, uint8_t session,
		   const struct request *request);
/* Receives the process's request, which waits if the session is locked. */
void server_receive(struct state *state, int p);
/* Does all operations of the request, and commits. */
void server_commit(struct state *state, int p, uint8_t session, struct request *request);
/* Drops a request that was left over, because it can no longer be done. */
void server_orphan_drop(struct process *process);
/* Makes the rows of a dead session free, so that any session can claim them. */
void server_reap(struct state *state, uint8_t session);
/* Returns true if a claim would find a row. */
bool server_claimable(const struct state *state);

#endif
