/* SPDX-License-Identifier: MIT */
/**
 * @file chrono.hpp
 * Converts durations and times of std::chrono for the C interface.
 */
#ifndef TICKWHEEL_CPP_CHRONO_HPP
#define TICKWHEEL_CPP_CHRONO_HPP

#include <chrono>
#include <cmath>
#include <cstdint>
#include <tickwheel.h>
#include <time.h>
#include <type_traits>

namespace tw
{
/**
 * TW_NEVER as a duration. A timeout with this delay never expires by itself; a wait with this bound
 * never times out.
 */
inline constexpr std::chrono::nanoseconds forever{TW_NEVER};

/**
 * The clock of engines' times (tw_engine_now), as a type for std::chrono. tw::engine_ref::now
 * returns the time of one engine. The static `now` returns CLOCK_MONOTONIC, the time of every
 * engine without the option `clock`.
 */
struct engine_clock {
	using rep = std::int64_t;
	using period = std::nano;
	using duration = std::chrono::nanoseconds;
	using time_point = std::chrono::time_point<engine_clock>;
	static constexpr bool is_steady = true;

	static time_point now() noexcept
	{
		timespec time = {};

		(void)clock_gettime(CLOCK_MONOTONIC, &time);
		return time_point(std::chrono::seconds(time.tv_sec) + duration(time.tv_nsec));
	}
};

namespace detail
{
__extension__ typedef __int128 wide;

template <class Period> using in_ns = std::ratio_divide<Period, std::nano>;

constexpr std::int64_t ns_within(wide ns) noexcept
{
	if (ns >= INT64_MAX)
		return INT64_MAX;
	/* The C interface rejects INT64_MIN, so the least valid time is INT64_MIN + 1. */
	return ns <= INT64_MIN ? INT64_MIN + 1 : static_cast<std::int64_t>(ns);
}

inline std::int64_t ns_of_floating(long double ns) noexcept
{
	if (std::isnan(ns))
		return INT64_MIN;
	if (ns >= static_cast<long double>(INT64_MAX))
		return INT64_MAX;
	return ns <= static_cast<long double>(INT64_MIN) ? INT64_MIN + 1
							 : static_cast<std::int64_t>(std::ceil(ns));
}
} // namespace detail

/**
 * Converts a duration to nanoseconds for the C interface. The result is rounded up, so that no
 * timeout is early. If the duration is too long, the result is TW_NEVER; if it is too far below
 * zero, the least valid number. If it is not a number, the result is INT64_MIN, which every
 * schedule rejects with ERANGE.
 *
 * Threads: any. In callback: yes. Progress: wait-free.
 */
template <class Rep, class Period>
constexpr std::int64_t ns_of(std::chrono::duration<Rep, Period> time) noexcept
{
	using ratio = detail::in_ns<Period>;

	if constexpr (std::is_same_v<std::chrono::duration<Rep, Period>,
				     std::chrono::nanoseconds>) {
		return time.count() == INT64_MIN ? INT64_MIN + 1 : time.count();
	} else if constexpr (std::is_floating_point_v<Rep>) {
		return detail::ns_of_floating(static_cast<long double>(time.count()) * ratio::num /
					      ratio::den);
	} else {
		detail::wide scaled = static_cast<detail::wide>(time.count()) * ratio::num;
		/* The division rounds towards zero, so a negative quotient is already rounded
		 * up. */
		return detail::ns_within(scaled / ratio::den +
					 (scaled > 0 && scaled % ratio::den != 0));
	}
}

/** Converts a time of an engine, in the same way as a duration. */
template <class Duration>
constexpr std::int64_t ns_of(std::chrono::time_point<engine_clock, Duration> time) noexcept
{
	return ns_of(time.time_since_epoch());
}
} // namespace tw

#endif
