// SPDX-License-Identifier: MIT
// Coroutines: stop requests, deadlines and engine stops meet at every step of a sleep. The tests
// run a fixed number of rounds and assume nothing about time.
#include "check.hpp"

#include <optional>
#include <vector>

namespace
{
constexpr int ROUNDS = 2000;

void stagger(int round)
{
	for (volatile int i = 0; i < (round * 37) % 400;)
		i = i + 1;
	if (round % 16 == 0)
		std::this_thread::yield();
}

struct tally {
	std::atomic<int> begun{0}, ended{0}, due{0}, stopped{0}, engine_stopped{0};

	void count(tw::wake why)
	{
		switch (why) {
		case tw::wake::due:
			due.fetch_add(1);
			break;
		case tw::wake::stopped:
			stopped.fetch_add(1);
			break;
		case tw::wake::engine_stopped:
			engine_stopped.fetch_add(1);
			break;
		}
	}

	void wait_for(int all) const
	{
		while (ended.load() < all)
			std::this_thread::yield();
	}
};

tw::task<> sleeps(tw::engine_ref in, tally &into, std::chrono::nanoseconds time,
		  std::stop_token token = {})
{
	into.begun.fetch_add(1);
	into.count(co_await tw::sleep_for(in, time, token));
	into.ended.fetch_add(1);
}

// A thread that requests one stop in each round.
class requester
{
      public:
	explicit requester(int staggered) : thread_([this, staggered] { serve(staggered); })
	{
	}

	~requester()
	{
		over_.store(true);
		thread_.join();
	}

	void request(std::stop_source source)
	{
		source_ = std::move(source);
		full_.store(true);
	}

	void wait() const
	{
		while (full_.load())
			std::this_thread::yield();
	}

      private:
	void serve(int staggered)
	{
		for (int round = 0; !over_.load();) {
			if (!full_.load()) {
				std::this_thread::yield();
				continue;
			}
			stagger(round++ * staggered);
			source_.request_stop();
			source_ = std::stop_source(std::nostopstate);
			full_.store(false);
		}
	}

	std::atomic<bool> full_{false}, over_{false};
	std::stop_source source_{std::nostopstate};
	std::thread thread_;
};

// Only the stop request can end the sleep, at whatever step of the sleep the request comes.
void stop_meets_the_begin_of_a_sleep()
{
	tw::engine engine;
	tally counts;
	requester stops(1);

	for (int round = 0; round < ROUNDS; round++) {
		std::stop_source source;

		stops.request(source);
		stagger(round * 3);
		tw::spawn(sleeps(engine, counts, tw::forever, source.get_token()));
		counts.wait_for(round + 1);
		stops.wait();
	}
	CHECK(counts.stopped.load() == ROUNDS && engine.stop());
}

void stop_meets_the_deadline()
{
	tw::engine engine;
	tally counts;
	requester stops(7);

	for (int round = 0; round < ROUNDS; round++) {
		std::stop_source source;

		tw::spawn(sleeps(engine, counts, 0s, source.get_token()));
		stops.request(source);
		counts.wait_for(round + 1);
		stops.wait();
	}
	CHECK(counts.due.load() + counts.stopped.load() == ROUNDS && engine.stop());
}

// No coroutine may be left, and each must be resumed exactly once.
void engine_stop_meets_sleeps()
{
	for (int round = 0; round < ROUNDS / 10; round++) {
		tw::engine engine;
		tally counts;
		std::stop_source source;

		engine.start();
		std::thread stops([&] {
			stagger(round);
			CHECK(engine.stop());
		});
		std::thread requests([&] {
			stagger(round * 5);
			source.request_stop();
		});

		for (int i = 0; i < 20; i++) {
			tw::spawn(sleeps(engine, counts, tw::forever));
			tw::spawn(sleeps(engine, counts, tw::forever, source.get_token()));
			tw::spawn(sleeps(engine, counts, 0s, source.get_token()));
		}
		stops.join();
		requests.join();
		CHECK(counts.begun.load() == 60 && counts.ended.load() == 60);
	}
}

tw::task<int> works(tw::engine_ref in, std::chrono::nanoseconds time)
{
	(void)co_await tw::sleep_for(in, time);
	co_return 7;
}

tw::task<> bounded(tw::engine_ref in, tally &into, std::chrono::nanoseconds time,
		   std::chrono::nanoseconds limit)
{
	auto inner = tw::with_timeout(in, works(in, time), limit);
	std::optional<std::optional<int>> got =
		co_await tw::with_timeout(in, std::move(inner), limit);

	CHECK(!got.has_value() || !got->has_value() || **got == 7);
	(got.has_value() && got->has_value() ? into.due : into.stopped).fetch_add(1);
	into.ended.fetch_add(1);
}

// The result, the inner limit, the outer limit and a stop request from outside come at the same
// time.
void bounds_meet_the_result()
{
	tw::engine engine;
	tally counts;
	requester stops(3);

	for (int round = 0; round < ROUNDS; round++) {
		std::stop_source source;

		tw::spawn(bounded(engine, counts, 0s, 0s), source.get_token());
		stops.request(source);
		counts.wait_for(round + 1);
		stops.wait();
	}
	CHECK(counts.due.load() + counts.stopped.load() == ROUNDS);
	CHECK(engine.flush() && engine.pending() == 0);
}

// The coroutine's steps run on one engine's worker, while another engine's worker requests stops.
void two_engines()
{
	tw::engine first, second;
	tally counts;

	for (int round = 0; round < ROUNDS / 2; round++) {
		std::stop_source source;
		tw::timer stops(second, [&source] { source.request_stop(); });

		stops.schedule(0s);
		tw::spawn(bounded(first, counts, tw::forever, 1h), source.get_token());
		counts.wait_for(round + 1);
	}
	CHECK(counts.ended.load() == ROUNDS / 2);
}

const scene scenes[] = {
	{"stop_meets_the_begin_of_a_sleep", stop_meets_the_begin_of_a_sleep},
	{"stop_meets_the_deadline", stop_meets_the_deadline},
	{"engine_stop_meets_sleeps", engine_stop_meets_sleeps},
	{"bounds_meet_the_result", bounds_meet_the_result},
	{"two_engines", two_engines},
};
} // namespace

int main(int argc, char **argv)
{
	return scenes_run(scenes, argc, argv);
}
