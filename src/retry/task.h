/* SPDX-License-Identifier: MIT */
/*
 * A task, the chunks that tasks come in, and the queue that has them (protocol: word.h).
 *
 * Who owns what. The fields of a task that are not atomic belong to who has it: who submits it in
 * STARTING, who runs its attempt in RUNNING, who has made the step in OWNED; they travel by the word
 * (E40). In WAITING, PENDING and ABANDONED nobody has it. A free task is its queue's.
 *
 * Memory. Tasks lie in chunks of 64, which are never released: a destroyed queue leaves them to the
 * queues of later. So a handle can be read at any time, and finds another step.
 */
#ifndef TWI_RETRY_TASK_H
#define TWI_RETRY_TASK_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/tsan.h"
#include "retry/stack.h"
#include "retry/word.h"

#include <tickwheel.h>

/* Smaller for the model checks, which go through all that happens. */
#ifndef TWI_CHUNK_TASKS
#define TWI_CHUNK_TASKS 64
#endif

enum {
	TWI_TASK_BYTES = 2 * TWI_CACHE_LINE,
};

struct twi_task {
	_Alignas(TWI_TASK_BYTES) struct twi_link free; /* first: a link is its task */
	_Atomic uint64_t word;                         /* [atomic E40] */
	_Atomic uint64_t birth;       /* [atomic E40] the step that its handle has */
	_Atomic uint64_t age;         /* [handoff E40] its number among all that were submitted */
	_Atomic(void *) timer_node;   /* [handoff E40] the handle of its timer; may be read torn */
	_Atomic uint64_t timer_birth; /* [handoff E40] */
	struct tw_retry *queue;       /* [handoff E40], as what follows */
	const struct tw_retry_kind *kind;
	void *arg;
	int64_t begun_ns;
	uint64_t attempts;      /* begun */
	uint64_t delays;        /* of the schedule, that were used */
	int64_t delay_ns;       /* the last of them, without jitter */
	_Atomic int generation; /* [atomic] of the process that submitted it */
};

_Static_assert(sizeof(struct twi_task) == TWI_TASK_BYTES, "two lines");

struct twi_task_chunk {
	_Alignas(TWI_TASK_BYTES) struct twi_link spare; /* first: a link is its chunk */
	struct twi_task_chunk *next;                    /* [handoff E41] of the queue's */
	/* [atomic] No task in here is older, but for one that is being submitted. */
	_Atomic uint64_t age_least;
	struct twi_task task[TWI_CHUNK_TASKS];
};

struct tw_retry {
	struct tw_engine *engine;             /* [const] as what follows */
	const struct tw_allocator *allocator; /* NULL: the C library's */
	uint64_t seed;
	uint32_t pending_limit;
	uint32_t policy;
	int generation;                             /* of the process that it belongs to */
	TWI_CACHE_ALIGNED _Atomic uint32_t pending; /* [atomic] tasks that have not ended */
	_Atomic uint32_t out;                       /* [atomic E43] tasks that are not free */
	_Atomic uint64_t submitted;                 /* [atomic] the next one's age */
	TWI_CACHE_ALIGNED struct twi_stack free;    /* [atomic E42] tasks */
	_Atomic(struct twi_task_chunk *) chunks;    /* [atomic E41] */
};

/*
 * Whether a queue, or a task, stayed with the parent of a forked child. Its engine may be the child's by
 * now; but its tasks were at any step of their lives.
 */
static inline bool twi_retry_of_parent(const struct tw_retry *queue)
{
	return queue->generation != tw_fork_generation();
}

static inline bool twi_task_of_parent(struct twi_task *task)
{
	/* RELAXED: of another life, it may be that of the child's: then the step is another, too. */
	return twi_load_relaxed(&task->generation) != tw_fork_generation();
}

/* backoff.c: schedules. */

/* 0, -EINVAL, -E2BIG. */
int twi_schedule_check(const struct tw_retry_schedule *schedule);

/* By its owner: how long it waits now; -1: it is over. */
int64_t twi_task_wait_ns(struct twi_task *task);

/* pool.c: where tasks come from and go to. */

/* Zeroed, or NULL: also when the allocator does not keep to the alignment. */
void *twi_retry_allocate(const struct tw_allocator *allocator, size_t bytes, size_t align);
void twi_retry_release(const struct tw_allocator *allocator, void *memory, size_t bytes,
		       size_t align);

/* Memory for so many more tasks; false: there is none. */
bool twi_retry_grow(struct tw_retry *queue, uint64_t tasks);

/* A free task, or NULL: no memory. */
struct twi_task *twi_task_take(struct tw_retry *queue);

/* The last touch of the task, and of its queue. */
void twi_task_give(struct twi_task *task);

/* All chunks of a queue go to the queues of later. */
void twi_retry_shed(struct tw_retry *queue);

/* age.c: the oldest task of a queue, taken to be dropped (OWNED); NULL: all are inside attempts. */
struct twi_task *twi_retry_evict(struct tw_retry *queue);

/* run.c: the life of a task. */

/*
 * LIN of every step that a task makes. E40, pairs with the same and with twi_task_look: the fields
 * of the task, and what was done with its argument. False: *word is what is there instead.
 */
static inline bool twi_task_swap(struct twi_task *task, uint64_t *word, uint64_t next)
{
	bool swapped;

	twi_tsan_release(&task->word);
	swapped = twi_cas_acq_rel(&task->word, word, next); /* E40 */
	twi_tsan_acquire(&task->word);
	return swapped;
}

static inline uint64_t twi_task_look(struct twi_task *task)
{
	uint64_t word = twi_load_acquire(&task->word); /* E40 */

	twi_tsan_acquire(&task->word);
	return word;
}

/* The handle of its timer, for who has the task. */
static inline struct tw_handle twi_task_timer(struct twi_task *task)
{
	/* RELAXED, both: the owner has acquired them with the task. */
	return (struct tw_handle){.node = twi_load_relaxed(&task->timer_node),
				  .birth = twi_load_relaxed(&task->timer_birth)}; /* RELAXED */
}

/*
 * What this thread's last callback of a timer was for, from its end to that of the finaliser, which
 * follows at once. Where there was no callback, since a late hook stood in its place, the finaliser
 * finds nothing here, and does its work. A task that has been seen to is not looked at again: it may
 * be another by now.
 */
extern _Thread_local void *twi_timer_seen;

/* The kind of all timers. */
extern const struct tw_kind twi_timer_kind;

/* A timer for a task that has none, for never. 0, or what tw_schedule returns. */
int twi_timer_make(struct twi_task *task);

/* What came of an attempt, by who owns the task. */
void twi_task_conclude(struct twi_task *task, int result);

/* Ends a task, by who owns it. */
void twi_task_end(struct twi_task *task, enum tw_retry_end end);

/* The same, when its place in the queue is another's already. */
void twi_task_end_evicted(struct twi_task *task);

/* queue.c: places. */

bool twi_pending_take(struct tw_retry *queue);
void twi_pending_give(struct tw_retry *queue);

#endif
