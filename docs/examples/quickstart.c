/* SPDX-License-Identifier: MIT */
/* The README's example, whole: one timeout fires, one is cancelled. Kept to 15 lines. */
/* clang-format off */
#include <stdio.h>
#include <tickwheel.h>
#include <unistd.h>

static void say(struct tw_handle self, void *text) { (void)self; puts(text); }
static const struct tw_kind saying = TW_KIND(say, NULL);
int main(void) {
	struct tw_engine *engine; struct tw_handle late = {0};
	if (tw_engine_create(NULL, &engine) != 0) return 1;
	tw_schedule(engine, 500000000, &saying, (char[]){"said after half a second"}, NULL);
	tw_schedule(engine, 800000000, &saying, (char[]){"never said"}, &late);
	puts(tw_cancel(late) == TW_CANCEL_DONE ? "one cancelled" : "one too late");
	sleep(1);
	return tw_engine_stop(engine, NULL, NULL, TW_NEVER) || tw_engine_destroy(engine);
}
