/* SPDX-License-Identifier: MIT */
/**
 * @file chrono.hpp
 * Durations and times of std::chrono.
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
/** As a delay or as a longest time to wait: without end. */
inline constexpr std::chrono::nanoseconds forever{TW_NEVER};

/**
 * The clock of an engine's times (tw_engine_now). tw::engine_ref::now returns the time of one
 * engine. The static now is CLOCK_MONOTONIC, the time of each engine without a clock of its own.
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
	/* INT64_MIN is an error of the C interface, not a time. */
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
 * Returns a duration in nanoseconds for the C interface. It is rounded up, so that no timeout is
 * early. A duration that is too long is TW_NEVER; one that is too far below zero is as short as
 * possible. Not a number is INT64_MIN, which every schedule rejects with ERANGE.
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
		/* Division rounds to zero, which is up if it is negative. */
		return detail::ns_within(scaled / ratio::den +
					 (scaled > 0 && scaled % ratio::den != 0));
	}
}

/** The same for a time of an engine. */
template <class Duration>
constexpr std::int64_t ns_of(std::chrono::time_point<engine_clock, Duration> time) noexcept
{
	return ns_of(time.time_since_epoch());
}
} // namespace tw

#endif
