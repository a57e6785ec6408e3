/* SPDX-License-Identifier: MIT */
/*
 * Files with damaged bytes, truncated files, and random bytes. Calls may return -EUCLEAN, and may
 * omit rows whose pages are gone. If a page of stored ends is gone, the timers that had ended may
 * be there again. But each row that the store returns must be as it was put, and nothing may crash.
 *
 * Seen to fail with these defects: a row is read without a check of its checksum; a row's checksum
 * does not cover the deadline.
 */
#include "check.h"
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	COMMITS = 60,
	TRIALS = 300,
	PAGE = 4096,
	SEEN_MAX = 2048,
};

static char directory[64], path[80];
static unsigned char *whole, *damaged;
static size_t length;
static struct model model, copy;
/* All timers that have ever been pending in the model. */
static struct model_timer seen[SEEN_MAX];
static size_t seen_count;

static void see(const struct model_timer *timer)
{
	size_t at = 0;

	while (at < seen_count && seen[at].id.serial != timer->id.serial)
		at++;
	cr_assert(at < SEEN_MAX);
	seen[at] = *timer;
	if (at == seen_count)
		seen_count++;
}

static void setup(void)
{
	struct stat status;
	int fd;

	snprintf(directory, sizeof(directory), "/tmp/tickwheel-durable-XXXXXX");
	cr_assert(mkdtemp(directory) != NULL);
	snprintf(path, sizeof(path), "%s/timers", directory);
	model_init(&model, path, 1);
	check_int(model_open(&model), 0);
	for (int i = 0; i < COMMITS; i++) {
		check_int(model_commit(&model), 0);
		for (size_t t = 0; t < model.now.count; t++)
			see(&model.now.timers[t]);
	}
	model_close(&model, true);
	fd = open(path, O_RDONLY);
	check_int(fstat(fd, &status), 0);
	length = (size_t)status.st_size;
	whole = malloc(length);
	damaged = malloc(length);
	check_int(read(fd, whole, length), length);
	close(fd);
}

static void teardown(void)
{
	char command[128];

	free(whole);
	free(damaged);
	snprintf(command, sizeof(command), "rm -r %s", directory);
	check_int(system(command), 0);
}

static void file_write(size_t count)
{
	static const char *const endings[] = {"-wal", "-shm", "-journal"};
	char name[128];
	int fd;

	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		snprintf(name, sizeof(name), "%s%s", path, endings[i]);
		unlink(name);
	}
	fd = open(path, O_WRONLY | O_TRUNC);
	check_int(write(fd, damaged, count), count);
	close(fd);
}

struct judged {
	int rows;
	bool wrong;
};

static bool same_numbers(const struct model_timer *timer, const struct tw_durable_row *row)
{
	return timer->due_ns == row->due_ns && timer->attempt == row->attempt;
}

static bool same(const struct model_timer *timer, const struct tw_durable_row *row)
{
	bool found = timer->kind == row->kind && timer->version == row->version &&
		     timer->payload_bytes == row->payload_bytes;

	for (uint32_t b = 0; b < row->payload_bytes && found; b++)
		found = ((const unsigned char *)row->payload)[b] ==
			(unsigned char)(timer->id.serial * 31 + b * 7 + timer->version);
	return found;
}

static const struct model_timer *find(const struct model_timer *timers, size_t count,
				      const struct tw_durable_row *row)
{
	for (size_t i = 0; i < count; i++)
		if (timers[i].id.serial == row->id.serial && timers[i].id.place == row->id.place)
			return &timers[i];
	return NULL;
}

/*
 * Checks that a returned row is equal, byte for byte, to one of the model's rows or to one that has
 * ended.
 */
static int judge(void *to, const struct tw_durable_row *row)
{
	const struct model_timer *now = find(model.now.timers, model.now.count, row);
	const struct model_timer *once = find(seen, seen_count, row);
	struct judged *judged = to;

	judged->rows++;
	if (once == NULL || !same(once, row) || (now != NULL && !same_numbers(now, row)))
		judged->wrong = true;
	return 0;
}

/* Opens the file, reads all rows, and writes some. Returns the first code other than 0. */
static int use(struct judged *judged)
{
	int result, walked;

	copy = model;
	copy.random.state = (uint64_t)judged->rows;
	result = model_open(&copy);
	if (result != 0)
		return result;
	walked = copy.store.ops->near(copy.store.store, NULL, INT64_MAX - 1, 100000, judge, judged);
	if (walked == 0)
		walked = copy.store.ops->dead(copy.store.store, (struct tw_durable_id){0, 0}, 1000,
					      judge, judged);
	for (int i = 0; i < 5 && result == 0; i++)
		result = model_commit(&copy);
	model_close(&copy, true);
	return walked != 0 ? walked : result;
}

static void damage(struct random *random, uint64_t trial)
{
	size_t at = random_below(random, length);

	memcpy(damaged, whole, length);
	switch (trial % 5) {
	case 0: /* flips one bit */
		damaged[at] ^= (unsigned char)(1 << random_below(random, 8));
		break;
	case 1: /* overwrites some bytes with noise */
		for (size_t i = at; i < length && i < at + 64; i++)
			damaged[i] = (unsigned char)random_next(random);
		break;
	case 2: /* empties a page */
		memset(damaged + at / PAGE * PAGE, 0, PAGE);
		break;
	case 3: /* copies another page */
		memcpy(damaged + at / PAGE * PAGE,
		       whole + random_below(random, length / PAGE) * PAGE, PAGE);
		break;
	default: /* overwrites many bytes */
		for (int i = 0; i < 200; i++)
			damaged[random_below(random, length)] = (unsigned char)random_next(random);
	}
}

Test(damage, damaged_file_gives_no_wrong_row, .init = setup, .fini = teardown, .timeout = 280)
{
	struct random random = {7};
	int told = 0;

	for (uint64_t trial = 0; trial < TRIALS; trial++) {
		struct judged judged = {0};
		int result;

		damage(&random, trial);
		file_write(length);
		result = use(&judged);
		cr_assert(!judged.wrong, "trial %llu gives a wrong row", (unsigned long long)trial);
		told += result != 0;
	}
	check_at_least(told, TRIALS / 3);
}

Test(damage, cut_file_is_refused_or_gives_no_wrong_row, .init = setup, .fini = teardown)
{
	memcpy(damaged, whole, length);
	for (size_t count = 0; count < length; count += PAGE / 2 + 1) {
		struct judged judged = {0};
		int result;

		file_write(count);
		result = use(&judged);
		cr_assert(!judged.wrong, "%zu bytes", count);
		cr_assert(count == 0 || result != 0, "%zu bytes", count);
	}
}

/* The checksum must cover each byte of a payload. */
Test(damage, flipped_bit_in_a_payload_is_seen, .init = setup, .fini = teardown)
{
	int tried = 0;

	for (size_t i = 0; i < model.now.count && tried < 20; i++) {
		const struct model_timer *timer = &model.now.timers[i];
		unsigned char payload[MODEL_PAYLOAD];
		struct judged judged = {0};
		unsigned char *at;

		if (timer->payload_bytes < 40 || timer->dead)
			continue;
		for (uint32_t b = 0; b < timer->payload_bytes; b++)
			payload[b] =
				(unsigned char)(timer->id.serial * 31 + b * 7 + timer->version);
		memcpy(damaged, whole, length);
		/*
		 * Free parts of pages may still have old copies of the row, so this damages all
		 * copies.
		 */
		for (at = damaged; (at = memmem(at, length - (size_t)(at - damaged), payload,
						timer->payload_bytes)) != NULL;)
			at[20] ^= 1;
		file_write(length);
		check_int(use(&judged), -EUCLEAN);
		cr_assert(!judged.wrong);
		tried++;
	}
	check_int(tried, 20);
}

/*
 * Changes a column and leaves the row's checksum as it is. It changes only rows with a small
 * attempt number, so that the new values stay in range.
 */
static void column_change(const char *sql)
{
	struct judged judged = {0};
	sqlite3 *db = NULL;
	int result;

	memcpy(damaged, whole, length);
	file_write(length);
	check_int(sqlite3_open(path, &db), SQLITE_OK);
	check_int(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	check_at_least(sqlite3_changes(db), 1);
	check_int(sqlite3_close(db), SQLITE_OK);
	result = use(&judged);
	cr_assert(result == -EUCLEAN && !judged.wrong, "%s: %d", sql, result);
}

Test(damage, each_column_of_each_table_counts, .init = setup, .fini = teardown)
{
	static const char *const changes[] = {
		"UPDATE timer SET due = due + 1 WHERE due < 9000000000000000000",
		"UPDATE timer SET kind = 4 - kind WHERE kind <> 2",
		"UPDATE timer SET attempt = attempt + 1",
		"UPDATE timer SET version = version + 1",
		"UPDATE timer SET started = 1 - started",
		"UPDATE timer SET serial = serial + 1000000",
		"UPDATE timer SET place = place + 1 WHERE place IS NOT NULL",
		"UPDATE timer SET payload = x'00' WHERE length(payload) > 1",
		"UPDATE timer SET payload = NULL WHERE length(payload) > 1",
		"UPDATE timer SET key = 'other' WHERE key IS NOT NULL",
		"UPDATE inbox SET due = due + 1",
		"UPDATE dead SET attempt = attempt + 1",
		"UPDATE dead SET payload = x'00' WHERE length(payload) > 1",
		"UPDATE kind SET name = 'sms' WHERE name = 'mail'",
		"UPDATE meta SET serial = serial - 1",
		"UPDATE meta SET epoch = epoch + 1",
		"UPDATE meta SET wall = wall - 1",
		"UPDATE ended SET number = number + 1000",
		"UPDATE ended SET place = place + 1",
		"UPDATE ended SET serial = serial + 1",
		"DELETE FROM meta",
	};

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		column_change(changes[i]);
}

static int find_any(void *to, const struct tw_durable_row *row)
{
	(void)to;
	(void)row;
	return 0;
}

/* A search for a timer also reads pointers and keys, so damage there must be noticed. */
Test(damage, pointers_and_keys_count, .init = setup, .fini = teardown)
{
	sqlite3 *db = NULL;
	int moved = 0, keyed = 0;

	check_int(sqlite3_open(path, &db), SQLITE_OK);
	check_int(sqlite3_exec(db,
			       "UPDATE moved SET bucket = bucket + 1;"
			       "UPDATE key SET serial = serial + 1",
			       NULL, NULL, NULL),
		  SQLITE_OK);
	check_int(sqlite3_close(db), SQLITE_OK);
	check_int(model_open(&model), 0);
	for (size_t i = 0; i < model.now.count; i++)
		moved += model.store.ops->find(model.store.store, model.now.timers[i].id, find_any,
					       NULL) == -EUCLEAN;
	for (int key = 0; key < MODEL_KEYS; key++) {
		char text[] = {'k', (char)('0' + key)};

		keyed += model.store.ops->find_key(model.store.store, text, 2, find_any, NULL) ==
			 -EUCLEAN;
	}
	model_close(&model, false);
	check_at_least(moved, 1);
	check_at_least(keyed, 1);
}

Test(damage, noise_in_the_log_is_no_commit, .init = setup, .fini = teardown)
{
	struct random random = {9};
	char name[128];

	snprintf(name, sizeof(name), "%s-wal", path);
	for (int trial = 0; trial < 50; trial++) {
		struct judged judged = {0};
		unsigned char noise[3 * PAGE];
		int fd;

		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (unsigned char)random_next(&random);
		memcpy(damaged, whole, length);
		file_write(length);
		fd = open(name, O_CREAT | O_WRONLY, 0600);
		check_int(write(fd, noise, random_below(&random, sizeof(noise))) >= 0, 1);
		close(fd);
		check_int(use(&judged), 0);
		cr_assert(!judged.wrong);
		check_int(judged.rows, model.now.count);
	}
}
