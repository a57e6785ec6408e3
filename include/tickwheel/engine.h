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

/** An engine, made by tw_engine_create and freed by tw_engine_destroy. */
struct tw_engine;
struct tw_clock;

/** The largest transfer batch, and its default. */
#define TW_TRANSFER_BATCH_MAX 100000u

/**
 * The wheel that holds pending timeouts. Both wheels keep the same promises. docs/tuning.md
 * compares their costs.
 */
enum tw_wheel {
	/** One ring of slots. A timeout never moves; a slot is read whole if one of its timeouts is
	 * due. */
	TW_WHEEL_HASHED = 0,
	/** Levels of slots, each wider than the one below. A far timeout moves to the level below
	 * when it comes near. */
	TW_WHEEL_HIERARCHICAL = 1,
};

/** Bits of the option `flags`. */
enum tw_engine_flags {
	/**
	 * Timeouts that are due at the same time run in the order of deadlines, also inside a tick
	 * and after a stall. Equal deadlines that one thread has scheduled run in the order in
	 * which it scheduled them. A reschedule counts as scheduling anew if the engine's own
	 * thread makes it: a loop's owner, or a callback on the worker. After another thread's
	 * reschedule the timeout has some place among equal deadlines. Excepted are timeouts that
	 * come after their tick (see tw_schedule_at), and those for which there is no memory. Needs
	 * 161 KiB more, which are touched as they are needed, and each due timeout costs O(1). What
	 * other threads schedule goes by a queue that costs more. An engine with TW_ENGINE_LOOP
	 * always has this order.
	 */
	TW_ENGINE_ORDERED = 1,
	/** No worker thread: the caller's event loop polls (loop.h). The options about the thread
	 * must be at their defaults. */
	TW_ENGINE_LOOP = 2,
	/**
	 * Ticks begin at multiples of `tick_ns` of the clock's time. Engines with the same clock
	 * and tick then wake up together. Otherwise tick 0 begins when the engine is created.
	 */
	TW_ENGINE_ALIGNED = 4,
};

/** What happens to an expired timeout that the dispatch hook does not accept (option
 * `rejection`). */
enum tw_rejection {
	/** It runs on the worker. */
	TW_REJECTION_RUN = 0,
	/**
	 * It is pending again and expires again at the next tick; then the hook is asked again.
	 * Until then it can be cancelled and rescheduled, and stop hands it back. Its deadline
	 * stays the same, so the bound on lateness (`late_ns`) still applies to it.
	 */
	TW_REJECTION_REQUEUE = 1,
	/** It goes to the drop hook, and its callback does not run. */
	TW_REJECTION_DROP = 2,
};

/** How thoroughly the worker checks its own wheel. */
enum tw_check {
	/** Not at all. */
	TW_CHECK_NONE = 0,
	/** Whether its next due tick fits the number of timeouts and the present tick, each turn. */
	TW_CHECK_CHEAP = 1,
	/** A brute-force check of every pending timeout, each turn: for tests. */
	TW_CHECK_FULL = 2,
};

/**
 * The measurements that an engine makes in addition to the counters of tw_stats_get (option
 * `measure`).
 */
enum tw_measure {
	TW_MEASURE_NOTHING = 0,
	/** Lateness and duration of each run. */
	TW_MEASURE_RUNS = 1,
	/** The same for one run in 32, chosen at random: for engines that run millions a second. */
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
 * `due` is valid during the call only, so the hook must copy the items that it accepts. Returns how
 * many it accepted, counted from the first (a number above `count` means `count`). For each
 * accepted one, tw_due_run must be called exactly once, in any thread, including this one. The
 * option `rejection` decides what happens to the others; by default they run on the worker. The
 * hook must return, because until then nothing else of the engine expires. It must not wait for
 * anything that needs the worker, and must not end the worker's thread. It may call everything that
 * a callback may (docs/executors.md). For the timeouts that it was offered, cancel and reschedule
 * report that they run.
 */
typedef size_t tw_dispatch_hook(void *context, const struct tw_due *due, size_t count);

/**
 * Receives a timeout that is late beyond the bound, instead of its callback (option `on_late`).
 *
 * Runs once, where the callback would have run, and may do everything that a callback may. The
 * timeout has expired. If it has a finaliser, that runs afterwards with TW_END_EXPIRED.
 * `late_by_ns` is now minus deadline.
 */
typedef void tw_late_hook(void *context, struct tw_handle self, const struct tw_kind *kind,
			  void *arg, int64_t late_by_ns);

/** A run of a timeout that takes longer than the option `slow_ns` allows. */
struct tw_slow {
	/** sizeof(struct tw_slow) of the library. */
	size_t size;
	/** The timeout's. */
	struct tw_handle handle;
	/** The callback of its kind, which is the function that runs. It is also given if the late
	 * hook runs instead. */
	tw_callback *callback;
	/** Its argument. Treat it as a number for identification, because its owner may have
	 * released it by now. */
	void *arg;
	/** How long the run has taken so far, in nanoseconds of the engine's clock. */
	int64_t run_ns;
	/** 1: the run was still under way when it was noticed; 0: it had ended before any thread
	 * noticed it. */
	uint32_t running;
	uint32_t reserved;
};

/**
 * Is notified of a run that takes too long (option `on_slow`), once for each.
 *
 * Runs on the thread that noticed the run (docs/slow-callbacks.md lists these threads). That is in
 * the middle of its call of tw_schedule, tw_stats_get, tw_engine_watch or tw_due_run. If the slow
 * run has ended, it may also be the thread of that run. Several threads may be in the hook at once,
 * about different runs. The hook may do what its thread may do there; in tw_due_run it may do
 * everything that a callback may. It must return, and is no cancellation point. `slow` is valid
 * during the call only.
 */
typedef void tw_slow_hook(void *context, const struct tw_slow *slow);

/**
 * Receives a timeout that the executor rejected, instead of its callback (option `rejection`).
 *
 * Runs on the worker, once, and may do everything that a callback may. The timeout has expired. If
 * it has a finaliser, that runs afterwards with TW_END_DROPPED. If the timeout is periodic, only
 * this run is dropped, and the next one waits as after any other run. Its finaliser runs only at
 * the end of the chain. It gets TW_END_DROPPED if the chain ended by itself and its last run was
 * dropped.
 */
typedef void tw_drop_hook(void *context, struct tw_handle self, const struct tw_kind *kind,
			  void *arg);

/**
 * Creates the worker's thread: runs `body(arg)` once on a thread that is not the caller's.
 *
 * Returns 0, or a positive or negative errno value; after an error `body` must never run. The code
 * that creates the thread must also join it. The thread ends soon after tw_engine_stop has returned
 * 0, and no longer touches the engine by then.
 */
typedef int tw_thread_hook(void *context, void *(*body)(void *arg), void *arg);

/**
 * Receives each timeout that stop hands back: one that never ran.
 *
 * Runs once per timeout, on the worker, or on the thread that stops if there is no worker any more.
 * May call everything that is allowed in a callback. If the timeout has a finaliser, that runs
 * afterwards. `remaining_ns` is deadline minus now: negative if it was overdue, TW_NEVER if it had
 * no deadline.
 */
typedef void tw_unexpired_hook(void *context, struct tw_handle handle, const struct tw_kind *kind,
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
	/** The most timeouts that the worker takes from ingress before it runs those that are due,
	 * 1 to 100,000. Default 100,000. */
	uint32_t transfer_batch;
	/** The most timeouts that may be pending at once; running callbacks count. 0: no limit.
	 * Default 0. */
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
	/** Name of the worker's thread. Default "tickwheel". Copied. The system takes 15 bytes. A
	 * longer name is cut there, or before the UTF-8 character that would not fit. */
	const char *thread_name;
	/**
	 * The clock. It must outlive the engine. NULL: the time of CLOCK_MONOTONIC. With ticks of
	 * 100 us and more, that is read from the processor's counter if the counter is trusted.
	 * Then it is up to 8 us behind, and never ahead. So no timeout is early by CLOCK_MONOTONIC,
	 * but see tw_engine_now. Default NULL.
	 */
	struct tw_clock *clock;
	/** NULL: callbacks run on the worker. Default NULL. */
	tw_dispatch_hook *dispatch;
	void *dispatch_context;
	/** NULL: pthread_create. With a hook, the hook must set scheduling class and CPU set
	 * itself, and these options must be left at their defaults. Default NULL. */
	tw_thread_hook *thread;
	void *thread_context;
	/**
	 * How long before a deadline the worker spins instead of sleeping; up to 1 ms. Spinning
	 * takes the system's oversleep out of the lateness, but occupies a processor for that time.
	 * Not allowed with SCHED_FIFO or SCHED_RR on a single CPU, because the spinning worker
	 * would keep the producers from it. Useless with a virtual clock. Default 0: sleeps.
	 */
	uint64_t spin_ns;
	/**
	 * A timeout is late if it begins to run later than this after its deadline. It is then
	 * counted (tw_stats.late), and goes to the hook if there is one. Must be at least one tick,
	 * because the contract allows a lateness of one tick, and below 2^63. It costs a clock read
	 * for each timeout. Default 0: no bound.
	 */
	uint64_t late_ns;
	/** NULL: late timeouts run their callback like all others. With a hook, `late_ns` must be
	 * set. Default NULL. */
	tw_late_hook *on_late;
	void *late_context;
	/**
	 * A run is slow if it takes longer than this, its finaliser included. It is counted
	 * (tw_stats.slow) and reported to the hook if there is one. At most 2^63 - 1. Times below
	 * the clock's step cannot be measured. It costs a clock read for each run. Default 0: no
	 * threshold.
	 */
	uint64_t slow_ns;
	/** NULL: slow runs are only counted. With a hook, `slow_ns` must be set. Default NULL. */
	tw_slow_hook *on_slow;
	void *slow_context;
	/** An enum tw_rejection. If it is not the default, a dispatch hook must be set. Default
	 * TW_REJECTION_RUN. */
	uint32_t rejection;
	/**
	 * An enum tw_measure: histograms of how late runs begin and how long they take, for
	 * tw_histogram_get. It costs one clock read for each run, two in an executor, and two for
	 * each sample. The engine is 72 KiB larger, or 650 KiB if it has a dispatch hook. Default
	 * TW_MEASURE_NOTHING.
	 */
	uint32_t measure;
	/** Required with TW_REJECTION_DROP; must be NULL otherwise. Default NULL. */
	tw_drop_hook *on_drop;
	void *drop_context;
};

/** The state of an engine, from its creation to its end. */
enum tw_engine_state {
	/** Created; the first schedule or tw_engine_start starts it. */
	TW_ENGINE_NEW = 0,
	/**
	 * Its worker is being created (loop mode: no thread polls yet); schedule already accepts.
	 */
	TW_ENGINE_STARTING = 1,
	/** At work. */
	TW_ENGINE_RUNNING = 2,
	/** The thread could not be created. Timeouts that were accepted meanwhile wait for the next
	 * start or stop. */
	TW_ENGINE_STALLED = 3,
	/** A callback ended the worker's thread. The engine accepts nothing more, and stop hands
	 * back. */
	TW_ENGINE_FAILED = 4,
	/** Stop has begun; accepts nothing more. */
	TW_ENGINE_STOPPING = 5,
	/** Everything has ended; can be destroyed, but not started again. */
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
 * Returns the engine of the process: one that every part of a program may use, without a call that
 * makes or frees it. The first call makes it. Its worker starts with the first schedule, and serves
 * until the process exits.
 *
 * A library that only needs a few timeouts should use it, because each engine has a thread of its
 * own. tw_engine_destroy rejects it (-EBUSY). tw_engine_stop is possible, and then it is stopped for
 * all: only the program itself should do that, before its exit. Its stop also joins the engine's
 * threads, so that tools which look for leaked threads find none. A stop in a destructor of thread
 * data on such a thread leaves the join to another call of stop. At exit nothing is handed back.
 *
 * Units: none.
 * Threads: any. If several threads make the first call at once, all get the same engine.
 * In callback: yes.
 * Progress: lock-free; the first call allocates.
 * Lifetime: until the process exits. In a forked child that has called tw_fork_reinit, the first
 *   call makes an engine of the child's own; but if the child has taken over the parent's default
 *   engine, that is its own.
 * Returns: the engine; NULL if it cannot be made: no memory, or the options set by
 *   tw_default_options_set cannot be met (the clock is in use), or in a forked child before
 *   tw_fork_reinit. The next call tries again.
 * Since: 0.1.0.
 */
TW_API struct tw_engine *tw_default_engine(void);

/**
 * Sets the options of the default engine, before the first call of tw_default_engine. May be called
 * several times; the last call counts.
 *
 * Units: see struct tw_options.
 * Threads: any.
 * In callback: yes.
 * Progress: lock-free; allocates.
 * Lifetime: `options` is copied. What its pointers name (clock, contexts, name, CPU set) must stay
 *   until the process exits.
 * Returns: 0; -EINVAL, -ERANGE, -E2BIG (as tw_engine_create; -EINVAL also for NULL); -EBUSY (a
 *   thread has called tw_default_engine before, even if that failed); -ENOMEM.
 * Since: 0.1.0.
 */
TW_API int tw_default_options_set(const struct tw_options *options);

/**
 * Creates an engine. Its thread is created later, by tw_engine_start or the first schedule.
 *
 * The compiler warns if a program ignores the result of this or another create. If the program
 * defines TW_WARN_UNUSED_SCHEDULE before it includes tickwheel.h, also that of a schedule.
 *
 * Units: see struct tw_options.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_engine_destroy. `options` is copied; NULL: all defaults.
 * Returns: 0 and `*ret_engine`; -EINVAL (NULL, a zero or an absurd value, unknown bits, a CPU set
 *   together with a thread hook, a tick below the steps of TW_CLOCK_COARSE); -ERANGE (tick × slots
 *   does not fit 2^63 ns); -E2BIG (non-zero fields that this library does not know, `size` over
 *   4,096); -EBUSY (the virtual clock already has an engine); -ENOMEM (also: no file descriptor,
 *   TW_CLOCK_BOOTTIME); -EOPNOTSUPP (the system has no timer for that clock); -ECHILD (in a forked
 *   child of a process that used the library, before tw_fork_reinit).
 * Since: 0.1.0.
 */
TW_API TW_CHECKED int tw_engine_create(const struct tw_options *options,
				       struct tw_engine **ret_engine);

/**
 * Creates the worker. Optional, because otherwise the first schedule does it.
 *
 * Units: none.
 * Threads: any, concurrently; one creates the thread, and the others do not wait for it.
 * In callback: yes.
 * Progress: as long as it takes to create a thread.
 * Lifetime: none.
 * Returns: 0 (also if the worker runs or is being created already); -ENOMEM (no resources for the
 *   thread); -EPERM (the scheduling class is rejected); -EINVAL (NULL, CPU set); the error that a
 *   thread hook returned (EAGAIN as -ENOMEM); -ESHUTDOWN; -ECHILD. If the thread cannot be created,
 *   the engine is as before, and start may be tried again. In loop mode there is no thread to
 *   create: 0, -ESHUTDOWN, -EINVAL, -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_start(struct tw_engine *engine);

/**
 * Stops an engine: hands back the timeouts that have not expired, and waits for running callbacks.
 * No callback is interrupted, and none runs after stop has returned 0. By then each timeout that
 * was scheduled with success has expired, been cancelled, or been handed back.
 *
 * In loop mode, if no bracket is open, or the caller is in it, the call does the work itself. If
 * another thread is in a bracket, the call waits until that thread polls or stops, which does the
 * work, or until it exits. After -ETIMEDOUT the caller's bracket stays open, and the next stop
 * continues.
 *
 * Concurrent and repeated stops wait for the same end; the hook of the first one counts.
 *
 * Units: `timeout_ns`, the longest time to wait; TW_NEVER: without bound; 0 or less: begin only.
 * Threads: any, concurrently.
 * In callback: no (-EDEADLK), neither on the worker nor in an executor.
 * Progress: blocks for running callbacks, for other threads' calls that are under way, and for
 *   every read-side section of liburcu-bp that the program itself has open. If it is called inside
 *   such a section with TW_NEVER, it waits for ever. If the worker died, or could not be created
 *   before, and no thread can be created now, this call does the worker's work itself. Then
 *   `timeout_ns` bounds the wait for executors, but not the hand-back.
 * Lifetime: `on_unexpired` and `context` must stay valid until a stop has returned 0.
 * Returns: 0; -ETIMEDOUT: stopping continues, call again; -EDEADLK; -EINVAL; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_stop(struct tw_engine *engine, tw_unexpired_hook *on_unexpired, void *context,
			  int64_t timeout_ns);

/**
 * Frees an engine that is stopped or was never started. An engine that failed to start may also be
 * freed if it never accepted a timeout. NULL is accepted.
 *
 * Every later call with the engine is undefined behaviour, a second destroy included. So is every
 * call with it that is still under way. The library cannot check for this, because the memory is
 * freed. Handles stay safe: calls that take a handle, or a struct tw_due, may be made for ever.
 *
 * Units: none.
 * Threads: any, once, and after all other calls with the engine have returned.
 * In callback: no (-EDEADLK) in a callback of its own; otherwise yes.
 * Progress: joins the thread that stop has ended. With a virtual clock it also waits for other
 *   threads' calls under way and for the program's own read-side sections of liburcu-bp. Therefore
 *   it must not be called inside one.
 * Lifetime: the engine's ends when this returns 0.
 * Returns: 0; -EBUSY: not stopped, or it has a scaled kind that was not destroyed; -EDEADLK. In a
 *   forked child: 0, and it frees everything that it can; but -EDEADLK in a finaliser that
 *   tw_fork_reinit runs for that engine.
 * Since: 0.1.0.
 */
TW_API int tw_engine_destroy(struct tw_engine *engine);

/**
 * Waits until the worker has seen everything that happened before the call: scheduled timeouts are
 * in the wheel, cancelled ones are reclaimed, and those that were due have run (with an executor:
 * been handed over). Meant for tests; with a virtual clock it makes them exact. In loop mode
 * the call polls inside the caller's bracket. Outside it waits until another thread has polled.
 *
 * Units: `timeout_ns`, the longest time to wait; TW_NEVER: without bound.
 * Threads: any.
 * In callback: no (-EDEADLK on the worker).
 * Progress: blocks for a turn of the worker. If producers fill every batch, it blocks until they
 *   pause.
 * Lifetime: none.
 * Returns: 0 (at once if nothing was ever started); -ETIMEDOUT; -ESHUTDOWN (stopped meanwhile);
 *   -EDEADLK; -EINVAL; -ECHILD; if an earlier start failed, the codes that tw_engine_start returns.
 * Since: 0.1.0.
 */
TW_API int tw_engine_flush(struct tw_engine *engine, int64_t timeout_ns);

/**
 * Returns the engine's time, the one that deadlines count in.
 *
 * With the default clock this may be up to 8 us behind CLOCK_MONOTONIC (option `clock`).
 * tw_schedule adds this lag to the delay. A caller that adds a delay to this time for
 * tw_schedule_at does not. Then the timeout may fire up to 8 us before that delay is over, by
 * CLOCK_MONOTONIC.
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
 * Returns how many timeouts have neither expired nor been cancelled nor handed back.
 *
 * The number is exact when no call is under way and no timeout expires. A timeout has expired once
 * its callback runs. Under load:
 *
 * - If a thread cancels its own timeouts, all that it has is read at one moment, however long the
 *   whole reading takes. So threads that have at most one timeout each cause an error of at most
 *   one each.
 * - If one thread schedules a timeout and another cancels it, or if it expires, the two events are
 *   read at different moments. The error is at most the number of timeouts that were scheduled,
 *   cancelled, handed back, or expired during the reading. A reading that took longer than 20
 *   microseconds is repeated, at most eight times, and only the last one counts.
 * - The result is never below zero and never above `pending_limit`.
 *
 * Callbacks on the worker, and the owner of a loop, also count as one thread for what they schedule
 * and cancel. The cancel of a timeout that is due in the same turn is excepted, and counts as
 * another thread's cancel.
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
 * Returns the state of an engine.
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
 * Looks for runs that take longer than the option `slow_ns` allows. It counts those that no thread
 * has noticed yet, and reports them to the hook. Meant for a health check: if no other call is made
 * on the engine, no other thread looks for slow runs.
 *
 * Units: runs.
 * Threads: any, concurrently.
 * In callback: yes; it may find the run that it is called from.
 * Progress: wait-free, except for the hook.
 * Lifetime: none.
 * Returns: how many runs are too long by now, reported before or not; 0 if there is none; -EINVAL
 *   (NULL, or an engine without `slow_ns`); -ECHILD.
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
 * Returns: 0 (also for a periodic timeout that was cancelled meanwhile, which does not run);
 *   -EINVAL for NULL; -ECHILD; -ESTALE if its callback already runs, if it has ended, or if it is
 *   pending: never dispatched, put back after a rejection, or periodic and not due again. The log
 *   hook is notified which of the three it is.
 * Since: 0.1.0.
 */
TW_API int tw_due_run(const struct tw_due *due);

TW_END_DECLS

#endif
