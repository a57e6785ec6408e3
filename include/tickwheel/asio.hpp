/* SPDX-License-Identifier: MIT */
/**
 * @file asio.hpp
 * tw::asio::steady_timer, which can replace boost::asio::steady_timer. Header only, C++17, with
 * Boost 1.74 or later. docs/hosts.md names the differences.
 *
 * Each wait is a timeout of the process's default engine (tw_default_engine), which any thread may
 * schedule and cancel without a lock. When the timeout is due, the engine's worker posts the
 * handler to the handler's associated executor. So no thread of an io_context has to wake up for
 * timers. An io_context with BOOST_ASIO_CONCURRENCY_HINT_UNSAFE allows no other thread, so it must
 * not have such timers.
 *
 * A wait is an operation with two owners: its timer, and the engine until the timeout has ended.
 * How the timeout ends decides which thread completes the operation. If it expires, the worker
 * does; if tw_cancel returns TW_CANCEL_DONE, the thread that cancelled does. If the execution
 * context ends, or the engine is stopped, the handler is destroyed without a call.
 */
#ifndef TICKWHEEL_ASIO_HPP
#define TICKWHEEL_ASIO_HPP

/* Included first, because Boost's headers before 1.75 need it and do not include it. */
#include <utility>

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#if __has_include(<boost/asio/associated_cancellation_slot.hpp>)
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/cancellation_type.hpp>
#define TW_ASIO_SLOTS 1
#endif
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <tickwheel.h>
#include <type_traits>

#ifdef BOOST_ASIO_DISABLE_THREADS
#error "the engine's worker posts to the context from its own thread"
#endif

namespace tw::asio
{
namespace detail
{
namespace net = boost::asio;
using error_code = boost::system::error_code;

/** A waiting operation. This base class does not depend on the type of its handler. */
class operation
{
      public:
	virtual ~operation() = default;
	operation() = default;
	operation(const operation &) = delete;
	operation &operator=(const operation &) = delete;

	/** Posts the handler. Only one caller may complete or abandon an operation. */
	virtual void complete(error_code code) noexcept = 0;
	/** Destroys the handler without a call. */
	virtual void abandon() noexcept = 0;

	void done() noexcept
	{
		/* Pairs with is_done. No thread relies on this order: a thread that reads true uses
		 * no other member, and the reference count orders the end of the operation. */
		ended.store(true, std::memory_order_release);
	}

	bool is_done() const noexcept
	{
		return ended.load(std::memory_order_acquire);
	}

	tw_handle handle = TW_HANDLE_NONE;
	/** The engine's reference to this object. It is dropped when the timeout has ended. */
	std::shared_ptr<operation> self;
	const std::atomic<bool> *context_ends = nullptr;

      private:
	std::atomic<bool> ended{false};
};

/** Completes a wait with operation_aborted. Returns false if the wait has already ended. */
inline bool abort_wait(operation &wait) noexcept
{
	if (wait.is_done() || tw_cancel(wait.handle) != TW_CANCEL_DONE)
		return false;
	wait.complete(net::error::operation_aborted);
	return true;
}

#ifdef TW_ASIO_SLOTS
/**
 * The handler's cancellation slot (Boost 1.77 or later) aborts its wait. Like the timer, the slot
 * is used by one thread at a time. It holds only a weak reference to the wait.
 */
template <class Slot> void slot_connect(const Slot &slot, const std::shared_ptr<operation> &wait)
{
	if (!slot.is_connected())
		return;
	Slot(slot).assign([weak = std::weak_ptr<operation>(wait)](net::cancellation_type type) {
		std::shared_ptr<operation> found = weak.lock();

		if (found && type != net::cancellation_type::none)
			(void)abort_wait(*found);
	});
}
#endif

/** Holds all waits of an execution context. When the context ends, it abandons them. */
class service : public net::execution_context::service
{
      public:
	using key_type = service;
	static inline net::execution_context::id id;

	explicit service(net::execution_context &context) : net::execution_context::service(context)
	{
		if (tw_scope_create(tw_default_engine(), nullptr, &scope) != 0)
			throw std::runtime_error("tw::asio: no memory for a scope");
	}

	service(const service &) = delete;
	service &operator=(const service &) = delete;

	~service() override
	{
		shutdown();
		(void)tw_scope_destroy(scope);
	}

	/** Afterwards every handler has either been posted or destroyed. */
	void shutdown() noexcept override
	{
		if (ends.exchange(true))
			return;
		(void)tw_scope_end_wait(scope, TW_NEVER);
	}

	int start(const std::shared_ptr<operation> &wait, std::int64_t deadline_ns) noexcept
	{
		int code;

		wait->self = wait;
		wait->context_ends = &ends;
		code = tw_scope_schedule_at(scope, deadline_ns, &kind, wait.get(), &wait->handle);
		if (code != 0)
			wait->self.reset();
		return code;
	}

      private:
	static void expired(tw_handle, void *arg) noexcept
	{
		auto *wait = static_cast<operation *>(arg);

		wait->done();
		wait->complete(error_code());
	}

	/** Runs once for each timeout, after its callback or instead of it. */
	static void ended(void *arg, tw_end end) noexcept
	{
		std::shared_ptr<operation> wait = std::move(static_cast<operation *>(arg)->self);

		if (end == TW_END_EXPIRED)
			return;
		wait->done();
		if (end == TW_END_UNEXPIRED || wait->context_ends->load())
			wait->abandon();
	}

	static inline const tw_kind kind = {sizeof(tw_kind), 0, expired, ended, 0, nullptr};

	tw_scope *scope = nullptr;
	std::atomic<bool> ends{false};
};

/** A wait with its handler. It keeps outstanding work on the handler's executor and on the
 * timer's. */
template <class Handler, class Executor> class operation_of final : public operation
{
	using associated = net::associated_executor_t<Handler, Executor>;
	using tracked = std::decay_t<decltype(net::prefer(
		std::declval<const associated &>(), net::execution::outstanding_work.tracked))>;
	using tracked_io = std::decay_t<decltype(net::prefer(
		std::declval<const Executor &>(), net::execution::outstanding_work.tracked))>;

	struct parts {
		Handler handler;
		tracked executor;
		tracked_io io_executor;
	};

      public:
	operation_of(Handler &&handler, const Executor &io_executor)
	    : executor(net::get_associated_executor(handler, io_executor))
	{
		held.emplace(
			parts{std::move(handler),
			      net::prefer(executor, net::execution::outstanding_work.tracked),
			      net::prefer(io_executor, net::execution::outstanding_work.tracked)});
	}

	void complete(error_code code) noexcept override
	{
		/* If the context has ended during the timer's cancel, it has already abandoned this
		 * wait. */
		if (!held)
			return;
		parts ready = std::move(*held);

		held.reset();
		net::post(executor, call{std::move(ready.handler), code});
	}

	void abandon() noexcept override
	{
		std::optional<parts> dropped = std::move(held);

		held.reset();
	}

      private:
	struct call {
		Handler handler;
		error_code code;

		void operator()()
		{
			std::move(handler)(code);
		}
	};

	associated executor;
	std::optional<parts> held;
};
} // namespace detail

/**
 * A timer with the interface of boost::asio::basic_waitable_timer, whose waits are timeouts of an
 * engine.
 *
 * Threads: as with Boost's class: different timers on any threads, and each timer on one thread at
 * a time. Lifetime: the destructor cancels the waits.
 */
template <class Clock, class Executor = boost::asio::any_io_executor> class basic_waitable_timer
{
	using error_code = detail::error_code;

      public:
	using executor_type = Executor;
	using clock_type = Clock;
	using duration = typename Clock::duration;
	using time_point = typename Clock::time_point;

	template <class Other> struct rebind_executor {
		using other = basic_waitable_timer<Clock, Other>;
	};

	explicit basic_waitable_timer(const Executor &ex)
	    : executor(ex), waits_of(&boost::asio::use_service<detail::service>(
				    boost::asio::query(ex, boost::asio::execution::context)))
	{
	}

	basic_waitable_timer(const Executor &ex, const time_point &at) : basic_waitable_timer(ex)
	{
		expires_at(at);
	}

	basic_waitable_timer(const Executor &ex, const duration &after) : basic_waitable_timer(ex)
	{
		expires_after(after);
	}

	template <class Context, class = std::enable_if_t<std::is_convertible_v<
					 Context &, boost::asio::execution_context &>>>
	explicit basic_waitable_timer(Context &context)
	    : basic_waitable_timer(Executor(context.get_executor()))
	{
	}

	template <class Context, class Time,
		  class = std::enable_if_t<
			  std::is_convertible_v<Context &, boost::asio::execution_context &>>>
	basic_waitable_timer(Context &context, const Time &when)
	    : basic_waitable_timer(Executor(context.get_executor()), when)
	{
	}

	basic_waitable_timer(basic_waitable_timer &&other) noexcept
	    : executor(other.executor), waits_of(other.waits_of), time(other.time),
	      waits(std::move(other.waits))
	{
		other.waits.clear();
	}

	/**
	 * Constructs from a timer whose executor has another type, such as one with a default
	 * token.
	 */
	template <class Other, class = std::enable_if_t<std::is_convertible_v<Other, Executor>>>
	basic_waitable_timer(basic_waitable_timer<Clock, Other> &&other)
	    : executor(other.executor), waits_of(other.waits_of), time(other.time),
	      waits(std::move(other.waits))
	{
		other.waits.clear();
	}

	template <class Other, class = std::enable_if_t<std::is_convertible_v<Other, Executor>>>
	basic_waitable_timer &operator=(basic_waitable_timer<Clock, Other> &&other)
	{
		return *this = basic_waitable_timer(std::move(other));
	}

	basic_waitable_timer &operator=(basic_waitable_timer &&other)
	{
		if (this == &other)
			return *this;
		cancel();
		executor = other.executor;
		waits_of = other.waits_of;
		time = other.time;
		waits = std::move(other.waits);
		other.waits.clear();
		return *this;
	}

	~basic_waitable_timer()
	{
		cancel();
	}

	executor_type get_executor() noexcept
	{
		return executor;
	}

	time_point expiry() const noexcept
	{
		return time;
	}

	/** Sets the expiry and cancels the waits, as expires_after does. Returns how many waits it
	 * has cancelled. */
	std::size_t expires_at(const time_point &at)
	{
		std::size_t cancelled = cancel();

		time = at;
		return cancelled;
	}

	std::size_t expires_after(const duration &after)
	{
		time_point now = Clock::now();

		/* If the sum does not fit, the expiry is the latest possible time, as in Boost. */
		if (after > duration::zero() && now > (time_point::max)() - after)
			return expires_at((time_point::max)());
		return expires_at(now + after);
	}

	/** Cancels the waits, and returns how many. Handlers that are already posted still run, and
	 * do not count. */
	std::size_t cancel()
	{
		std::size_t cancelled = 0;

		while (cancel_one() != 0)
			cancelled++;
		return cancelled;
	}

	std::size_t cancel_one()
	{
		while (!waits.empty()) {
			std::shared_ptr<detail::operation> wait = std::move(waits.front());

			waits.pop_front();
			if (detail::abort_wait(*wait))
				return 1;
		}
		return 0;
	}

	/** For programs that handle errors by codes. None of these calls fails. */
	std::size_t expires_at(const time_point &at, error_code &code)
	{
		code = error_code();
		return expires_at(at);
	}

	std::size_t expires_after(const duration &after, error_code &code)
	{
		code = error_code();
		return expires_after(after);
	}

	std::size_t cancel(error_code &code)
	{
		code = error_code();
		return cancel();
	}

	std::size_t cancel_one(error_code &code)
	{
		code = error_code();
		return cancel_one();
	}

	void wait()
	{
		while (Clock::now() < time)
			std::this_thread::sleep_for(time - Clock::now());
	}

	void wait(error_code &code)
	{
		wait();
		code = error_code();
	}

	template <class Token = boost::asio::default_completion_token_t<Executor>>
	auto async_wait(Token &&token = boost::asio::default_completion_token_t<Executor>())
	{
		return boost::asio::async_initiate<Token, void(error_code)>(initiation{this},
									    token);
	}

      private:
	template <class, class> friend class basic_waitable_timer;

	/** Completion tokens ask this object for the executor. */
	struct initiation {
		using executor_type = Executor;
		basic_waitable_timer *timer;

		executor_type get_executor() const noexcept
		{
			return timer->executor;
		}

		template <class Handler> void operator()(Handler &&handler) const
		{
			timer->begin(std::forward<Handler>(handler));
		}
	};

	std::int64_t deadline_ns() const noexcept
	{
		using std::chrono::duration_cast;
		using std::chrono::nanoseconds;

		if (time == (time_point::max)())
			return TW_NEVER;
		std::int64_t ns = duration_cast<nanoseconds>(time.time_since_epoch()).count();
		return ns < 0 ? 0 : ns;
	}

	template <class Handler> void begin(Handler &&handler)
	{
		using held = std::decay_t<Handler>;
#ifdef TW_ASIO_SLOTS
		auto slot = boost::asio::get_associated_cancellation_slot(handler);
#endif
		std::shared_ptr<detail::operation> wait =
			std::make_shared<detail::operation_of<held, Executor>>(
				held(std::forward<Handler>(handler)), executor);

		while (!waits.empty() && waits.front()->is_done())
			waits.pop_front();
		waits.push_back(wait);
#ifdef TW_ASIO_SLOTS
		detail::slot_connect(slot, wait);
#endif
		if (int failed = waits_of->start(wait, deadline_ns()); failed != 0) {
			waits.pop_back();
			wait->done();
			wait->complete(error_code(-failed, boost::system::system_category()));
		}
	}

	Executor executor;
	detail::service *waits_of;
	time_point time{};
	std::deque<std::shared_ptr<detail::operation>> waits;
};

/** A timer on std::chrono::steady_clock, the time that an engine has by default. */
using steady_timer = basic_waitable_timer<std::chrono::steady_clock>;
} // namespace tw::asio

#endif
