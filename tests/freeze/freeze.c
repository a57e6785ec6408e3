/* SPDX-License-Identifier: MIT */
/*
 * Stops one thread, the victim, at a test point inside a public call, and does so for each row of a
 * table (rows.c). Meanwhile every call of every other thread must complete, and timeouts in the
 * wheel must fire on time. README.md lists all calls and points, and the known exceptions with the
 * delays that they cause. This test shows each exception:
 *
 * - if the victim stops between exchange and link of a push to a link queue, or before it raises
 *   the tail of a ring, later pushes of the same lane are hidden. If each thread has a lane, these
 *   are only the victim's own pushes;
 * - if the victim stops inside a read-side section, stops of all engines wait: each returns
 *   -ETIMEDOUT, and ends when the victim continues;
 * - while a worker is being created, no timeout of its engine fires, because there is no worker
 *   yet;
 * - if the victim stops before it has closed the engine, or does stop's work itself because no
 *   worker can be created, other stops wait for the victim.
 *
 * Without arguments: runs all rows. `list`: prints them. Each point that a frozen call passes must
 * have a row of its own, too.
 *
 * Seen to fail with these defects:
 * - a flush waits although no push to the lane of its thread has stopped in the middle, so the flush
 *   of another thread hangs;
 * - schedule is outside its critical section, so a stop ends although it must wait;
 * - twi_ring_push() raises the tail before it writes the entry, so the worker reads an entry that
 *   is not there, and crashes;
 * - the rows of the point `cancel:won` are missing, so the call passes a point without a row.
 */
#include "rows.h"
#include "slowdown.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	ROWS_MAX = 160,
	PATIENCE_MS = 20000,
	/*
	 * A row is repeated, with later timeouts, if the victim did not pass the point because the
	 * worker was awake, or if the wheel fired before the victim reached the point.
	 */
	REPEATS = 8,
	DUE_MS = 30,
	OTHERS_ROUNDS = 1000,
	STANDS_MS = 20,
	/*
	 * This bound is large, because timeouts are late on a busy machine anyway. The victim stays
	 * stopped for much longer.
	 */
	LATE_MS = 1500,
	SECONDS_PER_ROW = 60,
};

static const struct row *current;
static _Atomic bool victim_done;
/* whether a call passed a point; indexed by the first row of the call and by that of the point */
static bool seen[ROWS_MAX][ROWS_MAX];

_Noreturn void fail(const char *what)
{
	fprintf(stderr, "frozen in %s at %s: %s\n", current->call, current->point, what);
	fflush(NULL);
	_exit(1);
}

static bool covers(unsigned effect)
{
	return (current->effects & effect) == effect;
}

/* Returns the index of the first row of this call. */
static size_t call_index(const char *call)
{
	size_t i = 0;

	while (strcmp(rows[i].call, call) != 0)
		i++;
	return i;
}

/* Returns the index of the first row at this point. */
static size_t point_index(const char *point)
{
	for (size_t i = 0; i < row_count; i++)
		if (strcmp(rows[i].point, point) == 0)
			return i;
	fprintf(stderr, "%s passes %s, which no row has\n", current->call, point);
	fflush(NULL);
	_exit(1);
}

static void on_passed(const char *point)
{
	seen[call_index(current->call)][point_index(point)] = true;
}

static void *victim_main(void *argument)
{
	int64_t until_ms = now_ms() + PATIENCE_MS;
	bool once = strcmp(current->call, "tw_engine_stop") == 0;

	(void)argument;
	do
		current->attempt();
	while (!atomic_load(&row_stand.stands) && !once && now_ms() < until_ms);
	atomic_store(&victim_done, true);
	return NULL;
}

/* Does the work of a thread that is not stopped: schedules a timeout and queries it. */
static struct tw_handle other_schedule(int round)
{
	struct tw_timeout timeout = {.size = sizeof timeout};
	struct tw_handle handle = {0};
	int result = round % 2 == 0
			     ? tw_schedule(scene.engine, TW_NEVER, &scene_kind, NULL, &handle)
			     : tw_schedule_at(scene.engine, TW_NEVER, &scene_kind, NULL, &handle);

	if (result != (covers(CLOSED) ? -ESHUTDOWN : 0))
		fail("a schedule of another thread");
	if (result != 0)
		return handle;
	atomic_fetch_add(&scene.accepted, 1);
	if (tw_timeout_get(handle, &timeout) != 0 || timeout.engine != scene.engine ||
	    tw_timeout_state(handle) != TW_STATE_INIT)
		fail("a question of another thread about a timeout");
	return handle;
}

static void other_cancel(int round, struct tw_handle handle)
{
	int outcome = round % 3 == 0 ? tw_cancel_wait(handle, TW_NEVER) : tw_cancel(handle);

	if (outcome != TW_CANCEL_DONE)
		fail("a cancel of another thread");
	atomic_fetch_add(&scene.cancelled, 1);
}

static void other_questions(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	if (tw_stats_get(scene.engine, &stats) != 0 || tw_engine_pending(scene.engine) < 0 ||
	    tw_engine_state(scene.engine) < 0 || tw_engine_now(scene.engine) < 0 ||
	    tw_engine_start(scene.engine) != (covers(CLOSED) ? -ESHUTDOWN : 0))
		fail("a question of another thread about the engine");
}

static void on_text(void *context, const char *text, size_t bytes)
{
	(void)context;
	(void)text;
	(void)bytes;
}

static void other_waits(void)
{
	if (tw_engine_flush(scene.engine, TW_NEVER) != 0)
		fail("a flush of another thread");
	if (tw_engine_dump(scene.engine, on_text, NULL, TW_NEVER) != 0)
		fail("a dump of another thread");
}

/* Makes every public call that a server makes. */
static void others_call(void)
{
	for (int round = 0; round < OTHERS_ROUNDS; round++) {
		struct tw_handle handle = other_schedule(round);

		if (handle.node == NULL)
			continue;
		if (round % 100 == 50 && scene_has_worker())
			other_waits();
		other_cancel(round, handle);
	}
	other_questions();
	(void)tw_thread_detach();
	(void)tw_thread_attach();
	while (scene_due_run())
		;
}

static void clock_move(void)
{
	if (scene.clock == NULL || covers(MOVES_CLOCK))
		return;
	if (tw_clock_set(scene.clock, (scene.due_ms + 1) * INT64_C(1000000)) != 0)
		fail("the clock does not move");
}

/*
 * Waits while the victim is stopped. The timeouts in the wheel must fire or, in a stop, be handed
 * back.
 */
static int64_t wheel_wait(void)
{
	while (atomic_load(&scene.wheel_ended) < WHEELED) {
		if (now_ms() - scene.begin_ms > scene.due_ms + LATE_MS * (int64_t)slowdown())
			fail("timeouts in the wheel are late");
		nap();
	}
	return atomic_load(&scene.wheel_ended_ms) - scene.begin_ms - scene.due_ms;
}

/* Returns the time limit for a stop: long if the stop must end, short if it must wait. */
static int64_t stop_timeout_ns(bool waits)
{
	return INT64_C(1000000) * (waits ? STANDS_MS : PATIENCE_MS);
}

static void stop_while_frozen(void)
{
	bool waits = covers(STOP_WAITS);
	int result = tw_engine_stop(scene.engine, scene_hand_back, NULL, stop_timeout_ns(waits));

	if (result != (waits ? -ETIMEDOUT : 0))
		fail(result == 0 ? "stop ended, and should have waited" : "stop did not end");
}

static void on_newcomer(struct tw_handle handle, void *arg)
{
	(void)handle;
	atomic_store((_Atomic bool *)arg, true);
}

static const struct tw_kind newcomer_kind = TW_KIND(on_newcomer, NULL);

/*
 * Makes a new thread's first calls, on an engine of its own, while a stop may wait for the victim.
 */
static void *newcomer_main(void *argument)
{
	_Atomic bool came = false;
	struct tw_engine *engine;
	struct tw_handle handle;
	bool waits = covers(SECTION);

	if (tw_engine_create(NULL, &engine) != 0 ||
	    tw_schedule(engine, TW_NEVER, &newcomer_kind, &came, &handle) != 0 ||
	    tw_schedule(engine, 1, &newcomer_kind, &came, NULL) != 0 ||
	    tw_cancel(handle) != TW_CANCEL_DONE)
		fail("the first calls of a new thread");
	while (!atomic_load(&came))
		nap();
	if (tw_engine_stop(engine, NULL, NULL, stop_timeout_ns(waits)) != (waits ? -ETIMEDOUT : 0))
		fail("stop of another engine");
	*(struct tw_engine **)argument = engine;
	return NULL;
}

static struct tw_engine *newcomer_run(void)
{
	struct tw_engine *engine;
	pthread_t newcomer;

	if (pthread_create(&newcomer, NULL, newcomer_main, &engine) != 0)
		fail("no thread");
	(void)pthread_join(newcomer, NULL);
	return engine;
}

static void engine_end(struct tw_engine *engine)
{
	if (tw_engine_stop(engine, NULL, NULL, TW_NEVER) != 0 || tw_engine_destroy(engine) != 0)
		fail("the other engine does not end");
}

/* Makes the calls while the victim is stopped. Returns how late the wheel was, in ms. */
static int64_t while_frozen(void)
{
	int64_t late_ms = 0;

	others_call();
	clock_move();
	if (scene_has_worker() && !covers(CLOSED) && tw_engine_flush(scene.engine, TW_NEVER) != 0)
		fail("a flush of another thread");
	if (scene_has_wheel())
		late_ms = wheel_wait();
	stop_while_frozen();
	return late_ms;
}

static void row_print(int64_t late_ms)
{
	printf("%-16s %-20s others complete; ", current->call, current->point);
	if (!scene_has_wheel())
		printf("no wheel yet; ");
	else if (covers(CLOSED))
		printf("the wheel is handed back; ");
	else if (scene.clock != NULL)
		printf("the wheel fires; ");
	else
		printf("the wheel is at most %2ld ms late; ", (long)late_ms);
	if (covers(SECTION))
		printf("every stop waits\n");
	else
		printf("stop %s\n", covers(STOP_WAITS) ? "waits" : "ends");
}

/* Returns whether the victim has stopped before the wheel has fired. */
static bool stand_reached(void)
{
	while (!atomic_load(&row_stand.stands) && !atomic_load(&victim_done))
		nap();
	return atomic_load(&row_stand.stands) &&
	       (!scene_has_worker() || covers(CLOSED) || atomic_load(&scene.wheel_ended) == 0);
}

/* Plays a row. Returns false if the victim did not pass the point, or reached it too late. */
static bool row_play(int64_t due_ms)
{
	struct tw_engine *other = NULL;
	pthread_t victim;
	int64_t late_ms = 0;
	bool hit;

	victim_done = false;
	row_stand = (struct stand){.point = current->point, .passed = on_passed};
	scene_open(current->setting, covers(RINGLESS), due_ms);
	if (pthread_create(&victim, NULL, victim_main, NULL) != 0)
		fail("no thread");
	hit = stand_reached();
	if (hit) {
		late_ms = while_frozen();
		other = newcomer_run();
	}
	stand_release(&row_stand);
	(void)pthread_join(victim, NULL);
	while (scene_due_run())
		;
	if (tw_engine_stop(scene.engine, scene_hand_back, NULL, TW_NEVER) != 0)
		fail("stop did not end");
	if (hit) {
		engine_end(other);
		row_print(late_ms);
	}
	scene_close();
	return hit;
}

static void row_run(const struct row *row)
{
	current = row;
	alarm(SECONDS_PER_ROW);
	for (int i = 0; i < REPEATS; i++)
		if (row_play((int64_t)DUE_MS << i))
			return;
	fail("the point was never passed");
}

static bool row_exists(const char *call, const char *point)
{
	for (size_t i = 0; i < row_count; i++)
		if (strcmp(rows[i].call, call) == 0 && strcmp(rows[i].point, point) == 0)
			return true;
	return false;
}

/*
 * Returns whether the call may pass the point without a row of its own. Some calls wake a worker
 * that would sleep too long. In their settings, chance decides whether the worker sleeps at that
 * moment, and so whether these calls pass the point. Other calls have a row at that point.
 */
static bool passed_by_chance(const char *call, const char *point)
{
	return strcmp(point, "park:waking") == 0 &&
	       (strcmp(call, "tw_reschedule") == 0 || strcmp(call, "tw_reschedule_at") == 0 ||
		strcmp(call, "tw_due_run") == 0);
}

static bool row_missing(const struct row *call, const struct row *point)
{
	return !row_exists(call->call, point->point) && !passed_by_chance(call->call, point->point);
}

/*
 * Counts the points without a row. A point that the victim passed before the point of its row
 * counts too.
 */
static int seen_check(void)
{
	int missing = 0;

	for (size_t call = 0; call < row_count; call++) {
		for (size_t point = 0; point < row_count; point++) {
			if (!seen[call][point] || !row_missing(&rows[call], &rows[point]))
				continue;
			fprintf(stderr, "%s passes %s, and no row freezes it there\n",
				rows[call].call, rows[point].point);
			missing = 1;
		}
	}
	return missing;
}

static int list(void)
{
	for (size_t i = 0; i < row_count; i++)
		printf("%s %s\n", rows[i].call, rows[i].point);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "list") == 0)
		return list();
	if (row_count > ROWS_MAX) {
		fputs("more rows than ROWS_MAX\n", stderr);
		return 1;
	}
	/* Buffers output by lines, so that results appear even if the next row hangs. */
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < row_count; i++)
		row_run(&rows[i]);
	return seen_check();
}
