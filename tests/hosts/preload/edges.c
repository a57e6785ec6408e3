/* SPDX-License-Identifier: MIT */
/*
 * Runs one scenario of an unusual use of libuv's timers, in a process of its own. The program
 * itself uses only libuv. same.sh compares its output without and with the preloaded library.
 *
 * usage: edges SCENARIO
 */
#include "edges.h"

#include "clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static _Thread_local int64_t now_ns;

void edges_clock(void)
{
	now_ns = INT64_C(7000) * 1000 * NS_PER_MS;
	clock_ns = &now_ns;
}

int64_t edges_now_ms(void)
{
	return now_ns / NS_PER_MS;
}

void edges_need(bool condition, const char *what, int64_t number)
{
	if (condition)
		return;
	(void)fprintf(stderr, "%s: %" PRId64 "\n", what, number);
	exit(1);
}

void edges_need_ours(const uv_timer_t *timer, bool is_ours)
{
	if (getenv("TESTS_PRELOADED") != NULL)
		edges_need((timer->u.reserved[3] != NULL) == is_ours, "the timer is ours",
			   !is_ours);
}

void edges_open(uv_loop_t *loop, uv_timer_t *timer, const char *name)
{
	memset(timer, 0x5a, sizeof *timer);
	edges_need(uv_timer_init(loop, timer) == 0, "uv_timer_init", 1);
	timer->data = (void *)name;
}

void edges_print(uv_timer_t *timer)
{
	printf("%" PRId64 " %s\n", edges_now_ms(), (const char *)timer->data);
}

void edges_print_closed(uv_handle_t *handle)
{
	printf("%s is closed\n", (const char *)handle->data);
}

static void close_one(uv_handle_t *handle, void *context)
{
	(void)context;
	if (uv_is_closing(handle) == 0)
		uv_close(handle, NULL);
}

void edges_end(uv_loop_t *loop)
{
	uv_walk(loop, close_one, NULL);
	printf("with handles that close: %d\n", uv_loop_close(loop));
	printf("runs: %d\n", uv_run(loop, UV_RUN_DEFAULT));
	printf("closes: %d\n", uv_loop_close(loop));
}

void edges_wait(int child)
{
	int status = -1;

	edges_need(child > 0 && waitpid(child, &status, 0) == child, "waitpid", child);
	edges_need(status == 0, "the child's status", status);
}

static const struct {
	const char *name;
	void (*run)(void);
} scenarios[] = {
	{"threads", edges_threads},     {"stale", edges_stale},
	{"shutdown", edges_shutdown},   {"stopped", edges_stopped},
	{"closing", edges_closing},     {"past", edges_past},
	{"freed", edges_freed},         {"file", edges_file},
	{"file_idle", edges_file_idle}, {"no_timers", edges_no_timers},
	{"no_memory", edges_no_memory}, {"no_memory_later", edges_no_memory_later},
	{"fork", edges_fork},           {"fork_callback", edges_fork_callback},
	{"fork_poll", edges_fork_poll}, {"fork_new", edges_fork_new},
};

int main(int count, char **texts)
{
	for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
		if (count != 2 || strcmp(scenarios[i].name, texts[1]) != 0)
			continue;
		scenarios[i].run();
		printf("ends\n");
		return 0;
	}
	(void)fprintf(stderr, "usage: %s SCENARIO\n", texts[0]);
	return 2;
}
