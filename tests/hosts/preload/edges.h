/* SPDX-License-Identifier: MIT */
/*
 * Shared by the scenarios of edges.c. Each scenario prints what a program sees. That must not
 * change with the preloaded library.
 */
#ifndef TESTS_HOSTS_PRELOAD_EDGES_H
#define TESTS_HOSTS_PRELOAD_EDGES_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum { NS_PER_MS = 1000000 };

/* Gives the calling thread a substituted time. edges_now_ms returns that time. */
void edges_clock(void);
int64_t edges_now_ms(void);

/* Ends the program with the text and the number, if the condition does not hold. */
void edges_need(bool condition, const char *what, int64_t number);

/*
 * Ends the program if the wrong library handles the timer. If `is_ours`, the preloaded library must
 * handle it, otherwise libuv must. Checks nothing without the preloaded library, because then every
 * timer is libuv's own.
 */
void edges_need_ours(const uv_timer_t *timer, bool is_ours);

/* Initialises a timer in memory that is not zeroed. `name` becomes the timer's data. */
void edges_open(uv_loop_t *loop, uv_timer_t *timer, const char *name);

/* Print the time and the handle's name. */
void edges_print(uv_timer_t *timer);
void edges_print_closed(uv_handle_t *handle);

/* Closes all handles, runs the loop and closes it. Prints the codes. */
void edges_end(uv_loop_t *loop);

/*
 * Waits for a child, whose exit code must be 0. The child's output stays a part of the program's
 * output.
 */
void edges_wait(int child);

void edges_threads(void);
void edges_stale(void);
void edges_shutdown(void);
void edges_stopped(void);
void edges_closing(void);
void edges_past(void);
void edges_freed(void);
void edges_file(void);
void edges_file_idle(void);
void edges_no_timers(void);
void edges_no_memory(void);
void edges_no_memory_later(void);
void edges_fork(void);
void edges_fork_callback(void);
void edges_fork_poll(void);
void edges_fork_new(void);

#endif
