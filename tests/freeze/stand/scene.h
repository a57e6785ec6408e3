/* SPDX-License-Identifier: MIT */
/*
 * The scene of the freeze test: an engine in one of a few settings, its clock, its executors, and
 * the accounts of all timeouts.
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
	/* Timeouts in the wheel while a thread is stopped. */
	WHEELED = 64,
	/* Timeouts for executors, or left in ingress: four magazines and a half. */
	DUES = 4 * TWI_RUN_BLOCKS + TWI_RUN_BLOCKS / 2,
	/* The timeouts of one slab, except the last few hundred. */
	SLAB_MOST = 32000,
};

/* The state of the engine when the victim makes its call. */
enum setting {
	/* It works in real time. */
	SETTING_RUNNING,
	/* The same, and few blocks are left before a new slab is needed. */
	SETTING_SCARCE,
	/* It works in virtual time; its worker sleeps. */
	SETTING_VIRTUAL,
	/*
	 * It works in real time. DUES periodic timeouts wait for executors, and wait again after
	 * each run.
	 */
	SETTING_CHAINS,
	/* It works in real time. DUES timeouts wait for executors. */
	SETTING_EXECUTOR,
	/* It was never started. */
	SETTING_NEW,
	/* It was never started. The first attempt to create its thread will fail. */
	SETTING_UNLUCKY,
	/*
	 * The thread could not be created, and the next attempt will fail too. DUES timeouts wait
	 * in ingress.
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
	struct tw_clock *clock; /* NULL: real time */
	/* The time when the wheel was filled, and how long after that it is due. */
	int64_t begin_ms;
	int64_t due_ms;
	/* Created once, for all settings. It rejects every schedule. */
	struct tw_engine *closed_engine;

	/* The timeouts that executors have to run. */
	struct tw_due due[DUES];
	_Atomic size_t due_count;
	_Atomic size_t due_taken;

	/* The accounts of the timeouts. */
	_Atomic uint64_t accepted;
	_Atomic uint64_t cancelled;
	_Atomic uint64_t fired;
	_Atomic uint64_t unexpired;
	/* How many timeouts of the wheel have fired or been handed back, and when the last did. */
	_Atomic uint64_t wheel_ended;
	_Atomic int64_t wheel_ended_ms;
};

extern struct scene scene;

/* Ends the program, and prints at which call and point the victim was. */
_Noreturn void fail(const char *what);

/* Opens the scene. If `ringless`, lanes have no rings. */
void scene_open(enum setting setting, bool ringless, int64_t due_ms);
/* Checks the accounts. The engine must be stopped. */
void scene_close(void);

/* Returns whether timeouts in the wheel must fire, or be handed back, while a thread is stopped. */
bool scene_has_wheel(void);
/* Returns whether there is a worker. Otherwise flush makes no sense. */
bool scene_has_worker(void);

/* Schedules a timeout with TW_NEVER and accounts for it. Returns 0, or the error of schedule. */
int scene_schedule(struct tw_handle *ret_handle);

/* Runs one timeout that waits for executors. Returns false if none is left. */
bool scene_due_run(void);

extern const struct tw_kind scene_kind;
void scene_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		     int64_t remaining_ns);
/* The same, but ends its thread when it runs for the first time in this scene. */
void scene_hand_back_and_end(void *context, struct tw_handle handle, const struct tw_kind *kind,
			     void *arg, int64_t remaining_ns);

#endif
