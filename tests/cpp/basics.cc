// SPDX-License-Identifier: MIT
// Tests engines, loops, clocks, durations, errors, `after` and its handle.
#include "check.hpp"

#include <cerrno>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace
{
static_assert(!std::is_copy_constructible_v<tw::handle>);
static_assert(std::is_nothrow_move_constructible_v<tw::handle>);
static_assert(!std::is_copy_constructible_v<tw::engine>);
static_assert(std::is_nothrow_move_constructible_v<tw::engine>);

template <class F> int error_of(F &&function)
{
	try {
		function();
	} catch (const std::system_error &error) {
		CHECK(error.code().category() == tw::category());
		return error.code().value();
	}
	return 0;
}

void durations_become_nanoseconds()
{
	using whole_hours = std::chrono::duration<std::int64_t, std::ratio<3600>>;
	using seconds = std::chrono::duration<double>;
	using picoseconds = std::chrono::duration<std::int64_t, std::pico>;
	constexpr double huge = std::numeric_limits<double>::infinity();

	CHECK(tw::ns_of(5ms) == 5000000);
	CHECK(tw::ns_of(-5ms) == -5000000);
	CHECK(tw::ns_of(whole_hours::max()) == TW_NEVER);
	CHECK(tw::ns_of(whole_hours::min()) == INT64_MIN + 1);
	CHECK(tw::ns_of(std::chrono::nanoseconds::max()) == TW_NEVER);
	CHECK(tw::ns_of(std::chrono::nanoseconds::min()) == INT64_MIN + 1);
	CHECK(tw::ns_of(tw::forever) == TW_NEVER);
	CHECK(tw::ns_of(picoseconds(1001)) == 2);
	CHECK(tw::ns_of(picoseconds(-1001)) == -1);
	CHECK(tw::ns_of(seconds(1.5)) == 1500000000);
	CHECK(tw::ns_of(seconds(1e-10)) == 1);
	CHECK(tw::ns_of(seconds(huge)) == TW_NEVER);
	CHECK(tw::ns_of(seconds(-huge)) == INT64_MIN + 1);
	CHECK(tw::ns_of(seconds(std::numeric_limits<double>::quiet_NaN())) == INT64_MIN);
	CHECK(tw::ns_of(std::chrono::duration<unsigned char>(255)) == 255000000000);
	CHECK(tw::ns_of(tw::engine_clock::time_point(7us)) == 7000);
}

void clock_is_that_of_default_engines()
{
	tw::engine engine;
	auto before = tw::engine_clock::now();
	auto between = engine.now();

	// engine.now() may be up to 8 us behind the clock.
	CHECK(between + 8us >= before && between <= tw::engine_clock::now());
}

void after_runs_once_and_destroys_the_function()
{
	world here;
	auto counter = std::make_shared<int>(0);
	tw::handle handle = tw::after(here.engine, 30s, [counter] { ++*counter; });

	CHECK(handle.pending() && static_cast<bool>(handle) && here.engine.pending() == 1);
	here.pass(29s);
	CHECK(*counter == 0 && counter.use_count() == 2);
	here.pass(2s);
	CHECK(*counter == 1 && counter.use_count() == 1);
	CHECK(!handle.pending() && !handle.cancel() && !handle.reschedule(1s));
	here.pass(1h);
	CHECK(*counter == 1);
}

void dying_handle_cancels()
{
	world here;
	auto counter = std::make_shared<int>(0);

	{
		tw::handle handle = tw::after(here.engine, 30s, [counter] { ++*counter; });
	}
	CHECK(counter.use_count() == 1 && here.engine.pending() == 0);
	here.pass(1min);
	CHECK(*counter == 0);
}

void released_timeout_lives_on()
{
	world here;
	int runs = 0;

	{
		tw::handle handle = tw::after(here.engine, 1s, [&runs] { runs++; });
		tw_handle raw = handle.release();

		CHECK(!handle && tw_timeout_state(raw) == TW_STATE_INIT);
	}
	here.pass(2s);
	CHECK(runs == 1);
}

void is_empty(tw::handle &handle)
{
	CHECK(!handle && !handle.pending());
	CHECK(!handle.cancel() && !handle.cancel_wait());
	CHECK(!handle.reschedule(1s) && !handle.reschedule_at({}));
	CHECK(tw_handle_is_set(handle.get()) == 0 && tw_handle_is_set(handle.release()) == 0);
}

void moved_from_handle_is_empty()
{
	world here;
	int runs = 0;
	tw::handle first = tw::after(here.engine, 1s, [&runs] { runs++; });
	tw::handle second = std::move(first);
	tw::handle never;

	is_empty(first);
	is_empty(never);
	first = std::move(never);
	is_empty(first);
	is_empty(never);
	CHECK(second.pending());
	tw::handle &same = second;
	second = std::move(same);
	CHECK(second.pending());
	first = std::move(second);
	is_empty(second);
	here.pass(2s);
	CHECK(runs == 1);
}

void move_assignment_cancels_the_old_timeout()
{
	world here;
	int old = 0, current = 0;
	tw::handle handle = tw::after(here.engine, 1s, [&old] { old++; });

	handle = tw::after(here.engine, 2s, [&current] { current++; });
	CHECK(here.engine.pending() == 1);
	here.pass(3s);
	CHECK(old == 0 && current == 1);
}

void reschedule_moves_the_deadline()
{
	world here;
	int runs = 0;
	tw::handle handle = tw::after(here.engine, 1s, [&runs] { runs++; });

	CHECK(handle.reschedule(1h));
	here.pass(1min);
	CHECK(runs == 0);
	CHECK(handle.reschedule_at(here.engine.now() + 1s));
	here.pass(2s);
	CHECK(runs == 1 && !handle.reschedule_at(here.engine.now()));
}

void handle_dies_inside_its_own_callback()
{
	world here;
	auto handle = std::make_unique<tw::handle>();
	bool done = false;

	*handle = tw::after(here.engine, 1s, [&] {
		CHECK(!handle->cancel_wait());
		handle.reset();
		done = true;
	});
	here.pass(2s);
	CHECK(done && handle == nullptr);
}

// The function owns its own handle: destroying the function destroys the handle.
void function_owns_its_own_handle()
{
	world here;
	auto owner = std::make_shared<tw::handle>();
	std::weak_ptr<tw::handle> watch = owner;

	*owner = tw::after(here.engine, 1s, [owner] {});
	owner.reset();
	CHECK(!watch.expired());
	here.pass(2s);
	CHECK(watch.expired());
}

void move_only_function_and_result()
{
	world here;
	auto value = std::make_unique<int>(5);
	int got = 0;
	tw::handle handle = tw::at(here.engine, here.engine.now() + 1s,
				   [&got, own = std::move(value)] { return got = *own; });

	here.pass(2s);
	CHECK(got == 5);
}

void handle_outlives_its_engine()
{
	tw::handle handle;
	auto counter = std::make_shared<int>(0);

	{
		world here;

		handle = tw::after(here.engine, 1s, [counter] { ++*counter; });
	}
	CHECK(counter.use_count() == 1 && *counter == 0);
	CHECK(!handle.pending() && !handle.cancel() && !handle.cancel_wait());
}

void failed_schedule_keeps_nothing()
{
	world here;
	auto counter = std::make_shared<int>(0);
	std::chrono::duration<double> nan(std::numeric_limits<double>::quiet_NaN());
	auto function = [counter] { ++*counter; };

	CHECK(error_of([&] { (void)tw::after(here.engine, nan, function); }) == ERANGE);
	CHECK(error_of([&] { (void)tw::after(nullptr, 1s, function); }) == EINVAL);
	CHECK(here.engine.stop());
	CHECK(error_of([&] { (void)tw::after(here.engine, 1s, function); }) == ESHUTDOWN);
	CHECK(counter.use_count() == 2);
}

void errors_have_texts_and_conditions()
{
	tw_options bad = tw::options();

	bad.tick_ns = 0;
	CHECK(error_of([&] { tw::engine engine(bad); }) == EINVAL);
	try {
		tw::engine engine(bad);
		CHECK(false);
	} catch (const std::system_error &error) {
		CHECK(error.code() == std::errc::invalid_argument);
		CHECK(error.code().message() == tw_strerror(-EINVAL));
		CHECK(std::strcmp(error.code().category().name(), "tickwheel") == 0);
	}
}

void moved_from_engine_owns_none()
{
	tw::engine first;
	tw::engine second = std::move(first);

	CHECK(first.get() == nullptr && second.get() != nullptr);
	CHECK(error_of([&] { first.start(); }) == EINVAL);
	CHECK(error_of([&] { (void)first.now(); }) == EINVAL);
	CHECK(error_of([&] { (void)first.pending(); }) == EINVAL);
	CHECK(error_of([&] { (void)first.flush(); }) == EINVAL);
	CHECK(error_of([&] { (void)first.stop(); }) == EINVAL);
	CHECK(error_of([&] { (void)tw::after(first, 1s, [] {}); }) == EINVAL);
	first = std::move(second);
	first.start();
	CHECK(first.flush() && first.stop() && second.get() == nullptr);
}

void moved_from_clock_owns_none()
{
	tw::time_source first(tw::engine_clock::time_point(1s));
	tw::time_source second = std::move(first);

	CHECK(first.get() == nullptr && second.now() == tw::engine_clock::time_point(1s));
	CHECK(error_of([&] { (void)first.now(); }) == EINVAL);
	CHECK(error_of([&] { first.set({}); }) == EINVAL);
	first = std::move(second);
	first.advance(1s);
	CHECK(first.now() == tw::engine_clock::time_point(2s));
	CHECK(error_of([&] { first.set({}); }) == EINVAL);
	tw::time_source system(TW_CLOCK_MONOTONIC);
	CHECK(system.now() > tw::engine_clock::time_point(0s));
}

void stop_in_own_callback_is_an_error()
{
	world here;
	int code = 0;
	tw::handle handle = tw::after(here.engine, 1s,
				      [&] { code = error_of([&] { (void)here.engine.stop(); }); });

	here.pass(2s);
	CHECK(code == EDEADLK);
}

void stop_waits_no_longer_than_asked()
{
	world here;
	gate begun, go_on;
	tw::handle handle = tw::after(here.engine, 0s, [&] {
		begun.open();
		go_on.wait();
	});

	begun.wait();
	CHECK(!here.engine.flush(0s));
	CHECK(!here.engine.stop(0s));
	go_on.open();
	CHECK(here.engine.stop());
}

std::vector<std::string> said;

void note(std::exception_ptr error)
{
	try {
		std::rethrow_exception(error);
	} catch (const std::exception &known) {
		said.emplace_back(known.what());
	} catch (int number) {
		said.push_back(std::to_string(number));
	}
}

void exceptions_end_in_the_handler()
{
	world here;
	tw::handle first = tw::after(here.engine, 1s, [] { throw std::runtime_error("first"); });
	tw::handle second = tw::after(here.engine, 2s, [] { throw 2; });
	tw::timer third(here.engine, [] { throw std::runtime_error("third"); });

	said.clear();
	CHECK(tw::set_exception_handler(note) == nullptr);
	third.schedule(3s);
	here.pass(10s);
	CHECK(tw::set_exception_handler(nullptr) == note);
	CHECK(said == std::vector<std::string>({"first", "2", "third"}));
	CHECK(!third.pending());
}

void loop_polls()
{
	tw::time_source clock(tw::engine_clock::time_point(0s));
	tw_options with = tw::options();

	with.clock = clock.get();
	tw::loop loop(with);
	int runs = 0;
	tw::handle first = tw::after(loop, 1s, [&runs] { runs++; });
	tw::handle second = tw::after(loop, 1s, [&runs] { runs++; });

	CHECK(loop.fd() >= 0 && loop.poll().value() == 0);
	CHECK(loop.next_due() >= tw::engine_clock::time_point(1s));
	clock.advance(1s);
	{
		tw::loop::bracket owner(loop);

		CHECK(error_of([&] { tw::loop::bracket again(loop); }) == EBUSY);
		CHECK(loop.poll(1).value() == 1 && loop.poll_for(1h).value() == 1);
	}
	CHECK(runs == 2);
	CHECK(loop.stop() && !loop.poll().has_value());
	CHECK(error_of([&] { (void)loop.next_due(); }) == ESHUTDOWN);
}

void default_engine_serves()
{
	gate ran;
	tw::handle handle = tw::after(tw::default_engine(), 0s, [&ran] { ran.open(); });

	ran.wait();
	handle.cancel_wait();
}

const scene scenes[] = {
	{"durations_become_nanoseconds", durations_become_nanoseconds},
	{"clock_is_that_of_default_engines", clock_is_that_of_default_engines},
	{"after_runs_once_and_destroys_the_function", after_runs_once_and_destroys_the_function},
	{"dying_handle_cancels", dying_handle_cancels},
	{"released_timeout_lives_on", released_timeout_lives_on},
	{"moved_from_handle_is_empty", moved_from_handle_is_empty},
	{"move_assignment_cancels_the_old_timeout", move_assignment_cancels_the_old_timeout},
	{"reschedule_moves_the_deadline", reschedule_moves_the_deadline},
	{"handle_dies_inside_its_own_callback", handle_dies_inside_its_own_callback},
	{"function_owns_its_own_handle", function_owns_its_own_handle},
	{"move_only_function_and_result", move_only_function_and_result},
	{"handle_outlives_its_engine", handle_outlives_its_engine},
	{"failed_schedule_keeps_nothing", failed_schedule_keeps_nothing},
	{"errors_have_texts_and_conditions", errors_have_texts_and_conditions},
	{"moved_from_engine_owns_none", moved_from_engine_owns_none},
	{"moved_from_clock_owns_none", moved_from_clock_owns_none},
	{"stop_in_own_callback_is_an_error", stop_in_own_callback_is_an_error},
	{"stop_waits_no_longer_than_asked", stop_waits_no_longer_than_asked},
	{"exceptions_end_in_the_handler", exceptions_end_in_the_handler},
	{"loop_polls", loop_polls},
	{"default_engine_serves", default_engine_serves},
};
} // namespace

int main(int argc, char **argv)
{
	return scenes_run(scenes, argc, argv);
}
