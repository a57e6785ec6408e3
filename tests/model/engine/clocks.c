/* SPDX-License-Identifier: MIT */
/*
 * The clocks and the hooks of the process. A thread moves a virtual clock while other threads
 * create and destroy engines (E9, E10). A thread sets the process's hooks while other threads call
 * them (E11). Threads read the last sample of a time stamp counter while another thread takes a new
 * sample (E18).
 *
 * Seen to fail with these defects:
 * - virtual_attach() or virtual_detach() changes `sleeper` relaxed, or sleeper_wake() loads it
 *   relaxed;
 * - clock_detach() waits for no grace period;
 * - a hook of the process is stored or loaded relaxed;
 * - sampled_now_ns() raises `sampled` (the sample's count) before the offset, or sampled_raise()
 *   raises it relaxed;
 * - tsc_now_ns() loads `sampled` relaxed;
 * - offset_raise() stores the offset even if the present one is greater;
 * - twi_clock_quick_after_ns() loads `sampled` relaxed, or after the offset;
 * - fallen_now_ns() returns a reading of CLOCK_MONOTONIC without waiting until it has passed the
 *   greatest earlier reading (tsc_fall);
 * - a system clock's count of engines is decremented or read relaxed.
 */
#include "clock/tsc.h"
#include "memory/memory.h"
#include "thread/log.h"
#include "world.h"

#include <errno.h>

static struct tw_clock *the_clock;
static struct tw_engine *engines[2];
static int made[2], freed;

/*
 * Stands for a user's allocator, whose memory the library must zero. So a thread that reads an
 * engine too early races with the zeroing.
 */
static struct tw_allocator plain_allocator;

static void make_clock(void)
{
	plain_allocator = *twi_allocator();
	MODEL_CHECK(tw_memory_allocator_set(&plain_allocator) == 0);
	MODEL_CHECK(tw_clock_create_virtual(0, &the_clock) == 0);
}

static void create(void)
{
	unsigned mine = model_self() - 1;
	struct tw_options options;

	MODEL_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.slots = 1;
	options.clock = the_clock;
	made[mine] = tw_engine_create(&options, &engines[mine]);
	MODEL_CHECK(made[mine] == 0 || made[mine] == -EBUSY);
}

static void create_and_destroy(void)
{
	create();
	if (made[model_self() - 1] == 0)
		MODEL_CHECK(tw_engine_destroy(engines[model_self() - 1]) == 0);
}

static void set_clock(void)
{
	MODEL_CHECK(tw_clock_set(the_clock, 1) == 0);
	MODEL_CHECK(tw_clock_set(the_clock, 2) == 0);
}

static void make_engine(void)
{
	struct tw_options options;

	make_clock();
	MODEL_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.slots = 1;
	options.clock = the_clock;
	MODEL_CHECK(tw_engine_create(&options, &engines[0]) == 0);
	/*
	 * Sets the park word as a sleeping worker leaves it. Otherwise the thread that moves the
	 * clock would wake no worker.
	 */
	twi_store_relaxed(&engines[0]->worker.park.word, TWI_PARKED);
}

static void destroy(void)
{
	MODEL_CHECK(tw_engine_destroy(engines[0]) == 0);
}

static void destroy_clock(void)
{
	freed = tw_clock_destroy(the_clock);
	MODEL_CHECK(freed == 0 || freed == -EBUSY);
}

static void one_made(void)
{
	MODEL_CHECK((made[0] == 0) + (made[1] == 0) == 1);
}

MODEL_HARNESS(clock_attach,
	      .proves = "a thread may move a clock while another creates and destroys an engine",
	      .setup = make_clock, .thread = {create_and_destroy, set_clock}, .preemptions = 2,
	      .weak = 1, .random_runs = 300);
MODEL_HARNESS(clock_detach, .proves = "a thread may move a clock while its engine is destroyed",
	      .setup = make_engine, .thread = {destroy, set_clock}, .preemptions = 3, .weak = 2,
	      .random_runs = 300);
MODEL_HARNESS(clock_two,
	      .proves = "if two creates get one virtual clock, only one of them succeeds",
	      .setup = make_clock, .thread = {create, create}, .finish = one_made, .preemptions = 2,
	      .weak = 1, .random_runs = 300);
MODEL_HARNESS(clock_again,
	      .proves = "an engine may take a clock as soon as another engine has left it",
	      .setup = make_engine, .thread = {destroy, create_and_destroy}, .preemptions = 2,
	      .weak = 1, .random_runs = 300);
MODEL_HARNESS(clock_free, .proves = "a clock may be freed when its engine has left it",
	      .setup = make_engine, .thread = {destroy, destroy_clock}, .preemptions = 2, .weak = 2,
	      .random_runs = 300);

/* Makes a system clock of two engines. It may be freed only after both engines have left it. */
static void make_shared(void)
{
	struct tw_options options;

	plain_allocator = *twi_allocator();
	MODEL_CHECK(tw_memory_allocator_set(&plain_allocator) == 0);
	MODEL_CHECK(tw_clock_create(TW_CLOCK_MONOTONIC, &the_clock) == 0);
	MODEL_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.slots = 1;
	options.clock = the_clock;
	MODEL_CHECK(tw_engine_create(&options, &engines[0]) == 0);
	MODEL_CHECK(tw_engine_create(&options, &engines[1]) == 0);
}

static void destroy_mine(void)
{
	MODEL_CHECK(tw_engine_now(engines[model_self() - 1]) >= 0);
	MODEL_CHECK(tw_engine_destroy(engines[model_self() - 1]) == 0);
}

MODEL_HARNESS(clock_shared, .proves = "a clock of two engines may be freed when both have left it",
	      .setup = make_shared, .thread = {destroy_mine, destroy_mine, destroy_clock},
	      .preemptions = 2, .weak = 1, .random_runs = 300);

/* The last sample of this clock is a second old, so the first reader takes a new one. */
static struct twi_clock_tsc tsc_clock;
static _Atomic int64_t told_ns;

static void make_tsc(void)
{
	const int64_t old_ns = twi_monotonic_ns() - TWI_NS_PER_S;

	twi_clock_tsc_init(&tsc_clock, UINT64_C(1) << 32);
	twi_store_relaxed(&tsc_clock.sampled, (uint64_t)old_ns);
	twi_store_relaxed(&tsc_clock.offset_ns, old_ns - old_ns / 4 * 3);
	twi_store_relaxed(&told_ns, 0);
}

/* Reads the clock. The reading must not be less than one that another thread published before. */
static void read_and_tell(void)
{
	int64_t before_ns = twi_monotonic_ns();

	for (int i = 0; i < 2; i++) {
		/* Acquire: the other thread's reading happened before this thread's next one. */
		int64_t told = twi_load_acquire(&told_ns);
		int64_t now_ns = twi_clock_now_ns(&tsc_clock.system.clock);

		MODEL_CHECK(now_ns >= told);
		MODEL_CHECK(now_ns <= twi_monotonic_ns());
		MODEL_CHECK(now_ns >= before_ns - tsc_clock.system.clock.lag_ns);
		twi_store_release(&told_ns, now_ns);
	}
}

/*
 * Computes a deadline while another thread takes a new sample. The deadline must not be early, and
 * must be late by no more than the clock's lag.
 */
static void compute_deadline(void)
{
	for (int i = 0; i < 2; i++) {
		int64_t before_ns = twi_monotonic_ns();
		int64_t deadline_ns;

		if (!twi_clock_quick_after_ns(&tsc_clock.system.clock, 5, &deadline_ns))
			deadline_ns = twi_clock_after_ns(&tsc_clock.system.clock, 5);
		MODEL_CHECK(deadline_ns >= before_ns + 5);
		MODEL_CHECK(deadline_ns <= twi_monotonic_ns() + tsc_clock.system.clock.lag_ns + 5);
	}
}

MODEL_HARNESS(tsc_deadline, .proves = "a deadline is computed from one complete sample",
	      .setup = make_tsc, .thread = {read_and_tell, compute_deadline}, .preemptions = 3,
	      .weak = 2, .random_runs = 300);

MODEL_HARNESS(tsc_sample,
	      .proves = "a sample is read completely, and no reading is less than an earlier one",
	      .setup = make_tsc, .thread = {read_and_tell, read_and_tell}, .preemptions = 3,
	      .weak = 2, .random_runs = 300);

/*
 * Makes the reading of the last sample 4 us ahead of CLOCK_MONOTONIC, and the sample almost too
 * old.
 */
static void make_tsc_ahead(void)
{
	const int64_t now_ns = twi_monotonic_ns();

	twi_clock_tsc_init(&tsc_clock, UINT64_C(1) << 32);
	twi_store_relaxed(&tsc_clock.sampled, (uint64_t)now_ns - 8500);
	twi_store_relaxed(&tsc_clock.offset_ns, now_ns - now_ns / 4 * 3 + 4000);
	twi_store_relaxed(&told_ns, 0);
}

static void read_ahead_and_tell(void)
{
	for (int i = 0; i < 3; i++) {
		int64_t told = twi_load_acquire(&told_ns);
		int64_t now_ns = twi_clock_now_ns(&tsc_clock.system.clock);

		MODEL_CHECK(now_ns >= told);
		twi_store_release(&told_ns, now_ns);
	}
}

MODEL_HARNESS(tsc_fall, .proves = "readings do not go back when the time stamp counter falls back",
	      .setup = make_tsc_ahead, .thread = {read_ahead_and_tell, read_ahead_and_tell},
	      .preemptions = 3, .weak = 2, .random_runs = 300);

static struct tw_log log_hook;
static struct tw_allocator allocator;

static void log_line(void *context, enum tw_log_level level, const char *text)
{
	(void)context;
	(void)level;
	MODEL_CHECK(text != NULL);
}

static void set_hooks(void)
{
	const struct tw_allocator *built_in = twi_allocator();

	log_hook.hook = log_line;
	MODEL_CHECK(tw_log_set(&log_hook) == 0);
	allocator = *built_in;
	MODEL_CHECK(tw_memory_allocator_set(&allocator) == 0);
}

static void use_log(void)
{
	twi_log(TW_LOG_WARNING, "");
}

static void use_allocator(void)
{
	const struct tw_allocator *of_now = twi_allocator();

	MODEL_CHECK(of_now->allocate != NULL && of_now->release != NULL);
}

MODEL_HARNESS(hooks, .proves = "a hook of the process is called only when it is completely set",
	      .thread = {set_hooks, use_log, use_allocator}, .preemptions = 3, .weak = 2,
	      .random_runs = 300);
