/* SPDX-License-Identifier: MIT */
/*
 * A forked child continues with its timers. The parent prints its own output after the child's.
 *
 * Seen to fail with these defects: the child's timers stay with the parent's engine; timers change
 * their order in the child; a start in the child fails because the parent's engine rejects it; the
 * child cannot initialise a timer.
 */
#include "edges.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { TIMERS = 6 };

static uv_loop_t loop;
static uv_timer_t timers[TIMERS];
static int forks;

/*
 * Starts six timers. Three have equal times, and run in the order of their starts. One is started
 * again for a later time. One repeats. One is far from due.
 */
static void start_timers(void)
{
	static const char *names[TIMERS] = {"a", "b", "c", "d, put off", "e, repeats", "f, far"};

	edges_clock();
	(void)uv_loop_init(&loop);
	for (int i = 0; i < TIMERS; i++) {
		edges_open(&loop, &timers[i], names[i]);
		edges_need_ours(&timers[i], true);
	}
	(void)uv_timer_start(&timers[2], edges_print, 10, 0);
	(void)uv_timer_start(&timers[0], edges_print, 10, 0);
	(void)uv_timer_start(&timers[1], edges_print, 10, 0);
	(void)uv_timer_start(&timers[3], edges_print, 1, 0);
	(void)uv_timer_start(&timers[3], edges_print, 25, 0);
	(void)uv_timer_start(&timers[4], edges_print, 10, 10);
	(void)uv_timer_start(&timers[5], edges_print, UINT64_MAX, 0);
	uv_unref((uv_handle_t *)&timers[4]);
	uv_unref((uv_handle_t *)&timers[5]);
}

static void child_goes_on(void)
{
	uv_timer_t another;

	printf("loop: %d\n", uv_loop_fork(&loop));
	for (int i = 0; i < TIMERS; i++)
		printf("active: %d\n", uv_is_active((uv_handle_t *)&timers[i]));
	edges_open(&loop, &another, "the child's");
	(void)uv_timer_start(&another, edges_print, 12, 0);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	edges_end(&loop);
	(void)fflush(stdout);
	_exit(0);
}

static int fork_flushed(void)
{
	(void)fflush(stdout);
	return fork();
}

void edges_fork(void)
{
	int child;

	start_timers();
	child = fork_flushed();
	if (child == 0)
		child_goes_on();
	edges_wait(child);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	edges_end(&loop);
}

/* Forks in the middle of the due timers. The child's loop must continue from there. */
static void fork_here(void)
{
	int child = forks++ == 0 ? fork_flushed() : -1;

	if (child == 0)
		printf("in the child: %d\n", uv_loop_fork(&loop));
	else if (child > 0)
		edges_wait(child);
}

static void on_fork_time(uv_timer_t *timer)
{
	edges_print(timer);
	fork_here();
}

void edges_fork_callback(void)
{
	start_timers();
	(void)uv_timer_start(&timers[0], on_fork_time, 9, 5);
	(void)uv_timer_start(&timers[1], edges_print, 9, 0);
	(void)uv_timer_start(&timers[2], edges_print, 9, 6);
	uv_unref((uv_handle_t *)&timers[0]);
	uv_unref((uv_handle_t *)&timers[2]);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	edges_end(&loop);
}

static void on_async(uv_async_t *async)
{
	(void)uv_timer_stop(&timers[1]);
	fork_here();
	(void)uv_timer_start(&timers[1], edges_print, 1, 0);
	uv_close((uv_handle_t *)async, NULL);
}

/*
 * Forks between the loop's uv_prepare_t and its uv_check_t. The thread is inside the engine's
 * bracket there.
 */
void edges_fork_poll(void)
{
	uv_async_t async;

	start_timers();
	(void)uv_async_init(&loop, &async, on_async);
	(void)uv_async_send(&async);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	edges_end(&loop);
}

static void child_makes_a_loop(void)
{
	static uv_loop_t its;
	uv_timer_t timer;

	edges_need(uv_loop_init(&its) == 0, "uv_loop_init", 0);
	edges_open(&its, &timer, "the child's");
	(void)uv_timer_start(&timer, edges_print, 5, 7);
	for (int round = 0; round < 3; round++)
		(void)uv_run(&its, UV_RUN_ONCE);
	edges_end(&its);
	(void)fflush(stdout);
	_exit(0);
}

void edges_fork_new(void)
{
	int child;

	start_timers();
	child = fork_flushed();
	if (child == 0)
		child_makes_a_loop();
	edges_wait(child);
	edges_end(&loop);
}
