/* SPDX-License-Identifier: MIT */
/*
 * usage: asio_random OPERATIONS SEED
 *
 * Compares tw::asio's timer with Boost.Asio's own. Makes random operations, with a clock that the
 * test moves. Before that, it destroys timers, and an io_context, while waits are pending.
 *
 * Asio does not order timers with equal times, so no two timers are due at the same microsecond.
 * Each new time is in the future: the engine's worker would run a timer with a past time at once,
 * while the test goes on (docs/hosts.md).
 *
 * Seen to fail with these defects: a cancel does not complete its waits; the waits of one timer
 * complete in another order; handlers are left when the io_context is destroyed; pending work does
 * not keep the io_context running; a slot aborts no wait (with Boost 1.81).
 */
/* Before version 1.75, Boost's own headers need <utility> and do not include it. */
#include <utility>

#include "random.h"

#include <boost/asio.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <tickwheel/asio.hpp>
#include <vector>

namespace net = boost::asio;

static std::int64_t now_ns = INT64_C(1000000000000);

struct test_clock {
	using duration = std::chrono::nanoseconds;
	using rep = duration::rep;
	using period = duration::period;
	using time_point = std::chrono::time_point<test_clock>;
	static constexpr bool is_steady = true;

	static time_point now() noexcept
	{
		return time_point(duration(now_ns));
	}
};

/* Makes Asio's own timers never sleep. Instead, Asio looks at them at each poll. */
struct no_wait {
	static test_clock::duration to_wait_duration(const test_clock::duration &)
	{
		return {};
	}

	static test_clock::duration to_wait_duration(const test_clock::time_point &)
	{
		return {};
	}
};

using stock_timer = net::basic_waitable_timer<test_clock, no_wait>;
using wheel_timer = tw::asio::basic_waitable_timer<test_clock>;

static void need(bool holds, const char *what)
{
	if (holds)
		return;
	std::fprintf(stderr, "does not hold: %s\n", what);
	std::exit(1);
}

static tw_clock *engine_clock;

static void engine_open()
{
	tw_options options;

	need(tw_options_init(&options, sizeof options) == 0, "options");
	need(tw_clock_create_virtual(now_ns, &engine_clock) == 0, "clock");
	options.clock = engine_clock;
	options.flags = TW_ENGINE_ORDERED | TW_ENGINE_ALIGNED;
	need(tw_default_options_set(&options) == 0, "default options");
}

static void move_to(std::int64_t ns)
{
	now_ns = ns;
	need(tw_clock_set(engine_clock, ns) == 0, "clock set");
	need(tw_engine_flush(tw_default_engine(), TW_NEVER) == 0, "flush");
}

template <class Timer> struct side {
	enum { TIMERS = 7, MS = 1000000, APART_NS = 125000 };

	net::io_context context;
	std::vector<std::unique_ptr<Timer>> timers;
	struct random random;
	std::vector<std::string> seen;
	std::uint64_t operations = 0, callbacks = 0;
	unsigned waits = 0;

	explicit side(std::uint64_t seed) : random{seed}
	{
		for (unsigned i = 0; i < TIMERS; i++)
			make(i);
	}

	void note(const char *name, unsigned i, std::int64_t value)
	{
		seen.push_back(std::string(name) + " " + std::to_string(i) + ": " +
			       std::to_string(value));
	}

	void make(unsigned i)
	{
		auto made = std::make_unique<Timer>(context);

		if (i == timers.size())
			timers.push_back(std::move(made));
		else
			timers[i] = std::move(made);
		expire(i);
	}

	void expire(unsigned i)
	{
		auto ms = 1 + random_below(&random, random_below(&random, 8) == 0 ? 5000 : 12);
		auto after = std::chrono::nanoseconds(static_cast<std::int64_t>(ms) * MS +
						      (i + 1) * APART_NS);

		/* `after` counts from `now_ns`, which is a whole millisecond, so the timer keeps
		 * its own fraction of one. */
		if (random_below(&random, 2) == 0)
			note("after", i,
			     static_cast<std::int64_t>(timers[i]->expires_after(after)));
		else
			note("at", i,
			     static_cast<std::int64_t>(
				     timers[i]->expires_at(test_clock::now() + after)));
	}

	void wait(unsigned i)
	{
		if (timers[i]->expiry() <= test_clock::now())
			expire(i);
		timers[i]->async_wait([this, i, number = waits++](boost::system::error_code code) {
			note("done", i, number);
			note("code", i, code.value());
			callbacks++;
			some(3);
		});
	}

	void some(unsigned most)
	{
		for (auto n = random_below(&random, most); n > 0; n--) {
			auto i = static_cast<unsigned>(random_below(&random, TIMERS));
			auto what = random_below(&random, 16);

			operations++;
			if (what < 4)
				expire(i);
			else if (what < 12)
				wait(i);
			else if (what == 12)
				note("cancel", i, static_cast<std::int64_t>(timers[i]->cancel()));
			else if (what == 13)
				note("one", i, static_cast<std::int64_t>(timers[i]->cancel_one()));
			else if (what == 14)
				make(i);
			else
				*timers[i] = Timer(context);
		}
	}

	void step()
	{
		seen.clear();
		some(8);
		run();
	}

	void run()
	{
		context.restart();
		while (context.poll() > 0)
			context.restart();
		note("stopped", 0, context.stopped());
	}
};

static void compare(std::uint64_t operations, std::uint64_t seed)
{
	side<stock_timer> stock(seed);
	side<wheel_timer> wheel(seed);
	struct random time {
		seed + 1
	};

	while (stock.operations < operations) {
		stock.step();
		wheel.step();
		move_to(now_ns + static_cast<std::int64_t>(random_below(&time, 8)) * 1000000);
		stock.run();
		wheel.run();
		for (std::size_t i = 0; i < stock.seen.size() || i < wheel.seen.size(); i++) {
			if (i < stock.seen.size() && i < wheel.seen.size() &&
			    stock.seen[i] == wheel.seen[i])
				continue;
			std::fprintf(stderr, "seed %llu, event %zu: asio %s, ours %s\n",
				     static_cast<unsigned long long>(seed), i,
				     i < stock.seen.size() ? stock.seen[i].c_str() : "nothing",
				     i < wheel.seen.size() ? wheel.seen[i].c_str() : "nothing");
			std::exit(1);
		}
	}
	std::printf("%llu operations, %llu callbacks, no difference\n",
		    static_cast<unsigned long long>(stock.operations),
		    static_cast<unsigned long long>(stock.callbacks));
}

/* The handler of a session keeps the session alive. When the io_context is destroyed, the
 * session must be destroyed too. */
static void end_with_waits()
{
	struct session {
		wheel_timer timer;
		std::shared_ptr<int> token;
	};
	auto token = std::make_shared<int>(0);

	{
		net::io_context context;
		auto held = std::make_shared<session>(session{wheel_timer(context), token});

		held->timer.expires_after(std::chrono::seconds(5));
		held->timer.async_wait([held](boost::system::error_code) { std::exit(2); });
		held.reset();
		context.poll();
		need(!context.stopped(), "a wait keeps the io_context at work");
	}
	need(token.use_count() == 1, "its handler is destroyed");
	move_to(now_ns + INT64_C(10000000000));
}

/* A handler must run in its own strand. A wait also works with a future. */
static void executors()
{
	net::io_context context;
	auto strand = net::make_strand(context);
	wheel_timer timer(context, std::chrono::milliseconds(3));
	bool inside = false;

	timer.async_wait(net::bind_executor(strand, [&](boost::system::error_code) {
		inside = strand.running_in_this_thread();
	}));
	auto waited = timer.async_wait(net::use_future);
	move_to(now_ns + 5000000);
	context.run();
	need(inside, "in the strand");
	waited.get();
}

/*
 * If a timer is moved into one with another type of executor, its pending waits must move with it.
 */
static void moves_to_another_executor()
{
	net::io_context context;
	using narrow_timer =
		tw::asio::basic_waitable_timer<test_clock, net::io_context::executor_type>;
	narrow_timer narrow(context, std::chrono::milliseconds(3));
	boost::system::error_code seen;

	narrow.async_wait([&](boost::system::error_code code) { seen = code; });
	wheel_timer wide(std::move(narrow));
	need(wide.cancel(seen) == 1 && !seen, "one has the wait");
	need(narrow.cancel_one(seen) == 0 && narrow.cancel(seen) == 0, "and not the other");
	context.run();
	need(seen == net::error::operation_aborted, "its handler is called");
	need(wide.expires_after(std::chrono::milliseconds(5), seen) == 0 && !seen, "no waits");
	need(wide.expires_at(test_clock::now(), seen) == 0 && !seen, "nor here");
	wide = narrow_timer(context, std::chrono::milliseconds(7));
	need(wide.expiry() == test_clock::now() + std::chrono::milliseconds(7), "its time, too");
}

#ifdef TW_ASIO_SLOTS
/*
 * A cancellation slot must abort only its own wait. If that wait has already ended, the slot must
 * do nothing.
 */
static void slots()
{
	net::io_context context;
	net::cancellation_signal signal;
	wheel_timer timer(context, std::chrono::milliseconds(3));
	int aborted = 0, ran = 0;
	auto count = [&](boost::system::error_code code) { (code ? aborted : ran)++; };

	timer.async_wait(net::bind_cancellation_slot(signal.slot(), count));
	timer.async_wait(count);
	signal.emit(net::cancellation_type::terminal);
	context.poll();
	need(aborted == 1 && ran == 0, "the slot aborts its wait");
	move_to(now_ns + 5000000);
	context.run();
	need(aborted == 1 && ran == 1, "and no other");
	timer.expires_after(std::chrono::milliseconds(3));
	timer.async_wait(net::bind_cancellation_slot(signal.slot(), count));
	move_to(now_ns + 5000000);
	signal.emit(net::cancellation_type::all);
	context.restart();
	context.run();
	need(aborted == 1 && ran == 2, "too late");
	need(timer.cancel() == 0, "none is left");
}
#endif

int main(int argc, char **argv)
{
	engine_open();
	end_with_waits();
	executors();
	moves_to_another_executor();
#ifdef TW_ASIO_SLOTS
	slots();
#endif
	compare(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000,
		argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
	return 0;
}
