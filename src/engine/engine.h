/* SPDX-License-Identifier: MIT */
/*
 * The engine: a worker and its options. Also declares the functions that start, stop and free it.
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
	/* The kernel's limit, without the NUL. */
	TWI_THREAD_NAME_BYTES = 15,
	/* If more engines than this exist at the same time, the library logs it once. */
	TWI_ENGINES_USUAL = 64,
};

/*
 * The seat of a scaled kind at its engine (scaled/scaled.h). A seat stays until the engine is
 * freed, and may serve one kind after another.
 */
struct twi_seat {
	_Alignas(16) _Atomic uint64_t driver[2]; /* [atomic E150] handle of the driver */
	_Alignas(16) _Atomic uint64_t relay[2];  /* [atomic E150] handle of the relay */
	/* [atomic E151] the kind that has the seat, or NULL */
	_Atomic(struct tw_scaled *) owner;
	struct twi_seat *next;  /* [const] the engine's next seat */
	_Atomic uint32_t asked; /* [atomic E150] orders drives and turns */
	/* [handoff E151] fork epoch of the owner's process */
	uint32_t fork_epoch;
};

struct tw_engine {
	struct twi_worker worker;                    /* first member: see twi_node_worker */
	struct twi_clock_tsc own_clock;              /* used if the options name no clock */
	tw_thread_hook *thread_hook;                 /* [const] */
	void *thread_context;                        /* [const] */
	int32_t scheduling_policy;                   /* [const] */
	int32_t scheduling_priority;                 /* [const] */
	size_t cpu_set_bytes;                        /* [const] 0 if the worker inherits its CPUs */
	cpu_set_t cpu_set;                           /* [const] */
	char thread_name[TWI_THREAD_NAME_BYTES + 1]; /* [const] */
	pthread_t thread;                            /* [handoff E12] */
	bool thread_made;                            /* [handoff E12] `thread` must be joined */
	_Atomic bool stop_claimed; /* [atomic E12] set by the first stop, whose hook is used */
	_Atomic bool join_claimed; /* [atomic] a stop of the default engine joins its threads */
	_Atomic uint32_t misuse_reported; /* [atomic] a bit for each enum twi_misuse */
	/* [atomic E151] the factor of scaled kinds, as scaled/factor.c packs it */
	_Atomic uint64_t factor;
	_Atomic(struct twi_seat *) seats; /* [atomic E151] the list of seats of scaled kinds */
	/*
	 * If a scaled kind owns this engine: the engine that users know, and the kind's seat there.
	 */
	struct tw_engine *front;   /* [const] may be NULL */
	struct twi_seat *seat;     /* [const] may be NULL */
	struct tw_options options; /* [const] as passed to create; pointers may be stale */
};

_Static_assert(offsetof(struct tw_engine, worker) == 0, "a node finds its worker at its engine");

/* Returns the engine that users know. */
static inline struct tw_engine *twi_engine_front(struct tw_engine *engine)
{
	return TWI_LIKELY(engine->front == NULL) ? engine : engine->front;
}

/* Returns whether the engine belongs to the parent of this forked process. */
static inline bool twi_engine_of_parent(const struct tw_engine *engine)
{
	return engine->worker.fork_epoch != twi_fork_epoch;
}

/*
 * options.c: checks the options. Returns 0 and fills *ret, a whole struct of this version, with
 * defaults where the caller's struct has no field. Otherwise returns -EINVAL, -E2BIG or -ERANGE.
 */
int twi_options_read(const struct tw_options *options, struct tw_options *ret);

/*
 * default.c: sets the options of the default engine, which must come from twi_options_read. Returns
 * 0; -EBUSY if a thread has asked for the engine before; -ENOMEM.
 */
int twi_default_wish(const struct tw_options *options);
/* default.c: returns the default engine of this process, or NULL if it cannot be made. */
struct tw_engine *twi_default_engine(void);
/* default.c: returns whether the engine is the default one. */
bool twi_default_is(const struct tw_engine *engine);

/* create.c: makes an engine. `options` must come from twi_options_read. */
int twi_engine_create(const struct tw_options *options, struct tw_engine **ret_engine);
void twi_engine_free(struct tw_engine *engine);
/* create.c: returns a new wheel for the engine's options, or NULL if there is no memory. */
struct twi_wheel *twi_engine_wheel(const struct tw_engine *engine);
/* create.c: sets up a worker whose memory is zeroed. */
void twi_engine_worker_init(struct twi_worker *worker, const struct tw_options *options);

/*
 * wall.c: makes the data for wall timeouts, unless the engine has it. Returns 0, -ENOMEM or
 * -EOPNOTSUPP.
 */
int twi_engine_wall(struct tw_engine *engine);
/*
 * wall.c: makes the data for wall timeouts of a worker, without publishing it. Returns the same
 * values as twi_engine_wall.
 */
int twi_wall_create(struct twi_worker *worker, struct twi_wall **ret_wall);
/*
 * wall.c: lets each later step of the wall clock wake the worker. If a step was counted before,
 * wakes the worker now.
 */
void twi_wall_open(struct twi_wall *wall);
/*
 * wall.c: frees the data for wall timeouts. NULL is accepted. `forked`: the data is a copy of the
 * parent's.
 */
void twi_wall_destroy(struct twi_wall *wall, bool forked);
/*
 * wall.c: ends the watch of the wall clock, if there is one. The engine must be stopped, or `wall`
 * not yet published.
 */
void twi_wall_unwatch(struct twi_wall *wall);

/*
 * recover.c: checks whether a forked child can take over its parent's engine. Returns 0 or
 * -ESHUTDOWN.
 */
int twi_engine_recoverable(const struct tw_engine *engine);
/*
 * recover.c: makes the engine this process's own. `flags`: bits of enum tw_reinit_flag. Takes over
 * the library too, if no earlier call did. Returns 0, or -ENOMEM or -EOPNOTSUPP after changing
 * nothing.
 */
int twi_engine_recover(struct tw_engine *engine, uint64_t flags);
/*
 * recover.c: frees the nodes of a parent's engine. Must be called before that engine is freed. Does
 * nothing until the child has taken over the library.
 */
void twi_engine_renounce(struct tw_engine *engine);

/* thread.c: makes the worker's thread. Returns 0, or a negative errno value. */
int twi_engine_thread_make(struct tw_engine *engine);
/* thread.c: joins the worker's thread. The thread must have made its last access to the engine. */
void twi_engine_thread_join(struct tw_engine *engine);

/*
 * start.c: starts the engine unless it is started. Never waits. Returns 0 or a negative errno
 * value.
 */
int twi_engine_start(struct tw_engine *engine);

/*
 * own.c, loop mode: makes the calling thread the owner. It must not own the engine already. Returns
 * 0; -EBUSY if another thread is the owner; or -ESHUTDOWN.
 */
int twi_engine_own(struct tw_engine *engine);
/*
 * own.c: moves into the wheel the timeouts that the calling thread pushed before it became the
 * owner. They must enter the wheel before the timeouts that the thread inserts as the owner, so
 * that equal deadlines keep their order.
 */
void twi_engine_pushed_take(struct tw_engine *engine);
/* own.c: ends the calling thread's ownership. */
void twi_engine_leave(struct tw_engine *engine);
/* own.c: returns whether the calling thread is the worker, or the owner of the loop. */
bool twi_engine_owned(const struct tw_engine *engine);
/*
 * own.c: returns whether the calling thread, worker or not, is inside a callback or hook of the
 * engine.
 */
bool twi_engine_inside(const struct tw_engine *engine);
/*
 * api/engine.c: returns whether the engine can be destroyed: it has stopped, was never started, or
 * its start has failed and it has no timeouts. In a forked child, the engine must not be the
 * parent's.
 */
bool twi_engine_destroyable(const struct tw_engine *engine);
/*
 * own.c: returns whether the calling thread `thread` owns the engine of an owner-only timeout. If
 * so, the function stores that engine's worker in the thread's wheel_of.
 */
bool twi_owner_again(struct tw_handle handle, struct twi_thread *thread);

/* stop.c: stops the engine. Returns 0 or -ETIMEDOUT. */
int twi_engine_stop(struct tw_engine *engine, tw_unexpired_hook *on_unexpired, void *context,
		    int64_t until_ns);

/*
 * flush.c: waits until the worker has completed a turn that began after this call. Returns 0,
 * -ETIMEDOUT or a negative errno value of start.
 */
int twi_engine_flush(struct tw_engine *engine, int64_t until_ns);

#endif
