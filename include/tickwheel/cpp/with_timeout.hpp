/* SPDX-License-Identifier: MIT */
/**
 * @file with_timeout.hpp
 * A bound on the time that an awaitable may take.
 *
 * The operation never outlives the call. When the time is over, with_timeout requests a stop of the
 * operation, and the awaiting coroutine continues when the operation has ended. If the operation
 * ignores its stop token, the coroutine waits until it ends by itself.
 */
#ifndef TICKWHEEL_CPP_WITH_TIMEOUT_HPP
#define TICKWHEEL_CPP_WITH_TIMEOUT_HPP

#include <tickwheel/cpp/task.hpp>
#include <tickwheel/cpp/timer.hpp>

namespace tw
{
/** An awaitable that ends when a stop is requested: tw::task, tw::sleep_awaitable, or your own. */
template <class A>
concept stoppable = std::move_constructible<A> && requires(A &operation, std::stop_token token)
{
	operation.stop_by(token);
	{
		operation.stop_token()
		} -> std::convertible_to<std::stop_token>;
};

namespace detail
{
template <class A> using result_of = decltype(std::declval<A &>().await_resume());

template <class T> struct timed {
	using type = std::optional<T>;
};

template <> struct timed<void> {
	using type = bool;
};

template <class A> using timed_result = typename timed<result_of<A>>::type;

/*
 * request_stop may end the coroutine that holds the source, so it is called on a copy of the
 * source.
 */
struct stopper {
	const std::stop_source *source;

	void operator()() const noexcept
	{
		std::stop_source kept = *source;

		(void)kept.request_stop();
	}
};

struct expiry {
	std::stop_source *source;
	bool *late;

	void operator()() const noexcept
	{
		*late = true;
		stopper{source}();
	}
};

/* Returns the engine of an operation that has one, otherwise the default engine of the process. */
template <class A> engine_ref engine_of(const A &operation)
{
	if constexpr (requires { operation.engine(); })
		return operation.engine();
	else
		return default_engine();
}
} // namespace detail

/**
 * Awaits an operation for at most a duration: `std::optional<reply> got = co_await
 * tw::with_timeout(engine, ask(), 1s);`
 *
 * Returns the operation's result in a std::optional, or true if the result is void. If the time is
 * over first, it requests a stop and waits for the end of the operation. Then it drops the
 * operation's result, and returns an empty optional, or false. In both cases an exception of the
 * operation reaches the caller. Calls may be nested; then the outer bound stops the inner
 * operation, too.
 *
 * Threads: the request to stop runs on the engine's worker. Progress: allocates a coroutine and the
 *   state of a std::stop_source.
 * Throws: the exceptions of the operation; before the operation begins, the codes that tw_schedule
 *   returns.
 */
template <stoppable A, class Rep, class Period>
task<detail::timed_result<A>> with_timeout(engine_ref in, A operation,
					   std::chrono::duration<Rep, Period> limit)
{
	std::stop_source source;
	std::stop_token outer = co_await this_stop_token();
	bool late = false;
	timer deadline(in, detail::expiry{&source, &late});
	std::stop_callback on_given(operation.stop_token(), detail::stopper{&source});
	std::stop_callback on_outer(outer, detail::stopper{&source});

	operation.stop_by(source.get_token());
	deadline.schedule(limit);
	if constexpr (std::is_void_v<detail::result_of<A>>) {
		co_await std::move(operation);
		deadline.cancel_wait();
		co_return !late;
	} else {
		detail::timed_result<A> result(co_await std::move(operation));

		deadline.cancel_wait();
		if (late)
			result.reset();
		co_return result;
	}
}

/** The same as the function above, with the engine of the operation if it has one (as a sleep
 * does), and otherwise with the default engine of the process. */
template <stoppable A, class Rep, class Period>
auto with_timeout(A operation, std::chrono::duration<Rep, Period> limit)
{
	engine_ref in = detail::engine_of(operation);

	return with_timeout(in, std::move(operation), limit);
}
} // namespace tw

#endif
