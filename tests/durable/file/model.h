/* SPDX-License-Identifier: MIT */
/*
 * A store under test, and a model with the rows that the store must hold. Operations are chosen at
 * random and made by the ops table of the store. If the commit succeeds, they are made in the model
 * too. If it fails, the store may hold the state before or after the commit, and no state between.
 */
#ifndef TESTS_DURABLE_MODEL_H
#define TESTS_DURABLE_MODEL_H

#include "random.h"

#include <stdbool.h>
#include <stddef.h>
#include <tickwheel/durable_file.h>

enum {
	MODEL_TIMERS = 512, /* that a model has room for */
	MODEL_BATCH = 24,   /* operations of a commit */
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
	int key; /* its number, -1: none */
};

struct model_state {
	struct model_timer timers[MODEL_TIMERS];
	size_t count;
	int clock; /* the number of the last one, 0: none */
};

struct model {
	struct tw_durable_id gone[MODEL_GONE]; /* of timers that ended */
	size_t gone_count;
	struct model_state now, next; /* acknowledged, and with the last commit */
	bool unknown;                 /* the last commit failed: the store has one of the two */
	struct model_state before;    /* the last trim */
	bool trimmed;                 /* after the last change, so that it may be lost */
	struct random random;
	const char *path;
	struct tw_durable_store store;
	struct tw_durable_opened opened;
	uint64_t serial, serials_end, serial_top; /* to give out; the greatest ever seen */
	int64_t now_ns;
	bool open;
	char failure[200]; /* "": all was as it must be */
};

void model_init(struct model *model, const char *path, uint64_t seed);
/* Opens the store. Returns its code. */
int model_open(struct model *model);
void model_close(struct model *model, bool clean);
/*
 * One random commit, with upkeep. Now and then it also removes dead letters, or keeps a clock.
 * Returns the store's code.
 */
int model_commit(struct model *model);
/* A random commit without new timers, with upkeep. */
int model_commit_ends(struct model *model);
/* Compares all that the store holds with the model. False: see `failure`. */
bool model_check(struct model *model);

extern const char *const model_kinds[MODEL_KINDS];

/* For model_check.c, which compares the store with the model. */

/* Notes the first failure. Returns false. */
bool model_fail(struct model *model, const char *format, ...);

/* The timer with an id, or with a key; NULL: there is none. */
struct model_timer *model_find(struct model_state *state, struct tw_durable_id id);
struct model_timer *model_find_key(struct model_state *state, int key);

void model_key_text(int key, char text[8]);
void model_payload_fill(const struct model_timer *timer, unsigned char *bytes);
struct tw_durable_clock model_clock_make(int number);

#endif
