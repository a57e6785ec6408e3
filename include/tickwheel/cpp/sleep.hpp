/* SPDX-License-Identifier: MIT */
/**
 * @file sleep.hpp
 * `co_await tw::sleep_for(engine, 5ms, token)`, in every coroutine type.
 *
 * The awaitable is in the coroutine's frame. It holds one timeout and allocates nothing. Its state:
 *
 * - idle: not awaited yet, or the schedule failed.
 * - preparing: await_suspend has scheduled the timeout, but still uses the frame. If the timeout
 *   ends now, its end leaves the coroutine to await_suspend, which does not suspend it.
 * - armed: await_suspend touches the frame no more. The end of the timeout resumes the coroutine.
 * - ended: the timeout has ended. The coroutine goes on, or is about to.
 *
 * A frame that dies while it is armed cancels the timeout. The owner of the frame makes sure that no
 * other thread resumes the coroutine at the same time, so the timeout is pending then, or on its way
 * to this same thread (run.hpp).
 *
 * The end is the finaliser, which runs exactly once: on the worker after the deadline, or in a stop,
 * which hands the timeout back. So no coroutine stays suspended. A request to stop moves the
 * deadline to now, so it is the worker that resumes the coroutine, not the requesting thread.
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
/** Why a sleeping coroutine goes on. */
enum class wake {
	/** The time has come. */
	due,
	/** A stop was requested by one of its tokens. */
	stopped,
	/** The engine stops or has stopped. Each later sleep on it ends at once, in the same way. */
	engine_stopped,
};

namespace detail
{
/* A promise from which awaited operations inherit a stop token. */
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
 * What tw::sleep_for and tw::sleep_until return. Await it once. It may be moved before.
 *
 * Threads: the coroutine continues on the engine's worker (in loop mode: in a poll; at a stop, where
 * the hand-back runs). If it need not wait, because a stop was requested or the engine has stopped,
 * it goes on without suspension.
 * Lifetime: a coroutine that sleeps may be destroyed on the engine's worker, or while no thread can
 *   resume it. To end it from another thread, request a stop: destroying a coroutine that the worker
 *   resumes at the same time is undefined behaviour.
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

	/** Throws as tw_schedule returns, but a stopped engine is no error. */
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

	/** Returns the engine that it sleeps on. */
	engine_ref engine() const noexcept
	{
		return engine_;
	}

	/** Returns the token that was given. */
	const std::stop_token &stop_token() const noexcept
	{
		return token_;
	}

	/** Replaces the token, before it is awaited. */
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

	/* From the schedule on the coroutine may run elsewhere, and the frame may be gone. */
	bool suspend()
	{
		state_.store(armed, std::memory_order_relaxed);
		int code = schedule_(engine_.get(), when_, kind(), this, &handle_);

		return code == 0 || failed(code);
	}

	/*
	 * The timeout has no deadline until the tokens' callbacks are there, so only a stop of the
	 * engine or of a token can end it before. After the state is armed, only copies are used.
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
		/* A waker may have come first, and its deadline would be lost. */
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

	/* Whether a hook or the callback ran, the finaliser follows it. */
	static void on_due(tw_handle, void *) noexcept
	{
	}

	static void on_end(void *arg, tw_end how) noexcept
	{
		/* Only the destructor cancels. */
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

	/* As tw::timer: never in an executor. */
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
 * It ends sooner if a stop is requested, by `token` or by the token of the coroutine's promise (its
 * member stop_token(), as tw::task has one), or if the engine stops.
 *
 * Threads: any. In callback: yes. Progress: as tw_schedule; with a token also as tw_reschedule.
 * Throws: when awaited, as tw_schedule returns, but not ESHUTDOWN.
 */
template <class Rep, class Period>
sleep_awaitable sleep_for(engine_ref in, std::chrono::duration<Rep, Period> delay,
			  std::stop_token token = {}) noexcept
{
	return {in, ns_of(delay), tw_schedule, tw_reschedule, std::move(token)};
}

/** The same, until a time of the engine. */
inline sleep_awaitable sleep_until(engine_ref in, engine_clock::time_point deadline,
				   std::stop_token token = {}) noexcept
{
	return {in, ns_of(deadline), tw_schedule_at, tw_reschedule_at, std::move(token)};
}
} // namespace tw

#endif
