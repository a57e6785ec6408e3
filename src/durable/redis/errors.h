/* SPDX-License-Identifier: MIT */
/* Converts errors of the server and the connection to negative errno values. */
#ifndef TWI_DURABLE_REDIS_ERRORS_H
#define TWI_DURABLE_REDIS_ERRORS_H

/* The user's function for messages about failures, and its context. */
struct twi_redis_notice {
	void (*function)(void *context, const char *text);
	void *context;
};

/* The server does not know a script by its hash, so the whole text must be sent. */
#define TWI_REDIS_NO_SCRIPT (-ENOEXEC)

/*
 * Returns the code for an error reply of the server. After each code the batch of the request was
 * not done:
 *
 *     -ESTALE   the session is over
 *     -ENOENT   the server was emptied
 *     -EUCLEAN  keys are not as the library has made them
 *     -ENOSPC   the server has no memory left
 *     -EIO      the server cannot save, so it takes no writes
 *     -EAGAIN   the server is starting, or busy
 *     -EPROTO   anything else
 *
 * -ENOTSUP, -EROFS and -EACCES have their usual meaning.
 */
int twi_redis_error(const char *text);

/*
 * Returns whether an error may pass by itself. If so, the store makes a new connection and tries
 * the request again.
 */
int twi_redis_passes(int error);

void twi_redis_notify(const struct twi_redis_notice *notice, const char *text);

#endif
