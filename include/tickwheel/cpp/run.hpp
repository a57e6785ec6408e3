/* SPDX-License-Identifier: MIT */
/**
 * @file run.hpp
 * Internal: two lists of each thread. One has the timers' callbacks that run on the thread, the
 * other the due timeouts whose timers were destroyed.
 *
 * An engine with an executor claims a batch of due timeouts before it runs the first of them. So a
 * callback on the worker may destroy a timer whose own callback has been claimed, and will run next
 * on the same thread. The destructor cannot wait for that run. Instead it puts the handle into a
 * list of the thread, `graves`. When the run begins, it finds its handle in the list, and does not
 * touch the memory of the timer.
 */
#ifndef TICKWHEEL_CPP_RUN_HPP
#define TICKWHEEL_CPP_RUN_HPP

#include <tickwheel/cpp/base.hpp>

namespace tw
{
namespace detail
{
/* A timer's callback that runs on this thread. The struct is on the thread's stack. */
struct run {
	const void *timer;
	tw_handle self;
	run *outer;
};

inline thread_local run *runs = nullptr;

/* Returns the innermost run of a timer on this thread, or nullptr. */
inline const run *run_of(const void *timer) noexcept
{
	const run *at = runs;

	while (at != nullptr && at->timer != timer)
		at = at->outer;
	return at;
}

/* Returns whether the calling thread is inside the callback of this timeout. */
inline bool runs_here(tw_handle handle) noexcept
{
	const run *at = runs;

	while (at != nullptr && tw_handle_equal(at->self, handle) == 0)
		at = at->outer;
	return at != nullptr;
}

struct grave {
	tw_handle handle;
	grave *next;
};

inline thread_local grave *graves = nullptr;

/* Notes that a timer is destroyed while its timeout is claimed for a run. Called on the thread of
 * that run. */
inline void bury(tw_handle handle) noexcept
{
	grave *made = new (std::nothrow) grave{handle, graves};

	if (made == nullptr)
		std::terminate();
	graves = made;
}

/*
 * Removes a timeout from the list, and returns whether it was there. It also removes timeouts that
 * have ended without a run, because a hook ran instead of their callback.
 */
inline bool dig(tw_handle handle) noexcept
{
	bool found = false;

	for (grave **at = &graves; *at != nullptr;) {
		grave *one = *at;
		bool same = tw_handle_equal(one->handle, handle) != 0;

		found |= same;
		if (same || tw_cancel(one->handle) != TW_CANCEL_RUNNING) {
			*at = one->next;
			delete one;
		} else {
			at = &one->next;
		}
	}
	return found;
}

/* Called when a run begins. Returns whether the timer of the run has been destroyed. */
inline bool buried(tw_handle handle) noexcept
{
	return graves != nullptr && dig(handle);
}
} // namespace detail
} // namespace tw

#endif
