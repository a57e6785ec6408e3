/* SPDX-License-Identifier: MIT */
/*
 * Compares the engine with the reference model, operation by operation.
 *
 *     oracle FILE...             replays sequences written as text
 *     oracle seeds FROM COUNT    plays random sequences
 *     oracle bytes FILE...       plays sequences found by a fuzzer
 *     oracle show SEED           prints a seed's sequence as text
 *     oracle write SEED FILE     writes a seed's bytes, for a fuzzer to begin with
 *
 * A failing sequence is made small, printed, and written to oracle-failed.txt in the current
 * folder. Exit code 0: engine and model agree; 1: they do not; 2: not played.
 *
 * Seen to fail with each defect that planted.py lists.
 */
#include "attempt.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char failed_path[] = "oracle-failed.txt";

enum {
	/*
	 * a sequence is replayed several times, because a defect may depend on when the worker
	 * wakes up
	 */
	REPLAYS = 10,
	REPLAY_SECONDS = 60,
	BYTES_MAX = 1 << 16,
};

static void failure_print(const struct sequence *sequence, const struct failure *failure,
			  FILE *file)
{
	fprintf(file, "# operation %d: %s\n", failure->at + 1, failure->what);
	sequence_print(sequence, file);
}

static int failure_report(struct sequence *sequence, struct failure *failure)
{
	FILE *file;

	printf("operation %d: %s\nmaking it small\n", failure->at + 1, failure->what);
	sequence_shrink(sequence, failure);
	failure_print(sequence, failure, stdout);
	file = fopen(failed_path, "we");
	if (file != NULL) {
		failure_print(sequence, failure, file);
		fclose(file);
		printf("\nto see it again: oracle %s\n", failed_path);
	}
	return 1;
}

static int sequence_play(struct sequence *sequence)
{
	struct failure failure;

	for (int i = 0; i < REPLAYS; i++) {
		if (!attempt_sequence(sequence, REPLAY_SECONDS, &failure))
			return failure_report(sequence, &failure);
	}
	return 0;
}

static int text_read(const char *path, struct sequence *ret_sequence)
{
	FILE *file = fopen(path, "re");
	int wrong;

	if (file == NULL) {
		perror(path);
		return 2;
	}
	wrong = sequence_read(ret_sequence, file);
	fclose(file);
	if (wrong == 0)
		return 0;
	fprintf(stderr, "%s:%d: not an operation\n", path, wrong);
	return 2;
}

static int bytes_read(const char *path, struct sequence *ret_sequence)
{
	static uint8_t bytes[BYTES_MAX];
	FILE *file = fopen(path, "re");

	if (file == NULL) {
		perror(path);
		return 2;
	}
	sequence_decode(ret_sequence, bytes, fread(bytes, 1, sizeof(bytes), file));
	fclose(file);
	return 0;
}

static int files_play(char **paths, int (*read)(const char *path, struct sequence *ret_sequence))
{
	static struct sequence sequence;
	int code = 0;

	for (; *paths != NULL && code == 0; paths++) {
		code = read(*paths, &sequence);
		if (code == 0)
			code = sequence_play(&sequence);
		if (code == 0)
			printf("%s: %d operations, no difference\n", *paths, sequence.count);
	}
	return code;
}

static void seed_decode(uint64_t seed, struct sequence *ret_sequence)
{
	static uint8_t bytes[SEED_BYTES_MAX];

	sequence_decode(ret_sequence, bytes, seed_bytes(seed, bytes));
}

static int seeds_play(uint64_t from, uint64_t count)
{
	static struct sequence sequence;
	struct failure failure;

	if (attempt_seeds(from, count, &failure)) {
		printf("%" PRIu64 " seeds from %" PRIu64 " on, no difference\n", count, from);
		return 0;
	}
	printf("seed %" PRIu64 ", ", failure.seed);
	seed_decode(failure.seed, &sequence);
	return failure_report(&sequence, &failure);
}

static int seed_write(uint64_t seed, const char *path)
{
	static uint8_t bytes[SEED_BYTES_MAX];
	size_t count = seed_bytes(seed, bytes);
	FILE *file = fopen(path, "we");
	size_t written;

	if (file == NULL) {
		perror(path);
		return 2;
	}
	written = fwrite(bytes, 1, count, file);
	return fclose(file) == 0 && written == count ? 0 : 2;
}

static int seed_show(uint64_t seed)
{
	static struct sequence sequence;

	seed_decode(seed, &sequence);
	sequence_print(&sequence, stdout);
	return 0;
}

static uint64_t number(const char *text)
{
	return strtoull(text, NULL, 10);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "seeds") == 0)
		return seeds_play(number(argv[2]), number(argv[3]));
	if (argc >= 3 && strcmp(argv[1], "bytes") == 0)
		return files_play(&argv[2], bytes_read);
	if (argc == 3 && strcmp(argv[1], "show") == 0)
		return seed_show(number(argv[2]));
	if (argc == 4 && strcmp(argv[1], "write") == 0)
		return seed_write(number(argv[2]), argv[3]);
	if (argc >= 2)
		return files_play(&argv[1], text_read);
	fputs("usage: oracle FILE... | seeds FROM COUNT | bytes FILE... | show SEED | write SEED "
	      "FILE\n",
	      stderr);
	return 2;
}
