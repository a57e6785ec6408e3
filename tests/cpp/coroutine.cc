// SPDX-License-Identifier: MIT
// Coroutines, step by step in virtual time: sleeps, stop requests at every step, time limits,
// exceptions.
#include "check.hpp"

#include <cerrno>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{
// Counts coroutine frames that exist. Each frame holds one object of this type.
struct alive {
	static inline std::atomic<int> count{0};

	alive()
	{
		count.fetch_add(1);
	}

	alive(const alive &) = delete;
	alive &operator=(const alive &) = delete;

	~alive()
	{
		count.fetch_sub(1);
	}
};

struct log {
	std::vector<tw::wake> wakes;
	std::thread::id thread;
	bool ended = false;
};

tw::task<> sleeps(tw::engine_ref in, log &into, int times, std::stop_token token = {})
{
	alive here;

	for (int i = 0; i < times; i++) {
		into.wakes.push_back(co_await tw::sleep_for(in, 1s, token));
		into.thread = std::this_thread::get_id();
	}
	into.ended = true;
}

void sleep_resumes_on_the_worker()
{
	world here;
	log said;
	std::thread::id worker;
	tw::handle asks = tw::after(here.engine, 0s, [&] { worker = std::this_thread::get_id(); });

	tw::spawn(sleeps(here.engine, said, 2));
	CHECK(said.wakes.empty() && alive::count.load() == 1);
	here.pass(1500ms);
	CHECK(said.wakes.size() == 1 && said.thread == worker);
	here.pass(1500ms);
	CHECK(said.ended && said.wakes == std::vector<tw::wake>(2, tw::wake::due));
	CHECK(alive::count.load() == 0);
}

tw::task<> sleeps_until(tw::engine_ref in, tw::engine_clock::time_point when, log &into)
{
	into.wakes.push_back(co_await tw::sleep_until(in, when));
	into.ended = true;
}

void sleep_until_a_time()
{
	world here;
	log said;

	tw::spawn(sleeps_until(here.engine, here.engine.now() + 1h, said));
	here.pass(59min);
	CHECK(!said.ended);
	here.pass(2min);
	CHECK(said.ended && said.wakes.front() == tw::wake::due);
}

void stopped_before_it_sleeps()
{
	world here;
	log said;
	std::stop_source source;

	source.request_stop();
	tw::spawn(sleeps(here.engine, said, 2, source.get_token()));
	CHECK(said.ended && said.wakes == std::vector<tw::wake>(2, tw::wake::stopped));
	CHECK(here.engine.pending() == 0 && alive::count.load() == 0);
}

void stopped_while_it_sleeps()
{
	world here;
	log said;
	std::stop_source source;

	tw::spawn(sleeps(here.engine, said, 2, source.get_token()));
	here.pass(1500ms);
	source.request_stop();
	// The stop must end the sleep without any time passing.
	CHECK(here.engine.flush());
	CHECK(said.ended && said.thread != std::this_thread::get_id());
	CHECK(said.wakes == std::vector<tw::wake>({tw::wake::due, tw::wake::stopped}));
	CHECK(alive::count.load() == 0);
}

void stopped_after_it_slept()
{
	world here;
	log said;
	std::stop_source source;

	tw::spawn(sleeps(here.engine, said, 1, source.get_token()));
	here.pass(2s);
	source.request_stop();
	CHECK(said.ended && said.wakes.front() == tw::wake::due);
}

// The stop request comes from a callback on the same worker that has to resume the coroutine.
void stopped_from_a_callback()
{
	world here;
	log said;
	std::stop_source source;
	tw::timer stops(here.engine, [&source] { source.request_stop(); });

	tw::spawn(sleeps(here.engine, said, 1, source.get_token()));
	stops.schedule(500ms);
	here.pass(600ms);
	CHECK(said.ended && said.wakes.front() == tw::wake::stopped);
}

// The loop is not polled meanwhile, so the next poll finds both the stop request and the passed
// deadline.
void stopped_when_due_but_not_resumed()
{
	tw::time_source clock(tw::engine_clock::time_point(0s));
	tw_options with = tw::options();

	with.clock = clock.get();
	tw::loop loop(with);
	log said;
	std::stop_source source;

	tw::spawn(sleeps(loop, said, 1, source.get_token()));
	clock.advance(2s);
	source.request_stop();
	CHECK(!said.ended);
	CHECK(loop.poll().value() == 1 && said.ended);
	CHECK(said.wakes.front() == tw::wake::stopped);
}

void engine_stop_resumes_sleepers()
{
	world here;
	log plain, stoppable;
	std::stop_source source;

	tw::spawn(sleeps(here.engine, plain, 3));
	tw::spawn(sleeps(here.engine, stoppable, 3, source.get_token()));
	CHECK(here.engine.stop());
	CHECK(plain.ended && stoppable.ended && alive::count.load() == 0);
	CHECK(plain.wakes == std::vector<tw::wake>(3, tw::wake::engine_stopped));
	CHECK(stoppable.wakes == plain.wakes);
	tw::spawn(sleeps(here.engine, plain, 1));
	CHECK(plain.wakes.back() == tw::wake::engine_stopped);
}

void never_started_task_is_freed()
{
	world here;
	log said;
	{
		tw::task<> job = sleeps(here.engine, said, 1);
		tw::task<> other = std::move(job);

		job.stop_by({});
		CHECK(!job.stop_token().stop_possible());
		job = std::move(other);
	}
	CHECK(alive::count.load() == 0 && !said.ended);
}

// A coroutine type that the library does not know. It begins at once, and its owner destroys it.
struct owned {
	struct promise_type {
		owned get_return_object()
		{
			return {std::coroutine_handle<promise_type>::from_promise(*this)};
		}

		std::suspend_never initial_suspend() noexcept
		{
			return {};
		}

		std::suspend_always final_suspend() noexcept
		{
			return {};
		}

		void return_void()
		{
		}

		// The exception must leave through resume().
		void unhandled_exception()
		{
			throw;
		}
	};

	std::coroutine_handle<promise_type> coroutine;
};

owned foreign(tw::engine_ref in, int &steps, std::stop_token token)
{
	alive here;

	steps++;
	co_await tw::sleep_for(in, 1s, token);
	steps++;
	co_await tw::sleep_for(in, 1s, token);
	steps++;
}

// Destroys the coroutine at each of its steps, with and without a stop token.
void foreign_coroutine_is_destroyed_while_it_sleeps()
{
	for (int step = 0; step < 6; step++) {
		world here;
		int steps = 0;
		std::stop_source source;
		owned one = foreign(here.engine, steps,
				    step % 2 == 0 ? source.get_token() : std::stop_token());

		here.pass(std::chrono::milliseconds(step / 2 * 1100));
		CHECK(steps == 1 + step / 2);
		one.coroutine.destroy();
		CHECK(alive::count.load() == 0 && here.engine.pending() == 0);
		source.request_stop();
		here.pass(1min);
		CHECK(steps == 1 + step / 2);
	}
}

// Another callback on the same worker destroys the coroutine, before it is due or while it sleeps
// again.
void foreign_coroutine_is_destroyed_on_the_worker()
{
	for (int step = 0; step < 2; step++) {
		world here;
		int steps = 0;
		owned one = foreign(here.engine, steps, {});
		tw::timer kills(here.engine, [&one] { one.coroutine.destroy(); });

		kills.schedule(step == 0 ? 500ms : 1500ms);
		here.pass(1min);
		CHECK(steps == 1 + step && alive::count.load() == 0);
	}
}

std::size_t accept_none(void *, const tw_due *, std::size_t)
{
	return 0;
}

// An engine with an executor takes a whole batch before it runs the first timeout. So a coroutine
// can be destroyed when its timeout is already in the batch.
void foreign_coroutine_is_destroyed_on_its_way()
{
	tw_options with = tw::options();

	with.dispatch = accept_none;
	world here(with);
	int steps = 0, killed = 0;
	std::vector<owned> three;
	auto kill = [&] {
		// The first call destroys all three coroutines, those that were resumed and those
		// that were not.
		if (killed++ == 0)
			for (owned &one : three)
				one.coroutine.destroy();
	};
	tw::timer first(here.engine, kill), last(here.engine, kill);

	first.schedule(1s);
	for (int i = 0; i < 3; i++)
		three.push_back(foreign(here.engine, steps, {}));
	last.schedule(1s);
	here.pass(1min);
	CHECK(alive::count.load() == 0 && steps >= 3 && steps <= 6);
}

owned throws(tw::engine_ref in)
{
	alive here;

	co_await tw::sleep_for(in, 1s);
	throw std::runtime_error("foreign");
}

tw::task<int> fails(tw::engine_ref in, std::chrono::nanoseconds when)
{
	alive here;

	co_await tw::sleep_for(in, when);
	throw std::runtime_error("task");
}

tw::task<> awaits_failure(tw::engine_ref in, std::string &into)
{
	alive here;

	try {
		(void)co_await fails(in, 1s);
	} catch (const std::runtime_error &error) {
		into = error.what();
	}
	(void)co_await fails(in, 1s);
}

std::vector<std::string> said;

void note(std::exception_ptr error)
{
	try {
		std::rethrow_exception(error);
	} catch (const std::exception &known) {
		said.emplace_back(known.what());
	}
}

void exceptions_reach_the_awaiting_task_or_the_handler()
{
	world here;
	std::string caught;
	// Static, because it must never be destroyed: clang 14 to 19 generate code that destroys
	// the locals of such a coroutine twice.
	static owned one = throws(here.engine);

	said.clear();
	tw::set_exception_handler(note);
	tw::spawn(awaits_failure(here.engine, caught));
	here.pass(1min);
	tw::set_exception_handler(nullptr);
	CHECK(caught == "task" && said == std::vector<std::string>({"foreign", "task"}));
	CHECK(alive::count.load() == 0 && one.coroutine.done());
}

tw::task<> sleeps_for_no_number(tw::engine_ref in, std::stop_token token, int &code)
{
	std::chrono::duration<double> nan(0.0 / 1.0);

	nan /= nan.count();
	try {
		co_await tw::sleep_for(in, nan, token);
	} catch (const std::system_error &error) {
		code = error.code().value();
	}
}

void failed_sleep_throws()
{
	world here;
	std::stop_source source;
	int plain = 0, stoppable = 0, none = 0;

	tw::spawn(sleeps_for_no_number(here.engine, {}, plain));
	tw::spawn(sleeps_for_no_number(here.engine, source.get_token(), stoppable));
	tw::spawn(sleeps_for_no_number(nullptr, {}, none));
	CHECK(plain == ERANGE && stoppable == ERANGE && none != 0);
	CHECK(here.engine.pending() == 0);
}

struct result {
	std::optional<int> value;
	bool ended = false;
	tw::wake last = tw::wake::due;
};

tw::task<int> works(tw::engine_ref in, std::chrono::nanoseconds time, result &into)
{
	alive here;

	into.last = co_await tw::sleep_for(in, time);
	co_return 7;
}

tw::task<> bounded(tw::engine_ref in, std::chrono::nanoseconds time, std::chrono::nanoseconds limit,
		   result &into)
{
	alive here;

	into.value = co_await tw::with_timeout(in, works(in, time, into), limit);
	into.ended = true;
}

void bound_passes_the_result()
{
	world here;
	result got;

	tw::spawn(bounded(here.engine, 1s, 5s, got));
	here.pass(2s);
	CHECK(got.ended && got.value == 7 && got.last == tw::wake::due);
	CHECK(alive::count.load() == 0 && here.engine.pending() == 0);
}

void bound_stops_the_operation()
{
	world here;
	result got;

	tw::spawn(bounded(here.engine, 1h, 5s, got));
	here.pass(4s);
	CHECK(!got.ended);
	here.pass(2s);
	CHECK(got.ended && !got.value.has_value() && got.last == tw::wake::stopped);
	CHECK(alive::count.load() == 0 && here.engine.pending() == 0);
}

void bound_is_stopped_from_outside()
{
	world here;
	result got;
	std::stop_source source;

	tw::spawn(bounded(here.engine, 1h, 2h, got), source.get_token());
	here.pass(1s);
	source.request_stop();
	CHECK(here.engine.flush() && here.engine.flush());
	CHECK(got.ended && got.last == tw::wake::stopped && got.value == 7);
	CHECK(alive::count.load() == 0 && here.engine.pending() == 0);
}

void bound_ends_with_the_engine()
{
	result got;
	{
		world here;

		tw::spawn(bounded(here.engine, 1h, 2h, got));
	}
	CHECK(got.ended && got.last == tw::wake::engine_stopped && alive::count.load() == 0);
}

struct nested_result {
	std::optional<std::optional<int>> value;
	result inner;
	bool ended = false;
};

tw::task<> nested(tw::engine_ref in, std::chrono::nanoseconds inner, std::chrono::nanoseconds outer,
		  nested_result &into)
{
	into.value = co_await tw::with_timeout(
		in, tw::with_timeout(in, works(in, 1h, into.inner), inner), outer);
	into.ended = true;
}

void nested_bounds()
{
	world here;
	nested_result inner_first, outer_first;

	tw::spawn(nested(here.engine, 1s, 5s, inner_first));
	tw::spawn(nested(here.engine, 5s, 1s, outer_first));
	here.pass(3s);
	CHECK(inner_first.ended && outer_first.ended && here.engine.pending() == 0);
	CHECK(inner_first.value.has_value() && !inner_first.value->has_value());
	CHECK(!outer_first.value.has_value());
	CHECK(outer_first.inner.last == tw::wake::stopped && alive::count.load() == 0);
}

tw::task<> bounded_sleep(tw::engine_ref in, std::stop_token token, std::optional<tw::wake> &got,
			 bool &in_time)
{
	got = co_await tw::with_timeout(tw::sleep_for(in, 1h, token), 1s);
	log nothing;

	in_time = co_await tw::with_timeout(in, sleeps_until(in, in.now(), nothing), 1s);
}

void bound_of_a_sleep_and_of_void()
{
	world here;
	std::optional<tw::wake> late(tw::wake::due), stopped;
	std::stop_source source;
	bool first = false, second = false;

	tw::spawn(bounded_sleep(here.engine, {}, late, first));
	tw::spawn(bounded_sleep(here.engine, source.get_token(), stopped, second));
	source.request_stop();
	CHECK(here.engine.flush());
	CHECK(stopped == tw::wake::stopped);
	here.pass(10s);
	CHECK(!late.has_value() && first && second);
}

tw::task<> fails_in_bound(tw::engine_ref in, std::chrono::nanoseconds when, std::string &into)
{
	try {
		(void)co_await tw::with_timeout(in, fails(in, when), 1s);
	} catch (const std::runtime_error &error) {
		into = error.what();
	}
}

void bound_passes_exceptions()
{
	world here;
	std::string early, late;

	tw::spawn(fails_in_bound(here.engine, 10ms, early));
	tw::spawn(fails_in_bound(here.engine, 1h, late));
	here.pass(10s);
	CHECK(early == "task" && late == "task" && here.engine.pending() == 0);
}

tw::task<> deep(tw::engine_ref in, int depth, int &ends)
{
	alive here;

	if (depth > 0)
		co_await deep(in, depth - 1, ends);
	else
		co_await tw::sleep_for(in, 1h);
	ends += (co_await tw::this_stop_token()).stop_requested();
}

void stop_reaches_the_innermost_sleep()
{
	world here;
	std::stop_source source;
	int ends = 0;

	tw::spawn(deep(here.engine, 9, ends), source.get_token());
	CHECK(alive::count.load() == 10);
	source.request_stop();
	CHECK(here.engine.flush());
	CHECK(ends == 10 && alive::count.load() == 0);
}

const scene scenes[] = {
	{"sleep_resumes_on_the_worker", sleep_resumes_on_the_worker},
	{"sleep_until_a_time", sleep_until_a_time},
	{"stopped_before_it_sleeps", stopped_before_it_sleeps},
	{"stopped_while_it_sleeps", stopped_while_it_sleeps},
	{"stopped_after_it_slept", stopped_after_it_slept},
	{"stopped_from_a_callback", stopped_from_a_callback},
	{"stopped_when_due_but_not_resumed", stopped_when_due_but_not_resumed},
	{"engine_stop_resumes_sleepers", engine_stop_resumes_sleepers},
	{"never_started_task_is_freed", never_started_task_is_freed},
	{"foreign_coroutine_is_destroyed_while_it_sleeps",
	 foreign_coroutine_is_destroyed_while_it_sleeps},
	{"foreign_coroutine_is_destroyed_on_the_worker",
	 foreign_coroutine_is_destroyed_on_the_worker},
	{"foreign_coroutine_is_destroyed_on_its_way", foreign_coroutine_is_destroyed_on_its_way},
	{"exceptions_reach_the_awaiting_task_or_the_handler",
	 exceptions_reach_the_awaiting_task_or_the_handler},
	{"failed_sleep_throws", failed_sleep_throws},
	{"bound_passes_the_result", bound_passes_the_result},
	{"bound_stops_the_operation", bound_stops_the_operation},
	{"bound_is_stopped_from_outside", bound_is_stopped_from_outside},
	{"bound_ends_with_the_engine", bound_ends_with_the_engine},
	{"nested_bounds", nested_bounds},
	{"bound_of_a_sleep_and_of_void", bound_of_a_sleep_and_of_void},
	{"bound_passes_exceptions", bound_passes_exceptions},
	{"stop_reaches_the_innermost_sleep", stop_reaches_the_innermost_sleep},
};
} // namespace

int main(int argc, char **argv)
{
	return scenes_run(scenes, argc, argv);
}
