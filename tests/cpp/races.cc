// SPDX-License-Identifier: MIT
// Handles and timers: threads race against the worker. The tests run a fixed number of rounds and
// assume nothing about time, so a busy machine only causes other interleavings.
#include "check.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace
{
constexpr int ROUNDS = 2000;

// Waits a little longer or shorter in each round, so that the threads meet at different steps.
void stagger(int round)
{
	for (volatile int i = 0; i < (round * 37) % 400;)
		i = i + 1;
	if (round % 16 == 0)
		std::this_thread::yield();
}

// `alive` is true until the owner has destroyed the timer. A callback after that is an error.
struct target {
	std::atomic<bool> alive{true};
	std::atomic<int> inside{0}, runs{0};

	void touch()
	{
		inside.fetch_add(1);
		CHECK(alive.load());
		runs.fetch_add(1);
		inside.fetch_sub(1);
	}
};

void timer_destroyed_while_it_expires()
{
	tw::engine engine;

	for (int round = 0; round < ROUNDS; round++) {
		target state;
		{
			tw::timer timer(engine, [&state] { state.touch(); });

			timer.schedule(0s);
			stagger(round);
		}
		CHECK(state.inside.load() == 0);
		state.alive.store(false);
		CHECK(state.runs.load() <= 1);
	}
}

// The callback schedules its timer again in each run, until the timer's destructor prevents it.
void timer_destroyed_while_it_reschedules()
{
	tw::engine engine;

	for (int round = 0; round < ROUNDS; round++) {
		target state;
		{
			tw::timer timer(engine, [&state](auto &self) {
				state.touch();
				self.schedule(0s);
				state.touch();
			});

			timer.schedule(0s);
			stagger(round);
			if (round % 3 == 0)
				timer.cancel();
			if (round % 5 == 0)
				timer.schedule(0s);
		}
		CHECK(state.inside.load() == 0);
		state.alive.store(false);
	}
}

void timer_cancelled_while_it_reschedules()
{
	tw::engine engine;
	target state;
	tw::timer timer(engine, [&state](auto &self) {
		state.touch();
		self.schedule(0s);
	});

	for (int round = 0; round < ROUNDS; round++) {
		timer.schedule(0s);
		stagger(round);
		(void)timer.pending();
		timer.cancel_wait();
		int runs = state.runs.load();

		CHECK(!timer.pending() && state.inside.load() == 0);
		stagger(round);
		CHECK(state.runs.load() == runs);
	}
}

// Each accepted schedule must run once or be cancelled once.
void timer_counts_agree()
{
	tw::engine engine;
	target state;
	tw::timer timer(engine, [&state] { state.touch(); });
	int cancelled = 0;

	for (int round = 0; round < ROUNDS; round++) {
		timer.schedule(0s);
		stagger(round);
		cancelled += round % 2 == 0 ? timer.cancel() : timer.cancel_wait();
		timer.cancel_wait();
	}
	CHECK(state.runs.load() + cancelled == ROUNDS);
}

// Either the callback or the owner destroys the timer, whichever comes first.
void timer_destroyed_by_either_side()
{
	tw::engine engine;
	using any = tw::timer<std::function<void()>>;

	for (int round = 0; round < ROUNDS; round++) {
		std::atomic<any *> place{nullptr};
		std::atomic<bool> over{false};

		place.store(new any(engine, [&place, &over] {
			std::atomic<bool> &mine = over;

			delete place.exchange(nullptr);
			mine.store(true);
		}));
		any *timer = place.load();
		timer->schedule(0s);
		stagger(round);
		any *ours = place.exchange(nullptr);
		delete ours;
		// If the callback took the pointer, it may not have deleted the timer yet.
		while (ours == nullptr && !over.load())
			std::this_thread::yield();
	}
}

void handle_dies_while_it_expires()
{
	tw::engine engine;
	auto state = std::make_shared<target>();

	for (int round = 0; round < ROUNDS; round++) {
		tw::handle handle = tw::after(engine, 0s, [state] { state->touch(); });
		tw::handle moved = std::move(handle);

		stagger(round);
		if (round % 3 == 0)
			moved.reschedule(0s);
		if (round % 5 == 0)
			moved.cancel_wait();
	}
	CHECK(engine.stop());
	CHECK(state.use_count() == 1 && state->inside.load() == 0);
}

// Two threads cancel copies of one raw handle while its timeout expires. The timeout must end
// exactly once.
void handle_cancelled_by_two_threads()
{
	tw::engine engine;
	target state;
	int ends = 0;

	for (int round = 0; round < ROUNDS / 4; round++) {
		tw::handle handle = tw::after(engine, 0s, [&state] { state.touch(); });
		tw_handle raw = handle.get();
		std::atomic<int> other{0};
		std::thread rival([&] { other = tw_cancel(raw) == TW_CANCEL_DONE; });

		stagger(round);
		ends += handle.cancel();
		rival.join();
		ends += other.load();
	}
	CHECK(engine.stop());
	CHECK(state.runs.load() + ends == ROUNDS / 4);
}

// An engine stops and hands timers back while their owner schedules and destroys them.
void engine_stops_under_timers()
{
	for (int round = 0; round < ROUNDS / 10; round++) {
		tw::engine engine;
		target state;

		engine.start();
		std::thread stops([&] {
			stagger(round);
			CHECK(engine.stop());
		});

		try {
			for (;;) {
				tw::timer timer(engine, [&state](auto &self) {
					state.touch();
					self.schedule(0s);
				});
				tw::handle handle = tw::after(engine, 0s, [] {});

				timer.schedule(0s);
				stagger(round);
			}
		} catch (const std::system_error &error) {
			CHECK(error.code().value() == ESHUTDOWN);
		}
		stops.join();
		state.alive.store(false);
	}
}

void report_shutdown(std::exception_ptr error)
{
	try {
		std::rethrow_exception(error);
	} catch (const std::system_error &known) {
		CHECK(known.code().value() == ESHUTDOWN);
	}
}

// Several threads share an engine, each with a timer of its own.
void many_owners()
{
	tw::engine engine;
	std::vector<std::thread> threads;

	for (int one = 0; one < 4; one++)
		threads.emplace_back([&engine, one] {
			for (int round = 0; round < ROUNDS / 4; round++) {
				target state;
				std::optional<tw::handle> handle;
				{
					tw::timer timer(engine, [&state](auto &self) {
						state.touch();
						self.schedule(100us);
					});

					timer.schedule(std::chrono::nanoseconds(round % 7));
					handle = tw::after(engine, 1us, [] {});
					stagger(round + one);
					timer.schedule(0s);
				}
				state.alive.store(false);
			}
		});
	for (std::thread &thread : threads)
		thread.join();
}

// One thread polls the loop while another destroys timers.
void loop_polls_while_timers_die()
{
	tw::loop loop;
	std::atomic<bool> over{false};
	std::thread polls([&] {
		while (!over.load())
			CHECK(loop.poll().has_value());
	});

	for (int round = 0; round < ROUNDS; round++) {
		target state;
		{
			tw::timer timer(loop, [&state](auto &self) {
				state.touch();
				self.schedule(0s);
			});

			timer.schedule(0s);
			stagger(round);
		}
		state.alive.store(false);
	}
	over.store(true);
	polls.join();
}

const scene scenes[] = {
	{"timer_destroyed_while_it_expires", timer_destroyed_while_it_expires},
	{"timer_destroyed_while_it_reschedules", timer_destroyed_while_it_reschedules},
	{"timer_cancelled_while_it_reschedules", timer_cancelled_while_it_reschedules},
	{"timer_counts_agree", timer_counts_agree},
	{"timer_destroyed_by_either_side", timer_destroyed_by_either_side},
	{"handle_dies_while_it_expires", handle_dies_while_it_expires},
	{"handle_cancelled_by_two_threads", handle_cancelled_by_two_threads},
	{"engine_stops_under_timers", engine_stops_under_timers},
	{"many_owners", many_owners},
	{"loop_polls_while_timers_die", loop_polls_while_timers_die},
};
} // namespace

int main(int argc, char **argv)
{
	// A callback that schedules again may find the engine stopped. The handler accepts that
	// error.
	tw::set_exception_handler(report_shutdown);
	return scenes_run(scenes, argc, argv);
}
