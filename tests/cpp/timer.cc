// SPDX-License-Identifier: MIT
// tw::timer in each of its states. The threads take turns, so the order of the steps is fixed.
#include "../support/sanitized.h"
#include "check.hpp"

#include <cerrno>
#include <functional>
#include <new>
#include <optional>
#include <type_traits>
#include <vector>

namespace
{
std::atomic<long> allocations{0};
} // namespace

// A sanitizer has operators new and delete of its own.
#ifndef TESTS_SANITIZED
namespace
{
void *counted(std::size_t bytes)
{
	void *made = std::malloc(bytes);

	allocations.fetch_add(1);
	if (made == nullptr)
		throw std::bad_alloc();
	return made;
}
} // namespace

void *operator new(std::size_t bytes)
{
	return counted(bytes);
}

void *operator new[](std::size_t bytes)
{
	return counted(bytes);
}

void operator delete(void *made) noexcept
{
	std::free(made);
}

void operator delete(void *made, std::size_t) noexcept
{
	std::free(made);
}

void operator delete[](void *made) noexcept
{
	std::free(made);
}

void operator delete[](void *made, std::size_t) noexcept
{
	std::free(made);
}
#endif

namespace
{
using plain_timer = tw::timer<void (*)()>;
static_assert(!std::is_move_constructible_v<plain_timer>);
static_assert(!std::is_move_assignable_v<plain_timer>);
static_assert(!std::is_copy_constructible_v<plain_timer>);

int runs = 0;

void count()
{
	runs++;
}

void allocates_nothing()
{
	world here;
	long before = allocations.load();
	int left = 3;
	{
		plain_timer first(here.engine, count);
		tw::timer again(here.engine, [&left](auto &self) {
			if (--left > 0)
				self.schedule(1s);
		});

		runs = 0;
		first.schedule(1s);
		CHECK(first.cancel());
		first.schedule(1s);
		again.schedule(1s);
		here.pass(10s);
		first.schedule_at(here.engine.now() + 1s);
	}
	CHECK(allocations.load() == before);
	CHECK(runs == 1 && left == 0);
}

void runs_at_its_time()
{
	world here;
	plain_timer timer(here.engine, count);

	runs = 0;
	CHECK(!timer.pending() && timer.schedule(1s) && timer.pending());
	here.pass(999ms);
	CHECK(runs == 0);
	here.pass(5ms);
	CHECK(runs == 1 && !timer.pending() && !timer.cancel() && !timer.cancel_wait());
	CHECK(timer.schedule_at(here.engine.now() + 1s));
	here.pass(2s);
	CHECK(runs == 2);
}

void schedule_replaces()
{
	world here;
	plain_timer timer(here.engine, count);

	runs = 0;
	timer.schedule(1s);
	timer.schedule(1h);
	CHECK(here.engine.pending() == 1);
	here.pass(1min);
	CHECK(runs == 0 && timer.pending());
	timer.schedule(1s);
	here.pass(2s);
	CHECK(runs == 1);
}

void cancel_reports_whether_it_did()
{
	world here;
	plain_timer timer(here.engine, count);

	runs = 0;
	CHECK(!timer.cancel() && !timer.cancel_wait());
	timer.schedule(1s);
	CHECK(timer.cancel() && !timer.cancel() && !timer.pending());
	timer.schedule(1s);
	CHECK(timer.cancel_wait() && !timer.cancel_wait() && !timer.pending());
	here.pass(1min);
	CHECK(runs == 0);
}

void destroyed_before_schedule_while_pending_and_after()
{
	world here;

	runs = 0;
	{
		plain_timer never(here.engine, count);
		plain_timer pending(here.engine, count);
		plain_timer cancelled(here.engine, count);

		pending.schedule(1s);
		cancelled.schedule(1s);
		cancelled.cancel();
	}
	here.pass(2s);
	CHECK(runs == 0 && here.engine.pending() == 0);
	{
		plain_timer over(here.engine, count);

		over.schedule(1s);
		here.pass(2s);
	}
	CHECK(runs == 1);
}

void destroyed_when_due_but_not_run()
{
	tw::time_source clock(tw::engine_clock::time_point(0s));
	tw_options with = tw::options();

	with.clock = clock.get();
	tw::loop loop(with);
	std::optional<plain_timer> timer;

	runs = 0;
	timer.emplace(loop, count);
	timer->schedule(1s);
	clock.advance(2s);
	timer.reset();
	CHECK(loop.poll().value() == 0 && runs == 0);
}

// Another callback holds the worker while the timer becomes due.
void destroyed_when_due_behind_a_running_callback()
{
	world here;
	gate begun, go_on;
	std::optional<plain_timer> timer;
	tw::handle holds = tw::after(here.engine, 0s, [&] {
		begun.open();
		go_on.wait();
	});

	runs = 0;
	timer.emplace(here.engine, count);
	timer->schedule(0s);
	begun.wait();
	timer.reset();
	go_on.open();
	here.pass(1s);
	CHECK(runs == 0);
}

// A callback calls this function to prolong its run while a destructor must wait for the run. A
// destructor that does not wait returns before the run has ended.
void linger()
{
	for (int i = 0; i < 20; i++)
		std::this_thread::yield();
}

void destroyed_while_it_runs_waits()
{
	world here;
	gate begun;
	std::atomic<bool> ended{false};
	auto body = [&] {
		begun.open();
		linger();
		ended.store(true);
	};
	std::optional<tw::timer<decltype(body)>> timer;

	timer.emplace(here.engine, body);
	timer->schedule(0s);
	begun.wait();
	CHECK(!timer->cancel());
	timer.reset();
	CHECK(ended.load());
}

void cancel_wait_waits()
{
	world here;
	gate begun;
	std::atomic<bool> ended{false};
	tw::timer timer(here.engine, [&] {
		begun.open();
		linger();
		ended.store(true);
	});

	timer.schedule(0s);
	begun.wait();
	CHECK(!timer.cancel_wait());
	CHECK(ended.load());
}

// The owner cancels the timeout that the callback has just scheduled. The destructor must still
// wait for that callback.
void destroyed_after_own_reschedule_waits_for_the_run()
{
	world here;
	gate rescheduled;
	std::atomic<bool> ended{false};
	auto body = [&](auto &self) {
		self.schedule(1h);
		rescheduled.open();
		linger();
		ended.store(true);
	};
	std::optional<tw::timer<decltype(body)>> timer;

	timer.emplace(here.engine, body);
	timer->schedule(0s);
	rescheduled.wait();
	CHECK(timer->pending() && timer->cancel() && !timer->pending());
	timer.reset();
	CHECK(ended.load());
}

// The callback does not return until its schedule is rejected, because the owner ends the timer.
void schedule_in_the_callback_fails_while_the_owner_ends_it()
{
	world here;
	gate begun;
	tw::timer timer(here.engine, [&begun](auto &self) {
		begun.open();
		while (self.schedule(1h))
			std::this_thread::yield();
	});

	timer.schedule(0s);
	begun.wait();
	timer.cancel_wait();
	CHECK(!timer.pending() && here.engine.pending() == 0);
}

void schedule_from_outside_waits_for_the_run()
{
	world here;
	gate begun;
	std::atomic<int> ended{0};
	tw::timer timer(here.engine, [&] {
		begun.open();
		linger();
		ended.fetch_add(1);
	});

	timer.schedule(0s);
	begun.wait();
	CHECK(timer.schedule(1s));
	CHECK(ended.load() == 1 && timer.pending());
	here.pass(2s);
	CHECK(ended.load() == 2);
}

void destroyed_inside_its_own_callback()
{
	world here;
	std::unique_ptr<tw::timer<std::function<void()>>> timer;
	auto kept = std::make_shared<int>(0);

	timer = std::make_unique<tw::timer<std::function<void()>>>(here.engine, [&timer, kept] {
		std::shared_ptr<int> mine = kept;

		++*mine;
		timer.reset();
	});
	timer->schedule(1s);
	here.pass(2s);
	CHECK(timer == nullptr && *kept == 1 && kept.use_count() == 1);
}

void destroyed_inside_its_own_callback_after_reschedule()
{
	world here;
	std::unique_ptr<tw::timer<std::function<void()>>> timer;

	runs = 0;
	timer = std::make_unique<tw::timer<std::function<void()>>>(here.engine, [&timer] {
		runs++;
		CHECK(timer->schedule(1s) && timer->schedule(2s) && timer->pending());
		timer.reset();
	});
	timer->schedule(1s);
	here.pass(1min);
	CHECK(runs == 1 && here.engine.pending() == 0);
}

void cancels_itself_inside_its_callback()
{
	world here;
	tw::timer timer(here.engine, [](auto &self) {
		runs++;
		CHECK(!self.cancel() && !self.cancel_wait() && !self.pending());
		CHECK(self.schedule(1s) && self.pending() && self.cancel());
		CHECK(self.schedule(1s) && self.cancel_wait() && !self.pending());
	});

	runs = 0;
	timer.schedule(1s);
	here.pass(1min);
	CHECK(runs == 1 && timer.schedule(1s));
	here.pass(1min);
	CHECK(runs == 2);
}

// The callback of a timer replaces that timer by a new one.
void replaced_inside_its_own_callback()
{
	world here;
	std::optional<tw::timer<std::function<void()>>> timer;

	runs = 0;
	timer.emplace(here.engine, [&timer, &here] {
		// The captures are destroyed with the old timer, so the reference must be copied
		// first.
		auto &mine = timer;

		mine.emplace(here.engine, count);
		mine->schedule(1s);
	});
	timer->schedule(1s);
	here.pass(1min);
	CHECK(runs == 1);
	timer.reset();
}

void destroyed_in_another_callback_of_the_same_tick()
{
	tw_options with = tw::options();

	with.flags = TW_ENGINE_ORDERED;
	world here(with);
	std::optional<plain_timer> victim;
	tw::timer killer(here.engine, [&victim] { victim.reset(); });

	runs = 0;
	victim.emplace(here.engine, count);
	killer.schedule(1s);
	victim->schedule(1s);
	here.pass(2s);
	CHECK(!victim.has_value() && runs == 0);
}

void stop_leaves_a_pending_timer_idle()
{
	world here;
	plain_timer timer(here.engine, count);
	int code = 0;

	runs = 0;
	timer.schedule(1s);
	CHECK(here.engine.stop());
	CHECK(!timer.pending() && !timer.cancel() && runs == 0);
	try {
		timer.schedule(1s);
	} catch (const std::system_error &error) {
		code = error.code().value();
	}
	CHECK(code == ESHUTDOWN && !timer.pending());
}

void outlives_its_engine()
{
	std::optional<plain_timer> pending, over, idle;

	runs = 0;
	{
		world here;

		pending.emplace(here.engine, count);
		over.emplace(here.engine, count);
		idle.emplace(here.engine, count);
		over->schedule(1s);
		pending->schedule(1h);
		here.pass(2s);
	}
	CHECK(runs == 1 && !pending->pending() && !over->cancel() && !idle->cancel_wait());
}

void reschedules_itself_to_a_count()
{
	world here;
	tw::timer timer(here.engine, [](auto &self) {
		if (++runs < 1000)
			CHECK(self.schedule(0s));
	});

	runs = 0;
	timer.schedule(0s);
	while (timer.pending() || runs == 0)
		here.pass(1s);
	CHECK(timer.cancel_wait() == false && runs == 1000);
}

const scene scenes[] = {
	{"allocates_nothing", allocates_nothing},
	{"runs_at_its_time", runs_at_its_time},
	{"schedule_replaces", schedule_replaces},
	{"cancel_reports_whether_it_did", cancel_reports_whether_it_did},
	{"destroyed_before_schedule_while_pending_and_after",
	 destroyed_before_schedule_while_pending_and_after},
	{"destroyed_when_due_but_not_run", destroyed_when_due_but_not_run},
	{"destroyed_when_due_behind_a_running_callback",
	 destroyed_when_due_behind_a_running_callback},
	{"destroyed_while_it_runs_waits", destroyed_while_it_runs_waits},
	{"cancel_wait_waits", cancel_wait_waits},
	{"destroyed_after_own_reschedule_waits_for_the_run",
	 destroyed_after_own_reschedule_waits_for_the_run},
	{"schedule_in_the_callback_fails_while_the_owner_ends_it",
	 schedule_in_the_callback_fails_while_the_owner_ends_it},
	{"schedule_from_outside_waits_for_the_run", schedule_from_outside_waits_for_the_run},
	{"destroyed_inside_its_own_callback", destroyed_inside_its_own_callback},
	{"destroyed_inside_its_own_callback_after_reschedule",
	 destroyed_inside_its_own_callback_after_reschedule},
	{"cancels_itself_inside_its_callback", cancels_itself_inside_its_callback},
	{"replaced_inside_its_own_callback", replaced_inside_its_own_callback},
	{"destroyed_in_another_callback_of_the_same_tick",
	 destroyed_in_another_callback_of_the_same_tick},
	{"stop_leaves_a_pending_timer_idle", stop_leaves_a_pending_timer_idle},
	{"outlives_its_engine", outlives_its_engine},
	{"reschedules_itself_to_a_count", reschedules_itself_to_a_count},
};
} // namespace

int main(int argc, char **argv)
{
	return scenes_run(scenes, argc, argv);
}
