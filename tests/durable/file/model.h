/* SPDX-License-Identifier: MIT */
/*
 * A store under test, and a model with the rows that the store must hold. The model chooses
 * operations at random, and makes them through the store's table of functions (`ops`). If the
 * commit succeeds, the model applies the operations to its own rows too. If the commit fails, the
 * store may hold the state before or after the commit, but no state in between.
 */
#ifndef TESTS_DURABLE_MODEL_H
#define TESTS_DURABLE_MODEL_H

#include "random.h"

#include <stdbool.h>
#include <stddef.h>
#include <tickwheel/durable_file.h>

enum {
	MODEL_TIMERS = 512, /* the most timers that a model can have */
	MODEL_BATCH = 24,   /* the most operations in a commit */
	MODEL_KEYS = 8,     /* the number of keys, "k0" to "k7" */
	MODEL_KINDS = 3,
	MODEL_PAYLOAD = 128,
	MODEL_GONE = 16,
};

struct model_timer {
	struct tw_durable_id id;
	int64_t due_ns, ended_ns;
	uint64_t attempt;
	uint32_t kind, version, started, dead;
	uint32_t payload_bytes;
	int key; /* the key's number; -1: none */
};

struct model_state {
	struct model_timer timers[MODEL_TIMERS];
	size_t count;
	int clock; /* the number of the last clock; 0: none */
};

struct model {
	struct tw_durable_id gone[MODEL_GONE]; /* the ids of timers that have ended */
	size_t gone_count;
	/* `now` is the acknowledged state; `next` includes the last commit */
	struct model_state now, next;
	/* whether the last commit failed; then the store has one of the two states */
	bool unknown;
	struct model_state before; /* the state before the last trim */
	bool trimmed;              /* whether the last change was a trim, which may be lost */
	struct random random;
	const char *path;
	struct tw_durable_store store;
	struct tw_durable_opened opened;
	/* the next serial to use, the end of the reserved ones, the greatest ever seen */
	uint64_t serial, serials_end, serial_top;
	int64_t now_ns;
	bool open;
	char failure[200]; /* what was wrong first; "": nothing */
};

void model_init(struct model *model, const char *path, uint64_t seed);
/* Returns the store's code. */
int model_open(struct model *model);
void model_close(struct model *model, bool clean);
/*
 * Makes one random commit, then calls the store's upkeep. Now and then also removes dead letters,
 * or stores a clock. Returns the store's code.
 */
int model_commit(struct model *model);
/*
 * Makes a random commit without new timers, then calls the store's upkeep. Returns the store's
 * code.
 */
int model_commit_ends(struct model *model);
/*
 * Compares everything in the store with the model. Returns false if they differ, and describes the
 * difference in `failure`.
 */
bool model_check(struct model *model);

extern const char *const model_kinds[MODEL_KINDS];

/* Functions for model_check.c, which compares the store with the model. */

/* Records the first failure. Returns false. */
bool model_fail(struct model *model, const char *format, ...);

/* Return the timer with an id, or with a key; or NULL. */
struct model_timer *model_find(struct model_state *state, struct tw_durable_id id);
struct model_timer *model_find_key(struct model_state *state, int key);

void model_key_text(int key, char text[8]);
void model_payload_fill(const struct model_timer *timer, unsigned char *bytes);
struct tw_durable_clock model_clock_make(int number);

#endif
