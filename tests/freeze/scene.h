/* SPDX-License-Identifier: MIT */
/*
 * What the freeze test plays in: an engine in one of a few settings, its clock, its executors, and
 * the books of all timeouts.
 */
#ifndef FREEZE_SCENE_H
#define FREEZE_SCENE_H

#include "mech/slab.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel.h>

enum {
	/* Timeouts in the wheel while a thread stands. */
	WHEELED = 64,
	/* Timeouts for executors, or left in ingress: some magazines and a half. */
	DUES = 4 * TWI_RUN_BLOCKS + TWI_RUN_BLOCKS / 2,
	/* Timeouts that one slab holds, save the last few hundred. */
	SLAB_MOST = 32000,
};

/* What the engine is like when the victim comes to it. */
enum setting {
	/* At work in real time. */
	SETTING_RUNNING,
	/* The same, and few blocks are left before a new slab is needed. */
	SETTING_SCARCE,
	/* At work in virtual time; its worker sleeps. */
	SETTING_VIRTUAL,
	/* At work in real time; DUES periodic timeouts wait for executors, and wait again when they have
	 * run. */
	SETTING_CHAINS,
	/* At work in real time; DUES timeouts wait for executors. */
	SETTING_EXECUTOR,
	/* Never started. */
	SETTING_NEW,
	/* Never started, and its thread will not be made at the first attempt. */
	SETTING_UNLUCKY,
	/* The thread could not be made, and will not be at the next attempt either; DUES timeouts
	 * wait in ingress. */
	SETTING_STALLED,
	/* The dispatch hook has ended the worker's thread, and no thread can be made any more. */
	SETTING_DESERTED,
};

struct scene {
	enum setting setting;
	struct tw_engine *engine;
	struct tw_clock *clock; /* NULL: real time */
	/* When the wheel was filled, and when after that it is due. */
	int64_t begin_ms;
	int64_t due_ms;
	/* Made once: it refuses every schedule. */
	struct tw_engine *closed_engine;

	/* What executors have to run. */
	struct tw_due due[DUES];
	_Atomic size_t due_count;
	_Atomic size_t due_taken;

	/* The books. */
	_Atomic uint64_t accepted;
	_Atomic uint64_t cancelled;
	_Atomic uint64_t fired;
	_Atomic uint64_t handed_back;
	/* Of those in the wheel: fired or handed back, and when the last one was. */
	_Atomic uint64_t wheel_ended;
	_Atomic int64_t wheel_ended_ms;
};

extern struct scene scene;

/* Ends the program, saying at which call and point the victim was. */
_Noreturn void fail(const char *what);

/* `ringless`: lanes have no rings. */
void scene_open(enum setting setting, bool ringless, int64_t due_ms);
/* The engine is stopped. Checks the books. */
void scene_close(void);

/* Whether something is in the wheel that has to fire, or be handed back, while a thread stands. */
bool scene_has_wheel(void);
/* Whether a worker is there, so that settle makes sense. */
bool scene_has_worker(void);

/* Schedules TW_NEVER and keeps the books. 0, or what schedule returned. */
int scene_schedule(struct tw_handle *ret_handle);

/* Runs one of what executors have to run. False: none is left. */
bool scene_due_run(void);

extern const struct tw_kind scene_kind;
void scene_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		     int64_t remaining_ns);
/* The same, and ends its thread: the first time that it runs in this scene. */
void scene_hand_back_and_end(void *context, struct tw_handle handle, const struct tw_kind *kind,
			     void *arg, int64_t remaining_ns);

#endif
