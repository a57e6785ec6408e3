/* SPDX-License-Identifier: MIT */
/*
 * For a uv_fs_poll_t, libuv uses an internal timer and changes its flags without a call. The
 * scenarios run in real time, because another thread looks at the file.
 *
 * Seen to fail with these defects: the preloaded library handles libuv's internal timer, so the
 * timer keeps the loop alive; that timer never starts.
 */
#include "edges.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[] = "/tmp/tickwheel-preload-XXXXXX";
static char path[sizeof folder + 8];

static void folder_make(void)
{
	edges_need(mkdtemp(folder) != NULL, "mkdtemp", 0);
	(void)snprintf(path, sizeof path, "%s/file", folder);
}

static void file_make(void)
{
	int file = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);

	edges_need(file >= 0 && close(file) == 0, "open", file);
}

static void on_change(uv_fs_poll_t *poll, int status, const uv_stat_t *before,
		      const uv_stat_t *after)
{
	(void)before;
	(void)after;
	printf("status %d\n", status);
	if (status == UV_ENOENT)
		file_make();
	else
		uv_close((uv_handle_t *)poll, edges_print_closed);
}

/* The file does not exist at first. It is created during the poll. */
void edges_file(void)
{
	uv_loop_t loop;
	uv_fs_poll_t poll;

	folder_make();
	(void)uv_loop_init(&loop);
	(void)uv_fs_poll_init(&loop, &poll);
	poll.data = (void *)"poll";
	printf("starts: %d\n", uv_fs_poll_start(&poll, on_change, path, 1));
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	printf("closes: %d\n", uv_loop_close(&loop));
	(void)unlink(path);
	(void)rmdir(folder);
}

static void on_time(uv_timer_t *timer)
{
	printf("%s\n", (const char *)timer->data);
	uv_close((uv_handle_t *)timer, edges_print_closed);
}

static void on_no_change(uv_fs_poll_t *poll, int status, const uv_stat_t *before,
			 const uv_stat_t *after)
{
	(void)poll;
	(void)status;
	(void)before;
	(void)after;
}

/* A poll without a reference does not keep the loop alive. So its timer must not do so either. */
void edges_file_idle(void)
{
	uv_loop_t loop;
	uv_fs_poll_t poll;
	uv_timer_t timer;

	folder_make();
	file_make();
	(void)uv_loop_init(&loop);
	edges_open(&loop, &timer, "time is over");
	edges_need_ours(&timer, true);
	(void)uv_fs_poll_init(&loop, &poll);
	poll.data = (void *)"poll";
	printf("starts: %d\n", uv_fs_poll_start(&poll, on_no_change, path, 10000));
	uv_unref((uv_handle_t *)&poll);
	(void)uv_timer_start(&timer, on_time, 50, 0);
	printf("runs: %d\n", uv_run(&loop, UV_RUN_DEFAULT));
	edges_end(&loop);
	(void)unlink(path);
	(void)rmdir(folder);
}
