/* SPDX-License-Identifier: MIT */
/*
 * A forked child creates engines as its first call, in any thread. No block may belong to two
 * timeouts, whichever threads have used the library before, and whichever thread takes over the
 * library.
 *
 * Seen to fail with these defects: the forking thread keeps its free blocks in the child, and
 * another thread takes over the library (another_thread_takes_over); tw_thread_attach takes blocks
 * in a child that has not taken over the library (another_thread_has_attached).
 */
#include "child.h"
#include "heir_threads.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>

enum { MANY = 5000, FEW = 100 };

static struct fixture fixture;
static struct tw_handle parents;
static struct tw_engine *own;
static struct tw_handle handles[MANY + FEW];
static atomic_int runs;
static sem_t attached, created;

static void schedule(int from, int to)
{
	for (int i = from; i < to; i++)
		child_need(tw_schedule(own, NS_PER_S * 1000, &count_kind, &runs, &handles[i]), 0);
}

static void child_creates(void)
{
	child_need(tw_engine_create(NULL, &own), 0);
	schedule(0, MANY);
}

/* Cancels all timeouts. If two had one block, the older one's handle would be stale. */
static void child_ends(void)
{
	for (int i = 0; i < MANY + FEW; i++)
		child_need(tw_cancel(handles[i]), TW_CANCEL_DONE);
	child_need(tw_cancel(parents), -ECHILD);
	child_need(tw_engine_stop(own, NULL, NULL, TW_NEVER), 0);
	child_need(tw_engine_destroy(own), 0);
	child_need(atomic_load(&runs), 0);
}

static void *create_body(void *arg)
{
	child_creates();
	return arg;
}

static void child_of_two_threads(void)
{
	pthread_t thread;

	heir_threads_begin();
	child_need(pthread_create(&thread, NULL, create_body, NULL), 0);
	child_need(pthread_join(thread, NULL), 0);
	schedule(MANY, MANY + FEW);
	child_ends();
}

static void *attach_body(void *arg)
{
	child_need(tw_thread_attach(), 0);
	sem_post(&attached);
	while (sem_wait(&created) != 0)
		;
	schedule(MANY, MANY + FEW);
	return arg;
}

static void child_with_an_attached_thread(void)
{
	pthread_t thread;

	heir_threads_begin();
	sem_init(&attached, 0, 0);
	sem_init(&created, 0, 0);
	child_need(pthread_create(&thread, NULL, attach_body, NULL), 0);
	while (sem_wait(&attached) != 0)
		;
	child_creates();
	sem_post(&created);
	child_need(pthread_join(thread, NULL), 0);
	child_ends();
}

/* The forking thread has free blocks, and another timeout of the parent is pending. */
static void fork_with(void (*child)(void))
{
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	parents = must_schedule(fixture.engine, NS_PER_S, &count_kind, &runs);
	handle = must_schedule(fixture.engine, NS_PER_S, &count_kind, &runs);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	in_child(child);
	check_int(tw_cancel(parents), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

Test(fork_creates, another_thread_takes_over)
{
	fork_with(child_of_two_threads);
}

Test(fork_creates, another_thread_has_attached)
{
	fork_with(child_with_an_attached_thread);
}
