/* SPDX-License-Identifier: MIT */
/* What the server does to its tables. All functions change the state that they get. */
#ifndef PROTOCOL_SERVER_H
#define PROTOCOL_SERVER_H

#include "state.h"

void server_row_delete(struct state *state, int timer);
/* A row becomes visible. `session` 0: it is free. */
void server_row_insert(struct state *state, int timer, uint8_t session, bool started);
/* True: a request of this session is between its first statement and its commit. */
bool server_locked(const struct state *state, uint8_t session);
/* The first statement of a request, of this session of this process. False: it is refused. */
bool server_begins(const struct state *state, int p, uint8_t session,
		   const struct request *request);
/* The server receives the request of a process. It waits if the session is locked. */
void server_receive(struct state *state, int p);
/* All its operations, and the commit. */
void server_commit(struct state *state, int p, uint8_t session, struct request *request);
/* A request that was left over cannot be done any more. */
void server_orphan_drop(struct process *process);
/* Takes the rows of a dead session away. */
void server_reap(struct state *state, uint8_t session);
/* True if a claim would find a row. */
bool server_claimable(const struct state *state);

#endif
