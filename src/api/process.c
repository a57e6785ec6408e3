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

/*
 * The texts of codes, by errno number. Each must be true of every function that returns the code.
 * ENOTSUP is EOPNOTSUPP on Linux.
 */
static const char *const texts[] = {
	[0] = "success",
	[EINVAL] = "invalid argument",
	[ERANGE] = "number out of range",
	[ENOMEM] = "out of memory, or of descriptors or resources for a thread",
	[EAGAIN] = "a limit is reached, or the server is not ready: try again later",
	[ESHUTDOWN] = "stopping, stopped, or closed",
	[EBUSY] = "still in use",
	[ETIMEDOUT] = "not done in time",
	[ESTALE] = "too late: this timeout, run or attempt is over, or is not known here",
	[EPERM] = "not permitted by the system, or not in this thread or place",
	[EDEADLK] = "would wait for its own callback, hook or thread",
	[ECHILD] = "belongs to the parent of this forked process",
	[EOPNOTSUPP] = "not supported by the system, the store or this version",
	[E2BIG] = "a struct sets fields unknown to this version, or is over 4,096 bytes",
	/* Of durable timers. */
	[EINPROGRESS] = "no error: the acknowledgement will bring the outcome",
	[EIO] = "the store has failed, or takes no writes",
	[ENOSPC] = "the store is full",
	[EMSGSIZE] = "a payload, a key or a row is too large",
	[ENOENT] = "not found: the timer, or the store's folder, schema or keys",
	[ETIME] = "the wall clock is far behind a time that the store has seen",
	[EUCLEAN] = "the store is damaged, or was not made by this library",
	[EEXIST] = "the file is of another program",
	[EMFILE] = "too many files or stores are open in this process",
	[ENFILE] = "too many files are open in the system",
	[EISDIR] = "the path is that of a directory",
	[ENOTDIR] = "a part of the path is not a directory",
	[ELOOP] = "the path ends in a symbolic link, or has too many of them",
	[EMLINK] = "the file has another hard link",
	[ENAMETOOLONG] = "the path, or a name in it, is too long",
	[EROFS] = "the store is read-only",
	[EDQUOT] = "the quota of the disk is used up",
	[EACCES] = "access denied by the system or the server",
	[ECONNREFUSED] = "no server answers at this address",
	[ECONNRESET] = "the connection broke: the request was done or not",
	[EPROTO] = "the server's reply is not known to this version",
};

static const char *text_of(unsigned code)
{
	const char *text = code < sizeof texts / sizeof texts[0] ? texts[code] : NULL;

	return text != NULL ? text : "unknown error";
}

const char *tw_strerror(int error)
{
	if (error > 0 && error <= (int)OUTCOME_MAX)
		return "no error: an outcome or a state, which a function of name.h or "
		       "durable_name.h names";
	return text_of(error < 0 ? 0U - (unsigned)error : (unsigned)error);
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

	/*
	 * In a forked child, another thread may want to take over the library. That thread waits
	 * until twi_fork_take_end.
	 */
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

	/*
	 * Takes no blocks in a forked child that has not taken over the library yet, because no
	 * thread may have blocks there.
	 */
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
