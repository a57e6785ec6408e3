/* SPDX-License-Identifier: MIT */
/*
 * Prints the steps to a state. The table has only states and no steps, so this finds each step
 * again.
 */
#include "explorer/trace.h"

#include "options.h"
#include "same.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* %p is the process, %s the session, %t the timer. */
static const char *const texts[] = {
	[STEP_SCHEDULE] = "a user schedules timer %t in process %p",
	[STEP_CANCEL] = "a user cancels timer %t in process %p",
	[STEP_THIRD_WRITES] = "a third program writes timer %t, and does not commit yet",
	[STEP_SEND] = "process %p sends a batch",
	[STEP_CLAIM] = "process %p sends a claim",
	[STEP_LOOK_AGAIN] = "process %p is refused, and reads its session",
	[STEP_RECONNECT] = "process %p connects again, and reads its session",
	[STEP_READ_BACK] = "process %p reads the rows of its session",
	[STEP_NEW_SESSION] = "process %p takes a new session",
	[STEP_DROP] = "process %p drops timer %t of an old session",
	[STEP_HEARTBEAT] = "the server answers a heartbeat of process %p",
	[STEP_LATE_REPLY] = "process %p receives the late reply to a heartbeat",
	[STEP_RUN] = "a run of timer %t begins in process %p",
	[STEP_NO_RUN] = "a run of timer %t may not begin in process %p",
	[STEP_RUN_ENDS] = "the run of timer %t ends in process %p",
	[STEP_FINISH_IN] = "the run of timer %t ends in process %p by finish_in",
	[STEP_BEGIN] = "the server begins the request of process %p",
	[STEP_COMMIT] = "the server commits the request of process %p, the reply comes",
	[STEP_ORPHAN_BEGIN] = "the server begins the left-over request of process %p",
	[STEP_ORPHAN_COMMIT] = "the server commits the left-over request of process %p",
	[STEP_ORPHAN_LOST] = "the left-over request of process %p is lost",
	[STEP_THIRD_COMMITS] = "the third program commits timer %t",
	[STEP_TICK] = "the server's clock reaches the deadline of timer 0",
	[STEP_EXPIRE] = "session %s expires",
	[STEP_REAP] = "the rows of session %s are taken away",
	[STEP_BREAK] = "FAULT: the connection of process %p breaks",
	[STEP_BREAK_REPLY] =
		"FAULT: the server commits the request of process %p, the reply is lost",
	[STEP_BREAK_ORPHAN] =
		"FAULT: the connection of process %p breaks, its request is left over",
	[STEP_CRASH] = "FAULT: process %p dies, and another one begins in its place",
	[STEP_CRASH_ORPHAN] = "FAULT: process %p dies, its request is left over",
	[STEP_PAUSE] = "FAULT: process %p stands still for the time of a session",
	[STEP_PAUSE_REPLY] =
		"FAULT: process %p stands still for the time of a session, before a reply",
	[STEP_RESTART] = "FAULT: the server restarts",
};

static const char *const ops[] = {
	[OP_NONE] = "",
	[OP_PUT] = "PUT",
	[OP_PUT_STARTED] = "PUT as started",
	[OP_START] = "START",
	[OP_END] = "DELETE of a run",
	[OP_BACK] = "give back",
	[OP_CANCEL] = "DELETE of a cancel",
	[OP_CANCEL_OWN] = "DELETE of a cancel in this process",
};

static void step_print(const struct next *next)
{
	for (const char *at = texts[next->step]; *at != '\0'; at++) {
		if (*at != '%') {
			putchar(*at);
			continue;
		}
		at++;
		if (*at == 'p')
			putchar('A' + next->actor);
		else
			printf("%d", *at == 's' ? next->actor : next->timer);
	}
}

static void request_print(const struct request *request)
{
	const char *before = ": ";

	for (int t = 0; t < options.timers; t++) {
		if (request->ops[t] == OP_NONE)
			continue;
		printf("%s%s %d", before, ops[request->ops[t]], t);
		before = ", ";
	}
}

static void row_print(const struct row *row, int t)
{
	printf("  | row %d ", t);
	if (row->state != ROW_PRESENT)
		printf("%s", row->state == ROW_HIDDEN ? "hidden" : "absent");
	else if (row->session == 0)
		printf("free%s", row->started != 0 ? ", started" : "");
	else
		printf("%s by session %d", row->started != 0 ? "started" : "claimed", row->session);
}

/* Prints a step, its operations, and the rows that it changed. */
static void next_print(int number, const struct state *from, const struct next *next)
{
	printf("%3d. ", number);
	step_print(next);
	if (next->step == STEP_SEND)
		request_print(&next->state.process[next->actor].request);
	if (next->step == STEP_ORPHAN_COMMIT)
		request_print(&from->process[next->actor].orphan);
	for (int t = 0; t < options.timers; t++) {
		if (memcmp(&from->row[t], &next->state.row[t], sizeof(struct row)) != 0)
			row_print(&next->state.row[t], t);
	}
	putchar('\n');
}

/*
 * Finds and prints the step that leads to state `child`. The table numbers processes and sessions
 * anew in each state (same.h). In `state` they keep their numbers, so that the trace names them
 * alike.
 */
static void found_again(const struct table *table, int number, uint32_t child, struct state *state)
{
	static struct steps steps;

	steps_of(state, &steps);
	for (int i = 0; i < steps.count; i++) {
		struct packed packed = same_pack(&steps.next[i].state);

		if (memcmp(&packed, &table->states[child], sizeof(packed)) != 0)
			continue;
		next_print(number, state, &steps.next[i]);
		*state = steps.next[i].state;
		return;
	}
	fprintf(stderr, "step %d is not found again\n", number);
	exit(2);
}

static int path_print(const struct table *table, uint32_t number, struct state *state)
{
	int before;

	if (table->parents[number] == TABLE_NONE) {
		*state = state_first(options.faults, options.cancels);
		return 0;
	}
	before = path_print(table, table->parents[number], state);
	found_again(table, before + 1, number, state);
	return before + 1;
}

static void last_print(int number, const struct state *from, enum property property)
{
	static struct steps steps;

	steps_of(from, &steps);
	for (int i = 0; i < steps.count; i++) {
		if (steps.next[i].state.broken == property) {
			next_print(number, from, &steps.next[i]);
			return;
		}
	}
}

int trace_print(const struct table *table, const struct found *found)
{
	struct state state;
	int count = path_print(table, found->state, &state);

	if (found->in_step)
		last_print(++count, &state, found->property);
	return count;
}
