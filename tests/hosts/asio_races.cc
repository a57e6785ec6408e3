/* SPDX-License-Identifier: MIT */
/*
 * usage: asio_races ROUNDS SEED
 *
 * Timers of tw::asio on threads of one io_context, in real time. Each timer has a strand, in which
 * it is started, cancelled and destroyed. Meanwhile the engine's worker completes its waits. Each
 * handler must run once, in its strand. In every second round the io_context is destroyed while
 * waits are pending.
 *
 * Seen to fail with this defect: an io_context keeps its waits when it is destroyed.
 */
/* Before version 1.75, Boost's own headers need <utility> and do not include it. */
#include <utility>

#include "random.h"

#include <boost/asio.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <tickwheel/asio.hpp>
#include <vector>

namespace net = boost::asio;

static std::atomic<int> started{0}, ran{0}, dropped{0};

static void need(bool holds, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "does not hold: %s\n", what);
	std::exit(1);
}

/* Counts a handler that is destroyed without having been called. */
struct ticket {
	bool called = false;

	~ticket()
	{
		if (!called)
			dropped++;
	}
};

struct worker : std::enable_shared_from_this<worker> {
	net::strand<net::io_context::executor_type> strand;
	std::unique_ptr<tw::asio::steady_timer> timer;
	struct random random;
	int left;

	worker(net::io_context &context, std::uint64_t seed, int steps)
	    : strand(net::make_strand(context)),
	      timer(std::make_unique<tw::asio::steady_timer>(strand)), random{seed}, left(steps)
	{
	}

	/* Starts a wait. If `goes_on` is true, the handler takes the next step. */
	void wait(bool goes_on)
	{
		auto held = std::make_shared<ticket>();

		started++;
		timer->async_wait(
			[self = shared_from_this(), held, goes_on](boost::system::error_code) {
				need(self->strand.running_in_this_thread(), "in its strand");
				need(!held->called, "once");
				held->called = true;
				ran++;
				if (goes_on)
					self->step();
			});
	}

	void step()
	{
		if (left-- <= 0)
			return;
		auto us = static_cast<std::int64_t>(random_below(&random, 2500)) - 200;

		timer->expires_after(std::chrono::microseconds(us));
		wait(true);
		switch (random_below(&random, 6)) {
		case 0:
			timer->cancel();
			break;
		case 1:
			wait(false);
			timer->cancel_one();
			break;
		case 2:
			timer = std::make_unique<tw::asio::steady_timer>(strand);
			break;
		default:
			break;
		}
	}
};

static void round(std::uint64_t seed, bool cut)
{
	net::io_context context;
	std::vector<std::thread> threads;

	for (std::uint64_t i = 0; i < 16; i++) {
		auto made = std::make_shared<worker>(context, seed * 16 + i, cut ? 100000 : 40);

		net::post(made->strand, [made] { made->step(); });
	}
	for (int i = 0; i < 3; i++)
		threads.emplace_back([&] {
			if (!cut)
				context.run();
			for (int n = 0; cut && n < 100; n++)
				context.run_one();
		});
	for (auto &thread : threads)
		thread.join();
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
	std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;

	for (int i = 0; i < rounds; i++) {
		round(seed + static_cast<std::uint64_t>(i), i % 2 == 1);
		need(ran + dropped == started, "each handler runs or is destroyed");
		need(i > 0 || dropped == 0, "each handler runs where the io_context runs on");
	}
	std::printf("%d waits, %d ran, %d destroyed\n", started.load(), ran.load(), dropped.load());
	return 0;
}
