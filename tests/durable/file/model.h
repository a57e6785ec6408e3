/* SPDX-License-Identifier: MIT */
/*
 * A store under test, and a model with the rows that the store must hold. Operations are chosen at
 * random and made through the store's ops table. If the commit succeeds, they are made in the model
 * too. If it fails, the store may hold the state before or after the commit, and no state between.
 */
#ifndef TESTS_DURABLE_MODEL_H
#define TESTS_DURABLE_MODEL_H

#include "random.h"

#include <stdbool.h>
#include <stddef.h>
#include <tickwheel/durable_file.h>

enum {
	MODEL_TIMERS = 512, /* a model has room for so many */
	MODEL_BATCH = 24,   /* most operations in a commit */
	MODEL_KEYS = 8,     /* keys: "k0" to "k7" */
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
	struct tw_durable_id gone[MODEL_GONE]; /* ids of timers that ended */
	size_t gone_count;
	/* the acknowledged state, and the state with the last commit */
	struct model_state now, next;
	/* the last commit failed: the store has one of the two states */
	bool unknown;
	struct model_state before; /* the state before the last trim */
	bool trimmed;              /* the last change was a trim, which may be lost */
	struct random random;
	const char *path;
	struct tw_durable_store store;
	struct tw_durable_opened opened;
	/* the next to use and their end; the greatest ever seen */
	uint64_t serial, serials_end, serial_top;
	int64_t now_ns;
	bool open;
	char failure[200]; /* "": no failure */
};

void model_init(struct model *model, const char *path, uint64_t seed);
/* Returns the store's code. */
int model_open(struct model *model);
void model_close(struct model *model, bool clean);
/*
 * Makes one random commit, with upkeep. Now and then it also removes dead letters, or stores a
 * clock. Returns the store's code.
 */
int model_commit(struct model *model);
/* Makes a random commit without new timers, with upkeep. */
int model_commit_ends(struct model *model);
/* Compares everything in the store with the model. Returns false if they differ: see `failure`. */
bool model_check(struct model *model);

extern const char *const model_kinds[MODEL_KINDS];

/* For model_check.c, which compares the store with the model. */

/* Records the first failure. Returns false. */
bool model_fail(struct model *model, const char *format, ...);

/* Return the timer with an id, or with a key; or NULL. */
struct model_timer *model_find(struct model_state *state, struct tw_durable_id id);
struct model_timer *model_find_key(struct model_state *state, int key);

void model_key_text(int key, char text[8]);
void model_payload_fill(const struct model_timer *timer, unsigned char *bytes);
struct tw_durable_clock model_clock_make(int number);

#endif
