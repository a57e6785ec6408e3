// SPDX-License-Identifier: MIT
// HTTP/1.1 keep-alive with coroutines. A connection may be idle for 5 seconds between requests, and a request has 2
// seconds to arrive whole. Each connection is one coroutine: `with_timeout` bounds each read. A script plays the
// clients in virtual time; a real server would wait for a socket instead.
#include <cstdio>
#include <memory>
#include <string>
#include <tickwheel.hpp>
#include <vector>

using namespace std::chrono_literals;

namespace
{
struct line {
	std::chrono::milliseconds pause;
	std::string text;
};

// Replaces a socket: returns the script's lines, each after its pause.
class peer
{
      public:
	peer(tw::engine_ref engine, std::vector<line> script)
	    : engine_(engine), script_(std::move(script))
	{
	}

	// Returns an empty line at the end of the script, and if the sleep was stopped.
	tw::task<std::string> read()
	{
		if (at_ == script_.size())
			co_return "";
		line next = script_[at_++];

		if (co_await tw::sleep_for(engine_, next.pause) != tw::wake::due)
			co_return "";
		co_return next.text;
	}

      private:
	tw::engine_ref engine_;
	std::vector<line> script_;
	std::size_t at_ = 0;
};

constexpr std::chrono::seconds IDLE = 5s, REQUEST = 2s;

// Reads up to the empty line. Returns whether a whole request came.
tw::task<bool> rest_of_request(peer &from)
{
	for (;;) {
		std::string text = co_await from.read();

		if (text == "\r\n")
			co_return true;
		if (text.empty())
			co_return false;
	}
}

tw::task<> serve(tw::engine_ref engine, const char *name, std::unique_ptr<peer> from)
{
	const char *why = "engine stopped";

	for (int served = 0;; served++) {
		auto first = co_await tw::with_timeout(engine, from->read(), IDLE);

		if (!first.has_value() || first->empty()) {
			why = first.has_value() ? "closed by the peer" : "idle";
			std::printf("%s: %d served, %s\n", name, served, why);
			co_return;
		}
		auto whole = co_await tw::with_timeout(engine, rest_of_request(*from), REQUEST);

		if (!whole.value_or(false)) {
			std::printf("%s: %d served, 408 request timeout\n", name, served);
			co_return;
		}
	}
}

void connect(tw::engine_ref engine, const char *name, std::vector<line> script)
{
	tw::spawn(serve(engine, name, std::make_unique<peer>(engine, std::move(script))));
}
} // namespace

int main()
{
	tw::time_source clock{tw::engine_clock::time_point()};
	tw_options with = tw::options();

	with.clock = clock.get();
	tw::loop loop(with);

	connect(loop, "browser",
		{{10ms, "GET /"}, {5ms, "\r\n"}, {4s, "GET /a"}, {1s, "\r\n"}, {9s, "GET /b"}});
	connect(loop, "slow",
		{{10ms, "GET /"}, {500ms, "Host: a"}, {900ms, "A: b"}, {900ms, "\r\n"}});
	connect(loop, "tool", {{10ms, "GET /"}, {1ms, "\r\n"}});
	// The virtual clock goes from one deadline to the next.
	return tw_engine_run_until(loop.get(), tw::ns_of(1min)) != 0;
}
