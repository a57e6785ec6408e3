/* SPDX-License-Identifier: MIT */
/* What the server and the connection say, as negative errno values. */
#ifndef TWI_DURABLE_REDIS_ERRORS_H
#define TWI_DURABLE_REDIS_ERRORS_H

/* Tells people of a failure. `context` and the function are the user's. */
struct twi_redis_notice {
	void (*function)(void *context, const char *text);
	void *context;
};

/* The server does not know a script by its hash: it is to be sent whole. */
#define TWI_REDIS_NO_SCRIPT (-ENOEXEC)

/*
 * The code of an error that the server replies. Nothing was done. -ESTALE: the session is over; -ENOENT:
 * the server was emptied; -EUCLEAN: keys are not as the library has made them; -ENOTSUP; -ENOSPC: no memory
 * is left; -EIO: it cannot save, and so it takes no writes; -EROFS; -EAGAIN: it starts, or is busy;
 * -EACCES; -EPROTO: anything else.
 */
int twi_redis_error(const char *text);

/* Whether it comes by itself and goes: the connection is made anew, and the same is tried again. */
int twi_redis_passes(int error);

void twi_redis_notify(const struct twi_redis_notice *notice, const char *text);

#endif
