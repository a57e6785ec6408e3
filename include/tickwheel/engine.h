/* SPDX-License-Identifier: MIT */
/**
 * @file engine.h
 * An engine: one wheel, the queues that lead to it, and one worker thread (or the program's event
 * loop, loop.h).
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

/** The largest value of the option `transfer_batch`, and its default. */
#define TW_TRANSFER_BATCH_MAX 100000u

/**
 * The wheel that holds pending timeouts. Both wheels keep the same promises. docs/tuning.md
 * compares their costs.
 */
enum tw_wheel {
	/** One ring of slots. A timeout never moves. If one timeout of a slot is due, the worker
	 * reads the whole slot. */
	TW_WHEEL_HASHED = 0,
	/** Levels of slots, each wider than the one below. A far timeout moves to a lower level
	 * when its time comes near. */
	TW_WHEEL_HIERARCHICAL = 1,
};

/** Bits of the option `flags`. */
enum tw_engine_flags {
	/**
	 * Timeouts that are due at the same time run in the order of deadlines, also inside a tick
	 * and after a stall. Timeouts of one thread with equal deadlines run in the order in which
	 * the thread scheduled them. A reschedule counts as a new schedule if the engine's own
	 * thread makes it: a loop's owner, or a callback on the worker. If another thread
	 * reschedules a timeout, the timeout's place among equal deadlines is undefined. Timeouts
	 * that reach the wheel after their tick (see tw_schedule_at) have no order. The order may
	 * also be lost if memory runs out. The flag costs 161 KiB of memory, which is touched only
	 * as it is needed, and O(1) work for each due timeout. Schedules by other threads use a
	 * queue that costs more. An engine with TW_ENGINE_LOOP always has this order.
	 */
	TW_ENGINE_ORDERED = 1,
	/** The engine has no worker thread, and the program's event loop polls it (loop.h). The
	 * options about the thread must be at their defaults. */
	TW_ENGINE_LOOP = 2,
	/**
	 * Ticks begin at multiples of `tick_ns` of the clock's time. Engines with the same clock
	 * and tick then wake up together. Without this flag, ticks are counted from the creation of
	 * the engine.
	 */
	TW_ENGINE_ALIGNED = 4,
};

/** What happens to an expired timeout that the dispatch hook does not accept (option
 * `rejection`). */
enum tw_rejection {
	/** The timeout's callback runs on the worker. */
	TW_REJECTION_RUN = 0,
	/**
	 * The timeout is pending again, and expires again at the next tick. Then the dispatch hook
	 * receives it again. Until then it can be cancelled and rescheduled, and stop hands it
	 * back. Its deadline stays the same, so the bound on lateness (`late_ns`) still applies to
	 * it.
	 */
	TW_REJECTION_REQUEUE = 1,
	/** The timeout goes to the drop hook, and its callback does not run. */
	TW_REJECTION_DROP = 2,
};

/** How thoroughly the worker checks its own wheel. */
enum tw_check {
	/** No checks. */
	TW_CHECK_NONE = 0,
	/**
	 * Checks in each turn that an empty wheel has nothing due, and that nothing in the wheel is
	 * due at a tick that has passed. Costs O(slots).
	 */
	TW_CHECK_CHEAP = 1,
	/** Checks every pending timeout by brute force in each turn. For tests. */
	TW_CHECK_FULL = 2,
};

/**
 * What an engine measures in addition to the counters of tw_stats_get (option `measure`).
 */
enum tw_measure {
	TW_MEASURE_NOTHING = 0,
	/** The engine measures the lateness and the duration of each run. */
	TW_MEASURE_RUNS = 1,
	/** The engine measures these times only for one run in 32, chosen at random. For engines
	 * that run millions of timeouts a second. */
	TW_MEASURE_SAMPLES = 2,
};

/** An expired timeout on its way to an executor. */
struct tw_due {
	struct tw_handle handle;
	const struct tw_kind *kind;
	void *arg;
};

/**
 * The dispatch hook: takes over a batch of expired timeouts from the worker.
 *
 * `due` is valid during the call only, so the hook must copy the items that it accepts. The hook
 * accepts the first items of the array, and returns how many it accepted (a number above `count`
 * means `count`). For each accepted item, the program must call tw_due_run exactly once, in any
 * thread, including this one. The option `rejection` decides what happens to the other items; by
 * default they run on the worker. No other timeout of the engine expires until the hook returns. So
 * the hook must return, must not wait for anything that needs the worker, and must not end the
 * worker's thread. It may call everything that a callback may (docs/executors.md). For the timeouts
 * in `due`, cancel and reschedule report that their callbacks run.
 */
typedef size_t tw_dispatch_hook(void *context, const struct tw_due *due, size_t count);

/**
 * Runs instead of the callback if a timeout is late by more than `late_ns` (option `on_late`).
 *
 * Runs once, on the thread on which the callback would have run, and may do everything that a
 * callback may. The timeout has expired. If its kind has a finaliser, the finaliser runs afterwards
 * with TW_END_EXPIRED. `late_by_ns` is the present time minus the deadline.
 */
typedef void tw_late_hook(void *context, struct tw_handle self, const struct tw_kind *kind,
			  void *arg, int64_t late_by_ns);

/** A run of a timeout that takes longer than the option `slow_ns` allows. */
struct tw_slow {
	/** sizeof(struct tw_slow) of the library. */
	size_t size;
	/** The handle of the timeout. */
	struct tw_handle handle;
	/** The callback of its kind, which is the function that runs. If the late hook runs
	 * instead, this is still the callback. */
	tw_callback *callback;
	/** The argument of the timeout. Use it only to identify the timeout, because the program
	 * may have released it meanwhile. */
	void *arg;
	/** How long the run has taken so far, in nanoseconds of the engine's clock. */
	int64_t run_ns;
	/** 1: the run was still under way when a thread noticed it; 0: it had ended before. */
	uint32_t running;
	uint32_t reserved;
};

/**
 * Receives each run that takes longer than `slow_ns` (option `on_slow`), once per run.
 *
 * Runs on the thread that noticed the run, inside that thread's call of tw_schedule, tw_stats_get,
 * tw_engine_watch or tw_due_run. If no thread notices the run before its end, the hook runs on the
 * thread of the run itself. docs/slow-callbacks.md lists all these threads. Several threads may run
 * the hook at once, each for a different slow run. The hook may make every call that its thread
 * could make at that point instead of the call in which the hook runs. In tw_due_run these are the
 * calls that a callback may make. The hook must return. A pthread_cancel of its thread takes effect
 * only after the hook. `slow` is valid during the call only.
 */
typedef void tw_slow_hook(void *context, const struct tw_slow *slow);

/**
 * Runs instead of the callback if the executor rejected a timeout and `rejection` is
 * TW_REJECTION_DROP (option `on_drop`).
 *
 * Runs on the worker, once, and may do everything that a callback may. The timeout has expired. If
 * its kind has a finaliser, the finaliser runs afterwards with TW_END_DROPPED. If the timeout is
 * periodic, only this run is dropped, and the chain waits for its next run as after any other run.
 * The finaliser runs only at the end of the chain. It gets TW_END_DROPPED if the chain has
 * completed all its runs and the last one was dropped.
 */
typedef void tw_drop_hook(void *context, struct tw_handle self, const struct tw_kind *kind,
			  void *arg);

/**
 * Creates the worker's thread: makes a thread other than the caller's run `body(arg)` once.
 *
 * Returns 0, or a positive or negative errno value. After an error `body` must never run. The
 * program must also join the thread, because the library does not. When tw_engine_stop has returned
 * 0, the thread no longer touches the engine, and ends soon.
 */
typedef int tw_thread_hook(void *context, void *(*body)(void *arg), void *arg);

/**
 * The hand-back hook: receives each timeout that had not run when tw_engine_stop ended it.
 *
 * Runs once per timeout, on the worker, or on the thread that stops the engine if there is no
 * worker any more. The hook may call everything that is allowed in a callback. If the timeout's
 * kind has a finaliser, the finaliser runs afterwards. `remaining_ns` is the deadline minus the
 * present time: negative if the timeout was overdue, TW_NEVER if it had no deadline.
 */
typedef void tw_unexpired_hook(void *context, struct tw_handle handle, const struct tw_kind *kind,
			       void *arg, int64_t remaining_ns);

/** Options of an engine. tw_options_init fills in the defaults; change what you need. */
struct tw_options {
	/** sizeof(struct tw_options), set by tw_options_init. */
	size_t size;
	/** Bits of enum tw_engine_flags. Default 0. */
	uint64_t flags;
	/** The length of a tick in nanoseconds, 1 µs to 1 h. Default 1 ms. */
	uint64_t tick_ns;
	/** Slots of the hashed wheel, 1 to 2^24, rounded up to a power of two. Default 4,096. */
	uint32_t slots;
	/** The most timeouts that the worker moves from its queues into the wheel before it runs
	 * those that are due: 1 to 100,000. Default 100,000. */
	uint32_t transfer_batch;
	/** The most timeouts that may be pending at once. A timeout whose callback runs counts,
	 * too. 0: no limit. Default 0. */
	uint64_t pending_limit;
	/** An enum tw_check. Default TW_CHECK_NONE. */
	uint32_t check;
	/** SCHED_OTHER, SCHED_FIFO or SCHED_RR for the worker; -1: inherited from the thread that
	 * starts the engine. Default -1. */
	int32_t scheduling_policy;
	/** The priority for `scheduling_policy`. Default 0. */
	int32_t scheduling_priority;
	/** An enum tw_wheel. Default TW_WHEEL_HIERARCHICAL. */
	uint32_t wheel;
	/** The CPUs on which the worker may run: a cpu_set_t and, in `cpu_set_bytes`, its size.
	 * NULL: inherited from the thread that starts the engine. Default NULL. Copied. */
	const void *cpu_set;
	size_t cpu_set_bytes;
	/** Name of the worker's thread. Default "tickwheel". Copied. The system allows 15 bytes. A
	 * longer name is cut after 15 bytes, or before the UTF-8 character that would not fit. */
	const char *thread_name;
	/**
	 * The clock, which must outlive the engine. NULL: the time of CLOCK_MONOTONIC. If a tick is
	 * 100 us or longer, the engine reads this time from the processor's time stamp counter,
	 * provided that the counter can be trusted. Such a reading may be up to 8 us behind
	 * CLOCK_MONOTONIC, but never ahead of it. tw_schedule adds this lag to each delay. So no
	 * timeout is early by CLOCK_MONOTONIC, but see tw_engine_now. Default NULL.
	 */
	struct tw_clock *clock;
	/** The dispatch hook, which hands due timeouts to an executor. NULL: callbacks run on the
	 * worker. Default NULL. */
	tw_dispatch_hook *dispatch;
	void *dispatch_context;
	/** The hook that creates the worker's thread. NULL: the library calls pthread_create. A
	 * hook must set the scheduling class and the CPU set itself, and the options for these must
	 * be at their defaults. Default NULL. */
	tw_thread_hook *thread;
	void *thread_context;
	/**
	 * How long before a deadline the worker spins instead of sleeping, in nanoseconds; at most
	 * 1 ms. Spinning takes the system's oversleep out of the lateness, but occupies a processor
	 * for that time. Not allowed with SCHED_FIFO or SCHED_RR on a single CPU, because the
	 * spinning worker would keep the producers from this CPU. Useless with a virtual clock.
	 * Default 0: sleeps.
	 */
	uint64_t spin_ns;
	/**
	 * The bound on lateness, in nanoseconds. If a timeout begins to run later than this after
	 * its deadline, it is counted (tw_stats.late). If `on_late` is set, it goes to that hook.
	 * The bound must be at least one tick, because every timeout may be late by a tick, and
	 * below 2^63. It costs a clock read for each timeout that runs. Default 0: no bound.
	 */
	uint64_t late_ns;
	/** NULL: late timeouts run their callback like all others. If this hook is set, `late_ns`
	 * must be set, too. Default NULL. */
	tw_late_hook *on_late;
	void *late_context;
	/**
	 * The threshold for slow runs, in nanoseconds, at most 2^63 - 1. If a run, including its
	 * finaliser, takes longer than this, it is counted (tw_stats.slow), and reported to
	 * `on_slow` if that is set. Times below the clock's step cannot be measured. The threshold
	 * costs a clock read for each run. Default 0: no threshold.
	 */
	uint64_t slow_ns;
	/** NULL: slow runs are only counted. If this hook is set, `slow_ns` must be set, too.
	 * Default NULL. */
	tw_slow_hook *on_slow;
	void *slow_context;
	/** An enum tw_rejection. If it is not TW_REJECTION_RUN, a dispatch hook must be set.
	 * Default TW_REJECTION_RUN. */
	uint32_t rejection;
	/**
	 * An enum tw_measure: whether the engine keeps histograms of how late runs begin and how
	 * long they take, for tw_histogram_get. TW_MEASURE_RUNS costs one clock read for each run,
	 * or two in an executor. TW_MEASURE_SAMPLES costs two for each sampled run. The engine is
	 * 72 KiB larger, or 650 KiB if it has a dispatch hook. Default TW_MEASURE_NOTHING.
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
	/** Its worker is being created (in loop mode: no thread has polled yet). Schedules are
	 * already accepted.
	 */
	TW_ENGINE_STARTING = 1,
	/** The worker runs. */
	TW_ENGINE_RUNNING = 2,
	/** The worker's thread could not be created. Timeouts that the engine has accepted wait for
	 * the next start or stop. */
	TW_ENGINE_STALLED = 3,
	/** A callback ended the worker's thread. The engine accepts no more timeouts, and
	 * tw_engine_stop hands back those that are left. */
	TW_ENGINE_FAILED = 4,
	/** A stop has begun. The engine accepts no more timeouts. */
	TW_ENGINE_STOPPING = 5,
	/** All timeouts have ended. The engine can be destroyed, but not started again. */
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
 * Returns the default engine of the process, which every part of a program may use without creating
 * or freeing it. The first call creates it. Its worker starts with the first schedule, and runs
 * until the process exits.
 *
 * A library that needs only a few timeouts should use this engine, because each engine has a thread
 * of its own. tw_engine_destroy rejects the default engine (-EBUSY). tw_engine_stop stops it for
 * all its users, so only the program itself should call that, before it exits. A stop of the
 * default engine also joins the engine's threads, so that tools which look for leaked threads find
 * none. If one of these threads itself calls stop, from a destructor of its thread data, it does
 * not join; another call of stop does. If the process exits without a stop, no timeout of the
 * default engine is handed back.
 *
 * Units: none.
 * Threads: any. If several threads make the first call at once, all get the same engine.
 * In callback: yes.
 * Progress: lock-free; the first call allocates.
 * Lifetime: until the process exits. In a forked child the first call creates a default engine for
 *   the child. If the child has taken over the parent's default engine, the call returns that
 *   engine instead.
 * Returns: the engine; NULL if it cannot be created: there is no memory, the options set by
 *   tw_default_options_set cannot be met (their clock is in use), or this child was forked in a
 *   callback. The next call tries again.
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
 * Lifetime: `options` is copied. The objects to which its pointers lead (clock, contexts, name, CPU
 *   set) must stay until the process exits.
 * Returns: 0; -EINVAL, -ERANGE, -E2BIG (as tw_engine_create; -EINVAL also for NULL); -EBUSY (a
 *   thread has called tw_default_engine before, even if that failed); -ENOMEM.
 * Since: 0.1.0.
 */
TW_API int tw_default_options_set(const struct tw_options *options);

/**
 * Creates an engine. Its thread is created later, by tw_engine_start or the first schedule.
 *
 * The compiler warns if a program ignores the result of this function or of another function that
 * creates an object. If the program defines TW_WARN_UNUSED_SCHEDULE before it includes tickwheel.h,
 * the compiler also warns for the functions that schedule.
 *
 * Units: see struct tw_options.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates. The first call in a forked child also walks through the memory of all
 *   timeouts of the parent (about 0.1 ms for each 1,000; see tw_fork_reinit).
 * Lifetime: until tw_engine_destroy. `options` is copied; NULL: all defaults.
 * Returns: 0 and `*ret_engine`; -EINVAL (NULL, a zero or an absurd value, unknown bits, a CPU set
 *   together with a thread hook, a tick below the steps of TW_CLOCK_COARSE); -ERANGE (tick × slots
 *   does not fit 2^63 ns); -E2BIG (non-zero fields that this library does not know, `size` over
 *   4,096); -EBUSY (the virtual clock already has an engine); -ENOMEM (also: no file descriptor,
 *   TW_CLOCK_BOOTTIME); -EOPNOTSUPP (the system has no timer for that clock); -EDEADLK (in a child
 *   that was forked in a callback; see tw_fork_reinit).
 * Since: 0.1.0.
 */
TW_API TW_CHECKED int tw_engine_create(const struct tw_options *options,
				       struct tw_engine **ret_engine);

/**
 * Starts the engine by creating its worker. Optional, because otherwise the first schedule does it.
 *
 * Units: none.
 * Threads: any, concurrently; one caller creates the thread, and the others do not wait for it.
 * In callback: yes.
 * Progress: as long as it takes to create a thread.
 * Lifetime: none.
 * Returns: 0 (also if the worker runs or is being created already); -ENOMEM (no resources for the
 *   thread); -EPERM (the scheduling class is rejected); -EINVAL (NULL, CPU set); the error that a
 *   thread hook returned (EAGAIN as -ENOMEM); -ESHUTDOWN; -ECHILD. If the thread cannot be created,
 *   the state is TW_ENGINE_STALLED, and start may be tried again. In loop mode there is no thread
 *   to create, so the call returns 0, -ESHUTDOWN, -EINVAL or -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_start(struct tw_engine *engine);

/**
 * Stops an engine: hands back the timeouts that have not expired, and waits for running callbacks.
 * No callback is interrupted, and none runs after stop has returned 0. By then each timeout that
 * was scheduled successfully has expired, been cancelled, or been handed back.
 *
 * In loop mode (loop.h defines brackets) the call does the worker's work itself if no bracket is
 * open, or if the caller is in the bracket. If another thread is in a bracket, the call waits for
 * that thread, whose next poll or stop does the work. If that thread ends its bracket instead, the
 * call does the work. After -ETIMEDOUT the caller's bracket stays open, and the next stop
 * continues.
 *
 * Concurrent and repeated stops wait for the same end. Only the hook of the first one is called.
 *
 * Units: `timeout_ns`, the longest time to wait, in nanoseconds; TW_NEVER: without bound; 0 or
 *   less: begin to stop, and do not wait.
 * Threads: any, concurrently.
 * In callback: no (-EDEADLK), neither on the worker nor in an executor.
 * Progress: blocks for running callbacks, and for other threads' calls that are under way. If the
 *   worker died, or could not be created before, and no thread can be created now, this call does
 *   the worker's work itself. Then `timeout_ns` bounds the waits for executors and for other
 *   threads' calls, but not the hand-back.
 * Lifetime: `on_unexpired` and `context` must stay valid until a stop has returned 0.
 * Returns: 0; -ETIMEDOUT: stopping continues, call again; -EDEADLK; -EINVAL; -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_stop(struct tw_engine *engine, tw_unexpired_hook *on_unexpired, void *context,
			  int64_t timeout_ns);

/**
 * Frees an engine that is stopped or was never started. An engine that failed to start may also be
 * freed, if it never accepted a timeout. NULL is accepted.
 *
 * If another call with the engine is still under way, or follows, the behaviour is undefined; the
 * same holds for a second destroy. The library cannot check for this, because the memory is freed.
 * Handles stay safe: calls that take a handle, or a struct tw_due, may be made for ever.
 *
 * Units: none.
 * Threads: any, once, and after all other calls with the engine have returned.
 * In callback: no (-EDEADLK) in a callback of this engine; in another engine's callback, yes.
 * Progress: joins the thread that stop has ended. With a virtual clock it also waits for other
 *   threads' calls under way.
 * Lifetime: the engine exists until this call returns 0.
 * Returns: 0; -EBUSY: not stopped, or it has a scaled kind that was not destroyed; -EDEADLK. In a
 *   forked child, for an engine of the parent: 0, and the call frees everything that it can; but
 *   -EDEADLK in a finaliser that tw_fork_reinit runs for that engine.
 * Since: 0.1.0.
 */
TW_API int tw_engine_destroy(struct tw_engine *engine);

/**
 * Waits until the worker has done what was asked of it before the call: scheduled timeouts are
 * in the wheel, cancelled ones are reclaimed, and those that were due have run (with an executor:
 * been handed over). Meant for tests; with a virtual clock it makes them exact. In loop mode, if
 * the caller is in a bracket, the call polls. Otherwise it waits until another thread has polled.
 *
 * Units: `timeout_ns`, the longest time to wait; TW_NEVER: without bound.
 * Threads: any.
 * In callback: no (-EDEADLK on the worker).
 * Progress: blocks for a turn of the worker. If producers fill every transfer batch, it blocks
 *   until they pause.
 * Lifetime: none.
 * Returns: 0 (at once if nothing was ever started); -ETIMEDOUT; -ESHUTDOWN (stopped meanwhile);
 *   -EDEADLK; -EINVAL; -ECHILD; if an earlier start failed, the codes that tw_engine_start returns.
 * Since: 0.1.0.
 */
TW_API int tw_engine_flush(struct tw_engine *engine, int64_t timeout_ns);

/**
 * Returns the engine's time, in which deadlines are given.
 *
 * With the default clock this time may be up to 8 us behind CLOCK_MONOTONIC (option `clock`).
 * tw_schedule adds this lag to the delay. If a caller instead adds a delay to this time and passes
 * the sum to tw_schedule_at, nothing adds the lag. The timeout may then fire up to 8 us before the
 * delay is over by CLOCK_MONOTONIC.
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
 * The number is exact when no call is under way and no timeout expires. A timeout counts as expired
 * as soon as its callback begins. Under load the number may be wrong, within these bounds:
 *
 * If a thread cancels only its own timeouts, its schedules and cancels are read at one moment,
 * however long the whole reading takes. So a thread that never has more than one timeout pending
 * causes an error of at most one.
 *
 * If one thread schedules a timeout and another thread cancels it, or the timeout expires, the two
 * events are read at different moments. The error is at most the number of timeouts that were
 * scheduled, cancelled, handed back, or expired during the reading. A reading that took longer than
 * 20 microseconds is repeated, at most eight times, and only the last reading counts.
 *
 * The result is never below zero and never above `pending_limit`.
 *
 * All callbacks on the worker together count as one thread here, and so does the owner of a loop.
 * One exception: if such a callback cancels a timeout that is due in the same turn, the cancel
 * counts as another thread's.
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
 * has noticed yet, and reports them to the hook. Meant for a health check: threads look for slow
 * runs only in calls on the engine, and there may be no other call.
 *
 * Units: runs.
 * Threads: any, concurrently.
 * In callback: yes; the run from which it is called may be among those that it finds.
 * Progress: wait-free, except for the hook.
 * Lifetime: none.
 * Returns: how many runs under way have taken too long, whether they were reported before or not, 0
 *   or more; -EINVAL (NULL, or an engine without `slow_ns`); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_watch(struct tw_engine *engine);

/**
 * Runs the callback (and finaliser) of a timeout that the dispatch hook accepted.
 *
 * Units: none.
 * Threads: any. The program must call it exactly once for each accepted timeout.
 * In callback: yes.
 * Progress: that of the callback.
 * Lifetime: `due` is read during the call only; the engine does not end its stop before the call
 *   has returned.
 * Returns: 0 (also for a periodic timeout that was cancelled meanwhile, which does not run);
 *   -EINVAL for NULL; -ECHILD; -ESTALE: the callback already runs, the timeout has ended, or it is
 *   pending (never dispatched, put back after a rejection, or periodic and not due again). A
 *   message to the log hook says which of the three it is.
 * Since: 0.1.0.
 */
TW_API int tw_due_run(const struct tw_due *due);

TW_END_DECLS

#endif
