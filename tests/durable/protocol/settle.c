/* SPDX-License-Identifier: MIT */
#include "settle.h"

#include "options.h"

#include <stddef.h>

static void put_done(struct memory *memory)
{
	if (memory->state == MEMORY_TAKEN)
		memory->state = MEMORY_KEPT;
	else if (memory->state == MEMORY_TAKEN_RUN)
		memory->state = MEMORY_RUNNING;
	else if (memory->state == MEMORY_TAKEN_ENDED)
		memory->state = MEMORY_ENDED;
}

/*
 * Handles the outcome of a START. If this process cancelled the timer meanwhile, it stays
 * cancelled.
 */
static void start_done(struct memory *memory, uint8_t outcome)
{
	if (memory->state != MEMORY_STARTING)
		return;
	if (outcome == OUTCOME_USUAL)
		memory->state = MEMORY_CONFIRMED;
	else
		memory->state = outcome == OUTCOME_NOT_DUE ? MEMORY_KEPT : MEMORY_NONE;
}

static void cancel_done(struct memory *memory)
{
	memory->cancel = WANTED_NOT;
	if (memory->state == MEMORY_REVOKED)
		memory->state = MEMORY_NONE;
}

static void op_done(struct state *state, int p, int t, uint8_t outcome)
{
	struct memory *memory = &state->process[p].memory[t];

	switch ((enum op)state->process[p].request.ops[t]) {
	case OP_PUT:
	case OP_PUT_STARTED:
		state->notes[t].acknowledged = 1;
		put_done(memory);
		break;
	case OP_START:
		start_done(memory, outcome);
		break;
	case OP_END:
		memory->state = MEMORY_NONE;
		break;
	case OP_BACK:
		memory->back = WANTED_NOT;
		break;
	case OP_CANCEL:
	case OP_CANCEL_OWN:
		cancel_done(memory);
		break;
	default:
		break;
	}
}

/*
 * Handles an operation of which the process does not know whether it was done. Runs that have begun
 * continue. Timers that wait leave the memory.
 */
static void op_unknown(struct memory *memory, enum op op)
{
	switch (op) {
	case OP_PUT:
	case OP_PUT_STARTED:
		if (memory->state == MEMORY_TAKEN)
			memory->state = MEMORY_NONE;
		else
			put_done(memory);
		break;
	case OP_START:
		start_done(memory, OUTCOME_NOT_FOUND);
		break;
	case OP_END:
		memory->state = MEMORY_NONE;
		break;
	case OP_BACK:
		memory->back = WANTED_NOT;
		break;
	case OP_CANCEL:
	case OP_CANCEL_OWN:
		cancel_done(memory);
		break;
	default:
		break;
	}
}

/*
 * Handles an operation that was certainly not done. The next session sends a PUT, an END or a
 * cancel again, but not the PUT of a timer whose run has ended. Other operations count as unknown.
 */
static void op_refused(struct memory *memory, enum op op)
{
	switch (op) {
	case OP_PUT:
	case OP_PUT_STARTED:
		if (memory->state == MEMORY_TAKEN)
			memory->state = MEMORY_STAGED;
		else if (memory->state == MEMORY_TAKEN_RUN)
			memory->state = MEMORY_STAGED_RUN;
		else if (memory->state == MEMORY_TAKEN_ENDED)
			memory->state = MEMORY_NONE;
		break;
	case OP_END:
		memory->state = MEMORY_ENDED;
		break;
	case OP_CANCEL:
	case OP_CANCEL_OWN:
		memory->cancel = WANTED;
		break;
	default:
		op_unknown(memory, op);
		break;
	}
}

static void request_over(struct state *state, int p)
{
	struct process *process = &state->process[p];

	process->request = (struct request){.phase = PHASE_NONE};
	process->done = 0;
	for (int t = 0; t < TIMERS; t++)
		process->outcomes[t] = OUTCOME_USUAL;
}

void settle_done(struct state *state, int p, const uint8_t *outcomes)
{
	for (int t = 0; t < options.timers; t++)
		op_done(state, p, t, outcomes == NULL ? OUTCOME_USUAL : outcomes[t]);
	request_over(state, p);
}

void settle_unknown(struct state *state, int p)
{
	struct process *process = &state->process[p];

	for (int t = 0; t < options.timers; t++)
		op_unknown(&process->memory[t], (enum op)process->request.ops[t]);
	request_over(state, p);
}

void settle_refused(struct state *state, int p)
{
	struct process *process = &state->process[p];

	for (int t = 0; t < options.timers; t++)
		op_refused(&process->memory[t], (enum op)process->request.ops[t]);
	request_over(state, p);
}

/*
 * Takes over a row that the process has claimed. If the process's own run of the timer under an
 * older session has not ended, the process gives the row back instead. A row that the process must
 * give back is not taken over, even if that run has ended meanwhile.
 */
static void take(struct memory *memory, uint8_t session)
{
	if (memory->back != WANTED_NOT)
		return;
	switch ((enum memory_state)memory->state) {
	case MEMORY_NONE:
	case MEMORY_KEPT:
	case MEMORY_CONFIRMED:
		memory->state = MEMORY_KEPT;
		memory->session = session;
		break;
	case MEMORY_RUNNING:
	case MEMORY_ENDED:
	case MEMORY_ENDING:
		memory->back = WANTED;
		break;
	default:
		break;
	}
}

void settle_claimed(struct state *state, int p, uint8_t rows)
{
	struct process *process = &state->process[p];

	for (int t = 0; t < options.timers; t++) {
		if ((rows & (1U << t)) != 0)
			take(&process->memory[t], process->session);
	}
}
