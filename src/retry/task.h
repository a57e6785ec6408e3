/* SPDX-License-Identifier: MIT */
/*
 * A task, the chunks of memory for tasks, and their queue (protocol: word.h).
 *
 * Ownership. The fields that are not atomic belong to the thread that has the task: its submitter
 * in STARTING, the runner of its attempt in RUNNING, its owner in OWNED. The change of the state
 * word passes them from one thread to the next (E40). In WAITING, PENDING and ABANDONED no thread
 * has the task. A free task belongs to its queue.
 *
 * Memory. Tasks lie in chunks of 64, which are never released. A destroyed queue leaves them to
 * later queues. So a thread can follow a handle at any time, and a stale handle finds another step.
 */
#ifndef TWI_RETRY_TASK_H
#define TWI_RETRY_TASK_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/tsan.h"
#include "retry/stack.h"
#include "retry/word.h"

#include <tickwheel.h>

/* The model checks define a smaller number, because they go through all executions. */
#ifndef TWI_CHUNK_TASKS
#define TWI_CHUNK_TASKS 64
#endif

enum {
	TWI_TASK_BYTES = 2 * TWI_CACHE_LINE,
};

struct twi_task {
	_Alignas(TWI_TASK_BYTES) struct twi_link free; /* first member, cast to its task */
	_Atomic uint64_t word;                         /* [atomic E40] */
	_Atomic uint64_t generation; /* [atomic E40] the step that the task's handle has */
	_Atomic uint64_t age;        /* [handoff E40] the number of this submit among all submits */
	/* [handoff E40] handle of its timer; a reader may get the halves of two handles */
	_Atomic(void *) timer_node;
	_Atomic uint64_t timer_generation; /* [handoff E40] */
	struct tw_retry *queue;            /* [handoff E40], like the fields below */
	const struct tw_retry_kind *kind;
	void *arg;
	int64_t begun_ns;
	uint64_t attempts;           /* attempts that have begun */
	uint64_t delays;             /* delays of the schedule that are used up */
	int64_t delay_ns;            /* the last delay, without jitter */
	_Atomic int fork_generation; /* [atomic] fork generation of the submitting process */
};

_Static_assert(sizeof(struct twi_task) == TWI_TASK_BYTES, "two lines");

struct twi_task_chunk {
	_Alignas(TWI_TASK_BYTES) struct twi_link spare; /* first member, cast to its chunk */
	/* [handoff E41] the next chunk of the queue */
	struct twi_task_chunk *next;
	/*
	 * [atomic] No task in this chunk has a lower age, except a task that is being submitted
	 * right now.
	 */
	_Atomic uint64_t age_least;
	struct twi_task task[TWI_CHUNK_TASKS];
};

struct tw_retry {
	struct tw_engine *engine;             /* [const], like the fields below */
	const struct tw_allocator *allocator; /* NULL stands for the C library's */
	uint64_t seed;
	uint32_t pending_limit;
	uint32_t policy;
	int fork_generation; /* fork generation of the process that owns the queue */
	TWI_CACHE_ALIGNED _Atomic uint32_t pending; /* [atomic] tasks that have not ended */
	_Atomic uint32_t out;                       /* [atomic E43] tasks that are not free */
	_Atomic uint64_t submitted;                 /* [atomic] the age of the next task */
	TWI_CACHE_ALIGNED struct twi_stack free;    /* [atomic E42] tasks */
	_Atomic(struct twi_task_chunk *) chunks;    /* [atomic E41] */
};

/*
 * Returns whether a queue, or a task, belongs to the parent of a forked child. The child may own
 * the engine by now, but at the fork these tasks may have been in the middle of any step.
 */
static inline bool twi_retry_of_parent(const struct tw_retry *queue)
{
	return queue->fork_generation != tw_fork_generation();
}

static inline bool twi_task_of_parent(struct twi_task *task)
{
	/*
	 * RELAXED: the value may be that of a later task in the same memory. Then the step differs
	 * too, so the caller's swap fails.
	 */
	return twi_load_relaxed(&task->fork_generation) != tw_fork_generation();
}

/* backoff.c: schedules. */

/* Checks a schedule. Returns 0, -EINVAL or -E2BIG. */
int twi_schedule_check(const struct tw_retry_schedule *schedule);

/*
 * Returns how long the task must wait now, or -1 if its schedule is over. Must be called by the
 * task's owner.
 */
int64_t twi_task_wait_ns(struct twi_task *task);

/* pool.c: memory for tasks. */

/*
 * Allocates zeroed memory. Returns NULL if there is none, or if the allocator returns memory with
 * another alignment.
 */
void *twi_retry_allocate(const struct tw_allocator *allocator, size_t bytes, size_t align);
void twi_retry_release(const struct tw_allocator *allocator, void *memory, size_t bytes,
		       size_t align);

/* Adds memory for `tasks` tasks. Returns false if there is none. */
bool twi_retry_grow(struct tw_retry *queue, uint64_t tasks);

/* Returns a free task, or NULL if there is no memory. */
struct twi_task *twi_task_take(struct tw_retry *queue);

/* Frees a task. This is the caller's last access to the task and to its queue. */
void twi_task_give(struct twi_task *task);

/* Makes all chunks of a queue spare, for later queues. */
void twi_retry_shed(struct tw_retry *queue);

/*
 * age.c: takes the oldest task of a queue (OWNED), which the caller must drop. Returns NULL if all
 * tasks are inside attempts.
 */
struct twi_task *twi_retry_evict(struct tw_retry *queue);

/* run.c: the life of a task. */

/*
 * Makes one step of a task's state word (the linearization point of every step). E40: pairs with
 * itself and with twi_task_look; publishes the task's fields and all that was done with its
 * argument. Returns false if the state word differs; *word is then its new value.
 */
static inline bool twi_task_swap(struct twi_task *task, uint64_t *word, uint64_t next)
{
	bool swapped;

	twi_tsan_release(&task->word);
	swapped = twi_cas_acq_rel(&task->word, word, next); /* E40: see above */
	twi_tsan_acquire(&task->word);
	return swapped;
}

static inline uint64_t twi_task_look(struct twi_task *task)
{
	uint64_t word = twi_load_acquire(&task->word); /* E40: pairs with twi_task_swap */

	twi_tsan_acquire(&task->word);
	return word;
}

/* Returns the handle of the task's timer. The caller must have the task. */
static inline struct tw_handle twi_task_timer(struct twi_task *task)
{
	/* RELAXED, both loads: the owner has acquired the handle with the task. */
	return (struct tw_handle){.node = twi_load_relaxed(&task->timer_node),
				  .generation =
					  twi_load_relaxed(&task->timer_generation)}; /* RELAXED */
}

/*
 * The task of this thread's last timer callback. It is set from the end of the callback to the end
 * of the finaliser, which follows at once. If a late hook ran instead of the callback, the
 * finaliser finds another value here, and does the callback's work. If the finaliser finds its task
 * here, it must not look at the task, because the task may serve another submit by now.
 */
extern _Thread_local void *twi_timer_seen;

/* The kind of all timers. */
extern const struct tw_kind twi_timer_kind;

/*
 * Makes a timer that never expires, for a task that has none. Returns 0, or the error of
 * tw_schedule.
 */
int twi_timer_make(struct twi_task *task);

/* Acts on the result of an attempt. The caller must own the task. */
void twi_task_conclude(struct twi_task *task, int result);

/* Ends a task. The caller must own it. */
void twi_task_end(struct twi_task *task, enum tw_retry_end end);

/* Does the same as twi_task_end for a task whose place in the queue another task has taken. */
void twi_task_end_evicted(struct twi_task *task);

/* queue.c: take a place in the queue, and give it back. */

bool twi_pending_take(struct tw_retry *queue);
void twi_pending_give(struct tw_retry *queue);

#endif
