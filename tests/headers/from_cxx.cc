// SPDX-License-Identifier: MIT
/* A C++ program must be able to use the whole C interface: kinds, handles, options. */
#include <tickwheel.h>

namespace
{
int runs = 0;

void on_timeout(tw_handle, void *) noexcept
{
	runs++;
}

const tw_kind kind = TW_KIND(on_timeout, nullptr);

int use(tw_engine *engine, tw_clock *clock)
{
	tw_handle handle = {};

	if (tw_schedule(engine, 0, &kind, nullptr, &handle) != 0 ||
	    tw_clock_set(clock, 2000000) != 0 || tw_engine_flush(engine, TW_NEVER) != 0)
		return 1;
	return runs == 1 && tw_cancel(handle) == TW_CANCEL_EXPIRED ? 0 : 1;
}
} // namespace

int main()
{
	tw_options options;
	tw_engine *engine = nullptr;
	int code = 1;

	if (tw_options_init(&options, sizeof(options)) != 0 ||
	    tw_clock_create_virtual(0, &options.clock) != 0)
		return 1;
	if (tw_engine_create(&options, &engine) == 0) {
		code = use(engine, options.clock);
		if (tw_engine_stop(engine, nullptr, nullptr, TW_NEVER) != 0 ||
		    tw_engine_destroy(engine) != 0)
			code = 1;
	}
	return tw_clock_destroy(options.clock) == 0 ? code : 1;
}
