/* SPDX-License-Identifier: MIT */
/**
 * @file base.hpp
 * Errors as exceptions, and the handler of exceptions that leave a callback.
 */
#ifndef TICKWHEEL_CPP_BASE_HPP
#define TICKWHEEL_CPP_BASE_HPP

#include <atomic>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <tickwheel.h>

namespace tw
{
namespace detail
{
class error_category final : public std::error_category
{
      public:
	const char *name() const noexcept override
	{
		return "tickwheel";
	}

	std::string message(int code) const override
	{
		return tw_strerror(-code);
	}

	std::error_condition default_error_condition(int code) const noexcept override
	{
		return {code, std::generic_category()};
	}
};
} // namespace detail

/**
 * Returns the category of the library's errors. Its codes are positive errno values, and compare
 * equal to the values of std::errc.
 *
 * Threads: any. In callback: yes. Progress: wait-free.
 */
inline const std::error_category &category() noexcept
{
	static const detail::error_category one;

	return one;
}

/**
 * Receives an exception that has left a callback, a coroutine that the library has resumed, or a
 * spawned task. Runs inside the catch block, on the thread that ran the callback. The handler must
 * not throw; if it throws, std::terminate ends the program.
 */
using exception_handler = void (*)(std::exception_ptr);

namespace detail
{
inline std::atomic<exception_handler> on_exception{nullptr};

/* Must be called inside a catch block. */
inline void report_exception() noexcept
{
	exception_handler handler = on_exception.load(std::memory_order_acquire);

	if (handler == nullptr)
		std::terminate();
	handler(std::current_exception());
}

/* Runs a function that C code calls. An exception must not pass through the frames of the C
 * library. */
template <class F> void guarded(F &&function) noexcept
{
	try {
		function();
	} catch (...) {
		report_exception();
	}
}

[[noreturn]] __attribute__((noinline)) inline void throw_error(std::int64_t code, const char *call)
{
	throw std::system_error(static_cast<int>(-code), tw::category(), call);
}

/* Returns the code if it is 0 or more, and throws if it is negative. */
template <class Code> Code checked(Code code, const char *call)
{
	if (code < 0)
		throw_error(code, call);
	return code;
}
} // namespace detail

/**
 * Sets the exception handler of the whole process, and returns the previous one. nullptr, the
 * default, stands for std::terminate.
 *
 * Threads: any. In callback: yes. Progress: wait-free.
 */
inline exception_handler set_exception_handler(exception_handler handler) noexcept
{
	return detail::on_exception.exchange(handler, std::memory_order_acq_rel);
}
} // namespace tw

#endif
