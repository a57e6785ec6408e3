/* SPDX-License-Identifier: MIT */
/*
 * The I/O loop of a process, which sends one request at a time. After a broken connection it
 * connects again, finds out how the request ended, and reads the rows of its session before it
 * sends the next request.
 */
#include "options.h"
#include "rules.h"
#include "server.h"
#include "settle.h"
#include "steps.h"

#include <stddef.h>

static bool idle(const struct process *process)
{
	return process->cut == 0 && process->lost == 0 && process->read_back == 0 &&
	       process->request.phase == PHASE_NONE;
}

/* Returns the operation that a timer's state asks for. */
static enum op op_of(const struct memory *memory)
{
	switch ((enum memory_state)memory->state) {
	case MEMORY_STAGED:
		return OP_PUT;
	case MEMORY_STAGED_RUN:
		return OP_PUT_STARTED;
	case MEMORY_KEPT:
		return OP_START;
	case MEMORY_ENDED:
		return OP_END;
	default:
		return OP_NONE;
	}
}

static int op_add(uint8_t *ops, int count, enum op op)
{
	ops[count] = (uint8_t)op;
	return count + (op != OP_NONE);
}

/*
 * Lists the operations that a batch can have for a timer. START may be missing, because the timer's
 * timeout in the engine may not have expired yet.
 */
static int choices_of(const struct process *process, int t, uint8_t *ops)
{
	const struct memory *memory = &process->memory[t];
	enum op op = op_of(memory);
	int count = 0;

	if (op == OP_START && memory->session != process->session)
		op = OP_NONE;
	count = op_add(ops, count, op);
	if (memory->back == WANTED)
		count = op_add(ops, count, OP_BACK);
	if (memory->cancel == WANTED)
		count = op_add(ops, count,
			       memory->state == MEMORY_REVOKED ? OP_CANCEL_OWN : OP_CANCEL);
	if (count == 0 || op == OP_START)
		ops[count++] = OP_NONE;
	return count;
}

static void op_send(struct process *process, int t, enum op op)
{
	struct memory *memory = &process->memory[t];

	process->request.ops[t] = (uint8_t)op;
	switch (op) {
	case OP_PUT:
	case OP_PUT_STARTED:
		memory->state = op == OP_PUT ? MEMORY_TAKEN : MEMORY_TAKEN_RUN;
		memory->session = process->session;
		break;
	case OP_START:
		memory->state = MEMORY_STARTING;
		break;
	case OP_END:
		process->request.named[t] = memory->session;
		memory->state = MEMORY_ENDING;
		break;
	case OP_BACK:
		memory->back = WANTED_SENT;
		break;
	case OP_CANCEL_OWN:
		process->request.named[t] = memory->session;
		memory->cancel = WANTED_SENT;
		break;
	case OP_CANCEL:
		memory->cancel = WANTED_SENT;
		break;
	default:
		break;
	}
}

/*
 * Writes the next request number to the session's row. The server refuses smaller numbers, so it
 * does no request that was left over.
 */
static void number_next(struct process *process)
{
	bool numbered = process->orphan.kind == REQUEST_BATCH ? rule_holds(RULE_BATCH_NUMBER)
							      : rule_holds(RULE_CLAIM_NUMBER);

	process->done = 0;
	for (int t = 0; t < TIMERS; t++)
		process->outcomes[t] = OUTCOME_USUAL;
	if (numbered && process->orphan_session == process->session)
		server_orphan_drop(process);
}

static void request_send(struct state *state, int p, enum request_kind kind)
{
	number_next(&state->process[p]);
	state->process[p].request.kind = (uint8_t)kind;
	server_receive(state, p);
}

static void send_steps(struct steps *steps, int p)
{
	const struct process *process = &steps->from->process[p];
	uint8_t ops[TIMERS][4] = {{0}};
	int counts[TIMERS] = {1, 1};

	for (int t = 0; t < options.timers; t++)
		counts[t] = choices_of(process, t, ops[t]);
	for (int i = 0; i < counts[0] * counts[1]; i++) {
		uint8_t chosen[TIMERS] = {ops[0][i % counts[0]], ops[1][i / counts[0]]};
		struct state *to;

		if (chosen[0] == OP_NONE && chosen[1] == OP_NONE)
			continue;
		to = steps_add(steps, STEP_SEND, p, 0);
		request_send(to, p, REQUEST_BATCH);
		for (int t = 0; t < TIMERS; t++)
			op_send(&to->process[p], t, (enum op)chosen[t]);
	}
}

/*
 * Adds the step of a claim, if the claim could find a row. With RULE_FULL_CLAIM, a claim finds a
 * row if one is free. Without that rule, the process cannot know whether a row is free, and only
 * its first claim begins at the first row. This step also stands for a look: the look sees a free
 * row, and the claim that follows is committed later, when another process may have claimed the
 * row.
 */
static void claim_steps(struct steps *steps, int p)
{
	const struct process *process = &steps->from->process[p];
	bool of_use =
		rule_holds(RULE_FULL_CLAIM) ? server_claimable(steps->from) : process->marked == 0;

	if (of_use)
		request_send(steps_add(steps, STEP_CLAIM, p, 0), p, REQUEST_CLAIM);
}

/*
 * Commits the request. The reply comes at once, because no other process depends on when it comes.
 */
static void commit(struct state *state, int p)
{
	struct process *process = &state->process[p];
	uint8_t claimed;

	server_commit(state, p, process->session, &process->request);
	claimed = process->request.claimed;
	if (process->request.kind == REQUEST_CLAIM && !rule_holds(RULE_FULL_CLAIM))
		process->marked = 1;
	settle_done(state, p, process->outcomes);
	settle_claimed(state, p, claimed);
}

static bool unnumbered_claim(const struct request *request)
{
	return request->kind == REQUEST_CLAIM && !rule_holds(RULE_CLAIM_NUMBER);
}

static void session_over(struct state *state, int p)
{
	struct process *process = &state->process[p];

	process->lost = 1;
	if (process->request.resent != 0 || process->request.phase == PHASE_UNRESOLVED)
		settle_unknown(state, p);
	else
		settle_refused(state, p);
}

/*
 * Called when the session's row shows that the request is written. The process has lost the reply,
 * and with it the rows of a claim. So it reads all rows of its session again.
 */
static void found_done(struct state *state, int p)
{
	struct process *process = &state->process[p];

	process->read_back = 1;
	settle_done(state, p, rule_holds(RULE_KEPT_OUTCOMES) ? process->outcomes : NULL);
}

static void resend(struct state *state, int p)
{
	struct process *process = &state->process[p];

	process->request.resent = 1;
	process->request.claimed = 0;
	process->read_back = 1;
	server_receive(state, p);
}

/* Reads the session's row. The process then knows how the request ended, or sends it again. */
static void look(struct state *state, int p)
{
	struct process *process = &state->process[p];

	if (!session_lives(state, process->session)) {
		session_over(state, p);
	} else if (process->request.phase == PHASE_NONE) {
		process->read_back = 1;
	} else if (unnumbered_claim(&process->request)) {
		process->request = (struct request){.phase = PHASE_NONE};
		process->read_back = 1;
	} else if (process->done != 0 && rule_holds(RULE_BATCH_NUMBER)) {
		found_done(state, p);
	} else {
		resend(state, p);
	}
}

static void read_back(struct state *state, int p)
{
	struct process *process = &state->process[p];
	uint8_t rows = 0;

	for (int t = 0; t < options.timers; t++) {
		const struct row *row = &state->row[t];

		if (row->state == ROW_PRESENT && row->session == process->session &&
		    row->started == 0)
			rows |= (uint8_t)(1U << t);
	}
	process->read_back = 0;
	if (rule_holds(RULE_READ_BACK))
		settle_claimed(state, p, rows);
}

void io_steps(struct steps *steps)
{
	for (int p = 0; p < PROCESSES; p++) {
		const struct process *process = &steps->from->process[p];

		if (idle(process)) {
			send_steps(steps, p);
			claim_steps(steps, p);
		}
		if (process->request.phase == PHASE_BEGUN)
			commit(steps_add(steps, STEP_COMMIT, p, 0), p);
		if (process->request.phase == PHASE_REFUSED)
			look(steps_add(steps, STEP_LOOK_AGAIN, p, 0), p);
		if (process->cut != 0) {
			struct state *to = steps_add(steps, STEP_RECONNECT, p, 0);

			to->process[p].cut = 0;
			look(to, p);
		}
		if (process->read_back != 0 && process->cut == 0 &&
		    process->request.phase == PHASE_NONE)
			read_back(steps_add(steps, STEP_READ_BACK, p, 0), p);
	}
}
