/* SPDX-License-Identifier: MIT */
/*
 * The public functions that concern the process or a thread: memory, threads, log, version, error
 * texts.
 */
#include "engine/misuse.h"
#include "memory/memory.h"
#include "memory/slab.h"
#include "thread/log.h"
#include "thread/rcu.h"
#include "thread/thread.h"

#include <errno.h>
#include <tickwheel/engine.h>
#include <tickwheel/error.h>
#include <tickwheel/thread.h>
#include <tickwheel/version.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

int tw_version(void)
{
	return TW_VERSION;
}

const char *tw_version_string(void)
{
	return TEXT(TW_VERSION_MAJOR) "." TEXT(TW_VERSION_MINOR) "." TEXT(TW_VERSION_PATCH);
}

/*
 * The highest outcome or state. tw_strerror treats a greater number as an error code whose sign was
 * dropped.
 */
#define OUTCOME_MAX TW_ENGINE_STOPPED

const char *tw_strerror(int error)
{
	if (error > 0 && error <= (int)OUTCOME_MAX)
		return "no error: an outcome or a state, which a function of name.h names";
	switch (error > 0 ? -error : error) {
	case 0:
		return "success";
	case -EINVAL:
		return "invalid argument";
	case -ERANGE:
		return "number out of range";
	case -ENOMEM:
		return "out of memory, or of resources for a thread";
	case -EAGAIN:
		return "limit of pending timeouts reached";
	case -ESHUTDOWN:
		return "engine is stopping or stopped";
	case -EBUSY:
		return "still in use";
	case -ETIMEDOUT:
		return "not done in time";
	case -ESTALE:
		return "the timeout has ended and its memory been reused";
	case -EPERM:
		return "not permitted: scheduling class, CPU set or owner";
	case -EDEADLK:
		return "would wait for its own callback";
	case -ECHILD:
		return "engine belongs to the parent process";
	case -EOPNOTSUPP:
		return "the system has no such clock";
	case -E2BIG:
		return "options unknown to this version are set";
	default:
		return "unknown error";
	}
}

int tw_log_set(const struct tw_log *log)
{
	if (log != NULL && log->hook == NULL)
		return -EINVAL;
	twi_log_set(log);
	return 0;
}

int tw_memory_allocator_set(const struct tw_allocator *allocator)
{
	if (allocator != NULL && (allocator->allocate == NULL || allocator->release == NULL))
		return -EINVAL;
	twi_allocator_set(allocator);
	return 0;
}

int tw_memory_cap_set(uint64_t bytes)
{
	twi_slab_cap_set(bytes);
	return 0;
}

int tw_memory_reserve(uint64_t timeouts)
{
	bool forked = twi_forked();
	int error;

	/* In a forked child, another thread may take over the library meanwhile. */
	if (forked)
		twi_fork_take_begin();
	error = twi_slab_reserve(timeouts);
	if (forked)
		twi_fork_take_end();
	return error;
}

uint64_t tw_memory_slab_bytes(void)
{
	return twi_slab_bytes();
}

int tw_thread_attach(void)
{
	struct twi_thread *thread = twi_thread();

	/* In a forked child no thread may have blocks before the library is taken over. */
	if (thread->stock.take != NULL || thread->stock.magazine_blocks == 1 || twi_forked())
		return 0;
	return twi_stock_refill(&thread->stock) ? 0 : -ENOMEM;
}

int tw_thread_detach(void)
{
	if (twi_thread_self.run != NULL || twi_thread_self.worker != NULL)
		return twi_misuse(NULL, TWI_MISUSE_DETACH_INSIDE, -EBUSY);
	twi_thread_release(&twi_thread_self);
	return 0;
}
