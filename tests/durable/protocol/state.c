/* SPDX-License-Identifier: MIT */
/* Makes the first state. Packs states: each field takes as many bits as its values need. */
#include "state.h"

#include <stddef.h>
#include <string.h>

#define REQUEST_BITS                                                                               \
	{                                                                                          \
		.kind = 2, .phase = 3, .resent = 1, .ops = {3, 3}, .named = {3, 3}, .claimed = 2   \
	}
#define MEMORY_BITS                                                                                \
	{                                                                                          \
		.state = 4, .session = 3, .back = 2, .cancel = 2                                   \
	}
#define PROCESS_BITS                                                                               \
	{                                                                                          \
		.session = 3, .cut = 1, .lease = 1, .lost = 1, .late_reply = 1, .read_back = 1,    \
		.marked = 1, .done = 1, .outcomes = {3, 3}, .request = REQUEST_BITS,               \
		.orphan = REQUEST_BITS, .orphan_session = 3, .memory = {                           \
			MEMORY_BITS,                                                               \
			MEMORY_BITS                                                                \
		}                                                                                  \
	}
#define ROW_BITS                                                                                   \
	{                                                                                          \
		.state = 2, .session = 3, .started = 1, .attempted = 1, .begun = 1, .fence = 3     \
	}
#define NOTES_BITS                                                                                 \
	{                                                                                          \
		.scheduled = 1, .acknowledged = 1, .ran = 1, .never = 1, .cancelled = 1,           \
		.runs_left = 2, .begun = 1, .fence = 3, .effects = 1                               \
	}

static const struct state bits = {
	.process = {PROCESS_BITS, PROCESS_BITS},
	.row = {ROW_BITS, ROW_BITS},
	.notes = {NOTES_BITS, NOTES_BITS},
	.session = {0, 2, 2, 2, 2, 2, 2, 0},
	.session_next = 3,
	.clock = 1,
	.faults_left = 2,
	.cancels_left = 2,
	.broken = 0,
};

struct state state_first(uint8_t faults, uint8_t cancels)
{
	struct state state;

	memset(&state, 0, sizeof(state));
	state.faults_left = faults;
	state.cancels_left = cancels;
	state.session_next = 1;
	for (int p = 0; p < PROCESSES; p++) {
		state.process[p].session = state.session_next;
		state.process[p].lease = 1;
		state.session[state.session_next++] = SESSION_ALIVE;
	}
	for (int t = 0; t < TIMERS; t++)
		state.notes[t].runs_left = 1;
	return state;
}

struct packed state_pack(const struct state *state)
{
	const uint8_t *from = (const uint8_t *)state, *width = (const uint8_t *)&bits;
	struct packed packed = {{0}};
	unsigned at = 0, word = 0;

	for (size_t i = 0; i < offsetof(struct state, broken); i++) {
		if (at + width[i] > 64) {
			at = 0;
			word++;
		}
		packed.word[word] |= (uint64_t)from[i] << at;
		at += width[i];
	}
	return packed;
}

struct state state_unpack(const struct packed *packed)
{
	const uint8_t *width = (const uint8_t *)&bits;
	struct state state;
	uint8_t *to = (uint8_t *)&state;
	unsigned at = 0, word = 0;

	memset(&state, 0, sizeof(state));
	for (size_t i = 0; i < offsetof(struct state, broken); i++) {
		if (at + width[i] > 64) {
			at = 0;
			word++;
		}
		to[i] = (uint8_t)((packed->word[word] >> at) & ((1U << width[i]) - 1));
		at += width[i];
	}
	return state;
}
