/* SPDX-License-Identifier: MIT */
/*
 * Loops in several threads, loops that are never closed, and the end of loops and timers.
 *
 * Seen to fail with these defects:
 * - the loops of all threads share one engine;
 * - the library's own handles keep a loop from closing;
 * - uv_loop_close visits handles whose memory is gone, or needs a uv_run after a uv_stop;
 * - the due time of a closing timer is lost;
 * - a close leaves the timer in the engine;
 * - libuv's own timer, with any bytes in its fields, is taken for one of the library's;
 * - a loop is recognised by its address alone, so it gets the timers of an earlier loop;
 * - a loop without timers is closed as if it had some.
 */
#include "edges.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMERS = 100, RUNS = 20000, THREADS = 2, LOOPS_MANY = 1100 };

struct place {
	uv_loop_t loop;
	uv_timer_t timers[TIMERS];
	uint64_t seed;
	uint64_t sum;
	int runs;
	int ours;
};

static uint64_t draw(struct place *place, uint64_t below)
{
	place->seed = place->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (place->seed >> 33) % below;
}

static void on_random(uv_timer_t *timer)
{
	struct place *place = timer->data;

	place->sum = place->sum * 31 + (uint64_t)(timer - place->timers) + (uint64_t)edges_now_ms();
	if (++place->runs < RUNS)
		(void)uv_timer_start(&place->timers[draw(place, TIMERS)], on_random,
				     draw(place, 50), 0);
	(void)uv_timer_start(timer, on_random, draw(place, 50), 0);
	if (place->runs >= RUNS)
		uv_stop(&place->loop);
}

static void close_timer(uv_handle_t *handle, void *context)
{
	(void)context;
	uv_close(handle, NULL);
}

static void *use_loop(void *argument)
{
	struct place *place = argument;

	edges_clock();
	edges_need(uv_loop_init(&place->loop) == 0, "uv_loop_init", 1);
	for (int i = 0; i < TIMERS; i++) {
		edges_open(&place->loop, &place->timers[i], NULL);
		edges_need_ours(&place->timers[i], true);
		place->timers[i].data = place;
		(void)uv_timer_start(&place->timers[i], on_random, draw(place, 50), 0);
	}
	(void)uv_run(&place->loop, UV_RUN_DEFAULT);
	uv_walk(&place->loop, close_timer, NULL);
	edges_need(uv_run(&place->loop, UV_RUN_DEFAULT) == 0, "uv_run", 1);
	edges_need(uv_loop_close(&place->loop) == 0, "uv_loop_close", 1);
	return NULL;
}

static void close_itself(uv_timer_t *timer)
{
	uv_close((uv_handle_t *)timer, NULL);
}

static void *use_one_timer(void *argument)
{
	uv_loop_t loop;
	uv_timer_t timer;

	(void)argument;
	edges_clock();
	edges_need(uv_loop_init(&loop) == 0, "uv_loop_init", 2);
	edges_open(&loop, &timer, "short");
	edges_need_ours(&timer, true);
	(void)uv_timer_start(&timer, close_itself, 3, 0);
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	edges_need(uv_loop_close(&loop) == 0, "uv_loop_close", 2);
	return NULL;
}

/* Two threads run their loops at once. Then many threads run a loop one after the other. */
void edges_threads(void)
{
	static struct place places[THREADS];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++) {
		places[i].seed = (uint64_t)i + 1;
		edges_need(pthread_create(&threads[i], NULL, use_loop, &places[i]) == 0, "thread",
			   i);
	}
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(threads[i], NULL);
		printf("%d runs, sum %llx\n", places[i].runs, (unsigned long long)places[i].sum);
	}
	for (int i = 0; i < LOOPS_MANY; i++) {
		edges_need(pthread_create(&threads[0], NULL, use_one_timer, NULL) == 0, "thread",
			   i);
		(void)pthread_join(threads[0], NULL);
	}
}

/*
 * Each loop is initialised over an earlier one that was not closed. The earlier loop's timers must
 * not run in the new loop, and must not keep it alive.
 */
void edges_stale(void)
{
	static uv_loop_t loop;
	static uv_timer_t before[3], after[3];

	edges_clock();
	for (int round = 0; round < 3; round++) {
		edges_need(uv_loop_init(&loop) == 0, "uv_loop_init", round);
		edges_open(&loop, &before[round], "before");
		(void)uv_timer_start(&before[round], edges_print, 5, 5);
	}
	(void)uv_loop_init(&loop);
	for (int i = 0; i < 3; i++) {
		edges_open(&loop, &after[i], "after");
		edges_need_ours(&after[i], true);
		(void)uv_timer_start(&after[i], edges_print, 20, 0);
	}
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	edges_end(&loop);
}

/*
 * Ends the default loop and another loop, each twice, in the way in which programs usually end
 * their loops at exit.
 */
void edges_shutdown(void)
{
	edges_clock();
	for (int round = 0; round < 4; round++) {
		uv_loop_t *loop = round % 2 == 0 ? uv_default_loop() : malloc(sizeof *loop);
		uv_timer_t timers[2];
		uv_idle_t idle;

		if (round % 2 != 0)
			(void)uv_loop_init(loop);
		edges_open(loop, &timers[0], "runs");
		edges_open(loop, &timers[1], "waits");
		edges_need_ours(&timers[0], true);
		(void)uv_idle_init(loop, &idle);
		(void)uv_timer_start(&timers[0], edges_print, 10, 0);
		(void)uv_timer_start(&timers[1], edges_print, 1000, 0);
		uv_unref((uv_handle_t *)&timers[1]);
		printf("runs: %d\n", uv_run(loop, UV_RUN_DEFAULT));
		printf("with handles: %d\n", uv_loop_close(loop));
		edges_end(loop);
		if (round % 2 != 0)
			free(loop);
	}
}

/* libuv forgets a stop only in the next run. A stopped loop can be closed before that. */
void edges_stopped(void)
{
	uv_loop_t loop;
	uv_timer_t timer;

	edges_clock();
	(void)uv_loop_init(&loop);
	edges_open(&loop, &timer, "one");
	(void)uv_timer_start(&timer, edges_print, 1, 0);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	uv_close((uv_handle_t *)&timer, edges_print_closed);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	uv_stop(&loop);
	printf("closes: %d\n", uv_loop_close(&loop));
}

static uv_timer_t self_closer, victim, repeater;

static void close_both(uv_timer_t *timer)
{
	edges_print(timer);
	uv_close((uv_handle_t *)timer, edges_print_closed);
	uv_close((uv_handle_t *)&victim, edges_print_closed);
}

static void try_closing(uv_timer_t *timer)
{
	printf("start %d, stop %d, again %d, ", uv_timer_start(timer, edges_print, 1, 1),
	       uv_timer_stop(timer), uv_timer_again(timer));
	printf("active %d, closing %d, ", uv_is_active((uv_handle_t *)timer),
	       uv_is_closing((uv_handle_t *)timer));
	printf("due in %llu, repeat %llu\n", (unsigned long long)uv_timer_get_due_in(timer),
	       (unsigned long long)uv_timer_get_repeat(timer));
}

/* Closes timers in callbacks, one of them while it is due. Then makes calls with closing timers. */
void edges_closing(void)
{
	uv_loop_t loop;

	edges_clock();
	(void)uv_loop_init(&loop);
	edges_open(&loop, &self_closer, "closes itself and another one");
	edges_open(&loop, &victim, "never runs");
	edges_open(&loop, &repeater, "repeats");
	(void)uv_timer_start(&self_closer, close_both, 5, 5);
	(void)uv_timer_start(&victim, edges_print, 5, 0);
	(void)uv_timer_start(&repeater, edges_print, 4, 4);
	(void)uv_run(&loop, UV_RUN_ONCE);
	(void)uv_run(&loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&repeater, edges_print_closed);
	try_closing(&repeater);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	printf("closes: %d\n", uv_loop_close(&loop));
}

/*
 * Uses a loop and timers through functions that dlsym has found in libuv itself. So these calls
 * bypass the preloaded library.
 */
void edges_past(void)
{
	void *libuv = dlopen("libuv.so.1", RTLD_NOW);
	int (*init)(uv_loop_t *, uv_timer_t *);
	void (*closes)(uv_handle_t *, uv_close_cb);
	int (*loop_init)(uv_loop_t *);
	uv_loop_t loop;
	uv_timer_t timers[3];

	edges_need(libuv != NULL, "dlopen", 0);
	*(void **)&init = dlsym(libuv, "uv_timer_init");
	*(void **)&closes = dlsym(libuv, "uv_close");
	*(void **)&loop_init = dlsym(libuv, "uv_loop_init");
	edges_clock();
	memset(&loop, 0x5a, sizeof loop);
	(void)loop_init(&loop);
	memset(timers, 0x5a, sizeof timers);
	for (int i = 0; i < 2; i++) {
		printf("opens: %d\n", init(&loop, &timers[i]));
		timers[i].data = (void *)(i == 0 ? "one" : "two");
		(void)uv_timer_start(&timers[i], edges_print, 5, 7);
	}
	edges_open(&loop, &timers[2], "three");
	edges_need_ours(&timers[2], true);
	(void)uv_timer_start(&timers[2], edges_print, 8, 0);
	for (int round = 0; round < 3; round++)
		(void)uv_run(&loop, UV_RUN_ONCE);
	uv_close((uv_handle_t *)&timers[2], edges_print_closed);
	closes((uv_handle_t *)&timers[0], edges_print_closed);
	uv_close((uv_handle_t *)&timers[1], edges_print_closed);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	printf("closes: %d\n", uv_loop_close(&loop));
	(void)loop_init(&loop);
	edges_open(&loop, &timers[2], "in the next loop");
	(void)uv_timer_start(&timers[2], edges_print, 8, 0);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	edges_end(&loop);
	(void)dlclose(libuv);
}

/*
 * uv_loop_close() of libuv looks only at the loop's first handle, which is valid here. The library
 * must not read the other handles either: a program that is about to end may have freed them.
 */
void edges_freed(void)
{
	uv_loop_t loop;
	uv_idle_t idle;
	uv_timer_t timer;

	edges_clock();
	(void)uv_loop_init(&loop);
	(void)uv_idle_init(&loop, &idle);
	edges_open(&loop, &timer, "one");
	(void)uv_timer_start(&timer, edges_print, 5, 0);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	memset(&timer, 0x5a, sizeof timer);
	printf("closes: %d\n", uv_loop_close(&loop));
}

/* If a loop has no timer, the library must keep no handle in it. */
void edges_no_timers(void)
{
	uv_loop_t loop;
	uv_idle_t idle;

	(void)uv_loop_init(&loop);
	(void)uv_idle_init(&loop, &idle);
	idle.data = (void *)"idle";
	uv_close((uv_handle_t *)&idle, edges_print_closed);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	printf("closes: %d\n", uv_loop_close(&loop));
}
