/* SPDX-License-Identifier: MIT */
/**
 * @file task.hpp
 * A coroutine with a result and a stop token, and its start from a function.
 */
#ifndef TICKWHEEL_CPP_TASK_HPP
#define TICKWHEEL_CPP_TASK_HPP

#include <concepts>
#include <tickwheel/cpp/sleep.hpp>
#include <variant>

namespace tw
{
template <class T> class task;

namespace detail
{
template <class T> struct result_of_task {
	std::variant<std::monostate, T, std::exception_ptr> result;

	template <class U> void return_value(U &&value)
	{
		result.template emplace<1>(std::forward<U>(value));
	}

	void unhandled_exception() noexcept
	{
		result.template emplace<2>(std::current_exception());
	}

	T take()
	{
		if (result.index() == 2)
			std::rethrow_exception(std::get<2>(result));
		return std::move(std::get<1>(result));
	}
};

template <> struct result_of_task<void> {
	std::exception_ptr error;

	void return_void() noexcept
	{
	}

	void unhandled_exception() noexcept
	{
		error = std::current_exception();
	}

	void take()
	{
		if (error != nullptr)
			std::rethrow_exception(error);
	}
};

template <class T> class task_promise : public result_of_task<T>
{
      public:
	task<T> get_return_object() noexcept;

	std::suspend_always initial_suspend() noexcept
	{
		return {};
	}

	auto final_suspend() noexcept
	{
		return continues{};
	}

	const std::stop_token &stop_token() const noexcept
	{
		return token;
	}

	std::coroutine_handle<> continuation = std::noop_coroutine();
	std::stop_token token;

      private:
	struct continues {
		bool await_ready() const noexcept
		{
			return false;
		}

		std::coroutine_handle<>
		await_suspend(std::coroutine_handle<task_promise> ended) const noexcept
		{
			return ended.promise().continuation;
		}

		void await_resume() const noexcept
		{
		}
	};
};
} // namespace detail

/**
 * A coroutine that begins when it is awaited, and hands its result or its exception to the awaiting
 * coroutine. Move-only; await it once.
 *
 * Threads: it runs where it is awaited, and after each sleep on the engine's worker. So does the
 *   awaiting coroutine afterwards.
 * Stop: it takes the stop token of the awaiting tw::task, unless stop_by gave it one. Each sleep in
 *   it ends when a stop is requested.
 * Lifetime: the object owns the frame, and destroys it with all that it has, on the conditions of
 *   tw::sleep_awaitable. A moved-from task is empty: to await it calls std::terminate; stop_by does
 *   nothing.
 */
template <class T = void> class [[nodiscard]] task
{
      public:
	using promise_type = detail::task_promise<T>;

	explicit task(std::coroutine_handle<promise_type> coroutine) noexcept
	    : coroutine_(coroutine)
	{
	}

	task(task &&other) noexcept : coroutine_(std::exchange(other.coroutine_, {}))
	{
	}

	task &operator=(task &&other) noexcept
	{
		if (this != &other) {
			destroy();
			coroutine_ = std::exchange(other.coroutine_, {});
		}
		return *this;
	}

	~task()
	{
		destroy();
	}

	/** Returns the token that it has so far. */
	std::stop_token stop_token() const noexcept
	{
		return coroutine_ ? coroutine_.promise().token : std::stop_token();
	}

	/** Gives it a token, before it is awaited. */
	void stop_by(std::stop_token token) noexcept
	{
		if (coroutine_)
			coroutine_.promise().token = std::move(token);
	}

	bool await_ready() const noexcept
	{
		return false;
	}

	template <class Promise>
	std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> waiting) noexcept
	{
		if (!coroutine_)
			std::terminate();
		promise_type &promise = coroutine_.promise();

		promise.continuation = waiting;
		if (!promise.token.stop_possible())
			promise.token = detail::token_of(waiting);
		return coroutine_;
	}

	T await_resume()
	{
		return coroutine_.promise().take();
	}

      private:
	void destroy() noexcept
	{
		if (coroutine_)
			coroutine_.destroy();
	}

	std::coroutine_handle<promise_type> coroutine_;
};

template <class T> task<T> detail::task_promise<T>::get_return_object() noexcept
{
	return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}

namespace detail
{
/* Owns itself. */
struct detached {
	struct promise_type {
		detached get_return_object() noexcept
		{
			return {};
		}

		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}

		std::suspend_never final_suspend() noexcept
		{
			return {};
		}

		void return_void() noexcept
		{
		}

		void unhandled_exception() noexcept
		{
			report_exception();
		}
	};
};

inline detached run_detached(task<> job)
{
	co_await std::move(job);
}

struct token_awaitable {
	std::stop_token token;

	bool await_ready() const noexcept
	{
		return false;
	}

	template <class Promise>
	bool await_suspend(std::coroutine_handle<Promise> coroutine) noexcept
	{
		token = token_of(coroutine);
		return false;
	}

	std::stop_token await_resume() noexcept
	{
		return std::move(token);
	}
};
} // namespace detail

/**
 * Runs a task on the calling thread up to its first suspension. From then on it owns itself, until
 * it has ended. Its exception goes to the handler of tw::set_exception_handler.
 *
 * Threads: any. In callback: yes. Progress: that of the task; allocates.
 * Lifetime: a stop of the engine resumes each task that sleeps, so all have ended when the engine
 *   has stopped, if they then return.
 */
inline void spawn(task<> job, std::stop_token token = {})
{
	if (token.stop_possible())
		job.stop_by(std::move(token));
	detail::run_detached(std::move(job));
}

/** `co_await tw::this_stop_token()` is the stop token of the awaiting tw::task. */
inline detail::token_awaitable this_stop_token() noexcept
{
	return {};
}
} // namespace tw

#endif
