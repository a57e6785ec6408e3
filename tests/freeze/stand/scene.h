/* SPDX-License-Identifier: MIT */
/*
 * The surroundings of the victim in the freeze test: an engine in one of a few settings, its clock,
 * its executors, and counts of all timeouts.
 */
#ifndef FREEZE_SCENE_H
#define FREEZE_SCENE_H

#include "memory/slab.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel.h>

enum {
	/* the number of timeouts in the wheel while a thread is stopped */
	WHEELED = 64,
	/* the number of timeouts for executors, or left in ingress: four magazines and a half */
	DUES = 4 * TWI_RUN_BLOCKS + TWI_RUN_BLOCKS / 2,
	/* the number of timeouts of one slab, except the last few hundred */
	SLAB_MOST = 32000,
};

/* The state of the engine when the victim makes its call. */
enum setting {
	/* The engine works in real time. */
	SETTING_RUNNING,
	/* The engine works in real time, and few blocks are left before a new slab is needed. */
	SETTING_SCARCE,
	/* The engine works in virtual time; its worker sleeps. */
	SETTING_VIRTUAL,
	/*
	 * The engine works in real time. DUES periodic timeouts wait for executors, and wait again
	 * after each run.
	 */
	SETTING_CHAINS,
	/* The engine works in real time. DUES timeouts wait for executors. */
	SETTING_EXECUTOR,
	/* The engine was never started. */
	SETTING_NEW,
	/* The engine was never started. The first attempt to create its thread will fail. */
	SETTING_UNLUCKY,
	/*
	 * The engine's thread could not be created, and the next attempt will fail too. DUES
	 * timeouts wait in ingress.
	 */
	SETTING_STALLED,
	/*
	 * The dispatch hook has ended the worker's thread, and no thread can be created any more.
	 */
	SETTING_DESERTED,
};

struct scene {
	enum setting setting;
	struct tw_engine *engine;
	struct tw_clock *clock; /* the engine's clock; NULL: real time */
	/* The time at which the wheel was filled, and the delay of its timeouts from then. */
	int64_t begin_ms;
	int64_t due_ms;
	/* An engine that is created once, for all settings. It rejects every schedule. */
	struct tw_engine *closed_engine;

	/* The timeouts that executors must run. */
	struct tw_due due[DUES];
	_Atomic size_t due_count;
	_Atomic size_t due_taken;

	/* Counts of the timeouts. */
	_Atomic uint64_t accepted;
	_Atomic uint64_t cancelled;
	_Atomic uint64_t fired;
	_Atomic uint64_t unexpired;
	/*
	 * How many timeouts of the wheel have fired or were handed back, and the time of the last
	 * one.
	 */
	_Atomic uint64_t wheel_ended;
	_Atomic int64_t wheel_ended_ms;
};

extern struct scene scene;

/* Prints in which call and at which point the victim was, then ends the program. */
_Noreturn void fail(const char *what);

/* Opens the scene. If `ringless`, lanes have no rings. */
void scene_open(enum setting setting, bool ringless, int64_t due_ms);
/* Checks the counts, and destroys the engine, which must be stopped. */
void scene_close(void);

/* Returns whether timeouts in the wheel must fire, or be handed back, while a thread is stopped. */
bool scene_has_wheel(void);
/* Returns whether there is a worker. If there is none, flush is not called. */
bool scene_has_worker(void);

/*
 * Schedules a timeout with TW_NEVER, and counts it if it is accepted. Returns 0, or the error of
 * schedule.
 */
int scene_schedule(struct tw_handle *ret_handle);

/* Runs one timeout that waits for executors. Returns false if none is left. */
bool scene_due_run(void);

extern const struct tw_kind scene_kind;
void scene_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		     int64_t remaining_ns);
/*
 * Does the same as the hand-back hook above. When it runs for the first time in this scene, it also
 * ends its thread.
 */
void scene_hand_back_and_end(void *context, struct tw_handle handle, const struct tw_kind *kind,
			     void *arg, int64_t remaining_ns);

#endif
