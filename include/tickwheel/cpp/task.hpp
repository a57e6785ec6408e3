/* SPDX-License-Identifier: MIT */
/**
 * @file task.hpp
 * A coroutine type with a result and a stop token, and a function that starts such a coroutine.
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
 * A coroutine that begins when it is awaited, and passes its result or its exception to the
 * awaiting coroutine. Move-only; await it once.
 *
 * Threads: it begins on the thread that awaits it, and continues on the engine's worker after each
 *   sleep. The awaiting coroutine then also continues on that thread.
 * Stop: it inherits the stop token of the awaiting tw::task, unless stop_by has set one. Each sleep
 *   in it ends when a stop is requested.
 * Lifetime: the object owns the coroutine's frame. Its destructor destroys the frame and everything
 *   in it; the conditions are those of tw::sleep_awaitable. A moved-from task is empty: awaiting it
 *   calls std::terminate, and stop_by does nothing.
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

	/** Returns the stop token that the task has now. */
	std::stop_token stop_token() const noexcept
	{
		return coroutine_ ? coroutine_.promise().token : std::stop_token();
	}

	/** Sets the stop token. Must be called before the task is awaited. */
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
/* A coroutine without an owner: its frame destroys itself at its end. */
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
 * Runs a task on the calling thread up to its first suspension. From then on the task has no owner,
 * and frees itself when it has ended. If an exception leaves it, the handler of
 * tw::set_exception_handler receives the exception.
 *
 * Threads: any. In callback: yes. Progress: that of the task; allocates.
 * Lifetime: a stop of the engine resumes each sleeping task. So if the tasks then return, all of
 *   them have ended when the engine has stopped.
 */
inline void spawn(task<> job, std::stop_token token = {})
{
	if (token.stop_possible())
		job.stop_by(std::move(token));
	detail::run_detached(std::move(job));
}

/** `co_await tw::this_stop_token()` returns the stop token of the awaiting tw::task, without
 * suspending it. */
inline detail::token_awaitable this_stop_token() noexcept
{
	return {};
}
} // namespace tw

#endif
