/* SPDX-License-Identifier: MIT */
/* Timers that outlive the process, in a file of their own. */
#include "check.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable.h>
#include <tickwheel/durable_file.h>
#include <unistd.h>

static int sent, slow;
static struct tw_durable_self last;

/* A letter that begins with 's' stays pending; one with 'b' is
 * given up. */
static int on_mail(const struct tw_durable_self *self,
		   const void *letter, size_t bytes)
{
	char first = bytes > 0 ? *(const char *)letter : '\0';

	last = *self;
	if (first == 'b')
		return TW_RETRY_GIVE_UP;
	__atomic_fetch_add(first == 's' ? &slow : &sent, 1,
			   __ATOMIC_RELEASE);
	return first == 's' ? TW_RETRY_PENDING : TW_RETRY_DONE;
}

static const struct tw_durable_kind mail =
	TW_DURABLE_KIND("mail", on_mail, NULL);

/* example: tw_durable_options_init tw_durable_store_file tw_durable_open */
static int timers_open(struct tw_engine *engine, const char *path,
		       struct tw_durable **ret_timers)
{
	const struct tw_durable_kind *kinds[] = {&mail};
	struct tw_durable_options options;

	tw_durable_options_init(&options, sizeof options);
	if (tw_durable_store_file(path, &options.store) < 0)
		return -1;
	return tw_durable_open(engine, kinds, 1, &options,
			       ret_timers);
}
/* end */

static struct tw_durable_spec letter_spec(const char *letter)
{
	return (struct tw_durable_spec){
		.size = sizeof(struct tw_durable_spec),
		.kind = &mail,
		.payload = letter,
		.payload_bytes = (uint32_t)strlen(letter),
	};
}

/* example: tw_durable_schedule tw_durable_flush */
/* If it returns 0, a power failure cannot lose the letter. */
static int letter_send(struct tw_durable *timers,
		       const char *letter, int64_t delay_ns,
		       struct tw_durable_id *ret_id)
{
	struct tw_durable_spec spec = letter_spec(letter);
	int code;

	spec.due_ns = delay_ns;
	code = tw_durable_schedule(timers, &spec, ret_id);
	return code < 0 ? code : tw_durable_flush(timers, TW_S(5));
}
/* end */

/* example: tw_durable_schedule_many */
/* Schedules a reminder after a day and one after a week. */
static bool reminders_set(struct tw_durable *timers,
			  struct tw_durable_id ids[2])
{
	struct tw_durable_spec specs[] = {letter_spec("first"),
					  letter_spec("last")};

	specs[0].due_ns = TW_HOURS(24);
	specs[1].due_ns = TW_HOURS(24 * 7);
	return tw_durable_schedule_many(timers, specs, 2, ids) == 2;
}
/* end */

/* example: tw_durable_cancel */
/* Returns true if no reminder was sent, and none will be. */
static bool reminder_cancel(struct tw_durable *timers,
			    struct tw_durable_id id)
{
	int outcome = tw_durable_cancel(timers, id, NULL);

	return outcome == TW_DURABLE_ABSORBED ||
	       outcome == TW_DURABLE_DONE;
}
/* end */

/* example: tw_durable_cancel_key */
/* The order is paid. The acknowledgement has the outcome. */
static bool order_paid(struct tw_durable *timers, const char *order)
{
	return tw_durable_cancel_key(timers, order, strlen(order),
				     NULL) == -EINPROGRESS;
}
/* end */

/* example: tw_durable_reschedule tw_durable_find */
/* Moves a letter's deadline by an hour. */
static int letter_delay(struct tw_durable *timers,
			struct tw_durable_id id)
{
	struct tw_durable_info info = {.size = sizeof info};
	int code = tw_durable_find(timers, id, &info, TW_S(5));

	if (code < 0)
		return code;
	return tw_durable_reschedule(
		timers, id, info.due_ns + TW_HOURS(1), NULL);
}
/* end */

/* example: tw_durable_find_key */
static bool order_waits(struct tw_durable *timers,
			const char *order)
{
	struct tw_durable_info info = {.size = sizeof info};

	return tw_durable_find_key(timers, order, strlen(order),
				   &info, TW_S(5)) == 0;
}
/* end */

/* example: tw_durable_list */
/* Returns the time of the next letter; TW_NEVER: there is none. */
static int64_t next_letter_ns(struct tw_durable *timers)
{
	struct tw_durable_info next = {.size = sizeof next};

	return tw_durable_list(timers, NULL, &next, 1, TW_S(5)) == 1
		       ? next.due_ns
		       : TW_NEVER;
}
/* end */

/* example: tw_durable_complete */
/* The mail server has answered. Any thread may call this. */
static void letter_answered(const struct tw_durable_self *self,
			    bool accepted)
{
	if (tw_durable_complete(
		    self->durable, self->id, self->attempt,
		    accepted ? TW_RETRY_DONE : TW_RETRY_AGAIN) < 0)
		abort(); /* there already is a result */
}
/* end */

/* example: tw_durable_pause tw_durable_resume */
/* While the mail server is down, letters wait, in order. */
static int mail_hold(struct tw_durable *timers, bool down)
{
	return down ? tw_durable_pause(timers, &mail)
		    : tw_durable_resume(timers, &mail);
}
/* end */

/* example: tw_durable_dead_list tw_durable_dead_revive */
/* Tries up to 100 letters again that were given up. */
static int dead_revive(struct tw_durable *timers, int64_t due_ns)
{
	struct tw_durable_info dead[100] = {{.size = sizeof *dead}};
	struct tw_durable_id first = {0, 0};
	int count = tw_durable_dead_list(timers, first, dead, 100,
					 TW_S(5));

	for (int i = 0; i < count; i++)
		tw_durable_dead_revive(timers, dead[i].id, due_ns,
				       NULL);
	return count;
}
/* end */

/* example: tw_durable_dead_drop */
static bool dead_forget(struct tw_durable *timers,
			struct tw_durable_id id)
{
	return tw_durable_dead_drop(timers, id, NULL) ==
	       -EINPROGRESS;
}
/* end */

/* example: tw_durable_stats_get */
/* Timers that ended before they were stored count, too. */
static uint64_t letters_tried(struct tw_durable *timers)
{
	struct tw_durable_stats stats;

	tw_durable_stats_get(timers, &stats, sizeof stats);
	return stats.runs;
}
/* end */

/* example: tw_durable_outcome_name */
/* The option `acked`: writes how each call ended. */
static void on_acked(void *file, const struct tw_durable_ack *acks,
		     size_t count)
{
	for (size_t i = 0; i < count; i++)
		fprintf(file, "letter %" PRIu64 ": %s\n",
			acks[i].id.serial,
			tw_durable_outcome_name(acks[i].outcome));
}
/* end */

/* example: tw_durable_state_name */
/* The option `state`: writes a change of the set's state. */
static void on_state(void *file, int state, int error)
{
	fprintf(file, "letters: %s: %s\n",
		tw_durable_state_name(state), tw_strerror(error));
}
/* end */

/* example: tw_durable_close */
/* Letters that are not due yet stay in the file. */
static int timers_close(struct tw_durable *timers,
			struct tw_engine *engine)
{
	int code = tw_durable_close(timers, TW_NEVER);

	if (code == 0)
		code = tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	return code < 0 ? code : tw_engine_destroy(engine);
}
/* end */

static void wait_for(const int *count, int number)
{
	while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < number)
		usleep(1000);
}

static void key_schedule(struct tw_durable *timers,
			 const char *order)
{
	struct tw_durable_spec spec = letter_spec("please pay");

	spec.due_ns = TW_HOURS(1);
	spec.key = order;
	spec.key_bytes = (uint32_t)strlen(order);
	CHECK(tw_durable_schedule(timers, &spec, NULL) == 0);
}

static void orders(struct tw_durable *timers)
{
	key_schedule(timers, "order 1");
	CHECK(order_waits(timers, "order 1"));
	CHECK(order_paid(timers, "order 1"));
	CHECK(!order_waits(timers, "order 1"));
}

static void letters(struct tw_durable *timers)
{
	struct tw_durable_info info = {.size = sizeof info};
	struct tw_durable_id id, ids[2];

	CHECK(letter_send(timers, "now", 0, NULL) == 0);
	wait_for(&sent, 1);
	CHECK(letter_send(timers, "soon", TW_MINUTES(1), &id) == 0);
	CHECK(reminder_cancel(timers, id));
	CHECK(reminders_set(timers, ids));
	CHECK(next_letter_ns(timers) != TW_NEVER);
	CHECK(letter_delay(timers, ids[0]) == -EINPROGRESS);
	CHECK(tw_durable_find(timers, ids[0], &info, TW_S(5)) == 0);
	CHECK(letter_send(timers, "slow", 0, NULL) == 0);
	wait_for(&slow, 1);
	letter_answered(&last, true);
}

/* example: tw_durable_histogram_get */
/* Returns the lateness that 99 % of the runs did not exceed. */
static int64_t run_late_ns(struct tw_durable *timers)
{
	struct tw_histogram late = {.size = sizeof(late)};
	int code = tw_durable_histogram_get(
		timers, TW_DURABLE_MEASUREMENT_LATENESS, &late);

	return code < 0 ? code : tw_histogram_percentile(&late, 99);
}
/* end */

static void on_text(void *file, const char *text, size_t bytes)
{
	fwrite(text, 1, bytes, file);
}

/* example: tw_durable_stats_print */
/* Writes the counters for Prometheus. */
static int counters_write(const struct tw_durable_stats *stats,
			  FILE *file)
{
	struct tw_durable_reading reading = {
		.set = "mail",
		.stats = stats,
		.stats_bytes = sizeof(*stats),
	};
	return tw_durable_stats_print(
		&reading, 1, TW_PRINT_PROMETHEUS, on_text, file);
}
/* end */

static void names_print(void)
{
	struct tw_durable_ack ack = {.outcome = TW_DURABLE_DONE};

	on_acked(stdout, &ack, 1);
	on_state(stdout, TW_DURABLE_STATE_OPEN, 0);
}

static void timers_report(struct tw_durable *timers)
{
	struct tw_durable_stats stats;

	CHECK(run_late_ns(timers) >= 0);
	CHECK(tw_durable_stats_get(timers, &stats, sizeof stats) ==
	      0);
	CHECK(counters_write(&stats, stdout) == 0);
	names_print();
}

static int dead_count(struct tw_durable *timers)
{
	struct tw_durable_info dead[10] = {{.size = sizeof *dead}};

	return tw_durable_dead_list(timers,
				    (struct tw_durable_id){0, 0},
				    dead, 10, TW_S(5));
}

static void given_up(struct tw_durable *timers)
{
	struct tw_durable_id id;

	CHECK(letter_send(timers, "bad", 0, &id) == 0);
	while (dead_count(timers) < 1)
		usleep(1000);
	CHECK(dead_revive(timers, INT64_MAX - 1) == 1);
	CHECK(dead_count(timers) == 0);
	CHECK(letter_send(timers, "bad", 0, &id) == 0);
	while (dead_count(timers) < 1)
		usleep(1000);
	CHECK(dead_forget(timers, id) && dead_count(timers) == 0);
}

int main(void)
{
	char folder[] = "/tmp/tickwheel-manual-XXXXXX", path[64],
	     command[80];
	struct tw_durable *timers;
	struct tw_engine *engine;

	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof path, "%s/timers", folder);
	CHECK(tw_engine_create(NULL, &engine) == 0);
	CHECK(timers_open(engine, path, &timers) == 0);
	CHECK(mail_hold(timers, true) == 0 &&
	      mail_hold(timers, false) == 0);
	letters(timers);
	orders(timers);
	given_up(timers);
	/* counts the letters "now" and "slow", and two in given_up */
	CHECK(letters_tried(timers) == 4);
	timers_report(timers);
	CHECK(timers_close(timers, engine) == 0);
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK(system(command) == 0);
	return 0;
}
