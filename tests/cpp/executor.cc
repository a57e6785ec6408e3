// SPDX-License-Identifier: MIT
// Engines with an executor. Timers and coroutines stay on the worker, which takes a whole batch of
// due timeouts before it runs the first. So a callback can destroy a timer whose run is already in
// the batch ("on its way").
#include "check.hpp"

#include <array>
#include <functional>
#include <optional>
#include <vector>

namespace
{
using any_timer = tw::timer<std::function<void()>>;

// An executor with one thread, which runs the accepted timeouts one after the other.
class pool
{
      public:
	pool() : thread_([this] { serve(); })
	{
	}

	~pool()
	{
		over_.store(true);
		thread_.join();
	}

	tw_options options()
	{
		tw_options with = tw::options();

		with.dispatch = dispatch;
		with.dispatch_context = this;
		return with;
	}

	std::thread::id id() const
	{
		return thread_.get_id();
	}

      private:
	static std::size_t dispatch(void *context, const tw_due *due, std::size_t count)
	{
		pool *self = static_cast<pool *>(context);

		for (std::size_t i = 0; i < count; i++) {
			while (self->full_.load())
				std::this_thread::yield();
			self->next_ = due[i];
			self->full_.store(true);
		}
		return count;
	}

	void serve()
	{
		while (!over_.load()) {
			if (full_.load()) {
				tw_due due = next_;

				full_.store(false);
				CHECK(tw_due_run(&due) == 0);
			}
			std::this_thread::yield();
		}
	}

	std::atomic<bool> full_{false}, over_{false};
	tw_due next_ = {};
	std::thread thread_;
};

void timers_run_on_the_worker_and_after_in_the_executor()
{
	pool threads;
	world here(threads.options());
	std::thread::id of_timer, of_after;
	gate ran;
	tw::timer timer(here.engine, [&] { of_timer = std::this_thread::get_id(); });
	tw::handle handle = tw::after(here.engine, 1s, [&] {
		of_after = std::this_thread::get_id();
		ran.open();
	});

	timer.schedule(1s);
	here.pass(2s);
	ran.wait();
	CHECK(of_after == threads.id() && of_timer != std::thread::id());
	CHECK(of_timer != threads.id() && of_timer != std::this_thread::get_id());
}

// Two timers are due together. The one that runs first destroys the second, whose run is on its
// way.
void destroyed_on_its_way_to_the_worker()
{
	pool threads;
	world here(threads.options());
	std::array<std::optional<any_timer>, 2> pair;
	int runs = 0;

	for (std::size_t i = 0; i < 2; i++)
		pair[i].emplace(here.engine, [&pair, &runs, i] {
			runs++;
			pair[1 - i].reset();
		});
	for (auto &timer : pair)
		timer->schedule(1s);
	here.pass(2s);
	CHECK(runs == 1 && pair[0].has_value() != pair[1].has_value());
}

// The timer that runs first replaces the second by a new timer at the same address. The new timer
// must run.
void replaced_on_its_way_to_the_worker()
{
	pool threads;
	world here(threads.options());
	std::array<std::optional<any_timer>, 2> pair;
	int runs = 0, replaced = 0;

	for (std::size_t i = 0; i < 2; i++)
		pair[i].emplace(here.engine, [&, i] {
			runs++;
			pair[1 - i].emplace(here.engine, [&replaced] { replaced++; });
			pair[1 - i]->schedule(0s);
		});
	for (auto &timer : pair)
		timer->schedule(1s);
	here.pass(2s);
	here.pass(2s);
	CHECK(runs == 1 && replaced == 1);
}

// The timer that runs first schedules the second again. The second timer's run that is on its way
// must happen, and its new timeout must run too.
void scheduled_again_on_its_way_to_the_worker()
{
	pool threads;
	world here(threads.options());
	std::array<std::optional<any_timer>, 2> pair;
	int runs = 0;
	bool first = true;

	for (std::size_t i = 0; i < 2; i++)
		pair[i].emplace(here.engine, [&, i] {
			runs++;
			if (first) {
				first = false;
				CHECK(!pair[1 - i]->cancel_wait());
				pair[1 - i]->schedule(1s);
				pair[1 - i]->schedule(2s);
			}
		});
	for (auto &timer : pair)
		timer->schedule(1s);
	here.pass(2s);
	CHECK(runs == 2 && here.engine.pending() == 1);
	here.pass(1min);
	CHECK(runs == 3);
}

// The timer that runs first schedules the second again, and then destroys it. The second must not
// run.
void scheduled_again_and_destroyed_on_its_way()
{
	pool threads;
	world here(threads.options());
	std::array<std::optional<any_timer>, 2> pair;
	int runs = 0;

	for (std::size_t i = 0; i < 2; i++)
		pair[i].emplace(here.engine, [&, i] {
			runs++;
			pair[1 - i]->schedule(1s);
			pair[1 - i]->schedule(2s);
			pair[1 - i].reset();
		});
	for (auto &timer : pair)
		timer->schedule(1s);
	here.pass(1min);
	CHECK(runs == 1 && here.engine.pending() == 0);
}

void drop(void *, tw_handle, const tw_kind *, void *)
{
	std::abort();
}

std::size_t accept_none(void *, const tw_due *, std::size_t)
{
	return 0;
}

// Timers must not be dropped, even if the executor rejects everything.
void timers_are_never_dropped()
{
	tw_options with = tw::options();
	int runs = 0;

	with.dispatch = accept_none;
	with.rejection = TW_REJECTION_DROP;
	with.on_drop = drop;
	world here(with);
	tw::timer timer(here.engine, [&runs] { runs++; });

	timer.schedule(1s);
	here.pass(2s);
	CHECK(runs == 1);
}

struct late_world {
	std::function<void()> hook;
	int late = 0;

	static void on_late(void *context, tw_handle, const tw_kind *, void *, std::int64_t)
	{
		late_world *self = static_cast<late_world *>(context);

		self->late++;
		self->hook();
	}
};

// The hook for late timeouts runs instead of the callback. It destroys the timer.
void destroyed_in_the_hook_of_late_timeouts()
{
	late_world state;
	tw_options with = tw::options();
	int runs = 0;

	with.late_ns = with.tick_ns;
	with.on_late = late_world::on_late;
	with.late_context = &state;
	world here(with);
	std::optional<any_timer> timer;

	state.hook = [&timer] { timer.reset(); };
	timer.emplace(here.engine, [&runs] { runs++; });
	timer->schedule(1s);
	here.clock.advance(1h);
	here.engine.flush();
	CHECK(!timer.has_value() && state.late == 1 && runs == 0);
	state.hook = [] {};
	timer.emplace(here.engine, [&runs] { runs++; });
	timer->schedule(1s);
	here.pass(2s);
	CHECK(state.late + runs == 2);
}

const scene scenes[] = {
	{"timers_run_on_the_worker_and_after_in_the_executor",
	 timers_run_on_the_worker_and_after_in_the_executor},
	{"destroyed_on_its_way_to_the_worker", destroyed_on_its_way_to_the_worker},
	{"replaced_on_its_way_to_the_worker", replaced_on_its_way_to_the_worker},
	{"scheduled_again_on_its_way_to_the_worker", scheduled_again_on_its_way_to_the_worker},
	{"scheduled_again_and_destroyed_on_its_way", scheduled_again_and_destroyed_on_its_way},
	{"timers_are_never_dropped", timers_are_never_dropped},
	{"destroyed_in_the_hook_of_late_timeouts", destroyed_in_the_hook_of_late_timeouts},
};
} // namespace

int main(int argc, char **argv)
{
	return scenes_run(scenes, argc, argv);
}
