/* SPDX-License-Identifier: MIT */
/**
 * @file sleep.hpp
 * `co_await tw::sleep_for(engine, 5ms, token)`, in every coroutine type.
 *
 * The awaitable is in the coroutine's frame. It uses one timeout, and allocates nothing. Its
 * states:
 *
 * - idle: not awaited yet, or the schedule failed.
 * - preparing: await_suspend has scheduled the timeout, but still uses the frame. If the timeout
 *   ends now, its finaliser does not resume the coroutine; await_suspend then does not suspend it.
 * - armed: await_suspend no longer touches the frame. When the timeout ends, its finaliser resumes
 *   the coroutine.
 * - ended: the timeout has ended. The coroutine continues, or is about to.
 *
 * If the frame is destroyed in the state armed, the destructor cancels the timeout. The owner of
 * the frame must make sure that no other thread resumes the coroutine at the same time. So the
 * timeout is then either pending, or claimed for a run on this same thread (run.hpp).
 *
 * The finaliser runs exactly once: on the worker after the deadline, or in a stop, which hands the
 * timeout back. So no coroutine stays suspended. A request to stop moves the deadline to now. So
 * the worker resumes the coroutine, and not the thread that requests the stop.
 */
#ifndef TICKWHEEL_CPP_SLEEP_HPP
#define TICKWHEEL_CPP_SLEEP_HPP

#include <coroutine>
#include <optional>
#include <stop_token>
#include <tickwheel/cpp/engine.hpp>
#include <tickwheel/cpp/run.hpp>

namespace tw
{
/** Why a sleeping coroutine continues. */
enum class wake {
	/** The deadline has passed. */
	due,
	/** A stop was requested through one of its stop tokens. */
	stopped,
	/** The engine is stopping or has stopped. Each later sleep on it ends at once, in the same
	 * way. */
	engine_stopped,
};

namespace detail
{
/* A coroutine's promise from which awaited operations inherit a stop token. */
template <class Promise>
concept stoppable_promise = requires(const Promise &promise)
{
	{
		promise.stop_token()
		} -> std::convertible_to<const std::stop_token &>;
};

template <class Promise> std::stop_token token_of(std::coroutine_handle<Promise> coroutine) noexcept
{
	if constexpr (stoppable_promise<Promise>)
		return coroutine.promise().stop_token();
	else
		return {};
}
} // namespace detail

/**
 * The awaitable that tw::sleep_for and tw::sleep_until return. Await it once. It may be moved
 * before that.
 *
 * Threads: the coroutine continues on the engine's worker; in loop mode, in a poll; at a stop of
 * the engine, on the thread that hands timeouts back. If a stop was already requested, or the
 * engine has stopped, the coroutine continues without a suspension.
 * Lifetime: a sleeping coroutine may be destroyed on the engine's worker, or while no thread can
 *   resume it. To end it from another thread, request a stop instead. If a thread destroys a
 *   coroutine while the worker resumes it, the behaviour is undefined.
 */
class [[nodiscard]] sleep_awaitable
{
      public:
	using schedule_call = int (*)(tw_engine *, std::int64_t, const tw_kind *, void *,
				      tw_handle *);
	using reschedule_call = int (*)(tw_handle, std::int64_t);

	sleep_awaitable(engine_ref in, std::int64_t when, schedule_call schedule,
			reschedule_call reschedule, std::stop_token token) noexcept
	    : engine_(in), when_(when), schedule_(schedule), reschedule_(reschedule),
	      token_(std::move(token))
	{
	}

	sleep_awaitable(sleep_awaitable &&other) noexcept
	    : engine_(other.engine_), when_(other.when_), schedule_(other.schedule_),
	      reschedule_(other.reschedule_), token_(std::move(other.token_))
	{
	}

	sleep_awaitable &operator=(sleep_awaitable &&) = delete;

	~sleep_awaitable()
	{
		on_token_.reset();
		on_inherited_.reset();
		if (state_.load(std::memory_order_relaxed) == armed &&
		    tw_cancel_wait(handle_, TW_NEVER) == TW_CANCEL_RUNNING)
			detail::bury(handle_);
	}

	bool await_ready() const noexcept
	{
		return token_.stop_requested();
	}

	template <class Promise> bool await_suspend(std::coroutine_handle<Promise> coroutine)
	{
		coroutine_ = coroutine;
		inherited_ = detail::token_of(coroutine);
		if (inherited_.stop_requested())
			return false;
		return token_.stop_possible() || inherited_.stop_possible() ? suspend_stoppable()
									    : suspend();
	}

	/** Throws the codes that tw_schedule returns, except ESHUTDOWN: a stopped engine is no
	 * error. */
	wake await_resume()
	{
		on_token_.reset();
		on_inherited_.reset();
		if (code_ == -ESHUTDOWN)
			return wake::engine_stopped;
		detail::checked(code_, "sleep");
		return token_.stop_requested() || inherited_.stop_requested() ? wake::stopped
									      : wake::due;
	}

	/** Returns the engine on which the coroutine sleeps. */
	engine_ref engine() const noexcept
	{
		return engine_;
	}

	/** Returns the stop token that was passed in. */
	const std::stop_token &stop_token() const noexcept
	{
		return token_;
	}

	/** Replaces the stop token. Must be called before the awaitable is awaited. */
	void stop_by(std::stop_token token) noexcept
	{
		token_ = std::move(token);
	}

      private:
	enum state { idle, preparing, armed, ended };

	struct waker {
		tw_handle handle;

		void operator()() const noexcept
		{
			(void)tw_reschedule(handle, 0);
		}
	};

	/* Once the timeout is scheduled, the coroutine may run on another thread, and the frame may
	 * be gone. So nothing in it is touched after a successful schedule. */
	bool suspend()
	{
		state_.store(armed, std::memory_order_relaxed);
		int code = schedule_(engine_.get(), when_, kind(), this, &handle_);

		return code == 0 || failed(code);
	}

	/*
	 * The timeout gets its deadline only after the tokens' stop callbacks are registered. Until
	 * then only a stop of the engine, or a request to stop, can end it. Once the state is
	 * armed, the frame may be gone, so the code uses only copies.
	 */
	bool suspend_stoppable()
	{
		std::stop_token token = token_, inherited = inherited_;
		reschedule_call reschedule = reschedule_;
		std::int64_t when = when_;
		int expected = preparing;

		if (when == INT64_MIN)
			return failed(-ERANGE);
		state_.store(preparing, std::memory_order_relaxed);
		int code = tw_schedule(engine_.get(), TW_NEVER, kind(), this, &handle_);
		tw_handle handle = handle_;

		if (code != 0)
			return failed(code);
		on_token_.emplace(token, waker{handle});
		on_inherited_.emplace(inherited, waker{handle});
		if (!state_.compare_exchange_strong(expected, armed, std::memory_order_acq_rel))
			return false;
		(void)reschedule(handle, when);
		/* If a stop was requested before this reschedule, the request had already moved the
		 * deadline to now, and this reschedule has overwritten that deadline. */
		if (token.stop_requested() || inherited.stop_requested())
			(void)tw_reschedule(handle, 0);
		return true;
	}

	bool failed(int code) noexcept
	{
		state_.store(idle, std::memory_order_relaxed);
		code_ = code;
		return false;
	}

	void end(tw_end how) noexcept
	{
		std::coroutine_handle<> coroutine = coroutine_;

		if (how == TW_END_UNEXPIRED)
			code_ = -ESHUTDOWN;
		if (state_.exchange(ended, std::memory_order_acq_rel) == armed)
			detail::guarded([coroutine] { coroutine.resume(); });
	}

	/* Does nothing, because the finaliser resumes the coroutine. The finaliser also runs if a
	 * hook runs instead of the callback. */
	static void on_due(tw_handle, void *) noexcept
	{
	}

	static void on_end(void *arg, tw_end how) noexcept
	{
		/* Only the destructor cancels the timeout, and then the frame is gone. */
		if (how == TW_END_CANCELLED || (detail::graves != nullptr && is_buried()))
			return;
		static_cast<sleep_awaitable *>(arg)->end(how);
	}

	static bool is_buried() noexcept
	{
		tw_run here = {};

		here.size = sizeof here;
		return tw_run_get(&here) == 0 && detail::buried(here.handle);
	}

	/* As with tw::timer, the callback never runs in an executor. */
	const tw_kind *kind() const noexcept
	{
		static constexpr tw_kind any = TW_KIND(on_due, on_end);
		static constexpr tw_kind inlined = TW_KIND_INLINE(on_due, on_end);

		return engine_.has_executor() ? &inlined : &any;
	}

	engine_ref engine_;
	std::int64_t when_;
	schedule_call schedule_;
	reschedule_call reschedule_;
	std::stop_token token_, inherited_;
	std::optional<std::stop_callback<waker>> on_token_, on_inherited_;
	std::coroutine_handle<> coroutine_;
	tw_handle handle_ = {};
	int code_ = 0;
	std::atomic<int> state_{idle};
};

/**
 * Suspends a coroutine for a duration: `tw::wake why = co_await tw::sleep_for(engine, 5ms, token);`
 *
 * The sleep ends early if a stop is requested, or if the engine stops. The request may come through
 * `token`, or through the token of the coroutine's promise (its member stop_token(), which tw::task
 * has).
 *
 * Threads: any. In callback: yes. Progress: as tw_schedule; with a token also as tw_reschedule.
 * Throws: when awaited, the codes that tw_schedule returns, except ESHUTDOWN.
 */
template <class Rep, class Period>
sleep_awaitable sleep_for(engine_ref in, std::chrono::duration<Rep, Period> delay,
			  std::stop_token token = {}) noexcept
{
	return {in, ns_of(delay), tw_schedule, tw_reschedule, std::move(token)};
}

/** Suspends a coroutine like sleep_for, until a deadline in the engine's time. */
inline sleep_awaitable sleep_until(engine_ref in, engine_clock::time_point deadline,
				   std::stop_token token = {}) noexcept
{
	return {in, ns_of(deadline), tw_schedule_at, tw_reschedule_at, std::move(token)};
}
} // namespace tw

#endif
