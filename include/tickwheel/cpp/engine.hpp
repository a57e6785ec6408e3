/* SPDX-License-Identifier: MIT */
/**
 * @file engine.hpp
 * Classes that own engines, loops and clocks.
 */
#ifndef TICKWHEEL_CPP_ENGINE_HPP
#define TICKWHEEL_CPP_ENGINE_HPP

#include <cerrno>
#include <optional>
#include <tickwheel/cpp/base.hpp>
#include <tickwheel/cpp/chrono.hpp>
#include <utility>

namespace tw
{
/** The options of tw_options, with their defaults. Change the fields that you need. */
struct options : tw_options {
	options() noexcept : tw_options()
	{
		(void)tw_options_init(this, sizeof(tw_options));
	}
};

/** Whether an engine may hand callbacks to an executor (option `dispatch`). */
enum class executor { none, possible };

/**
 * Refers to an engine without owning it. All functions of this library take an engine_ref; a
 * tw::engine and a tw_engine * convert to it.
 *
 * A plain tw_engine * does not show whether its engine has an executor, so the conversion assumes
 * one. A schedule of a tw::timer or of a coroutine then costs some nanoseconds more. If the engine
 * has no executor, write tw::engine_ref(raw, tw::executor::none). If it does have one, the
 * behaviour is undefined.
 *
 * Threads: any. In callback: yes. Lifetime: that of the engine.
 */
class engine_ref
{
      public:
	engine_ref(tw_engine *engine, executor runs_in = executor::possible) noexcept
	    : engine_(engine), executor_(runs_in)
	{
	}

	/** Returns the engine for the C interface. */
	tw_engine *get() const noexcept
	{
		return engine_;
	}

	/** Returns whether callbacks may be handed to an executor. */
	bool has_executor() const noexcept
	{
		return executor_ == executor::possible;
	}

	/** Returns the engine's time. Progress: wait-free. */
	engine_clock::time_point now() const
	{
		return engine_clock::time_point(
			engine_clock::duration(detail::checked(tw_engine_now(engine_), "now")));
	}

	/** Returns how many timeouts are pending (tw_engine_pending). */
	std::int64_t pending() const
	{
		return detail::checked(tw_engine_pending(engine_), "pending");
	}

	/** Creates the worker now (tw_engine_start). */
	void start() const
	{
		detail::checked(tw_engine_start(engine_), "start");
	}

	/**
	 * Waits until all timeouts that were due have run (tw_engine_flush). Returns false if
	 * `longest` has passed before. In callback: no (EDEADLK).
	 */
	bool flush(std::chrono::nanoseconds longest = forever) const
	{
		int code = tw_engine_flush(engine_, ns_of(longest));

		return code != -ETIMEDOUT && detail::checked(code, "flush") == 0;
	}

      private:
	tw_engine *engine_;
	executor executor_;
};

/** Returns the engine of the process (tw_default_engine). Throws ENOMEM if it cannot be made. */
inline engine_ref default_engine()
{
	tw_engine *engine = tw_default_engine();

	if (engine == nullptr)
		detail::throw_error(-ENOMEM, "default_engine");
	return engine;
}

/**
 * Owns an engine. Its destructor stops the engine, waits for running callbacks, and frees it.
 *
 * A stop hands back the timeouts that are pending. The function of an `after` is destroyed and does
 * not run. A tw::timer becomes idle. A sleeping coroutine is resumed with tw::wake::engine_stopped.
 *
 * Threads: one thread at a time may move, stop or destroy it. Any thread may schedule meanwhile,
 * until the destructor begins. In callback: callbacks of this engine must not destroy it (the
 * destructor calls std::terminate), and get EDEADLK from stop. A moved-from object owns no engine:
 * get() returns nullptr, the destructor does nothing, and every other call throws EINVAL.
 */
class engine
{
      public:
	/** Creates the engine. The worker's thread begins with the first schedule. */
	explicit engine(const tw_options &with = options()) : executor_(executor_of(with))
	{
		detail::checked(tw_engine_create(&with, &engine_), "engine");
	}

	engine(engine &&other) noexcept
	    : engine_(std::exchange(other.engine_, nullptr)), executor_(other.executor_)
	{
	}

	engine &operator=(engine &&other) noexcept
	{
		if (this != &other) {
			close();
			engine_ = std::exchange(other.engine_, nullptr);
			executor_ = other.executor_;
		}
		return *this;
	}

	~engine()
	{
		close();
	}

	operator engine_ref() const noexcept
	{
		return engine_ref(engine_, executor_);
	}

	/** Returns the engine for the C interface, or nullptr. */
	tw_engine *get() const noexcept
	{
		return engine_;
	}

	/** Returns the engine's time, as tw::engine_ref::now does. */
	engine_clock::time_point now() const
	{
		return engine_ref(*this).now();
	}

	/** Returns how many timeouts are pending, as tw::engine_ref::pending does. */
	std::int64_t pending() const
	{
		return engine_ref(*this).pending();
	}

	/** Creates the worker now, as tw::engine_ref::start does. */
	void start() const
	{
		engine_ref(*this).start();
	}

	/** Waits until due timeouts have run, as tw::engine_ref::flush does. */
	bool flush(std::chrono::nanoseconds longest = forever) const
	{
		return engine_ref(*this).flush(longest);
	}

	/**
	 * Stops the engine (tw_engine_stop). Returns false if callbacks still run when `longest` is
	 * over; then call it again. When it has returned true, no callback runs any more. Progress:
	 * blocks.
	 */
	bool stop(std::chrono::nanoseconds longest = forever)
	{
		int code = tw_engine_stop(engine_, nullptr, nullptr, ns_of(longest));

		return code != -ETIMEDOUT && detail::checked(code, "stop") == 0;
	}

      private:
	static executor executor_of(const tw_options &with) noexcept
	{
		return with.dispatch == nullptr ? executor::none : executor::possible;
	}

	/* In a forked child tw_engine_stop returns -ECHILD, and tw_engine_destroy frees what it
	 * can. */
	void close() noexcept
	{
		if (engine_ == nullptr)
			return;
		(void)tw_engine_stop(engine_, nullptr, nullptr, TW_NEVER);
		if (tw_engine_destroy(engine_) != 0)
			std::terminate();
		engine_ = nullptr;
	}

	tw_engine *engine_ = nullptr;
	executor executor_;
};

/**
 * Owns an engine without a worker thread: the program's event loop polls it (loop.h).
 *
 * Threads: only one poll at a time (EBUSY otherwise); otherwise the same as tw::engine.
 */
class loop : public engine
{
      public:
	explicit loop(const tw_options &with = options()) : engine(as_loop(with))
	{
	}

	/**
	 * Runs the timeouts that are due, at most `budget` of them (0: all). Returns how many
	 * expired, or std::nullopt if the engine has stopped. In callback: no (EDEADLK).
	 */
	std::optional<std::uint64_t> poll(std::uint64_t budget = 0)
	{
		return count_of(tw_engine_poll(get(), budget));
	}

	/** Runs the timeouts that are due, like poll, but for about `longest`
	 * (tw_engine_poll_for). */
	std::optional<std::uint64_t> poll_for(std::chrono::nanoseconds longest,
					      std::uint64_t budget = 0)
	{
		return count_of(tw_engine_poll_for(get(), budget, ns_of(longest)));
	}

	/** Returns when the next poll is needed (tw_engine_next_due). The largest time means
	 * never. */
	engine_clock::time_point next_due() const
	{
		return engine_clock::time_point(engine_clock::duration(
			detail::checked(tw_engine_next_due(get()), "next_due")));
	}

	/** Returns a descriptor that is readable while a poll is needed (tw_engine_fd). */
	int fd() const
	{
		return detail::checked(tw_engine_fd(get()), "fd");
	}

	/**
	 * As long as this object lives, the thread that made it is the owner of the loop
	 * (tw_loop_enter, tw_loop_exit).
	 * Threads: the same thread must construct and destroy it. It must be destroyed before the
	 *   loop.
	 */
	class bracket
	{
	      public:
		explicit bracket(loop &owned) : engine_(owned.get())
		{
			detail::checked(tw_loop_enter(engine_), "bracket");
		}

		bracket(const bracket &) = delete;
		bracket &operator=(const bracket &) = delete;

		/* The result is ignored: if the engine was stopped inside the bracket, the stop has
		 * closed the bracket. */
		~bracket()
		{
			(void)tw_loop_exit(engine_);
		}

	      private:
		tw_engine *engine_;
	};

      private:
	static tw_options as_loop(tw_options with) noexcept
	{
		with.flags |= TW_ENGINE_LOOP;
		return with;
	}

	static std::optional<std::uint64_t> count_of(std::int64_t count)
	{
		if (count == -ESHUTDOWN)
			return std::nullopt;
		return static_cast<std::uint64_t>(detail::checked(count, "poll"));
	}
};

/**
 * Owns a clock for the option `clock`. The clock must outlive the engines that use it; otherwise
 * the destructor calls std::terminate. A moved-from object owns no clock.
 *
 * Threads: any; only one thread at a time may move a virtual clock.
 */
class time_source
{
      public:
	/** Creates a clock of the system (tw_clock_create). */
	explicit time_source(enum tw_clock_type type)
	{
		detail::checked(tw_clock_create(type, &clock_), "time_source");
	}

	/** Creates a virtual clock, which stands still until set or advance moves it. */
	explicit time_source(engine_clock::time_point now)
	{
		detail::checked(tw_clock_create_virtual(ns_of(now), &clock_), "time_source");
	}

	time_source(time_source &&other) noexcept : clock_(std::exchange(other.clock_, nullptr))
	{
	}

	time_source &operator=(time_source &&other) noexcept
	{
		if (this != &other) {
			close();
			clock_ = std::exchange(other.clock_, nullptr);
		}
		return *this;
	}

	~time_source()
	{
		close();
	}

	/** Returns the clock for the option `clock`, or nullptr. */
	tw_clock *get() const noexcept
	{
		return clock_;
	}

	/** Returns the clock's time. */
	engine_clock::time_point now() const
	{
		return engine_clock::time_point(
			engine_clock::duration(detail::checked(tw_clock_now(clock_), "now")));
	}

	/** Moves a virtual clock forward (tw_clock_set). */
	void set(engine_clock::time_point to)
	{
		detail::checked(tw_clock_set(clock_, ns_of(to)), "set");
	}

	/** Moves a virtual clock forward by a duration. */
	void advance(std::chrono::nanoseconds by)
	{
		set(now() + by);
	}

      private:
	void close() noexcept
	{
		if (tw_clock_destroy(clock_) != 0)
			std::terminate();
		clock_ = nullptr;
	}

	tw_clock *clock_ = nullptr;
};
} // namespace tw

#endif
