/* SPDX-License-Identifier: MIT */
/* The calls that wait for the I/O thread: flush, find, and the lists of timers and dead letters. */
#include "base/sized.h"
#include "durable/request.h"
#include "durable/stage.h"

static const struct tw_durable_id no_id = {0, 0};

enum {
	LIST_MAX = 65536,
};

static int wait_check(struct tw_durable *set, int64_t timeout_ns)
{
	int error = twi_durable_check(set);

	if (error != 0)
		return error;
	if (timeout_ns < 0)
		return -EINVAL;
	/*
	 * Must come before the check of the state, so that a callback gets -EDEADLK even if the set
	 * closes or has failed.
	 */
	return twi_durable_within == set ? -EDEADLK : twi_durable_check_open(set);
}

/*
 * Sends a request and waits for its answer. Returns the result of the request, or the number of
 * infos of a list. Copies the infos if there is no error.
 */
static int ask(struct tw_durable *set, struct twi_request *request, struct tw_durable_info *ret,
	       int64_t timeout_ns)
{
	size_t size = ret == NULL ? 0 : ret->size;
	int error;

	if (request == NULL)
		return -ENOMEM;
	error = twi_request_ask(set, request, timeout_ns);
	if (error != 0)
		return error;
	error = request->result;
	for (size_t i = 0; error == 0 && i < request->count; i++) {
		struct tw_durable_info *to =
			(struct tw_durable_info *)(void *)((char *)ret + i * size);

		request->infos[i].size = size;
		twi_copy_out(to, size, &request->infos[i], sizeof *to);
	}
	if (error == 0 &&
	    (request->item.type == TWI_ITEM_DEAD || request->item.type == TWI_ITEM_LIST))
		error = (int)request->count;
	twi_request_free(request);
	return error;
}

int tw_durable_flush(struct tw_durable *durable, int64_t timeout_ns)
{
	int error = wait_check(durable, timeout_ns);

	if (error != 0)
		return error;
	return ask(durable, twi_request_make(TWI_ITEM_FLUSH, no_id, NULL, 0, 0), NULL, timeout_ns);
}

static int info_check(const struct tw_durable_info *info)
{
	if (info == NULL || info->size < sizeof *info)
		return -EINVAL;
	return info->size > TWI_STRUCT_BYTES_MAX ? -E2BIG : 0;
}

int tw_durable_find(struct tw_durable *durable, struct tw_durable_id id,
		    struct tw_durable_info *ret_info, int64_t timeout_ns)
{
	int error = wait_check(durable, timeout_ns);

	if (error == 0 && id.serial == 0)
		error = -EINVAL;
	if (error == 0)
		error = info_check(ret_info);
	if (error != 0)
		return error;
	return ask(durable, twi_request_make(TWI_ITEM_FIND, id, NULL, 0, 1), ret_info, timeout_ns);
}

int tw_durable_find_key(struct tw_durable *durable, const void *key, size_t bytes,
			struct tw_durable_info *ret_info, int64_t timeout_ns)
{
	int error = wait_check(durable, timeout_ns);

	if (error == 0 && (key == NULL || bytes == 0))
		error = -EINVAL;
	if (error == 0)
		error = info_check(ret_info);
	if (error == 0 && bytes > TWI_DURABLE_KEY_MAX)
		error = -EMSGSIZE;
	if (error != 0)
		return error;
	return ask(durable, twi_request_make(TWI_ITEM_FIND_KEY, no_id, key, bytes, 1), ret_info,
		   timeout_ns);
}

static int list_check(struct tw_durable *set, const struct tw_durable_info *infos, size_t max,
		      int64_t timeout_ns)
{
	int error = wait_check(set, timeout_ns);

	if (error == 0 && (max == 0 || max > LIST_MAX))
		error = -EINVAL;
	return error == 0 ? info_check(infos) : error;
}

int tw_durable_dead_list(struct tw_durable *durable, struct tw_durable_id after,
			 struct tw_durable_info *ret_infos, size_t max, int64_t timeout_ns)
{
	int error = list_check(durable, ret_infos, max, timeout_ns);

	if (error != 0)
		return error;
	return ask(durable, twi_request_make(TWI_ITEM_DEAD, after, NULL, 0, max), ret_infos,
		   timeout_ns);
}

int tw_durable_list(struct tw_durable *durable, const struct tw_durable_info *after,
		    struct tw_durable_info *ret_infos, size_t max, int64_t timeout_ns)
{
	struct twi_request *request;
	int error = list_check(durable, ret_infos, max, timeout_ns);

	if (error == 0 && after != NULL)
		error = info_check(after);
	if (error != 0)
		return error;
	request = twi_request_make(TWI_ITEM_LIST, after == NULL ? no_id : after->id, NULL, 0, max);
	if (request != NULL && after != NULL) {
		request->behind = true;
		request->due_ns = after->due_ns;
		request->kind = twi_kind_find(durable, after->kind);
	}
	return ask(durable, request, ret_infos, timeout_ns);
}
