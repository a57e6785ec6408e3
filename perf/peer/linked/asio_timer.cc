/* SPDX-License-Identifier: MIT */
/*
 * Boost.Asio's steady_timer. One thread runs the io_context.
 *
 * Only the thread that made a timer uses it, so no strand is needed. The context has locks for the
 * data that all timers share. For speed, the executor has the context's own type, not the
 * polymorphic any_io_executor, and the context gets the hint that one thread runs it. Asio runs the
 * handlers of cancelled timers, too.
 */
#include "asio_timer.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/version.hpp>
#include <future>
#include <new>
#include <system_error>
#include <thread>

namespace
{

using boost::asio::io_context;
using executor = io_context::executor_type;
using clock_type = std::chrono::steady_clock;
using timer_type =
	boost::asio::basic_waitable_timer<clock_type, boost::asio::wait_traits<clock_type>,
					  executor>;

static_assert(sizeof(timer_type) <= ASIO_TIMER_BYTES);
static_assert(alignof(timer_type) <= alignof(asio_timer));

constexpr std::chrono::seconds beat_period(1);

struct loop {
	io_context context{1};
	boost::asio::executor_work_guard<executor> work{context.get_executor()};
	timer_type beat{context.get_executor()};
	std::thread thread;
	void (*expired)(asio_timer *) = nullptr;
};

/* The context. It is never destroyed, because timers that remain in memory still point to it. */
loop *the_loop;

timer_type *object_of(asio_timer *timer)
{
	return std::launder(reinterpret_cast<timer_type *>(timer->object.bytes));
}

/*
 * A periodic timer of one second. Without it each timer of 30 s would be the earliest one, and
 * would wake the thread.
 */
void beat()
{
	the_loop->beat.expires_after(beat_period);
	the_loop->beat.async_wait([](const boost::system::error_code &error) {
		if (!error)
			beat();
	});
}

} // namespace

int asio_open(void (*expired)(asio_timer *timer))
{
	the_loop = new loop;
	the_loop->expired = expired;
	beat();
	try {
		the_loop->thread = std::thread([] { the_loop->context.run(); });
	} catch (const std::system_error &error) {
		return -error.code().value();
	}
	return 0;
}

void asio_close(void)
{
	the_loop->context.stop();
	the_loop->thread.join();
}

void asio_flush(void)
{
	std::promise<void> reached;

	boost::asio::post(the_loop->context, [&reached] { reached.set_value(); });
	reached.get_future().wait();
}

void asio_timer_init(asio_timer *timer)
{
	new (timer->object.bytes) timer_type(the_loop->context.get_executor());
}

void asio_timer_start(asio_timer *timer, int64_t delay_ns)
{
	timer_type *object = object_of(timer);

	object->expires_after(std::chrono::nanoseconds(delay_ns));
	object->async_wait([timer](const boost::system::error_code &error) {
		if (!error)
			the_loop->expired(timer);
	});
}

bool asio_timer_cancel(asio_timer *timer)
{
	return object_of(timer)->cancel() > 0;
}

const char *asio_version(void)
{
	return "Boost " BOOST_LIB_VERSION;
}
