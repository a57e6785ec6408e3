/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-uv-timer: its shutdown and unusual inputs. uv_random.c compares all other behaviour
 * with libuv's own timers.
 *
 * Seen to fail with these defects:
 * - a second close is accepted;
 * - a close does not take the timer out of the list of due timers;
 * - the engine's bracket (tw_loop_enter to tw_loop_exit) stays open when uv_run returns;
 * - handles that the program has closed by uv_walk are closed again;
 * - memory is freed while the loop still closes such handles (found by valgrind);
 * - a far timer does not keep the loop alive;
 * - a child waits for the parent's timers;
 * - a start without memory leaves its timer active;
 * - the adapter's own timer, the driver, still runs when all timers are stopped.
 */
#include "check.h"
#include "child.h"
#include "clock.h"
#include "fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <tickwheel/memory.h>
#include <tickwheel/uv_timer.h>
#include <uv.h>

struct scene {
	uv_loop_t loop;
	struct tw_uv_timers *timers;
	struct tw_uv_timer one, two;
	int runs;
	int closes;
	int64_t now_ns;
};

static void open_scene(struct scene *scene)
{
	*scene = (struct scene){.now_ns = INT64_C(5000) * NS_PER_S};
	clock_ns = &scene->now_ns;
	check_int(uv_loop_init(&scene->loop), 0);
	check_int(tw_uv_timers_create(&scene->loop, &scene->timers), 0);
	check_int(tw_uv_timer_init(scene->timers, &scene->one), 0);
	check_int(tw_uv_timer_init(scene->timers, &scene->two), 0);
	scene->one.data = scene->two.data = scene;
}

static void on_run(struct tw_uv_timer *timer)
{
	struct scene *scene = timer->data;

	scene->runs++;
}

static void on_close(struct tw_uv_timer *timer)
{
	struct scene *scene = timer->data;

	scene->closes++;
}

static int run(struct scene *scene)
{
	return uv_run(&scene->loop, UV_RUN_DEFAULT);
}

/* Clears the substituted time, because Criterion reads the clock, too, when the scene no longer
 * exists. */
static void end_loop(struct scene *scene)
{
	check_int(uv_loop_close(&scene->loop), 0);
	clock_ns = NULL;
}

static void close_loop(struct scene *scene)
{
	check_int(tw_uv_timers_close(scene->timers), 0);
	check_int(run(scene), 0);
	end_loop(scene);
}

static void close_scene(struct scene *scene)
{
	check_int(tw_uv_timer_close(&scene->one, on_close), 0);
	check_int(tw_uv_timer_close(&scene->two, NULL), 0);
	check_int(run(scene), 0);
	close_loop(scene);
}

Test(uv_timer, rejects_what_is_no_timer)
{
	struct tw_uv_timer zeros = {NULL, {0}};
	struct tw_uv_timers *timers = NULL;
	struct scene scene;

	open_scene(&scene);
	check_int(tw_uv_timers_create(NULL, &timers), -EINVAL);
	check_int(tw_uv_timers_create(&scene.loop, NULL), -EINVAL);
	check_int(tw_uv_timers_close(NULL), 0);
	check_int(tw_uv_timer_init(NULL, &zeros), -EINVAL);
	check_int(tw_uv_timer_init(scene.timers, NULL), -EINVAL);
	for (int i = 0; i < 2; i++) {
		struct tw_uv_timer *timer = i == 0 ? NULL : &zeros;
		int stopped = i == 0 ? -EINVAL : 0;

		check_int(tw_uv_timer_start(timer, on_run, 1, 1), -EINVAL);
		check_int(tw_uv_timer_again(timer), -EINVAL);
		check_int(tw_uv_timer_close(timer, on_close), -EINVAL);
		check_int(tw_uv_timer_stop(timer), stopped);
		check_int(tw_uv_timer_ref(timer), stopped);
		check_int(tw_uv_timer_unref(timer), stopped);
		check_int(tw_uv_timer_set_repeat(timer, 0), stopped);
		check_int(tw_uv_timer_get_repeat(timer), 0);
		check_int(tw_uv_timer_get_due_in(timer), 0);
		check_int(tw_uv_timer_is_active(timer), 0);
		check_int(tw_uv_timer_is_closing(timer), 0);
		check_int(tw_uv_timer_has_ref(timer), 0);
	}
	check_int(tw_uv_timer_start(&scene.one, NULL, 1, 1), -EINVAL);
	close_scene(&scene);
	check_int(scene.closes, 1);
}

Test(uv_timer, is_closed_once)
{
	struct scene scene;

	open_scene(&scene);
	check_int(tw_uv_timer_start(&scene.one, on_run, 1, 5), 0);
	check_int(tw_uv_timer_close(&scene.one, on_close), 0);
	check_int(tw_uv_timer_close(&scene.one, on_close), -EINVAL);
	check_int(tw_uv_timer_start(&scene.one, on_run, 1, 0), -EINVAL);
	check_int(tw_uv_timer_again(&scene.one), 0);
	check_int(tw_uv_timer_stop(&scene.one), 0);
	check_int(tw_uv_timer_is_active(&scene.one), 0);
	check_int(tw_uv_timers_close(scene.timers), -EBUSY);
	check_int(run(&scene), 0);
	check_int(scene.closes, 1);
	check_int(scene.runs, 0);
	check_int(tw_uv_timer_close(&scene.one, on_close), -EINVAL);
	check_int(tw_uv_timer_start(&scene.one, on_run, 1, 0), -EINVAL);
	check_int(tw_uv_timer_close(&scene.two, on_close), 0);
	check_int(run(&scene), 0);
	close_loop(&scene);
	check_int(tw_uv_timer_start(&scene.one, on_run, 1, 0), -EINVAL);
	check_int(tw_uv_timer_stop(&scene.one), 0);
	check_int(tw_uv_timer_get_due_in(&scene.one), 0);
	check_int(scene.closes, 2);
}

static void close_both(struct tw_uv_timer *timer)
{
	struct scene *scene = timer->data;

	scene->runs++;
	check_int(tw_uv_timer_close(&scene->one, on_close), 0);
	check_int(tw_uv_timer_close(&scene->two, on_close), 0);
	check_int(tw_uv_timers_close(scene->timers), -EBUSY);
}

/* Both timers are due. The one that runs first closes both, so the other must not run. */
Test(uv_timer, closes_itself_and_another_in_its_callback)
{
	struct scene scene;

	open_scene(&scene);
	check_int(tw_uv_timer_start(&scene.one, close_both, 3, 1), 0);
	check_int(tw_uv_timer_start(&scene.two, close_both, 3, 1), 0);
	check_int(run(&scene), 0);
	check_int(scene.runs, 1);
	check_int(scene.closes, 2);
	close_loop(&scene);
}

static void close_all(struct tw_uv_timer *timer)
{
	struct scene *scene = timer->data;

	if (++scene->closes == 2)
		check_int(tw_uv_timers_close(scene->timers), 0);
	else
		check_int(tw_uv_timers_close(scene->timers), -EBUSY);
}

Test(uv_timer, last_close_callback_frees_all)
{
	struct scene scene;

	open_scene(&scene);
	check_int(tw_uv_timer_start(&scene.one, on_run, 3, 1), 0);
	check_int(tw_uv_timer_close(&scene.one, close_all), 0);
	check_int(tw_uv_timer_close(&scene.two, close_all), 0);
	check_int(run(&scene), 0);
	end_loop(&scene);
}

static void walk_close(uv_handle_t *handle, void *unused)
{
	(void)unused;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* The program closes all handles that uv_walk finds, also those of the library. Only then
 * does it close its timers. */
Test(uv_timer, handles_closed_by_the_program)
{
	struct tw_uv_timer late = {NULL, {0}};
	struct scene scene;

	open_scene(&scene);
	check_int(tw_uv_timer_start(&scene.one, on_run, 3, 1), 0);
	uv_walk(&scene.loop, walk_close, NULL);
	check_int(tw_uv_timer_start(&scene.one, on_run, 3, 1), -ESHUTDOWN);
	check_int(tw_uv_timer_again(&scene.one), -ESHUTDOWN);
	check_int(tw_uv_timer_init(scene.timers, &late), -ESHUTDOWN);
	check_int(tw_uv_timer_unref(&scene.one), 0);
	check_int(tw_uv_timer_close(&scene.one, on_close), -ESHUTDOWN);
	check_int(run(&scene), 0);
	end_loop(&scene);
	check_int(tw_uv_timer_get_due_in(&scene.two), 0);
	check_int(tw_uv_timer_start(&scene.two, on_run, 0, 0), -ESHUTDOWN);
	check_int(tw_uv_timer_stop(&scene.two), 0);
	check_int(tw_uv_timers_close(scene.timers), -EBUSY);
	check_int(tw_uv_timer_close(&scene.two, on_close), -ESHUTDOWN);
	check_int(tw_uv_timers_close(scene.timers), 0);
	check_int(scene.runs + scene.closes, 0);
}

static void walk_close_timers(uv_handle_t *handle, void *unused)
{
	if (handle->type == UV_TIMER)
		walk_close(handle, unused);
}

/* The program closes only the library's timer handle. The library then closes its other
 * handles, whose close callbacks run before that of the timer handle. */
Test(uv_timer, driver_closed_by_the_program)
{
	struct scene scene;

	open_scene(&scene);
	check_int(tw_uv_timer_start(&scene.one, on_run, 3, 1), 0);
	uv_walk(&scene.loop, walk_close_timers, NULL);
	check_int(tw_uv_timer_close(&scene.one, on_close), -ESHUTDOWN);
	check_int(tw_uv_timer_close(&scene.two, on_close), -ESHUTDOWN);
	close_loop(&scene);
}

/* libuv must not close a loop that still has the library's handles. */
Test(uv_timer, loop_is_busy_while_it_has_timers)
{
	struct scene scene;

	open_scene(&scene);
	check_int(run(&scene), 0);
	check_int(uv_loop_close(&scene.loop), UV_EBUSY);
	close_scene(&scene);
}

static void *run_elsewhere(void *argument)
{
	struct scene *scene = argument;

	clock_ns = &scene->now_ns;
	check_int(run(scene), 0);
	return NULL;
}

static void restart(struct tw_uv_timer *timer)
{
	struct scene *scene = timer->data;

	if (++scene->runs < 10)
		check_int(tw_uv_timer_start(timer, restart, 1, 0), 0);
}

static void start_in_check(uv_check_t *check)
{
	struct scene *scene = check->data;

	check_int(tw_uv_timer_start(&scene->two, on_run, 5, 0), 0);
	check_int(uv_check_stop(check), 0);
}

/* The program's uv_check_t runs before the library's, and starts a timer. This call opens a bracket
 * (tw_loop_enter), which the library's check must close. */
Test(uv_timer, bracket_of_a_poll_ends_with_it)
{
	struct scene scene;
	uv_check_t check;
	pthread_t thread;

	open_scene(&scene);
	check_int(uv_check_init(&scene.loop, &check), 0);
	check.data = &scene;
	check_int(uv_check_start(&check, start_in_check), 0);
	check_int(uv_run(&scene.loop, UV_RUN_NOWAIT), 1);
	uv_close((uv_handle_t *)&check, NULL);
	check_int(pthread_create(&thread, NULL, run_elsewhere, &scene), 0);
	check_int(pthread_join(thread, NULL), 0);
	check_int(scene.runs, 1);
	close_scene(&scene);
}

static void ignore(uv_check_t *check)
{
	(void)check;
}

/* When all timers are stopped, the loop must sleep for as long as its other handles allow. */
Test(uv_timer, stopped_timer_does_not_wake_the_loop)
{
	struct scene scene;
	uv_check_t check;

	open_scene(&scene);
	check_int(uv_check_init(&scene.loop, &check), 0);
	check_int(uv_check_start(&check, ignore), 0);
	check_int(tw_uv_timer_start(&scene.one, on_run, 5, 0), 0);
	check_int(uv_run(&scene.loop, UV_RUN_NOWAIT), 1);
	check_int(uv_backend_timeout(&scene.loop), 5);
	check_int(tw_uv_timer_stop(&scene.one), 0);
	check_int(uv_run(&scene.loop, UV_RUN_NOWAIT), 1);
	check_int(uv_backend_timeout(&scene.loop), -1);
	uv_close((uv_handle_t *)&check, NULL);
	close_scene(&scene);
}

/* A timer is started on this thread. Its loop runs on another thread, then on this one again. */
Test(uv_timer, loop_moves_from_thread_to_thread)
{
	struct scene scene;
	pthread_t thread;

	open_scene(&scene);
	check_int(tw_uv_timer_start(&scene.one, restart, 5, 0), 0);
	check_int(pthread_create(&thread, NULL, run_elsewhere, &scene), 0);
	check_int(pthread_join(thread, NULL), 0);
	check_int(scene.runs, 10);
	check_int(tw_uv_timer_start(&scene.two, on_run, 5, 0), 0);
	check_int(run(&scene), 0);
	check_int(scene.runs, 11);
	close_scene(&scene);
}

/* The longest time must keep the loop alive. The loop must not be asked to wait longer than
 * libuv can. */
Test(uv_timer, longest_time_keeps_the_loop_alive)
{
	struct scene scene;

	open_scene(&scene);
	check_int(tw_uv_timer_start(&scene.one, on_run, UINT64_MAX, 0), 0);
	check_true(uv_loop_alive(&scene.loop));
	check_int(uv_run(&scene.loop, UV_RUN_NOWAIT), 1);
	check_int(uv_backend_timeout(&scene.loop), INT32_MAX);
	check_int(tw_uv_timer_start(&scene.one, on_run, 7, 0), 0);
	check_int(uv_backend_timeout(&scene.loop), 7);
	check_int(run(&scene), 0);
	check_int(scene.runs, 1);
	close_scene(&scene);
}

static void stop_loop(struct tw_uv_timer *timer)
{
	struct scene *scene = timer->data;

	on_run(timer);
	uv_stop(&scene->loop);
}

Test(uv_timer, unreferenced_timer_runs_while_another_holds_the_loop)
{
	struct scene scene;

	open_scene(&scene);
	check_int(tw_uv_timer_start(&scene.one, on_run, 5, 5), 0);
	check_int(tw_uv_timer_unref(&scene.one), 0);
	check_int(tw_uv_timer_unref(&scene.one), 0);
	check_int(tw_uv_timer_has_ref(&scene.one), 0);
	check_int(run(&scene), 0);
	check_int(scene.runs, 0);
	check_int(tw_uv_timer_start(&scene.two, stop_loop, 23, 0), 0);
	(void)run(&scene);
	check_int(scene.runs, 5);
	check_int(tw_uv_timer_ref(&scene.one), 0);
	check_true(uv_loop_alive(&scene.loop));
	close_scene(&scene);
}

static struct scene parents;

/*
 * Closes the parent's timers in the child. They must not run there. After that the child's loop
 * ends.
 */
static void child_closes(void)
{
	child_need(uv_loop_fork(&parents.loop), 0);
	child_need(tw_uv_timer_start(&parents.two, on_run, 1, 0), -ECHILD);
	child_need(tw_uv_timer_is_active(&parents.two), 0);
	child_need(run(&parents), 0);
	child_need(parents.runs, 0);
	child_need(tw_uv_timer_close(&parents.one, on_close), 0);
	child_need(tw_uv_timer_close(&parents.two, on_close), 0);
	child_need(run(&parents), 0);
	child_need(parents.closes, 2);
	child_need(tw_uv_timers_close(parents.timers), 0);
	child_need(run(&parents), 0);
	child_need(uv_loop_close(&parents.loop), 0);
}

Test(uv_timer, in_a_forked_child)
{
	open_scene(&parents);
	check_int(tw_uv_timer_start(&parents.one, on_run, 5, 0), 0);
	in_child(child_closes);
	check_int(run(&parents), 0);
	check_int(parents.runs, 1);
	close_scene(&parents);
}

/* Without memory, a start must fail and leave its timer stopped. */
Test(uv_timer, start_without_memory)
{
	enum { MANY = 20000 };
	struct tw_uv_timer *timers = calloc(MANY, sizeof *timers);
	struct fault fault;
	struct scene scene;
	int failed = 0;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	open_scene(&scene);
	fault_arm(&fault, 1, INT64_MAX);
	for (int i = 0; i < MANY; i++) {
		timers[i].data = &scene;
		check_int(tw_uv_timer_init(scene.timers, &timers[i]), 0);
		if (tw_uv_timer_start(&timers[i], on_run, 5, 0) == -ENOMEM)
			failed++;
		else
			check_int(tw_uv_timer_is_active(&timers[i]), 1);
	}
	check_at_least(failed, 1);
	fault_disarm(&fault);
	check_int(run(&scene), 0);
	check_int(scene.runs, MANY - failed);
	for (int i = 0; i < MANY; i++)
		check_int(tw_uv_timer_close(&timers[i], on_close), 0);
	check_int(run(&scene), 0);
	close_scene(&scene);
	check_int(scene.closes, MANY + 1);
	free(timers);
}

enum { EXTRAS = 100000 };

static struct tw_uv_timer extras[EXTRAS];
static struct fault restart_fault;

/*
 * Uses up all memory, and then starts again a timer that is due in the same iteration of the loop.
 */
static void restart_other(struct tw_uv_timer *timer)
{
	struct scene *scene = timer->data;
	int error = 0;

	scene->runs++;
	fault_arm(&restart_fault, 1, INT64_MAX);
	for (int i = 0; i < EXTRAS && error == 0; i++)
		error = tw_uv_timer_start(&extras[i], on_run, 1000, 0);
	check_int(error, -ENOMEM);
	check_int(tw_uv_timer_start(&scene->two, on_run, 5, 0), -ENOMEM);
	check_int(tw_uv_timer_is_active(&scene->two), 0);
	for (int i = 0; i < EXTRAS; i++)
		check_int(tw_uv_timer_stop(&extras[i]), 0);
	fault_disarm(&restart_fault);
}

/*
 * Before libuv 1.48, a due timer stays active until it runs. So the failed start must record that
 * the timer has ended (src/hosts/uv_books.c).
 */
Test(uv_timer, due_timer_that_cannot_start_again_is_stopped)
{
	struct scene scene;

	fault_init(&restart_fault);
	check_int(tw_memory_allocator_set(&restart_fault.allocator), 0);
	open_scene(&scene);
	for (int i = 0; i < EXTRAS; i++) {
		extras[i].data = &scene;
		check_int(tw_uv_timer_init(scene.timers, &extras[i]), 0);
	}
	check_int(tw_uv_timer_start(&scene.one, restart_other, 5, 0), 0);
	check_int(tw_uv_timer_start(&scene.two, on_run, 5, 0), 0);
	check_int(run(&scene), 0);
	check_int(scene.runs, 1);
	for (int i = 0; i < EXTRAS; i++)
		check_int(tw_uv_timer_close(&extras[i], NULL), 0);
	close_scene(&scene);
}
