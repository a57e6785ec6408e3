/* SPDX-License-Identifier: MIT */
/**
 * @file timer.hpp
 * A timeout inside your own object. It allocates nothing.
 *
 * A timer is idle, pending, running (its callback runs on the worker), or both running and pending
 * (the callback has scheduled it again). `current_` is the handle of the last schedule. If a run
 * made that schedule, `previous_` is the handle of that run. So these two name every run that can
 * be under way.
 *
 * The owner is the thread that uses the timer from outside its callback; the program must make sure
 * that there is only one owner at a time. The worker runs the callback. A timer has only one run at
 * a time, because callbacks of timers never go to an executor.
 *
 * - The owner writes both handles while no run is under way; the callback writes them when it
 *   schedules again. The owner may read them during a run. Therefore the callback writes under a
 *   sequence count, which is odd while it writes. The owner reads again if the count is odd or has
 *   changed.
 * - To end a timer, the owner calls tw_cancel_wait for both handles, until it finds no new ones.
 *   Then no run is under way, and none can begin. `closing_` stops a callback that would otherwise
 *   schedule again for ever.
 * - On the worker the only runs under way are those on this thread's stack. There tw_cancel_wait
 *   does not wait, and the callback itself may destroy its timer.
 */
#ifndef TICKWHEEL_CPP_TIMER_HPP
#define TICKWHEEL_CPP_TIMER_HPP

#include <tickwheel/cpp/engine.hpp>
#include <tickwheel/cpp/run.hpp>
#include <type_traits>

namespace tw
{
namespace detail
{
/* A timer without its function: everything that does not depend on the function's type. */
class timer_base
{
      public:
	timer_base(const timer_base &) = delete;
	timer_base &operator=(const timer_base &) = delete;

	/**
	 * Schedules the timer, after a delay. If the timer is pending, it gets the new deadline.
	 * Outside of the timer's own callback, the call first waits until a running callback has
	 * ended.
	 *
	 * Returns true. It returns false only inside the timer's own callback, if the owner is
	 * ending the timer at this moment. Then the timer stays idle.
	 *
	 * Threads: the owner, or the callback. In callback: yes. Progress: as tw_schedule, if the
	 * timer is idle and its last callback has ended. Throws: the codes that tw_schedule
	 * returns; then the timer is idle.
	 */
	template <class Rep, class Period> bool schedule(std::chrono::duration<Rep, Period> delay)
	{
		return start<tw_schedule>(ns_of(delay));
	}

	/** Schedules the timer like schedule, for a deadline in the engine's time
	 * (tw_schedule_at). */
	bool schedule_at(engine_clock::time_point deadline)
	{
		return start<tw_schedule_at>(ns_of(deadline));
	}

	/**
	 * Cancels the timer, without waiting. Returns true if this call has cancelled it. If it
	 * returns false, the timer is idle, or its callback runs and may schedule it again.
	 *
	 * Threads: the owner, or the callback. In callback: yes. Progress: as tw_cancel.
	 */
	bool cancel() noexcept
	{
		if (tw_cancel(read(current_)) != TW_CANCEL_DONE)
			return false;
		/* The cancelled timeout never ran. If it was not scheduled by a run either, no run
		 * is under way that could write the handles. */
		if (__atomic_load_n(&previous_.node, __ATOMIC_RELAXED) == nullptr)
			current_ = tw_handle{};
		return true;
	}

	/**
	 * Cancels the timer, and waits until its callback has ended. Afterwards the timer is idle.
	 * Returns true if it was pending.
	 *
	 * Threads: the owner, or the callback. In callback: yes, but in a callback of the timer's
	 * engine, its own included, it does not wait. Progress: blocks for the callback.
	 */
	bool cancel_wait() noexcept
	{
		return end() == TW_CANCEL_DONE;
	}

	/** Returns whether the timer is pending. Threads: as cancel. Progress: wait-free. */
	bool pending() const noexcept
	{
		return tw_timeout_state(read(current_)) == TW_STATE_INIT;
	}

      protected:
	timer_base(engine_ref in, const tw_kind *kind) noexcept : engine_(in.get()), kind_(kind)
	{
	}

	~timer_base() = default;

	/* The destructor of a timer must call this before the function is destroyed, because the
	 * function may be running. */
	void finish() noexcept
	{
		if (!is_used())
			return;
		(void)end();
		bury_claimed(current_);
		bury_claimed(previous_);
	}

      private:
	using schedule_call = int (*)(tw_engine *, std::int64_t, const tw_kind *, void *,
				      tw_handle *);

	static tw_handle load(const tw_handle &from) noexcept
	{
		/* Acquire: afterwards this thread does not read a count that is older than the
		 * values it has read here. So read() notices that they were being changed. */
		return {__atomic_load_n(&from.node, __ATOMIC_ACQUIRE),
			__atomic_load_n(&from.generation, __ATOMIC_ACQUIRE)};
	}

	static void store(tw_handle &into, tw_handle handle) noexcept
	{
		__atomic_store_n(&into.node, handle.node, __ATOMIC_RELEASE);
		__atomic_store_n(&into.generation, handle.generation, __ATOMIC_RELEASE);
	}

	tw_handle read(const tw_handle &from) const noexcept
	{
		for (;;) {
			unsigned before = sequence_.load(std::memory_order_acquire);
			tw_handle found = load(from);

			if ((before & 1) == 0 &&
			    sequence_.load(std::memory_order_relaxed) == before)
				return found;
		}
	}

	/* Only the callback calls this, and only one runs at a time, so the count needs no
	 * read-modify-write. */
	void write(tw_handle current, tw_handle previous) noexcept
	{
		unsigned before = sequence_.load(std::memory_order_relaxed);

		sequence_.store(before + 1, std::memory_order_relaxed);
		store(current_, current);
		store(previous_, previous);
		sequence_.store(before + 2, std::memory_order_release);
	}

	template <schedule_call call> bool start(std::int64_t when)
	{
		if (runs != nullptr || is_used())
			return start_used(call, when);
		/* The library writes the handle before the callback can run. */
		checked(call(engine_, when, kind_, this, &current_), "schedule");
		return true;
	}

	/* The timer may be pending, or running, or this call may be made in its callback. Not
	 * inlined, so that the usual path stays short. */
	__attribute__((noinline)) bool start_used(schedule_call call, std::int64_t when)
	{
		const run *own = run_of(this);

		if (own != nullptr)
			return start_again(call, when, own->self);
		if (is_used()) {
			(void)end();
			forget();
		}
		checked(call(engine_, when, kind_, this, &current_), "schedule");
		return true;
	}

	/* Called inside the callback. The new run cannot begin before the present one has ended. */
	bool start_again(schedule_call call, std::int64_t when, tw_handle self)
	{
		tw_handle next = {};

		if (tw_handle_equal(current_, self) == 0)
			(void)tw_cancel(current_);
		/* RELAXED: if this run reads an old value, the end is only delayed, because the
		 * owner checks again after the run. */
		if (closing_.load(std::memory_order_relaxed))
			return false;
		checked(call(engine_, when, kind_, this, &next), "schedule");
		write(next, self);
		return true;
	}

	/*
	 * Cancels the timer, and waits for each run that is not on this thread. `previous_` is read
	 * after `current_`. If a callback schedules between the two reads, the last read finds a
	 * new `current_`, and the loop continues.
	 */
	int end() noexcept
	{
		tw_handle current = read(current_), found;
		int outcome;

		closing_.store(true, std::memory_order_relaxed);
		do {
			tw_handle previous = read(previous_);

			found = current;
			outcome = tw_cancel_wait(found, TW_NEVER);
			if (previous.node != nullptr)
				(void)tw_cancel_wait(previous, TW_NEVER);
			current = read(current_);
		} while (tw_handle_equal(current, found) == 0);
		closing_.store(false, std::memory_order_relaxed);
		return outcome;
	}

	/* RELAXED: only the owner sets or clears the handle; a callback only replaces it by another
	 * one. */
	bool is_used() const noexcept
	{
		return __atomic_load_n(&current_.node, __ATOMIC_RELAXED) != nullptr;
	}

	static bool is_running(tw_handle handle) noexcept
	{
		return handle.node != nullptr && tw_cancel(handle) == TW_CANCEL_RUNNING;
	}

	/* After a call of end() on the worker, a claimed run may still begin. Then `previous_` keeps
	 * the handle of that run, and the timer stays in use. */
	void forget() noexcept
	{
		if (is_running(current_))
			previous_ = current_;
		else if (!is_running(previous_))
			previous_ = tw_handle{};
		current_ = previous_;
	}

	/* Puts a run into `graves` if it is claimed for this thread, but is not on this thread's
	 * stack. */
	static void bury_claimed(tw_handle handle) noexcept
	{
		if (is_running(handle) && !runs_here(handle))
			bury(handle);
	}

	tw_engine *engine_;
	const tw_kind *kind_;
	tw_handle current_ = {}, previous_ = {};
	std::atomic<unsigned> sequence_{0};
	std::atomic<bool> closing_{false};
};
} // namespace detail

/**
 * A timeout with its function, as a member of your own object: `tw::timer idle(engine, [this] {
 * close(); });`. The function takes no argument, or a reference to the timer.
 *
 * A timer can be neither moved nor copied. It allocates nothing itself; like every timeout it uses
 * the library's memory for timeouts. The callback runs on the worker (in loop mode: in the poll),
 * even if the engine has an executor. The callback may schedule the timer again, and may destroy
 * it.
 *
 * The destructor cancels the timer, and waits until a callback on another thread has ended. On the
 * worker it does not wait, because no other callback can run. Declare a timer after the members
 * that its function uses, so that it is destroyed before them.
 *
 * Threads: one at a time (the owner), and the callback. In callback: yes. Progress: the destructor
 * blocks for the callback. If callbacks of two engines destroy each other's timers, they deadlock.
 * Lifetime: it may outlive the engine, but must not be scheduled any more then. When the engine is
 * stopped, a pending timer becomes idle, and its function does not run.
 */
template <class F> class timer : public detail::timer_base
{
      public:
	/** Constructs an idle timer. */
	template <class G = F>
	timer(engine_ref in, G &&function)
	    : timer_base(in, in.has_executor() ? &kind_inline : &kind_any),
	      function_(std::forward<G>(function))
	{
	}

	~timer()
	{
		finish();
	}

      private:
	static void on_due(tw_handle self, void *arg) noexcept
	{
		if (detail::buried(self))
			return;
		detail::run here = {static_cast<timer_base *>(static_cast<timer *>(arg)), self,
				    detail::runs};

		detail::runs = &here;
		detail::guarded([arg] { static_cast<timer *>(arg)->call(); });
		detail::runs = here.outer;
	}

	void call()
	{
		if constexpr (std::is_invocable_v<F &, timer &>)
			(void)function_(*this);
		else
			(void)function_();
	}

	/* kind_inline takes a longer path through the schedule, but its callback never goes to an
	 * executor. */
	static constexpr tw_kind kind_any = TW_KIND(on_due, nullptr);
	static constexpr tw_kind kind_inline = TW_KIND_INLINE(on_due, nullptr);

	F function_;
};

template <class F> timer(engine_ref, F) -> timer<F>;
} // namespace tw

#endif
