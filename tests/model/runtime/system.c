/* SPDX-License-Identifier: MIT */
/*
 * Replaces functions of libc (--wrap) and of thread/rcu.c. The linker prescribes the names and
 * their leading underscores.
 *
 * During setup there is no other fiber, so every wait ends at once, as after its timeout. A futex
 * reads the newest value of its word and sleeps, in one step. It may return although no thread has
 * woken it, which counts as a weak answer. Its return orders nothing that another thread did
 * before.
 *
 * A grace period waits for every section that is open when it begins. A section that has ended by
 * the end of the grace period happens before the caller's later steps. The caller's earlier steps
 * happen before each section that begins after the grace period's beginning. membarrier(2) is in
 * barrier.c.
 */
#include "runtime/system.h"

#include "runtime/barrier.h"
#include "runtime/explore.h"
#include "runtime/memory.h"
#include "runtime/timer.h"
#include "runtime/trace.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#define PC __builtin_return_address(0)

#define NS_PER_S INT64_C(1000000000)

static struct {
	void (*destructor[FIBER_KEYS])(void *value);
	unsigned keys;
	const void *kept[MODEL_FIBERS][FIBER_KEYS]; /* the values that setup has left */
	bool begun;

	struct granule event; /* the only eventfd */
	uint64_t raised;
	/* reads of the time stamp counter; used only to see whether fibers contend for it */
	struct granule looks;
	int64_t looks_ns;   /* by how much these reads have advanced the clock */
	struct granule rcu; /* used only to see whether RCU is contended */
	uint64_t sections;
	struct model_clock ended; /* what the ended sections have done */
	struct model_clock grace; /* what came before the grace periods that have begun */
} state MODEL_STATE;

void system_begin(void)
{
	for (unsigned i = 0; i < MODEL_FIBERS; i++) {
		for (unsigned key = 0; key < FIBER_KEYS; key++) {
			if (!state.begun)
				state.kept[i][key] = fibers.fiber[i].key_value[key];
			fibers.fiber[i].key_value[key] = state.kept[i][key];
		}
	}
	state.begun = true;
	timer_begin();
	barrier_begin();
	state.sections = 0;
	state.looks_ns = 0;
	state.raised = 0;
	memset(&state.ended, 0, sizeof state.ended);
	memset(&state.grace, 0, sizeof state.grace);
}

void model_as(unsigned thread, void (*step)(void))
{
	struct fiber *before = fibers.current;

	fibers.current = &fibers.fiber[thread + 1];
	step();
	fibers.current = before;
}

/* Functions for threads. */

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
			  void *(*body)(void *argument), void *argument);
int __wrap_pthread_join(pthread_t thread, void **ret_result);
pthread_t __wrap_pthread_self(void);
void __wrap_pthread_exit(void *result);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_before);
int __wrap_prctl(int option, ...);

bool model_no_threads;

int __wrap_pthread_create(pthread_t *ret_thread, const pthread_attr_t *attributes,
			  void *(*body)(void *argument), void *argument)
{
	(void)attributes;
	if (model_no_threads)
		return EAGAIN;
	*ret_thread = fiber_make(body, argument)->number;
	trace_event("thread", NULL, 0, PC);
	return 0;
}

static bool joined_ended(struct fiber *self)
{
	const struct fiber *joined = self->waits_for;

	return joined->life == FIBER_ENDED;
}

int __wrap_pthread_join(pthread_t thread, void **ret_result)
{
	struct fiber *joined = &fibers.fiber[thread];

	(void)ret_result;
	if (thread >= fibers.count)
		model_fail("a thread is joined that was never made");
	(void)fiber_wait(joined_ended, joined, "the end of a thread", INT64_MAX);
	fiber_acquire(fiber_self(), &joined->now);
	return 0;
}

pthread_t __wrap_pthread_self(void)
{
	return fiber_self()->number;
}

static _Unwind_Reason_Code unwind_stop(int version, _Unwind_Action actions,
				       _Unwind_Exception_Class class,
				       struct _Unwind_Exception *exception,
				       struct _Unwind_Context *context, void *argument)
{
	(void)version;
	(void)class;
	(void)exception;
	(void)context;
	(void)argument;
	if ((actions & _UA_END_OF_STACK) != 0)
		fiber_exit();
	return _URC_NO_REASON;
}

void __wrap_pthread_exit(void *result)
{
	static struct _Unwind_Exception exception[MODEL_FIBERS] MODEL_STATE;
	struct _Unwind_Exception *mine = &exception[fiber_self()->number];

	(void)result;
	memset(mine, 0, sizeof *mine);
	(void)_Unwind_ForcedUnwind(mine, unwind_stop, NULL);
	model_fail("a thread that ends was not unwound");
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
	(void)thread;
	(void)name;
	return 0;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *ret_before)
{
	(void)how;
	(void)set;
	(void)ret_before;
	return 0;
}

int __wrap_prctl(int option, ...)
{
	(void)option;
	return 0;
}

/* Functions for the data of threads. */

int __wrap_pthread_key_create(pthread_key_t *ret_key, void (*destructor)(void *value));
int __wrap_pthread_setspecific(pthread_key_t key, const void *value);

int __wrap_pthread_key_create(pthread_key_t *ret_key, void (*destructor)(void *value))
{
	if (state.keys == FIBER_KEYS)
		return EAGAIN;
	state.destructor[state.keys] = destructor;
	*ret_key = state.keys++;
	return 0;
}

int __wrap_pthread_setspecific(pthread_key_t key, const void *value)
{
	fiber_self()->key_value[key] = value;
	return 0;
}

static bool destructors_run(struct fiber *self)
{
	bool any = false;

	for (unsigned key = 0; key < state.keys; key++) {
		const void *value = self->key_value[key];

		self->key_value[key] = NULL;
		if (value != NULL)
			state.destructor[key]((void *)(uintptr_t)value);
		any = any || value != NULL;
	}
	return any;
}

void system_thread_ends(void)
{
	for (int round = 0; explore_harness()->threads_end; round++) {
		if (round == PTHREAD_DESTRUCTOR_ITERATIONS || !destructors_run(fiber_self()))
			return;
	}
}

/* Functions for futexes and time. */

long __wrap_syscall(long number, ...);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time);

static bool futex_woken(struct fiber *self)
{
	return self->woken;
}

static void futex_point(const void *word, bool writes)
{
	if (fibers.running)
		fiber_point(memory_touch(memory_granule_any(word), writes));
}

static long futex_wait(const void *word, uint32_t value, int64_t until_ns)
{
	errno = ETIMEDOUT;
	if (!fibers.running)
		return -1;
	futex_point(word, false);
	(void)memory_granule(word);
	errno = EAGAIN;
	if (*(const volatile uint32_t *)word != value)
		return -1;
	trace_event("sleeps", word, value, NULL);
	if (explore_weak(2) == 1)
		return 0;
	fiber_self()->woken = false;
	errno = ETIMEDOUT;
	return fiber_wait(futex_woken, word, "a wake of", until_ns) ? 0 : -1;
}

static long futex_wake(const void *word)
{
	long count = 0;

	futex_point(word, true);
	trace_event("wakes", word, 0, NULL);
	for (unsigned i = 0; i < fibers.count; i++) {
		struct fiber *fiber = &fibers.fiber[i];

		if (fiber->ready != futex_woken || fiber->waits_for != word || fiber->woken)
			continue;
		fiber->woken = true;
		count++;
	}
	return count;
}

static int64_t until_of(const struct timespec *until)
{
	return until == NULL ? INT64_MAX : (int64_t)until->tv_sec * NS_PER_S + until->tv_nsec;
}

/* Handles futex(word, operation, value, until, ...), as the library calls it. */
static long futex_call(va_list list)
{
	const struct timespec *until;
	const void *word;
	int operation;
	unsigned value;

	word = va_arg(list, const void *);
	operation = va_arg(list, int);
	value = va_arg(list, unsigned);
	until = va_arg(list, const struct timespec *);
	if ((operation & FUTEX_CMD_MASK) == FUTEX_WAKE)
		return futex_wake(word);
	return futex_wait(word, value, until_of(until));
}

long __wrap_syscall(long number, ...)
{
	long result = -1;
	va_list list;

	va_start(list, number);
	if (number == SYS_futex)
		result = futex_call(list);
	else if (number == SYS_membarrier)
		result = barrier_call(va_arg(list, int));
	else
		model_fail("system call %ld: not modelled", number);
	va_end(list);
	return result;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret_time)
{
	(void)clock;
	ret_time->tv_sec = (fibers.now_ns + state.looks_ns) / NS_PER_S;
	ret_time->tv_nsec = (fibers.now_ns + state.looks_ns) % NS_PER_S;
	return 0;
}

/* Functions for the two descriptors: an eventfd and a timerfd. One fiber polls both. */

int __wrap_eventfd(unsigned count, int flags);
int __wrap_ppoll(struct pollfd *polled, nfds_t count, const struct timespec *at_most,
		 const sigset_t *signals);
ssize_t __wrap_read(int fd, void *buffer, size_t bytes);
ssize_t __wrap_write(int fd, const void *buffer, size_t bytes);

int __wrap_eventfd(unsigned count, int flags)
{
	(void)flags;
	state.raised = count;
	return EVENT_FD;
}

static void event_point(bool writes)
{
	if (fibers.running)
		fiber_point(memory_touch(&state.event, writes));
}

ssize_t __wrap_write(int fd, const void *buffer, size_t bytes)
{
	if (fd != EVENT_FD)
		model_fail("write to %d: not modelled", fd);
	event_point(true);
	trace_event("raises", &state.raised, *(const uint64_t *)buffer, NULL);
	state.raised += *(const uint64_t *)buffer;
	return (ssize_t)bytes;
}

ssize_t __wrap_read(int fd, void *buffer, size_t bytes)
{
	if (fd != EVENT_FD)
		model_fail("read of %d: not modelled", fd);
	event_point(true);
	errno = EAGAIN;
	if (state.raised == 0)
		return -1;
	*(uint64_t *)buffer = state.raised;
	state.raised = 0;
	return (ssize_t)bytes;
}

static bool event_raised(struct fiber *self)
{
	(void)self;
	return state.raised != 0;
}

/* Polls both descriptors. The library passes the eventfd first, then the timerfd. */
int __wrap_ppoll(struct pollfd *polled, nfds_t count, const struct timespec *at_most,
		 const sigset_t *signals)
{
	int64_t until_ns = timer_until_ns();

	(void)signals;
	if (count != 2 || polled[0].fd != EVENT_FD || polled[1].fd != TIMER_FD)
		model_fail("ppoll of other descriptors: not modelled");
	if (at_most != NULL && fibers.now_ns + until_of(at_most) < until_ns)
		until_ns = fibers.now_ns + until_of(at_most);
	event_point(false);
	if (fibers.running && state.raised == 0)
		(void)fiber_wait(event_raised, &state.raised, "an event at", until_ns);
	polled[0].revents = state.raised != 0 ? POLLIN : 0;
	polled[1].revents = fibers.now_ns >= timer_until_ns() ? POLLIN : 0;
	return (polled[0].revents != 0) + (polled[1].revents != 0);
}

/*
 * Reads a counter of 1 GHz that agrees with the clock. Each read advances both by half a
 * microsecond.
 */
uint64_t __wrap_twi_tsc_read(void);
uint64_t __wrap_twi_tsc_read(void)
{
	if (fibers.running)
		fiber_point(memory_touch(&state.looks, true));
	state.looks_ns += 500;
	return (uint64_t)(fibers.now_ns + state.looks_ns);
}

/*
 * Returns no rate. So engines read the clock, not the counter, unless a harness gives them a
 * counter.
 */
uint64_t __wrap_twi_tsc_rate(void);
uint64_t __wrap_twi_tsc_rate(void)
{
	return 0;
}

/* Functions for memory. */

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int file, off_t offset);
int __wrap_munmap(void *address, size_t bytes);
int __wrap_madvise(void *address, size_t bytes, int advice);
void *__wrap_memset(void *to, int value, size_t bytes);
void *__wrap_memcpy(void *to, const void *from, size_t bytes);
void *__wrap_memmove(void *to, const void *from, size_t bytes);
void *__real_memset(void *to, int value, size_t bytes);
void *__real_memcpy(void *to, const void *from, size_t bytes);
void *__real_memmove(void *to, const void *from, size_t bytes);

void *__wrap_mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
	(void)address;
	(void)protection;
	(void)flags;
	(void)file;
	(void)offset;
	return memory_map(bytes);
}

/* Has the name that mmap gets if _FILE_OFFSET_BITS is 64. */
void *__wrap_mmap64(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
	return __wrap_mmap(address, bytes, protection, flags, file, offset);
}

int __wrap_munmap(void *address, size_t bytes)
{
	if (address == NULL)
		model_fail("munmap of nothing");
	memory_unmap(address, bytes, PC);
	return 0;
}

int __wrap_madvise(void *address, size_t bytes, int advice)
{
	(void)address;
	(void)bytes;
	(void)advice;
	return 0;
}

void *__wrap_memset(void *to, int value, size_t bytes)
{
	memory_write(to, bytes, PC);
	return __real_memset(to, value, bytes);
}

void *__wrap_memcpy(void *to, const void *from, size_t bytes)
{
	memory_read(from, bytes, PC);
	memory_write(to, bytes, PC);
	return __real_memcpy(to, from, bytes);
}

void *__wrap_memmove(void *to, const void *from, size_t bytes)
{
	memory_read(from, bytes, PC);
	memory_write(to, bytes, PC);
	return __real_memmove(to, from, bytes);
}

/* Functions of RCU. */

void twi_rcu_call_enter(void);
void twi_rcu_call_leave(void);
void twi_rcu_synchronize(void);
bool twi_rcu_synchronize_until(int64_t until_ns);
void twi_rcu_register_thread(void);
bool twi_rcu_inside(void);

void twi_rcu_register_thread(void)
{
}

/* No harness forks, and the hash table is the model's. So this has no caller. */
bool twi_rcu_inside(void)
{
	return false;
}

void twi_rcu_call_enter(void)
{
	struct fiber *self = fiber_self();

	if (!fibers.running || self->section_depth++ > 0)
		return;
	fiber_point(memory_touch(&state.rcu, false));
	self->section = ++state.sections;
	fiber_acquire(self, &state.grace);
	trace_event("section", NULL, 0, PC);
}

void twi_rcu_call_leave(void)
{
	struct fiber *self = fiber_self();

	if (!fibers.running || --self->section_depth > 0)
		return;
	fiber_point(memory_touch(&state.rcu, false));
	clock_join(&state.ended, &self->now);
	self->section = 0;
	fiber_tick(self);
	trace_event("ends section", NULL, 0, PC);
}

/* Returns whether every section that was open when the grace period began has ended. */
static bool sections_ended(struct fiber *self)
{
	for (unsigned i = 0; i < fibers.count; i++) {
		if (self->grace_sections[i] != 0 &&
		    fibers.fiber[i].section == self->grace_sections[i])
			return false;
	}
	return true;
}

void twi_rcu_synchronize(void)
{
	struct fiber *self = fiber_self();

	if (!fibers.running)
		return;
	if (self->section_depth > 0)
		model_fail("a grace period inside of a section");
	fiber_point(memory_touch(&state.rcu, true));
	trace_event("grace period", NULL, 0, PC);
	clock_join(&state.grace, &self->now);
	fiber_tick(self);
	for (unsigned i = 0; i < MODEL_FIBERS; i++)
		self->grace_sections[i] = fibers.fiber[i].section;
	(void)fiber_wait(sections_ended, NULL, "the end of sections", INT64_MAX);
	fiber_acquire(self, &state.ended);
	trace_event("grace period over", NULL, 0, PC);
}

/* Ignores the time limit: in the model, no grace period runs out of time. */
bool twi_rcu_synchronize_until(int64_t until_ns)
{
	(void)until_ns;
	twi_rcu_synchronize();
	return true;
}
