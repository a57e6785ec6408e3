/* SPDX-License-Identifier: MIT */
/*
 * The library's read-side sections: a grace period waits for the sections that began before it, and
 * for no others, and gives up at its limit; each thread gives its reader back.
 *
 * Seen to fail with these defects: a grace period does not wait (waits_for_an_open_section,
 * waits_for_a_section_without_a_reader); it waits until a thread is in no section, instead of until
 * it has left the one that it was in (a_later_section_does_not_hold_it); all sections without a
 * reader count in one word (a_later_section_without_a_reader_does_not_hold_it); an exiting thread
 * keeps its reader (readers_are_used_again); a child keeps the readers of the parent's threads
 * (a_child_waits_for_its_own_threads_only); a grace period waits beyond its limit, or says that it
 * has ended although a section is open, or does not end although none is
 * (a_grace_period_gives_up_at_its_limit); tw_reschedule leaves a section open.
 */
#include "asleep.h"
#include "child.h"
#include "heir_threads.h"
#include "probe.h"

#include "thread/futex.h"
#include "thread/rcu.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

enum {
	CROWD = 100, /* more threads than the first block has readers */
	LIMIT_MS = 20,
};

static sem_t inside, leave;
static asleep_thread waiting;

static void sem_await(sem_t *sem)
{
	while (sem_wait(sem) != 0)
		;
}

static void stay_inside(void)
{
	twi_rcu_enter();
	sem_post(&inside);
	sem_await(&leave);
	twi_rcu_leave();
}

static void *section_main(void *arg)
{
	stay_inside();
	return arg;
}

/* Leaves an inner section while the outer one is open. */
static void *nested_main(void *arg)
{
	twi_rcu_enter();
	twi_rcu_enter();
	twi_rcu_leave();
	stay_inside();
	twi_rcu_leave();
	return arg;
}

static void *two_sections_main(void *arg)
{
	stay_inside();
	stay_inside();
	return arg;
}

/* The destructor of this key enters a section in the last round of destructors, when a thread gets
 * no reader any more. */
static pthread_key_t late_key;
static _Thread_local int late_rounds;

static void late_exit(void *arg)
{
	if (++late_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
		(void)pthread_setspecific(late_key, arg);
		return;
	}
	twi_rcu_enter();
	twi_rcu_enter();
	if (twi_reader_self == NULL && twi_rcu_inside())
		sem_post(&inside);
	twi_rcu_leave();
	sem_await(arg);
	twi_rcu_leave();
}

/* `arg`: the semaphore that lets the thread leave, or NULL for the common one. */
static void *late_main(void *arg)
{
	twi_rcu_enter();
	twi_rcu_leave();
	(void)pthread_setspecific(late_key, arg != NULL ? arg : &leave);
	return arg;
}

static void *synchronize_main(void *arg)
{
	asleep_announce(&waiting);
	twi_rcu_synchronize();
	return arg;
}

static void semaphores_init(void)
{
	atomic_store(&waiting, 0);
	(void)sem_init(&inside, 0, 0);
	(void)sem_init(&leave, 0, 0);
}

/* Makes two threads: the first is inside a section, the second waits for that section. */
static void threads_begin(pthread_t thread[2], void *(*section)(void *))
{
	semaphores_init();
	check_int(pthread_create(&thread[0], NULL, section, NULL), 0);
	sem_await(&inside);
	check_int(pthread_create(&thread[1], NULL, synchronize_main, NULL), 0);
	check_true(asleep_await(&waiting));
	check_int(pthread_tryjoin_np(thread[1], NULL), EBUSY);
}

/* Joins a thread whose grace period must end now. */
static void waiter_join(pthread_t waiter)
{
	struct timespec until;

	check_int(clock_gettime(CLOCK_REALTIME, &until), 0);
	until.tv_sec += PATIENCE_NS / NS_PER_S;
	check_int(pthread_timedjoin_np(waiter, NULL, &until), 0);
}

static void threads_end(const pthread_t thread[2])
{
	sem_post(&leave);
	waiter_join(thread[1]);
	check_int(pthread_join(thread[0], NULL), 0);
}

Test(sections, waits_for_an_open_section)
{
	pthread_t thread[2];

	threads_begin(thread, section_main);
	threads_end(thread);
	threads_begin(thread, nested_main);
	threads_end(thread);
}

/*
 * A thread has no reader in the last round of its destructors. In that round ThreadSanitizer has
 * ended its own part of the thread already, so a test of such a section cannot run with it.
 */
#define LAST_ROUND_RUNS (!TWI_TSAN)

Test(sections, waits_for_a_section_without_a_reader)
{
	pthread_t thread[2];

	if (!LAST_ROUND_RUNS)
		return;
	check_int(pthread_key_create(&late_key, late_exit), 0);
	threads_begin(thread, late_main);
	threads_end(thread);
	twi_rcu_synchronize();
}

Test(sections, a_later_section_does_not_hold_it)
{
	pthread_t thread[2];

	threads_begin(thread, two_sections_main);
	sem_post(&leave);
	sem_await(&inside);
	waiter_join(thread[1]);
	sem_post(&leave);
	check_int(pthread_join(thread[0], NULL), 0);
}

/* Sections of threads without a reader may overlap for ever, and still a grace period ends. */
Test(sections, a_later_section_without_a_reader_does_not_hold_it)
{
	pthread_t thread[2], later;
	sem_t leave_later;

	if (!LAST_ROUND_RUNS)
		return;
	(void)sem_init(&leave_later, 0, 0);
	check_int(pthread_key_create(&late_key, late_exit), 0);
	threads_begin(thread, late_main);
	check_int(pthread_create(&later, NULL, late_main, &leave_later), 0);
	sem_await(&inside);
	threads_end(thread);
	sem_post(&leave_later);
	check_int(pthread_join(later, NULL), 0);
	twi_rcu_synchronize();
}

static void *limited_main(void *arg)
{
	*(bool *)arg = twi_rcu_synchronize_until(twi_until_ns(LIMIT_MS * NS_PER_MS));
	return NULL;
}

static bool ends_at_its_limit(void)
{
	pthread_t waiter;
	bool ended;

	check_int(pthread_create(&waiter, NULL, limited_main, &ended), 0);
	waiter_join(waiter);
	return ended;
}

/*
 * The first grace period gives up. If the section belongs to a thread without a reader, it counts
 * in one of two words. The first grace period has made new sections count in the other word, and
 * the second must still find this section.
 */
static void gives_up(void *(*section)(void *))
{
	pthread_t thread;

	semaphores_init();
	check_int(pthread_create(&thread, NULL, section, NULL), 0);
	sem_await(&inside);
	check_true(!ends_at_its_limit());
	check_true(!ends_at_its_limit());
	sem_post(&leave);
	check_int(pthread_join(thread, NULL), 0);
	check_true(ends_at_its_limit());
}

Test(sections, a_grace_period_gives_up_at_its_limit)
{
	gives_up(section_main);
	if (!LAST_ROUND_RUNS)
		return;
	check_int(pthread_key_create(&late_key, late_exit), 0);
	gives_up(late_main);
}

static void *reader_main(void *arg)
{
	twi_rcu_enter();
	twi_rcu_leave();
	(void)arg;
	return twi_reader_self;
}

Test(sections, readers_are_used_again)
{
	void *first = NULL;

	for (int i = 0; i < CROWD; i++) {
		pthread_t thread;
		void *reader;

		check_int(pthread_create(&thread, NULL, reader_main, NULL), 0);
		check_int(pthread_join(thread, &reader), 0);
		check_true(reader != NULL && (first == NULL || reader == first));
		first = reader;
	}
}

/* The first block has too few readers for the crowd, so a further block is allocated for the last
 * threads. */
Test(sections, waits_for_each_of_a_crowd)
{
	pthread_t crowd[CROWD], waiter;

	semaphores_init();
	for (int i = 0; i < CROWD; i++)
		check_int(pthread_create(&crowd[i], NULL, section_main, NULL), 0);
	for (int i = 0; i < CROWD; i++)
		sem_await(&inside);
	check_int(pthread_create(&waiter, NULL, synchronize_main, NULL), 0);
	for (int i = 0; i < CROWD; i++) {
		check_true(asleep_await(&waiting));
		check_int(pthread_tryjoin_np(waiter, NULL), EBUSY);
		sem_post(&leave);
	}
	check_int(pthread_join(waiter, NULL), 0);
	for (int i = 0; i < CROWD; i++)
		check_int(pthread_join(crowd[i], NULL), 0);
}

static void child_synchronizes(void)
{
	pthread_t thread[2];

	child_need(twi_rcu_inside(), true);
	twi_rcu_leave();
	twi_rcu_synchronize();
	heir_threads_begin();
	semaphores_init();
	child_need(pthread_create(&thread[0], NULL, section_main, NULL), 0);
	sem_await(&inside);
	child_need(pthread_create(&thread[1], NULL, synchronize_main, NULL), 0);
	child_need(asleep_await(&waiting), true);
	child_need(pthread_tryjoin_np(thread[1], NULL), EBUSY);
	sem_post(&leave);
	child_need(pthread_join(thread[1], NULL), 0);
	child_need(pthread_join(thread[0], NULL), 0);
}

/* At the fork a grace period is under way. The forking thread and another one are in sections. */
Test(sections, a_child_waits_for_its_own_threads_only)
{
	pthread_t thread[2];

	if (!heir_threads_possible())
		return;
	threads_begin(thread, section_main);
	twi_rcu_enter();
	in_child(child_synchronizes);
	twi_rcu_leave();
	threads_end(thread);
}

static void on_nothing(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

/*
 * A thread remembers only the loop that it used last. For a timeout of its other loop, a call
 * enters a section and looks whether the thread owns that loop too. The call must leave this
 * section.
 */
Test(sections, the_owner_of_two_loops_leaves_its_own)
{
	static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_nothing, NULL);
	struct tw_handle handles[2];
	struct fixture loops[2];

	for (int i = 0; i < 2; i++) {
		struct tw_options options = fixture_options();

		options.flags = TW_ENGINE_LOOP;
		fixture_open(&loops[i], &options);
		handles[i] = must_schedule(loops[i].engine, NS_PER_S, &owned, NULL);
	}
	for (int i = 0; i < 2; i++) {
		check_int(tw_reschedule(handles[i], NS_PER_MS), TW_RESCHEDULE_DONE);
		check_true(!twi_rcu_inside());
	}
	for (int i = 0; i < 2; i++) {
		check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
		check_true(!twi_rcu_inside());
		fixture_close(&loops[i]);
	}
}
