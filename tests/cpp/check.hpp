// SPDX-License-Identifier: MIT
// Shared by the tests of the C++ headers. They are plain programs, so that they also build against
// an installed copy. A check that fails ends the program. Time is virtual; no test sleeps.
#ifndef CHECK_HPP
#define CHECK_HPP

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <tickwheel.hpp>

#define CHECK(...) check((__VA_ARGS__), __FILE__, __LINE__, #__VA_ARGS__)

using namespace std::chrono_literals;

inline void check(bool good, const char *file, int line, const char *what)
{
	if (good)
		return;
	std::fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	std::abort();
}

// An engine with a clock that stands still until `pass` moves it.
class world
{
      public:
	explicit world(tw_options with = tw::options())
	    : clock(tw::engine_clock::time_point(0s)), engine(timed(with))
	{
	}

	// Moves the clock by `time`. On the way, the worker runs all due timeouts. Returns when
	// they have run.
	void pass(std::chrono::nanoseconds time)
	{
		CHECK(tw_engine_run_until(engine.get(), tw::ns_of(clock.now() + time)) == 0);
	}

	tw::time_source clock;
	tw::engine engine;

      private:
	tw_options timed(tw_options with)
	{
		with.clock = clock.get();
		return with;
	}
};

// A gate that a thread opens and other threads wait for, so that the test sets their order. A wait
// has no time limit of its own, only the runner's, so a busy machine fails no test.
class gate
{
      public:
	void open()
	{
		open_.store(true);
	}

	void wait() const
	{
		while (!open_.load())
			std::this_thread::yield();
	}

      private:
	std::atomic<bool> open_{false};
};

struct scene {
	const char *name;
	void (*run)();
};

// Runs all scenes, or those that the arguments name.
template <std::size_t count> int scenes_run(const scene (&scenes)[count], int argc, char **argv)
{
	int ran = 0;

	for (const scene &one : scenes) {
		bool asked = argc == 1;

		for (int i = 1; i < argc; i++)
			asked |= std::strcmp(argv[i], one.name) == 0;
		if (!asked)
			continue;
		std::fprintf(stderr, "%s\n", one.name);
		one.run();
		ran++;
	}
	CHECK(ran > 0);
	return 0;
}

#endif
