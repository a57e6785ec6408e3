/* SPDX-License-Identifier: MIT */
/*
 * The engine: a worker, what it was made with, and who may start, stop and free it.
 */
#ifndef TWI_ENGINE_ENGINE_H
#define TWI_ENGINE_ENGINE_H

#include "base/compiler.h"
#include "clock/auto.h"
#include "thread/fork.h"
#include "worker/worker.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <tickwheel/engine.h>

enum {
	/* As the kernel has it, without the NUL. */
	TWI_THREAD_NAME_BYTES = 15,
	/* Beyond this number of engines alive the log is told, once. */
	TWI_ENGINES_USUAL = 64,
};

struct tw_engine {
	struct twi_worker worker;                    /* first: twi_node_worker */
	struct twi_clock_tsc own_clock;              /* where no other is given */
	tw_thread_hook *thread_hook;                 /* [const] */
	void *thread_context;                        /* [const] */
	int32_t scheduling_policy;                   /* [const] */
	int32_t scheduling_priority;                 /* [const] */
	size_t cpu_set_bytes;                        /* [const] 0: inherit */
	cpu_set_t cpu_set;                           /* [const] */
	char thread_name[TWI_THREAD_NAME_BYTES + 1]; /* [const] */
	pthread_t thread;                            /* [handoff E12] */
	bool thread_made;                            /* [handoff E12] `thread` has to be joined */
	_Atomic bool stop_claimed;    /* [atomic E12] the first stop's hook is the one */
	_Atomic uint32_t misuse_told; /* [atomic] bit per enum twi_misuse */
	struct tw_options options;    /* [const] as read; what it points to may be gone */
};

_Static_assert(offsetof(struct tw_engine, worker) == 0, "a node finds its worker at its engine");

/* Whether the engine belongs to the parent of this process. */
static inline bool twi_engine_of_parent(const struct tw_engine *engine)
{
	return engine->worker.fork_epoch != twi_fork_epoch;
}

/* options.c: 0, or what is wrong; `*ret` is a whole struct of this version, defaults filled in. */
int twi_options_read(const struct tw_options *options, struct tw_options *ret);

/* create.c. `options` as read. */
int twi_engine_create(const struct tw_options *options, struct tw_engine **ret_engine);
void twi_engine_free(struct tw_engine *engine);
/* create.c: a wheel like the one that this engine was made with, or NULL. */
struct twi_wheel *twi_engine_wheel(const struct tw_engine *engine);
/* create.c: a worker of zeros becomes one that has done nothing. */
void twi_engine_worker_init(struct twi_worker *worker, const struct tw_options *options);

/* adopt.c, in a forked child. Whether the parent's engine can be: 0, or -ESHUTDOWN. */
int twi_engine_adoptable(const struct tw_engine *engine);
/*
 * adopt.c: the engine becomes this process's, with the bits of enum tw_reinit_flag; so does the library,
 * if it is not. 0; -ENOMEM, -EOPNOTSUPP and nothing is changed.
 */
int twi_engine_adopt(struct tw_engine *engine, uint64_t flags);
/* adopt.c: the timeouts of an engine that is about to be freed as the parent's. */
void twi_engine_renounce(struct tw_engine *engine);

/* thread.c: makes the worker's thread. 0, or a negative errno value. */
int twi_engine_thread_make(struct tw_engine *engine);
/* thread.c: waits for the last steps of a thread that has said its last word. */
void twi_engine_thread_join(struct tw_engine *engine);

/* start.c. Never waits. */
int twi_engine_start(struct tw_engine *engine);

/*
 * own.c, loop mode: the calling thread is the owner from now on, or is so already. 0; -EBUSY where
 * another is; -ESHUTDOWN.
 */
int twi_engine_own(struct tw_engine *engine);
/* own.c: it is not, any more. */
void twi_engine_leave(struct tw_engine *engine);
/* own.c: whether the calling thread is the worker, or the owner of the loop. */
bool twi_engine_owned(const struct tw_engine *engine);
/* own.c: whether the calling thread is inside a callback or hook of the engine, wherever that runs. */
bool twi_engine_inside(const struct tw_engine *engine);
/* api/engine.c: it has ended, or has never begun. Not for a parent's. */
bool twi_engine_destroyable(const struct tw_engine *engine);
/*
 * own.c: whether `thread`, the calling one, is the owner of a timeout that is only its owner's. From
 * now on it knows that engine.
 */
bool twi_owner_again(struct tw_handle handle, struct twi_thread *thread);

/* stop.c. */
int twi_engine_stop(struct tw_engine *engine, tw_hand_back *hand_back, void *context,
		    int64_t until_ns);

/* settle.c. */
int twi_engine_settle(struct tw_engine *engine, int64_t until_ns);

#endif
