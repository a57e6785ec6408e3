/* SPDX-License-Identifier: MIT */
/**
 * @file run.hpp
 * Which timer's callback runs on this thread, and which of its timeouts were destroyed. Internal.
 *
 * An engine with an executor takes a batch of due timeouts before it runs the first of them. So a
 * callback on the worker may destroy another timer whose callback is already on its way to this same
 * thread. It cannot wait for it there. It leaves the handle in a list of the thread instead, and the
 * run that comes finds it and does not touch the memory.
 */
#ifndef TICKWHEEL_CPP_RUN_HPP
#define TICKWHEEL_CPP_RUN_HPP

#include <tickwheel/cpp/base.hpp>

namespace tw
{
namespace detail
{
/* A callback of a timer that runs on this thread; on its stack. */
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

/* Notes that the memory of a timeout dies before its run. Called on the thread of that run. */
inline void bury(tw_handle handle) noexcept
{
	grave *made = new (std::nothrow) grave{handle, graves};

	if (made == nullptr)
		std::terminate();
	graves = made;
}

/*
 * Returns whether a timeout is in the list, and takes it out. It also drops those that ended
 * without a run: a hook took the place of their callback.
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

/* Returns whether the memory of the timeout that runs is gone. */
inline bool buried(tw_handle handle) noexcept
{
	return graves != nullptr && dig(handle);
}
} // namespace detail
} // namespace tw

#endif
