/* SPDX-License-Identifier: MIT */
/**
 * @file handle.hpp
 * Functions that run later, and their handles.
 *
 * `after` moves its function to the heap. The library owns the function until the timeout has
 * ended, whether it expired, was cancelled, or was handed back by a stop. Then the library destroys
 * the function, on the thread on which the timeout ended. So a handle may be destroyed at any time,
 * also inside the callback itself, and its destructor never waits.
 */
#ifndef TICKWHEEL_CPP_HANDLE_HPP
#define TICKWHEEL_CPP_HANDLE_HPP

#include <memory>
#include <tickwheel/cpp/engine.hpp>
#include <type_traits>

namespace tw
{
/**
 * Owns a pending timeout: the destructor cancels it. Move-only.
 *
 * The destructor does not wait. If the callback runs on another thread at that time, it continues.
 * So the callback must not refer to anything that is destroyed together with the handle. If it
 * does, call cancel_wait first, or use a tw::timer.
 *
 * A handle is empty if it was moved from, released, or made by `tw::handle()`. All calls of an
 * empty handle are allowed, do nothing and return false; get returns TW_HANDLE_NONE.
 *
 * Threads: one at a time. In callback: yes, also in the timeout's own callback. Lifetime: it may
 *   outlive the engine.
 */
class handle
{
      public:
	handle() noexcept = default;

	/** Takes over a timeout of the C interface. */
	explicit handle(tw_handle raw) noexcept : raw_(raw)
	{
	}

	handle(handle &&other) noexcept : raw_(other.release())
	{
	}

	/** Cancels the timeout that this handle has owned so far. */
	handle &operator=(handle &&other) noexcept
	{
		if (this != &other) {
			cancel();
			raw_ = other.release();
		}
		return *this;
	}

	~handle()
	{
		cancel();
	}

	/**
	 * Cancels the timeout. Returns true if this call has cancelled it; then the callback never
	 * runs.
	 * Progress: as tw_cancel; the call also destroys the function.
	 */
	bool cancel() noexcept
	{
		return is_set() && tw_cancel(raw_) == TW_CANCEL_DONE;
	}

	/**
	 * Cancels the timeout like cancel, and waits until a running callback has ended
	 * (tw_cancel_wait). In callback: yes, but in the timeout's own callback, and on the worker
	 * of its engine, it does not wait. Progress: blocks.
	 */
	bool cancel_wait() noexcept
	{
		return is_set() && tw_cancel_wait(raw_, TW_NEVER) == TW_CANCEL_DONE;
	}

	/** Gives a pending timeout another delay from now. Returns false if the timeout has already
	 * ended or its callback runs. */
	template <class Rep, class Period> bool reschedule(std::chrono::duration<Rep, Period> delay)
	{
		return is_set() && rescheduled(tw_reschedule(raw_, ns_of(delay)));
	}

	/** Reschedules the timeout, as reschedule does, to a deadline in the engine's time. */
	bool reschedule_at(engine_clock::time_point deadline)
	{
		return is_set() && rescheduled(tw_reschedule_at(raw_, ns_of(deadline)));
	}

	/** Returns whether the timeout has neither expired nor ended otherwise. */
	bool pending() const noexcept
	{
		return is_set() && tw_timeout_state(raw_) == TW_STATE_INIT;
	}

	/** Returns the handle for the C interface. This object still owns the timeout. */
	tw_handle get() const noexcept
	{
		return raw_;
	}

	/** Gives up the ownership: the timeout stays pending, and this handle is empty. */
	tw_handle release() noexcept
	{
		return std::exchange(raw_, tw_handle{});
	}

	/** Returns whether the handle names a timeout, pending or ended. */
	explicit operator bool() const noexcept
	{
		return is_set();
	}

      private:
	bool is_set() const noexcept
	{
		return raw_.node != nullptr;
	}

	static bool rescheduled(int code)
	{
		if (code == -ESTALE)
			return false;
		return detail::checked(code, "reschedule") == TW_RESCHEDULE_DONE;
	}

	tw_handle raw_ = {};
};

namespace detail
{
/* A function on the heap. The finaliser of the timeout, which always runs, destroys it. */
template <class F> struct boxed {
	F function;

	static void run(tw_handle, void *arg) noexcept
	{
		guarded([arg] { (void)static_cast<boxed *>(arg)->function(); });
	}

	static void end(void *arg, tw_end) noexcept
	{
		delete static_cast<boxed *>(arg);
	}

	static constexpr tw_kind kind = TW_KIND(run, end);
};

using schedule_call = int (*)(tw_engine *, std::int64_t, const tw_kind *, void *, tw_handle *);

template <class F>
handle box(engine_ref in, schedule_call schedule, std::int64_t when, F &&function)
{
	using box_type = boxed<std::decay_t<F>>;
	std::unique_ptr<box_type> box(new box_type{std::forward<F>(function)});
	tw_handle raw = {};

	checked(schedule(in.get(), when, &box_type::kind, box.get(), &raw), "after");
	(void)box.release();
	return handle(raw);
}
} // namespace detail

/**
 * Runs a function once, after a delay, on the engine's worker or in its executor.
 *
 * If the caller drops the result, its destructor cancels the timeout at once. After
 * `after(...).release()` the timeout stays pending without an owner.
 *
 * Threads: any. In callback: yes. Progress: allocates; otherwise as tw_schedule.
 * Lifetime: the function is moved, and destroyed when the timeout has ended.
 * Throws: as tw_schedule returns; std::bad_alloc; what the function's move throws. Then nothing is
 *   scheduled.
 */
template <class Rep, class Period, class F>
[[nodiscard]] handle after(engine_ref in, std::chrono::duration<Rep, Period> delay, F &&function)
{
	return detail::box(in, tw_schedule, ns_of(delay), std::forward<F>(function));
}

/** Runs a function once, like after, at a deadline in the engine's time (tw_schedule_at). */
template <class F>
[[nodiscard]] handle at(engine_ref in, engine_clock::time_point deadline, F &&function)
{
	return detail::box(in, tw_schedule_at, ns_of(deadline), std::forward<F>(function));
}
} // namespace tw

#endif
