/* SPDX-License-Identifier: MIT */
/*
 * A set of durable timers: its memory, and which thread owns which part of it.
 *
 * Threads. Callers stage timers and requests, and cancel or complete timers by a step of the state
 * word (word.h). The engine's callback runs timers. The I/O thread ([io]) does the rest: it alone
 * calls the store, moves timers between places, arms them in the engine, and frees them.
 *
 * The fields of a timer belong to the caller until it is pushed. Then they belong to the holder
 * (word.h), or to the I/O thread if no thread holds the timer. Callers find timers by their ids, in
 * read-side sections; the I/O thread takes a timer out of both tables (`slots` and `hash`), waits
 * for a grace period, and then frees the timer (E105).
 */
#ifndef TWI_DURABLE_SET_H
#define TWI_DURABLE_SET_H

#include "base/measured.h"
#include "durable/word.h"
#include "queue/handover.h"

#include <pthread.h>
#include <sys/queue.h>
#include <tickwheel/durable.h>
#include <urcu/rculfhash.h>

/* The serials of a chunk: at most 64, because the I/O thread has one bit for each. */
#ifndef TWI_SERIALS_OF_CHUNK
#define TWI_SERIALS_OF_CHUNK 64
#endif

enum {
	TWI_DURABLE_NAME_MAX = 63,
	TWI_DURABLE_KEY_MAX = 255,
	TWI_DURABLE_KINDS_MAX = 1024,
	TWI_DURABLE_LANES = 16,
	/* How many serials a lane takes at once. */
	TWI_DURABLE_CHUNK = TWI_SERIALS_OF_CHUNK,
	/*
	 * A pushed timer of the store counts as this many staged bytes. Must not be 0, because the
	 * I/O thread sleeps if no bytes are staged (stage.c).
	 */
	TWI_DURABLE_CALL_BYTES = 64,
	TWI_DURABLE_MEASUREMENTS = TW_DURABLE_MEASUREMENT_LATENESS + 1,
};

/*
 * How many serials the store reserves at once: enough for almost two seconds at ten million a
 * second.
 */
#define TWI_DURABLE_RESERVE (UINT64_C(1) << 24)
#define TWI_DURABLE_BUCKET_NS (INT64_C(64) * 1000000000)
/*
 * A caller itself arms a timer that is due within the commit window (`window_ns`) plus this margin,
 * because the timer's commit could end after the deadline.
 */
#define TWI_DURABLE_MARGIN_NS INT64_C(2000000)

enum twi_item_type {
	TWI_ITEM_TIMER,
	TWI_ITEM_CANCEL,
	TWI_ITEM_CANCEL_KEY,
	TWI_ITEM_MOVE,
	TWI_ITEM_REVIVE,
	TWI_ITEM_DROP,
	TWI_ITEM_RESUME,
	TWI_ITEM_FLUSH, /* for this request and those below, the caller waits */
	TWI_ITEM_FIND,
	TWI_ITEM_FIND_KEY,
	TWI_ITEM_DEAD,
	TWI_ITEM_LIST,
};

/* An item of the staging queue. The link must be first. */
struct twi_item {
	struct twi_handover_link link;
	uint32_t type;
};

/* The clocks that deadlines count on. Each has a near window of its own. */
enum twi_axis_number {
	TWI_AXIS_WALL,
	TWI_AXIS_ELAPSED, /* the clock of time/elapsed.h */
	TWI_AXES,
};

struct twi_durable_kind {
	const struct tw_durable_kind *user; /* [const] */
	enum twi_axis_number axis;          /* [const] */
	struct tw_durable *set;             /* [const] */
	/* [io] Due timers that wait, because the kind is paused or at its bound. */
	TAILQ_HEAD(, twi_durable_timer) parked;
	_Atomic uint32_t running; /* [atomic] how many runs are under way, if running_max is set */
	_Atomic uint32_t paused;  /* [atomic] */
};

/* Which list of the I/O thread a timer is on. */
enum twi_list {
	TWI_LIST_NONE,
	TWI_LIST_PARKED, /* `parked` of its kind */
	TWI_LIST_HELD,   /* `held` of the set, while no run may begin */
	/* `limbo` of the set: the timer's callback runs, or its timeout could not be made */
	TWI_LIST_LIMBO,
};

struct twi_durable_timer {
	struct twi_item item;
	_Atomic uint64_t word;         /* [atomic E101] */
	struct tw_durable_id id;       /* [const] */
	struct twi_durable_kind *kind; /* [const] */
	int64_t due_ns;                /* belongs to the holder, like the two fields below */
	int64_t next_ns;               /* the next deadline, set by the run */
	/*
	 * If a shared store has confirmed the start: the run must begin before this CLOCK_BOOTTIME.
	 */
	int64_t until_ns;
	int64_t scheduled_ns;     /* [const] on the clock of its kind */
	_Atomic uint64_t session; /* [atomic] the session that has claimed the timer, or 0 */
	_Atomic uint64_t fence;   /* [atomic] the fence of its confirmed start, or 0 */
	_Atomic uint64_t attempt; /* runs before the present one */
	struct cds_lfht_node node;
	TAILQ_ENTRY(twi_durable_timer) list; /* [io], like the fields below */
	struct twi_durable_timer *garbage;
	struct tw_handle handle; /* the caller's until the timer is pushed */
	void *context;           /* the caller's pointer for its acknowledgement */
	uint32_t linger_at;      /* 1 + its index in `lingers`, or 0 if it does not linger */
	uint32_t version;        /* [const] */
	uint32_t payload_bytes;  /* [const] */
	uint8_t key_bytes;       /* [const] */
	bool resend;             /* [const] */
	bool confirm;            /* its start must be stored before it runs */
	bool armed;              /* the engine may still have its timeout, `handle` */
	bool started;            /* the store knows that this attempt has begun */
	bool slotted, hashed;    /* whether it is in `slots`, and in `hash`, of the set */
	/* the store did not take the timer: another has its key, or there is no space */
	bool refused;
	bool spent; /* it must end without a run: spent() in keep.c says why */
	bool gone;
	uint32_t moving; /* how many moves of it the batch has; if not 0, the I/O thread holds it */
	uint8_t on;      /* an enum twi_list */
	unsigned char bytes[];
};

struct twi_request {
	struct twi_item item;
	struct tw_durable_id id;
	int64_t due_ns;
	void *context;
	struct twi_request *next; /* [io] in the list `flushes` */
	uint32_t tries;           /* [io] how many tries the server has not answered */
	bool revoked;             /* CANCEL: the caller has ended the timer already */
	bool behind; /* LIST: begin behind `id` and `due_ns`; if false, at the first timer */
	struct twi_durable_kind *kind; /* RESUME: the kind; LIST: the kind of the timer `id` */
	_Atomic uint32_t answered;     /* [atomic E104] an enum twi_answered, if a caller waits */
	int result;
	struct tw_durable_info *infos; /* FIND, DEAD, LIST: the answer */
	size_t count, max;
	uint32_t key_bytes;
	unsigned char key[];
};

enum twi_answered {
	TWI_ANSWER_WAITED,
	TWI_ANSWER_GIVEN,
	TWI_ANSWER_LEFT, /* the caller's time was over: the I/O thread frees the request */
};

/* A position in the order of the store: by deadline, then place, then serial. */
struct twi_position {
	int64_t due_ns, place;
	uint64_t serial;
};

/* A timer that lingers, and the time of the engine's clock when its lingering ends. */
struct twi_linger {
	int64_t until_ns;
	struct twi_durable_timer *timer;
};

struct twi_lane {
	/*
	 * [atomic] The next serial. A multiple of TWI_DURABLE_CHUNK means that the lane has no
	 * serial left.
	 */
	TWI_CACHE_ALIGNED _Atomic uint64_t next;
	_Atomic uint64_t scheduled; /* [atomic] how many timers its threads have scheduled */
};

/* [io] A near window, and its clock. */
struct twi_axis {
	struct twi_position cursor;      /* all timers before it are in memory */
	struct twi_position cursor_next; /* the position of the last row of a load */
	size_t loaded;                   /* rows that this load has given */
	bool cut;          /* the last load reached its limit, so there may be more rows */
	int64_t now_ns;    /* the time of this clock at the beginning of this step */
	int64_t stored_ns; /* the time of this clock at the end of the last commit */
	/* this clock minus the engine's clock, as the armed timeouts assume */
	int64_t offset_ns;
	int64_t confirm_until_ns; /* a timer due by then runs only after its start is stored */
	uint64_t in_memory, memory_bytes;
	unsigned char *kinds; /* [const] kinds[n]: not 0 if kind number n uses this clock */
};

/* Functions and values that a test sets instead of the system's. */
struct twi_durable_hooks {
	int64_t (*wall_ns)(void *context);
	void *context;
	bool driven; /* there is no I/O thread; the test calls twi_io_step() */
	int64_t (*boot_ns)(void *context);
	const char *boot; /* NULL stands for the system's name of the boot */
	/* Replaces a sleep while the server of a shared store cannot be reached. May be NULL. */
	void (*wait)(void *context);
};

struct twi_batch;       /* defined in batch.c */
struct twi_fresh_chunk; /* defined in fresh/table.h */

/* The counters of the I/O thread. */
enum twi_shown {
	TWI_SHOWN_ABSORBED,
	TWI_SHOWN_STORED,
	TWI_SHOWN_COMMITS,
	TWI_SHOWN_OPERATIONS,
	TWI_SHOWN_DEAD,
	TWI_SHOWN_IN_MEMORY,
	TWI_SHOWN_MEMORY_BYTES, /* the bytes of TWI_SHOWN_IN_MEMORY */
	TWI_SHOWN_DEAD_REMOVED,
	TWI_SHOWN_CLOCK_STEPS,
	TWI_SHOWN_UNKNOWN,
	TWI_SHOWN_LOG_BYTES,
	TWI_SHOWN_CLAIMED,
	TWI_SHOWN_REFUSED,
	TWI_SHOWN_STALE,
	TWI_SHOWN_SESSIONS,
	TWI_SHOWN_COUNT,
};

/* The conditions that restrict a set. Several may hold at once. */
enum twi_condition {
	TWI_CONDITION_FAILED = 1,
	TWI_CONDITION_STEPPED = 2,
	TWI_CONDITION_FULL = 4,
	TWI_CONDITION_SLOW = 8,
	TWI_CONDITION_CUT = 16,
};

struct tw_durable {
	struct tw_engine *engine; /* [const], like the fields below */
	struct tw_durable_options options;
	struct twi_durable_hooks hooks;
	struct twi_durable_kind *kinds;
	const char **names;
	size_t kind_count;
	int generation; /* number of forks when the set was opened */
	bool elapsed;   /* some kinds count elapsed time */
	bool shared;    /* its store is shared with other sets: shared/session.h */
	uint64_t unknown_kinds;
	int64_t boot_base_ns; /* elapsed time minus CLOCK_BOOTTIME */
	char boot[sizeof(((struct tw_durable_clock *)0)->boot)];
	uint64_t slot_mask;
	struct cds_lfht *hash;                      /* [io] writes, E105 */
	_Atomic(struct twi_durable_timer *) *slots; /* [atomic E102] the staged timers */
	void *fresh_memory;                         /* [const], like the two fields below */
	struct twi_fresh_chunk *fresh_chunks;       /* the fresh timers, in fresh_memory */
	uint64_t fresh_mask;
	struct twi_batch *batch; /* [io], like the fields below */
	pthread_t thread;
	struct twi_axis axes[TWI_AXES];
	struct tw_durable_clock clock; /* the clock of elapsed time, as the store has it */
	int64_t accepted_ns;           /* wall clock minus engine's clock, as last accepted */
	int64_t catch_up_ns;           /* engine's clock: when the next overdue timer may run */
	/* engine's clock: the next try after the store was full, and the next look at the log */
	int64_t full_until_ns, log_at_ns;
	int64_t trim_at_ns; /* engine's clock: the next removal of dead letters */
	int error;          /* why the set has failed */
	uint64_t reserved_end;
	size_t limbo_count;
	int64_t engine_ns;
	struct twi_durable_timer *garbage;
	TAILQ_HEAD(, twi_durable_timer) held, limbo;
	struct twi_linger *lingers; /* a heap (time/linger.h); the first one ends first */
	size_t linger_count, linger_room;
	bool linger_cut; /* a clock was set, so all timers stop lingering */
	/* Items that a step could not finish; the next step begins with them. */
	struct twi_handover_link *back;
	struct twi_request *flushes; /* requests that are answered after the commit */
	/* The chunks that this thread reads in each step, and the end of that list. */
	struct twi_fresh_chunk *fresh_open, **fresh_end;
	int64_t taken_bytes;
	int64_t accepted_now_ns;           /* the wall clock, as last accepted */
	struct tw_durable_session session; /* the session, if the store is shared */
	uint64_t session_in_memory;        /* the session whose timers are in memory */
	bool claim_more;                   /* the last claim reached its limit, or did not end */
	bool closed;
	uint64_t counters[TWI_SHOWN_COUNT];
	/* [atomic] the staged items; queue/handover.h has the edge */
	TWI_CACHE_ALIGNED struct twi_handover staging;
	struct twi_handover fresh;    /* [atomic] the new chunks of fresh timers */
	_Atomic int64_t staged_bytes; /* [atomic E103] */
	_Atomic int64_t step_ns;      /* [atomic] wall clock minus elapsed time */
	_Atomic int64_t linger_bytes; /* [atomic] bytes of the timers that linger */
	_Atomic int64_t server_ns;    /* [atomic] the server's clock minus CLOCK_BOOTTIME */
	TWI_CACHE_ALIGNED _Atomic uint32_t asleep; /* [atomic E103] an enum twi_asleep */
	/* [atomic] an enum tw_durable_state, which follows from the conditions */
	_Atomic uint32_t state;
	_Atomic uint32_t conditions;               /* [atomic] bits of enum twi_condition */
	_Atomic uint32_t closing;                  /* [atomic] */
	_Atomic uint32_t finished;                 /* [atomic] */
	_Atomic uint32_t urgent;                   /* [atomic E103] a caller waits */
	_Atomic uint64_t serial_next, serial_end;  /* [atomic E107] the reserved serials */
	_Atomic uint64_t runs, overdue;            /* [atomic] */
	_Atomic uint64_t late, lag_ns, lag_max_ns; /* [atomic] */
	/* [atomic E106] How many callbacks of the engine use the set. */
	TWI_CACHE_ALIGNED _Atomic uint64_t inside;
	_Atomic uint64_t shown[TWI_SHOWN_COUNT]; /* [atomic] the I/O thread's counters */
	struct twi_measured measured[TWI_DURABLE_MEASUREMENTS]; /* [atomic] */
	struct twi_lane lanes[TWI_DURABLE_LANES];
	struct twi_lane fresh_lanes[TWI_DURABLE_LANES]; /* the lanes of fresh timers */
};

enum twi_asleep {
	TWI_AWAKE,
	TWI_ASLEEP_IDLE,   /* the first staged timer wakes it */
	TWI_ASLEEP_WINDOW, /* only a waiting caller wakes it */
};

/* The set whose run or hook this thread is executing, or NULL. */
extern _Thread_local struct tw_durable *twi_durable_within;

/*
 * Returns due - now. If that overflows, returns the nearest number, because deadlines may have any
 * value.
 */
static inline int64_t twi_durable_until_ns(int64_t due_ns, int64_t now_ns)
{
	int64_t delay_ns;

	if (!__builtin_sub_overflow(due_ns, now_ns, &delay_ns))
		return delay_ns;
	return due_ns < now_ns ? INT64_MIN : INT64_MAX;
}

/* RELAXED: only a number, which publishes nothing. */
static inline int64_t twi_durable_wall_ns(struct tw_durable *set)
{
	return set->shared
		       ? set->hooks.boot_ns(set->hooks.context) + twi_load_relaxed(&set->server_ns)
		       : set->hooks.wall_ns(set->hooks.context);
}

static inline int64_t twi_durable_elapsed_ns(const struct tw_durable *set)
{
	return set->hooks.boot_ns(set->hooks.context) + set->boot_base_ns;
}

static inline bool twi_durable_elapsed(const struct twi_durable_kind *kind)
{
	return kind->axis == TWI_AXIS_ELAPSED;
}

/* Returns the present time on the clock of a kind's deadlines. */
static inline int64_t twi_durable_now_ns(struct tw_durable *set,
					 const struct twi_durable_kind *kind)
{
	return twi_durable_elapsed(kind) ? twi_durable_elapsed_ns(set) : twi_durable_wall_ns(set);
}

/* Returns due + by, limited so that it stays a deadline: never TW_NEVER. */
static inline int64_t twi_durable_shift(int64_t due_ns, int64_t by_ns)
{
	if (__builtin_add_overflow(due_ns, by_ns, &due_ns))
		due_ns = by_ns < 0 ? INT64_MIN + 1 : TW_NEVER - 1;
	return due_ns == TW_NEVER ? TW_NEVER - 1 : due_ns;
}

/* Converts a deadline of a kind's own clock to the wall clock of now. RELAXED: only a number. */
static inline int64_t twi_durable_to_wall(struct tw_durable *set,
					  const struct twi_durable_kind *kind, int64_t due_ns)
{
	return twi_durable_elapsed(kind)
		       ? twi_durable_shift(due_ns, twi_load_relaxed(&set->step_ns))
		       : due_ns;
}

/* Converts a deadline of the wall clock to the kind's own clock. RELAXED: only a number. */
static inline int64_t twi_durable_from_wall(struct tw_durable *set,
					    const struct twi_durable_kind *kind, int64_t due_ns)
{
	return twi_durable_elapsed(kind)
		       ? twi_durable_shift(due_ns, -twi_load_relaxed(&set->step_ns))
		       : due_ns;
}

#endif
