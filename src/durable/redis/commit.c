/* SPDX-License-Identifier: MIT */
/*
 * A commit is sent as one script or, if it has many operations, as several: its parts. All are sent
 * before the first reply is read. Each part is a batch with a number of its own, so no part is done
 * if an earlier one was not. A part that is done stays done. The set repeats a commit until it has
 * an answer. Each new try sends only the parts that are not done yet.
 */
#include "durable/redis/store.h"
#include "durable/redis/wire.h"

#include <errno.h>
#include <stdlib.h>

enum {
	BYTES_MAX = 4 << 20, /* a part ends when its payloads have this many bytes */
	OUTCOME_BYTES = 20,
	FLAG_OWN = 1,
	FLAG_MINE = 2,
	FLAG_RUNS = 4,
};

#define FENCE UINT32_MAX /* the number of the entry that has the fence, not an outcome */
#define SIGN_4 (UINT32_C(1) << 31)

struct commit {
	struct twi_redis *store;
	struct tw_durable_op *ops;
	size_t count;
	bool grows; /* the commit has new timers */
	int64_t sent_ns;
};

/*
 * Returns the end of the part that begins with operation `first`. The end must be the same in each
 * try, because some parts may be done already.
 */
static size_t part_end(const struct commit *commit, size_t first)
{
	size_t bytes = 0, at = first;

	while (at < commit->count && at - first < TWI_REDIS_ROWS_MAX && bytes < BYTES_MAX)
		bytes += commit->ops[at++].row.payload_bytes;
	return at;
}

static uint64_t fence_of(const struct twi_redis *store, const struct tw_durable_op *op)
{
	return op->fence == TW_DURABLE_FENCE_OF_BATCH ? store->link.session : op->fence;
}

static unsigned flags_of(const struct tw_durable_op *op)
{
	return ((op->flags & TW_DURABLE_OP_OWN) != 0 ? FLAG_OWN : 0) |
	       (op->row.session != 0 ? FLAG_MINE : 0) | (op->row.started != 0 ? FLAG_RUNS : 0);
}

static void op_add(const struct twi_redis *store, struct twi_arguments *arguments,
		   const struct tw_durable_op *op)
{
	twi_argument_byte(arguments, op->type);
	twi_argument_byte(arguments, flags_of(op));
	twi_argument_8(arguments, op->row.id.serial);
	twi_argument_8(arguments, op->row.attempt);
	twi_argument_8(arguments, fence_of(store, op));
	if (op->type == TW_DURABLE_OP_PUT) {
		twi_redis_row_add(store, arguments, &op->row);
	} else {
		twi_argument_signed(arguments, op->row.due_ns);
		twi_argument_4(arguments, (uint32_t)op->row.id.place ^ SIGN_4);
	}
	twi_argument_end(arguments);
}

static int part_send(const struct commit *commit, size_t first, int64_t batch, bool by_text)
{
	struct twi_redis *store = commit->store;
	struct twi_arguments *arguments = twi_redis_link_begin(&store->link);
	size_t end = part_end(commit, first);

	twi_arguments_8(arguments, store->link.session);
	twi_arguments_number(arguments, batch);
	twi_arguments_number(arguments, first == 0);
	/* Only the first part checks whether the server has memory left. */
	twi_arguments_number(arguments, first == 0 && commit->grows);
	twi_arguments_number(arguments, (int64_t)first);
	for (size_t i = first; i < end; i++)
		op_add(store, arguments, &commit->ops[i]);
	return twi_redis_link_send(&store->link, TWI_REDIS_COMMIT, by_text);
}

/* Sets the fence of all starts of a part. They have the same one. */
static void fence_note(const struct commit *commit, size_t first, uint64_t fence)
{
	for (size_t i = first; i < commit->count && i < part_end(commit, first); i++)
		if (commit->ops[i].type == TW_DURABLE_OP_START)
			commit->ops[i].row.fence = fence;
}

static void outcome_note(const struct commit *commit, uint32_t number, uint32_t outcome,
			 struct tw_durable_id id)
{
	struct tw_durable_op *op;

	if (number == FENCE)
		fence_note(commit, outcome, id.serial);
	if (number >= commit->count)
		return;
	op = &commit->ops[number];
	op->outcome = (int32_t)outcome;
	if (op->type == TW_DURABLE_OP_PUT)
		op->row.id = id;
}

/* Reads the unusual outcomes: number, outcome, place and serial of each. */
static void outcomes_take(const struct commit *commit, const redisReply *text)
{
	const char *at = text->str;

	for (size_t left = text->len; left >= OUTCOME_BYTES; left -= OUTCOME_BYTES) {
		int32_t place = (int32_t)(twi_redis_get4(at + 8) ^ SIGN_4);

		outcome_note(
			commit, twi_redis_get4(at), twi_redis_get4(at + 4),
			(struct tw_durable_id){(uint64_t)(int64_t)place, twi_redis_get8(at + 12)});
		at += OUTCOME_BYTES;
	}
}

/* Sets the usual outcomes, which the reply leaves out. */
static void outcomes_begin(const struct commit *commit, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		commit->ops[i].outcome = TW_DURABLE_DONE;
		if (commit->ops[i].row.session != 0)
			commit->ops[i].row.session = commit->store->link.session;
	}
}

/* Records that the next part is done. */
static void part_done(const struct commit *commit)
{
	struct twi_redis *store = commit->store;
	size_t end = part_end(commit, store->done);

	outcomes_begin(commit, store->done, end);
	store->done = end;
}

static int part_read(const struct commit *commit, int64_t until_ns)
{
	struct twi_redis *store = commit->store;
	redisReply *reply = NULL;
	int error = twi_redis_link_read(&store->link, until_ns, &reply);

	if (error != 0)
		return error;
	if (reply->type == REDIS_REPLY_ERROR) {
		error = twi_redis_error(reply->str);
		if (error != TWI_REDIS_NO_SCRIPT && error != -ESTALE)
			twi_redis_notify(&store->link.notice, reply->str);
	} else {
		part_done(commit);
		outcomes_take(commit, reply->element[1]);
		twi_redis_link_time(&store->link, strtoll(reply->element[0]->str, NULL, 10),
				    commit->sent_ns);
		store->batch++;
	}
	freeReplyObject(reply);
	return error;
}

/*
 * Sends the remaining parts, and reads the replies. `by_text`: sends the script's text, not its
 * hash. The first error counts, because no part after it was done.
 */
static int parts_do(struct commit *commit, bool by_text)
{
	struct twi_redis *store = commit->store;
	size_t sent = 0;
	int64_t until_ns;
	int error = 0, first_error = 0;

	commit->sent_ns = twi_redis_now_ns();
	for (size_t at = store->done; at < commit->count && error == 0; sent++) {
		error = part_send(commit, at, store->batch + 1 + (int64_t)sent, by_text);
		by_text = false;
		at = part_end(commit, at);
	}
	if (error != 0)
		return -EAGAIN;
	until_ns = twi_redis_link_until_ns(&store->link);
	for (; sent > 0 && error != -ECONNRESET; sent--) {
		error = part_read(commit, until_ns);
		first_error = first_error == 0 ? error : first_error;
	}
	/* The parts after a failed one are refused, so their errors do not count. */
	return error == -ECONNRESET && first_error == error ? error : first_error;
}

static int commit_do(struct commit *commit)
{
	struct twi_redis *store = commit->store;
	int error = parts_do(commit, false);

	if (error == TWI_REDIS_NO_SCRIPT)
		error = parts_do(commit, true);
	store->sent = error == -ECONNRESET || store->done != 0 || (store->sent && error != 0);
	if (error != 0 && error != TWI_REDIS_NO_SCRIPT)
		return twi_redis_refused(store, error);
	store->unsettled = false;
	return error == 0 ? 0 : -EAGAIN;
}

/* Finds out which parts are done. Returns 0 if all are, 1 if the rest must be sent, or an error. */
static int commit_settle(const struct commit *commit)
{
	struct twi_redis *store = commit->store;
	struct twi_redis_settled settled;
	int error = twi_redis_settle(store, &settled);
	bool claim = error == 0 && settled.batches != 0 && settled.claim;

	/* The last batch was a claim, whose reply was lost. Its rows are read later. */
	store->unread = store->unread || claim;
	for (int64_t i = 0;
	     error == 0 && !claim && i < settled.batches && store->done < commit->count; i++)
		part_done(commit);
	if (error == 0 && !claim && settled.batches != 0)
		outcomes_take(commit, settled.outcomes);
	if (settled.reply != NULL)
		freeReplyObject(settled.reply);
	/* The commit was never sent, so it can be tried again in a new session. */
	if (error == -ESTALE && !store->sent)
		return -EAGAIN;
	return error != 0 ? error : store->done < commit->count;
}

static int commit_try(struct commit *commit)
{
	struct twi_redis *store = commit->store;
	int again = store->unsettled ? commit_settle(commit) : 1;

	if (again != 1)
		return again;
	return store->link.over ? -EAGAIN : commit_do(commit);
}

int twi_redis_commit(void *to, struct tw_durable_op *ops, size_t count, int64_t now_ns)
{
	struct commit commit = {.store = to, .ops = ops, .count = count};
	int error;

	(void)now_ns;
	if (commit.store->link.statements == NULL || commit.store->link.session == 0)
		return -EAGAIN;
	for (size_t i = 0; i < count && !commit.grows; i++)
		commit.grows = ops[i].type == TW_DURABLE_OP_PUT;
	error = commit_try(&commit);
	if (error != -EAGAIN) {
		commit.store->sent = false;
		commit.store->done = 0;
	}
	return error;
}
