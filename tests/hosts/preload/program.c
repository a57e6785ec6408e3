/* SPDX-License-Identifier: MIT */
/*
 * Makes random operations with libuv's timers, in substituted time, and prints all results. The
 * program itself uses only libuv. same.sh runs it without and with the preloaded library, and both
 * outputs must be the same.
 *
 * usage: program OPERATIONS SEED
 */
#include "clock.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

enum { LOOPS = 2, TIMERS = 48, NS_PER_MS = 1000000 };

enum state { NONE, OPEN, CLOSING };

struct timer {
	uv_timer_t handle;
	struct place *place;
	enum state state;
	bool started;
	uint64_t closes;
	int number;
};

struct place {
	uv_loop_t loop;
	struct timer timers[TIMERS];
	int number;
};

static struct place places[LOOPS];
static uint64_t seed;
static int64_t now_ns = INT64_C(7000) * 1000 * NS_PER_MS;
static int depth;

/* The generator of G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003). */
static uint64_t draw(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

static uint64_t draw_delay(void)
{
	static const uint64_t most[] = {1, 2, 10, 100, 3000, 100000};
	uint64_t kind = draw(40);

	if (kind == 0)
		return UINT64_MAX - draw(3);
	return draw(most[kind % (sizeof most / sizeof most[0])]);
}

static void print(const struct timer *timer, const char *what, int64_t result)
{
	printf("%" PRId64 " %d.%d %s %" PRId64 "\n", now_ns / NS_PER_MS, timer->place->number,
	       timer->number, what, result);
}

static void operate(struct place *place);

static void on_run(uv_timer_t *handle)
{
	struct timer *timer = handle->data;

	print(timer, "runs", uv_is_active((uv_handle_t *)handle));
	depth++;
	for (uint64_t left = depth < 3 ? draw(3) : 0; left > 0; left--)
		operate(timer->place);
	depth--;
}

static void on_other_run(uv_timer_t *handle)
{
	print(handle->data, "runs otherwise", uv_is_active((uv_handle_t *)handle));
}

static void on_closed(uv_handle_t *handle)
{
	struct timer *timer = handle->data;

	print(timer, "closed", uv_is_closing(handle));
	memset(&timer->handle, 0x5a, sizeof timer->handle);
	timer->state = NONE;
}

static void count(uv_handle_t *handle, void *to)
{
	int *found = to;

	found[handle->type == UV_TIMER]++;
}

static void look(const struct timer *timer)
{
	const uv_handle_t *handle = (const uv_handle_t *)&timer->handle;

	print(timer, "is active", uv_is_active(handle));
	print(timer, "has a reference", uv_has_ref(handle));
	if (uv_is_active(handle) != 0)
		print(timer, "is due in", (int64_t)uv_timer_get_due_in(&timer->handle));
	print(timer, "repeats after", (int64_t)uv_timer_get_repeat(&timer->handle));
}

static void look_around(struct place *place)
{
	int found[2] = {0};

	uv_walk(&place->loop, count, found);
	printf("%d has %d timers, %d others, and lives: %d\n", place->number, found[1], found[0],
	       uv_loop_alive(&place->loop));
}

static void open_timer(struct timer *timer)
{
	print(timer, "opens", uv_timer_init(&timer->place->loop, &timer->handle));
	timer->handle.data = timer;
	timer->state = OPEN;
	timer->started = false;
}

static void start(struct timer *timer)
{
	uint64_t timeout = draw_delay(), repeat = draw(3) == 0 ? draw_delay() : 0;

	print(timer, "starts",
	      uv_timer_start(&timer->handle, draw(9) == 0 ? on_other_run : on_run, timeout,
			     repeat));
	timer->started = true;
}

static void change(struct timer *timer)
{
	uv_handle_t *handle = (uv_handle_t *)&timer->handle;

	switch (draw(16)) {
	case 0:
		uv_close(handle, draw(4) == 0 ? NULL : on_closed);
		timer->state = CLOSING;
		timer->closes++;
		break;
	case 1:
	case 2:
		print(timer, "stops", uv_timer_stop(&timer->handle));
		break;
	case 3:
		print(timer, "starts again", uv_timer_again(&timer->handle));
		break;
	case 4:
		uv_timer_set_repeat(&timer->handle, draw_delay());
		break;
	case 5:
		uv_ref(handle);
		break;
	case 6:
		uv_unref(handle);
		break;
	case 7:
		print(timer, "does not start", uv_timer_start(&timer->handle, NULL, 1, 0));
		break;
	case 8:
	case 9:
		look(timer);
		break;
	default:
		start(timer);
	}
}

static void change_closing(struct timer *timer)
{
	print(timer, "is active", uv_is_active((uv_handle_t *)&timer->handle));
	print(timer, "does not start", uv_timer_start(&timer->handle, on_other_run, 1, 1));
	print(timer, "stops", uv_timer_stop(&timer->handle));
	print(timer, "starts again", uv_timer_again(&timer->handle));
}

static void operate(struct place *place)
{
	struct timer *timer = &place->timers[draw(TIMERS)];

	if (timer->state == NONE)
		open_timer(timer);
	else if (timer->state == OPEN)
		change(timer);
	else
		change_closing(timer);
}

/*
 * Marks closed timers as free. After an iteration of its loop, a timer that was closed without a
 * callback can be initialised again. But since libuv 1.45 timers run after the closing handles. So
 * a timer that was closed during this iteration must wait for the next one.
 */
static void closed_collect(struct place *place, const uint64_t *closing)
{
	for (int i = 0; i < TIMERS; i++)
		if (place->timers[i].state == CLOSING && closing[i] == place->timers[i].closes)
			place->timers[i].state = NONE;
}

static void turn(struct place *place)
{
	uint64_t closing[TIMERS];

	for (int i = 0; i < TIMERS; i++)
		closing[i] = place->timers[i].state == CLOSING ? place->timers[i].closes : 0;
	now_ns += (int64_t)draw(draw(8) == 0 ? 2000 : 4) * NS_PER_MS;
	uv_update_time(&place->loop);
	printf("%d runs: %d\n", place->number, uv_run(&place->loop, UV_RUN_NOWAIT));
	closed_collect(place, closing);
}

static void place_open(struct place *place, int number)
{
	memset(place, 0x5a, sizeof *place);
	place->number = number;
	printf("%d opens: %d\n", number, uv_loop_init(&place->loop));
	for (int i = 0; i < TIMERS; i++) {
		place->timers[i].place = place;
		place->timers[i].state = NONE;
		place->timers[i].number = i;
	}
}

/* Lets the remaining timers run, each at most once more, and closes all of them. */
static void place_close(struct place *place)
{
	printf("%d does not close: %d\n", place->number, uv_loop_close(&place->loop));
	for (int i = 0; i < TIMERS; i++) {
		struct timer *timer = &place->timers[i];

		if (timer->state == OPEN && timer->started) {
			uv_timer_set_repeat(&timer->handle, 0);
			uv_timer_start(&timer->handle, on_other_run, draw(5000), 0);
		}
	}
	printf("%d runs to its end: %d\n", place->number, uv_run(&place->loop, UV_RUN_DEFAULT));
	for (int i = 0; i < TIMERS; i++)
		if (place->timers[i].state == OPEN)
			uv_close((uv_handle_t *)&place->timers[i].handle, on_closed);
	printf("%d closes: ", place->number);
	(void)uv_run(&place->loop, UV_RUN_DEFAULT);
	look_around(place);
	printf("%d is closed: %d\n", place->number, uv_loop_close(&place->loop));
}

int main(int count_of, char **texts)
{
	uint64_t operations = count_of == 3 ? strtoull(texts[1], NULL, 10) : 0;

	if (operations == 0) {
		fprintf(stderr, "usage: %s OPERATIONS SEED\n", texts[0]);
		return 2;
	}
	seed = strtoull(texts[2], NULL, 10) * UINT64_C(0x9E3779B97F4A7C15) | 1;
	clock_ns = &now_ns;
	/* In the second round, each loop is opened in memory where another loop was closed. */
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < LOOPS; i++)
			place_open(&places[i], i);
		for (uint64_t i = 0; i < operations / 2; i++) {
			operate(&places[draw(LOOPS)]);
			if (draw(5) == 0)
				turn(&places[draw(LOOPS)]);
			if (draw(50) == 0)
				look_around(&places[draw(LOOPS)]);
		}
		for (int i = 0; i < LOOPS; i++)
			place_close(&places[i]);
	}
	return 0;
}
