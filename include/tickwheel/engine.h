/* SPDX-License-Identifier: MIT */
/**
 * @file engine.h
 * An engine: one ingress, one wheel, one worker thread (or the caller's event loop, loop.h).
 */
#ifndef TICKWHEEL_ENGINE_H
#define TICKWHEEL_ENGINE_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_engine;
struct tw_clock;

/** The largest transfer batch, and its default. */
#define TW_TRANSFER_BATCH_MAX 100000u

/** How pending timeouts wait. Both keep the same promises; docs/perf.md compares what they cost. */
enum tw_wheel {
	/** One ring of slots: least work per timeout while most are cancelled early. */
	TW_WHEEL_HASHED = 0,
	/** Levels of slots, each wider than the one below: far timeouts cost nothing until near. */
	TW_WHEEL_HIERARCHICAL = 1,
};

/** Bits of the option `flags`. */
enum tw_engine_flags {
	/**
	 * What is due at once runs in the order of deadlines, inside a tick and after a stall too.
	 * Takes a MiB more, which is touched as it is needed; each of n that are due costs O(1), and
	 * O(log n) where a tick has more than 32,768. Excepted is what comes after its tick: see
	 * tw_schedule_at.
	 */
	TW_ENGINE_ORDERED = 1,
	/** No worker thread: the caller's event loop polls (loop.h). The options about the thread
	 * must be at their defaults. */
	TW_ENGINE_LOOP = 2,
};

/** What becomes of an expired timeout that the dispatch hook does not accept (option `refusal`). */
enum tw_refusal {
	/** It runs on the worker. */
	TW_REFUSAL_RUN = 0,
	/**
	 * It is pending again, and expires anew with the next tick: then the hook is asked again.
	 * Meanwhile it can be cancelled and rescheduled, and stop hands it back; its deadline stays,
	 * so the bound on lateness (`late_ns`) still holds for it.
	 */
	TW_REFUSAL_REQUEUE = 1,
	/** It goes to the drop hook, and does not run. */
	TW_REFUSAL_DROP = 2,
};

/** How thoroughly the worker checks its own wheel. */
enum tw_check {
	/** Not at all. */
	TW_CHECK_NONE = 0,
	/** Its sums and its sleep hint, each turn: O(slots). */
	TW_CHECK_CHEAP = 1,
	/** The brute-force judge over every pending timeout, each turn: for tests. */
	TW_CHECK_FULL = 2,
};

/** What is measured beside the counters of tw_stats_get (option `measure`). */
enum tw_measure {
	TW_MEASURE_NOTHING = 0,
	/** Lateness and duration of each run. */
	TW_MEASURE_RUNS = 1,
	/** The same of one run in 32, chosen by chance: for engines that run millions a second. */
	TW_MEASURE_SAMPLES = 2,
};

/** An expired timeout on its way to an executor. */
struct tw_due {
	struct tw_handle handle;
	const struct tw_kind *kind;
	void *arg;
};

/**
 * Takes a batch of expired timeouts off the worker.
 *
 * `due` is valid during the call only: copy what is accepted. Returns how many it accepted, counted
 * from the first (more than `count` is `count`); for each of them tw_due_run must be called exactly
 * once, in any thread, this one too. What becomes of the others, the option `refusal` says: at first
 * they run on the worker. Must return: while it does not, nothing else of the engine expires. Must not
 * wait for anything that needs the worker, nor end its thread. It may call what a callback may
 * (docs/executors.md); of what it was offered, cancel and reschedule say that it runs.
 */
typedef size_t tw_dispatch_hook(void *context, const struct tw_due *due, size_t count);

/**
 * Gets a timeout that is late beyond the bound, in place of its callback (option `late`).
 *
 * Runs once, where the callback would have run, and may do what that may; the timeout has expired,
 * and its finaliser, if it has one, runs afterwards with TW_END_EXPIRED. `late_by_ns`: now minus
 * deadline.
 */
typedef void tw_late_hook(void *context, struct tw_handle self, const struct tw_kind *kind,
			  void *arg, int64_t late_by_ns);

/** A run of a timeout that takes longer than the option `slow_ns` allows. */
struct tw_slow {
	/** sizeof(struct tw_slow) of the library. */
	size_t size;
	/** The timeout's. */
	struct tw_handle handle;
	/** Its kind's callback, which is what runs; also where the late hook does in its place. */
	tw_callback *callback;
	/** Its argument: a number to go by. Whoever owns it may have released it by now. */
	void *arg;
	/** How long the run has taken so far, in nanoseconds of the engine's clock. */
	int64_t run_ns;
	/** 1: it was running when this was noticed; 0: nobody had noticed when it ended. */
	uint32_t running;
	uint32_t reserved;
};

/**
 * Is told of a run that takes too long (option `slow`), once for each.
 *
 * Runs on the thread that came by (docs/slow-callbacks.md has who that may be): in the middle of its
 * call of tw_schedule, tw_stats_get, tw_engine_watch or tw_due_run, or on the thread of the slow run
 * itself, when that has ended. Several threads may be in it at once, about different runs. It may do
 * what that thread may do there (in tw_due_run: what a callback may), must return, and is no cancellation point. `slow` is valid during the
 * call only.
 */
typedef void tw_slow_hook(void *context, const struct tw_slow *slow);

/**
 * Gets a timeout that the executor refused, in place of its callback (option `refusal`).
 *
 * Runs on the worker, once, and may do what a callback may; the timeout has expired, and its finaliser,
 * if it has one, runs afterwards with TW_END_DROPPED. Of a periodic timeout it is that run which is
 * dropped: the next one waits as after any other, and the finaliser runs at the chain's end only, with
 * TW_END_DROPPED where that was by itself and the last run was dropped.
 */
typedef void tw_drop_hook(void *context, struct tw_handle self, const struct tw_kind *kind,
			  void *arg);

/**
 * Creates the worker's thread: runs `body(arg)` once on a thread that is not the caller's.
 *
 * Returns 0, or a positive or negative errno value; then `body` must never run. Whoever creates the
 * thread joins it; it ends soon after tw_engine_stop has returned 0, and does not touch the engine
 * by then.
 */
typedef int tw_thread_hook(void *context, void *(*body)(void *arg), void *arg);

/**
 * Receives what stop hands back: a timeout that never ran.
 *
 * Runs once per timeout, on the worker or (where there is none left) on the thread that stops; may
 * call all that is allowed in a callback. Its finaliser, if it has one, runs afterwards.
 * `remaining_ns`: deadline minus now, negative when it was overdue, TW_NEVER when it had none.
 */
typedef void tw_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind,
			  void *arg, int64_t remaining_ns);

/** Options of an engine. tw_options_init fills in the defaults; change what you need. */
struct tw_options {
	/** sizeof(struct tw_options), set by tw_options_init. */
	size_t size;
	/** Bits of enum tw_engine_flags. Default 0. */
	uint64_t flags;
	/** The time step, 1 µs to 1 h. Default 1 ms. */
	uint64_t tick_ns;
	/** Slots of the hashed wheel, 1 to 2^24, rounded up to a power of two. Default 4,096. */
	uint32_t slots;
	/** Most timeouts taken from ingress before what is due gets its turn, 1 to 100,000. Default
	 * 100,000. */
	uint32_t transfer_batch;
	/** Most timeouts pending at once, a running callback included; 0: no limit. Default 0. */
	uint64_t pending_limit;
	/** An enum tw_check. Default TW_CHECK_NONE. */
	uint32_t check;
	/** SCHED_OTHER, SCHED_FIFO or SCHED_RR for the worker; -1: inherit. Default -1. */
	int32_t scheduling_policy;
	/** The priority for `scheduling_policy`. Default 0. */
	int32_t scheduling_priority;
	/** An enum tw_wheel. Default TW_WHEEL_HIERARCHICAL. */
	uint32_t wheel;
	/** CPUs for the worker: a cpu_set_t and its size; NULL: inherit. Default NULL. Copied. */
	const void *cpu_set;
	size_t cpu_set_bytes;
	/**
	 * Name of the worker's thread. Default "tickwheel". Copied. The system takes 15 bytes, so a
	 * longer name is cut there, or before the character of UTF-8 that would not fit.
	 */
	const char *thread_name;
	/**
	 * The clock. Must outlive the engine. NULL: the time of CLOCK_MONOTONIC; with ticks of 100 us
	 * and more read from the processor's counter where that is trusted, up to 8 us behind, never
	 * ahead: nothing is early by CLOCK_MONOTONIC, but see tw_engine_now. Default NULL.
	 */
	struct tw_clock *clock;
	/** NULL: callbacks run on the worker. Default NULL. */
	tw_dispatch_hook *dispatch;
	void *dispatch_context;
	/**
	 * NULL: pthread_create. With a hook, scheduling class and CPU set are the hook's business,
	 * and must be left at their defaults here. Default NULL.
	 */
	tw_thread_hook *thread;
	void *thread_context;
	/**
	 * For so long before a deadline the worker spins instead of sleeping, which takes the
	 * system's oversleep out of the lateness and a processor for that time; up to 1 ms. Not
	 * with SCHED_FIFO or SCHED_RR on a single CPU, where it would keep the producers from it. A
	 * virtual clock has no use for it. Default 0: sleeps.
	 */
	uint64_t spin_ns;
	/**
	 * A timeout that begins to run so long after its deadline is late: it is counted
	 * (tw_stats.late), and goes to the hook where there is one. At least a tick, which belongs
	 * to the contract; below 2^63. It costs a clock read for each timeout. Default 0: no bound.
	 */
	uint64_t late_ns;
	/** NULL: late ones run their callback as all others. With a hook, `late_ns` must be set.
	 * Default NULL. */
	tw_late_hook *late;
	void *late_context;
	/**
	 * A run that takes longer, its finaliser included, is slow: it is counted (tw_stats.slow), and
	 * told to the hook where there is one. At most 2^63 - 1; what is below the steps of the clock
	 * cannot be told. It costs a clock read for each run. Default 0: no threshold.
	 */
	uint64_t slow_ns;
	/** NULL: slow runs are only counted. With a hook, `slow_ns` must be set. Default NULL. */
	tw_slow_hook *slow;
	void *slow_context;
	/** An enum tw_refusal; other than the default it needs a dispatch hook. Default TW_REFUSAL_RUN. */
	uint32_t refusal;
	/**
	 * An enum tw_measure: histograms of how late runs begin and how long they take, for
	 * tw_histogram_get. It costs a clock read for each run, two in an executor, two for each sample;
	 * the engine is 72 KiB larger, with a dispatch hook 650 KiB. Default TW_MEASURE_NOTHING.
	 */
	uint32_t measure;
	/** With TW_REFUSAL_DROP, and only then: required. Default NULL. */
	tw_drop_hook *drop;
	void *drop_context;
};

/** The life of an engine. */
enum tw_engine_state {
	/** Created; the first schedule or tw_engine_start starts it. */
	TW_ENGINE_NEW = 0,
	/** Its worker is being made (loop mode: nobody polls yet); schedule already accepts. */
	TW_ENGINE_STARTING = 1,
	/** At work. */
	TW_ENGINE_RUNNING = 2,
	/** Making the thread failed; what was accepted meanwhile waits for the next start or stop.
	 */
	TW_ENGINE_STALLED = 3,
	/** A callback ended the worker's thread; accepts nothing more, stop hands back. */
	TW_ENGINE_FAILED = 4,
	/** Stop has begun; accepts nothing more. */
	TW_ENGINE_STOPPING = 5,
	/** Everything has ended; can be destroyed, not started again. */
	TW_ENGINE_STOPPED = 6,
};

/**
 * Fills in the default options.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, or `size` smaller than the first version of the struct); -E2BIG
 *   (`size` over 4,096). Call as tw_options_init(&options, sizeof(options)).
 * Since: 0.1.0.
 */
TW_API int tw_options_init(struct tw_options *ret_options, size_t size);

/**
 * Creates an engine. Its thread is made later, by tw_engine_start or the first schedule.
 *
 * Units: see struct tw_options.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_engine_destroy. `options` is copied; NULL: all defaults.
 * Returns: 0 and `*ret_engine`; -EINVAL (NULL, a zero or an absurd value, unknown bits, a CPU set
 *   beside a thread hook, a tick below the steps of TW_CLOCK_COARSE); -ERANGE (tick × slots does
 *   not fit 2^63 ns); -E2BIG (non-zero fields that this library does not know, `size` over 4,096);
 *   -EBUSY (the virtual clock has an engine already); -ENOMEM (also: no file descriptor,
 *   TW_CLOCK_BOOTTIME); -EOPNOTSUPP (the system has no timer for that clock); -ECHILD (in a forked
 *   child of a process that used the library, before tw_reinit_after_fork).
 * Since: 0.1.0.
 */
TW_API int tw_engine_create(const struct tw_options *options, struct tw_engine **ret_engine);

/**
 * Makes the worker. Optional: the first schedule does it.
 *
 * Units: none.
 * Threads: any, concurrently; one makes the thread, nobody waits for it.
 * In callback: yes.
 * Progress: as long as making a thread takes.
 * Lifetime: none.
 * Returns: 0 (also when it runs or is being made already); -ENOMEM (no resources for the thread);
 *   -EPERM (the scheduling class is refused); -EINVAL (NULL, CPU set); what a thread hook returned (EAGAIN
 *   as -ENOMEM); -ESHUTDOWN; -ECHILD. Where making the thread failed the engine is as before, and start
 *   may be tried again. In loop mode it makes the caller the owner: 0, -EBUSY (another thread is),
 *   -ESHUTDOWN, -EINVAL, -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_start(struct tw_engine *engine);

/**
 * Stops an engine: what has not expired is handed back, running callbacks are waited for, none is
 * interrupted, and none runs after the return of 0. A schedule that returned success before has
 * expired, been cancelled, or been handed back by then.
 *
 * In loop mode the owner's stop does the work itself. Another thread's waits for the owner's next
 * poll (or its stop, or that it leaves), which does it; where there is no owner, it does it itself. After
 * -ETIMEDOUT the owner still is that, and its next stop goes on.
 *
 * Concurrent and repeated stops wait for the same end; the hook of the first one counts.
 *
 * Units: `timeout_ns`, how long to wait at most; TW_NEVER: without bound; 0 or less: begin only.
 * Threads: any, concurrently.
 * In callback: no (-EDEADLK), neither on the worker nor in an executor.
 * Progress: blocks for running callbacks, for other threads' calls that are under way, and for
 *   every read-side section of liburcu-bp that the program itself has open: called inside one, with
 *   TW_NEVER, it waits for ever. When making the worker failed before, or it died, this call does
 *   its work itself if no thread can be made. Where it does that, `timeout_ns` bounds the wait for what
 *   executors have, and not the hand-back.
 * Lifetime: `hand_back` and `context` must stay valid until a stop has returned 0.
 * Returns: 0; -ETIMEDOUT: stopping goes on, call again; -EDEADLK; -EINVAL; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_stop(struct tw_engine *engine, tw_hand_back *hand_back, void *context,
			  int64_t timeout_ns);

/**
 * Frees an engine that is stopped or was never started (also one whose start has failed and that
 * never accepted a timeout). NULL is accepted.
 *
 * Every later call with the engine, and every call with it that is still under way, is undefined
 * behaviour, a second destroy too: the memory is freed, so the library cannot check for it. Handles
 * stay safe: calls that get a handle, or a struct tw_due, may be made for ever.
 *
 * Units: none.
 * Threads: any, once, and after all other calls with the engine have returned.
 * In callback: no (-EDEADLK in its own, else allowed).
 * Progress: joins the thread that stop has ended. With a virtual clock it also waits for other
 *   threads' calls under way and for the program's own read-side sections of liburcu-bp, so it must
 *   not be called inside one.
 * Lifetime: the engine's ends when this returns 0.
 * Returns: 0; -EBUSY: not stopped; -EDEADLK. In a forked child: 0, it frees what it can; but
 *   -EDEADLK in a finaliser that tw_reinit_after_fork runs for that engine.
 * Since: 0.1.0.
 */
TW_API int tw_engine_destroy(struct tw_engine *engine);

/**
 * Waits until the worker has seen everything that happened before the call: schedules are in the
 * wheel, cancelled timeouts reclaimed, and what was due has run (in an executor: been handed over).
 * Meant for tests; with a virtual clock it makes them exact. In loop mode the owner's settle polls, and
 * another thread's waits until the owner has polled.
 *
 * Units: `timeout_ns`, how long to wait at most; TW_NEVER: without bound.
 * Threads: any.
 * In callback: no (-EDEADLK on the worker).
 * Progress: blocks for a turn of the worker; while producers fill every batch, until they pause;
 *   beyond 63 threads, while one of those is stopped inside a push.
 * Lifetime: none.
 * Returns: 0 (at once if nothing was ever started); -ETIMEDOUT; -ESHUTDOWN (stopped meanwhile);
 *   -EDEADLK; -EINVAL; -ECHILD; where an earlier start failed, what tw_engine_start returns.
 * Since: 0.1.0.
 */
TW_API int tw_engine_settle(struct tw_engine *engine, int64_t timeout_ns);

/**
 * The engine's time, the one that deadlines count in.
 *
 * With the default clock this may be up to 8 us behind CLOCK_MONOTONIC (option `clock`). tw_schedule
 * makes up for that; a caller who adds a delay to this time for tw_schedule_at does not, and by
 * CLOCK_MONOTONIC the timeout may fire up to 8 us before that delay is over.
 *
 * Units: nanoseconds; CLOCK_MONOTONIC by default.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_API int64_t tw_engine_now(struct tw_engine *engine);

/**
 * How many timeouts have neither expired, been cancelled nor handed back.
 *
 * Exact whenever no call is under way and nothing expires; a timeout whose callback runs has expired. Under load:
 *
 * - A thread that cancels its own timeouts is read with all that it has at one moment, however long the reading
 *   takes. So threads that have one each at most cause an error of one each at most.
 * - Where one thread schedules and another cancels, or a timeout expires, the two are read at different
 *   moments. The error is at most the number of timeouts that were scheduled, cancelled, handed back, or
 *   expired during the reading. A reading that took longer than 20 microseconds is repeated, at most eight times,
 *   and only the last one counts.
 * - The result is never below zero and never above `pending_limit`.
 *
 * What a callback on the worker, or the owner of a loop, schedules and cancels is one thread's too, with two
 * exceptions that count as another thread's cancel: the cancel of a timeout that is due in the same turn, and what
 * was scheduled for the past.
 *
 * Units: timeouts.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free (sums the lanes, at most nine times).
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL for NULL; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int64_t tw_engine_pending(struct tw_engine *engine);

/**
 * The state of an engine.
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: an enum tw_engine_state; -EINVAL for NULL; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_state(struct tw_engine *engine);

/**
 * Looks for runs that take longer than the option `slow_ns` allows, counts those that nobody has
 * noticed yet, and tells the hook of them. For a health check: an engine of which nobody else calls
 * anything is looked at by nobody else either.
 *
 * Units: runs.
 * Threads: any, concurrently.
 * In callback: yes; it may find the one that it is called from.
 * Progress: wait-free, the hook excepted.
 * Lifetime: none.
 * Returns: how many are too long by now, told before or not; 0 where there is none; -EINVAL (NULL, or
 *   an engine without `slow_ns`); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_watch(struct tw_engine *engine);

/**
 * Runs the callback (and finaliser) of a timeout that the dispatch hook accepted.
 *
 * Units: none.
 * Threads: any; exactly once per accepted timeout.
 * In callback: yes.
 * Progress: the callback's.
 * Lifetime: `due` is read during the call only; the engine does not end its stop before the call
 *   has returned.
 * Returns: 0 (also for a periodic timeout that was cancelled meanwhile, which does not run); -EINVAL
 *   for NULL; -ECHILD; -ESTALE when its callback runs already, when it has ended, or when it is pending:
 *   never dispatched, put back after a refusal, or periodic and not due again. The log hook is told
 *   which of the three.
 * Since: 0.1.0.
 */
TW_API int tw_due_run(const struct tw_due *due);

TW_END_DECLS

#endif
