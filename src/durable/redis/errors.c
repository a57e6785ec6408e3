/* SPDX-License-Identifier: MIT */
#include "durable/redis/errors.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

/*
 * Words of error texts. Old servers put the word of a script's error behind words of their own, so
 * the whole text is searched. The first word that fits counts.
 */
static const struct code {
	const char *word;
	int error;
} codes[] = {
	{"TWOVER", -ESTALE},
	{"TWGONE", -ENOENT},
	{"TWFORM", -EUCLEAN},
	{"TWVERSION", -ENOTSUP},
	{"NOSCRIPT", TWI_REDIS_NO_SCRIPT},
	{"OOM ", -ENOSPC},
	{"MISCONF", -EIO},
	{"READONLY", -EROFS},
	{"LOADING", -EAGAIN},
	{"BUSY ", -EAGAIN},
	{"MASTERDOWN", -EAGAIN},
	{"NOREPLICAS", -EAGAIN},
	{"max number of clients", -EAGAIN},
	{"NOAUTH", -EACCES},
	{"WRONGPASS", -EACCES},
	{"NOPERM", -EACCES},
	{"invalid password", -EACCES},
	{"without any password", -EACCES},
	{"unknown command", -EACCES},
	{"MOVED", -ENOTSUP},
	{"ASK ", -ENOTSUP},
	{"CROSSSLOT", -ENOTSUP},
	{"CLUSTERDOWN", -ENOTSUP},
	{"WRONGTYPE", -EUCLEAN},
	/* Of a command in a script. */
	{"can't run this command", -EACCES},
	{"can't access at least one of the keys", -EACCES},
	{"ACL failure", -EACCES},
	/* It had not written. */
	{"Script killed", -EAGAIN},
	{"user_script", -EUCLEAN}, /* a script has met a value that it cannot read */
	{"invalid DB index", -EINVAL},
	{"DB index is out of range", -EINVAL},
};

int twi_redis_error(const char *text)
{
	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		if (strstr(text, codes[i].word) != NULL)
			return codes[i].error;
	return -EPROTO;
}

int twi_redis_passes(int error)
{
	return error == -EAGAIN || error == -EROFS || error == -EIO;
}

void twi_redis_notify(const struct twi_redis_notice *notice, const char *text)
{
	if (notice->function != NULL && text != NULL && text[0] != '\0')
		notice->function(notice->context, text);
}
