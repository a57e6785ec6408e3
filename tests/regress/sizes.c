/* SPDX-License-Identifier: MIT */
/*
 * Structs that claimed absurd sizes used to be read beyond their end. And the code negated
 * INT64_MIN, which has no opposite. Such calls must be rejected, and must not touch other memory.
 *
 * Seen to fail with this defect: options are read to their end for any size
 * (absurd_size_is_not_read... crashes).
 */
#include "probe.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>

static const size_t absurd[] = {4097, (size_t)1 << 30, SIZE_MAX};

Test(sizes, absurd_size_of_options_is_rejected)
{
	struct tw_options options;
	struct tw_engine *engine;

	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		check_int(tw_options_init(&options, absurd[i]), -E2BIG);
		check_int(tw_options_init(&options, sizeof(options)), 0);
		options.size = absurd[i];
		check_int(tw_engine_create(&options, &engine), -E2BIG);
	}
}

/* The options end where a page ends. The call must not read the page that follows. */
Test(sizes, absurd_size_is_not_read_to_its_end)
{
	enum { PAGE_BYTES = 65536 };
	struct tw_engine *engine;
	struct tw_options *options;
	char *pages = mmap(NULL, 2 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check_true(pages != MAP_FAILED);
	check_int(munmap(pages + PAGE_BYTES, PAGE_BYTES), 0);
	options = (struct tw_options *)(void *)(pages + PAGE_BYTES - 4096);
	check_int(tw_options_init(options, sizeof(*options)), 0);
	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		options->size = absurd[i];
		check_int(tw_engine_create(options, &engine), -E2BIG);
	}
	check_int(munmap(pages, PAGE_BYTES), 0);
}

Test(sizes, absurd_size_of_an_output_is_rejected)
{
	struct tw_timeout timeout = {.size = 0};
	struct tw_stats stats = {.size = 0};
	struct fixture fixture;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = must_schedule(fixture.engine, NS_PER_S, &probe_kind, NULL);
	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		stats.size = timeout.size = absurd[i];
		check_int(tw_stats_get(fixture.engine, &stats), -EINVAL);
		check_int(tw_timeout_get(handle, &timeout), -EINVAL);
	}
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

/* A struct of the largest size that may be claimed, including the bytes after the known part. */
union largest {
	struct tw_options options;
	struct tw_stats stats;
	struct tw_timeout timeout;
	struct tw_kind kind;
	unsigned char bytes[4096];
};

static void check_zero_tail(const union largest *largest, size_t known)
{
	size_t at = known;

	while (at < sizeof(largest->bytes) && largest->bytes[at] == 0)
		at++;
	check_int(at, sizeof(largest->bytes));
}

Test(sizes, largest_options_are_accepted_with_a_zero_tail)
{
	static union largest largest;
	struct tw_engine *engine;

	memset(largest.bytes, 0xff, sizeof(largest.bytes));
	check_int(tw_options_init(&largest.options, sizeof(largest)), 0);
	check_zero_tail(&largest, sizeof(largest.options));
	check_int(tw_engine_create(&largest.options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
}

Test(sizes, largest_outputs_get_a_zero_tail)
{
	static union largest largest;
	struct fixture fixture;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = must_schedule(fixture.engine, NS_PER_S, &probe_kind, NULL);

	memset(largest.bytes, 0xff, sizeof(largest.bytes));
	largest.stats.size = sizeof(largest);
	check_int(tw_stats_get(fixture.engine, &largest.stats), 0);
	check_int(largest.stats.scheduled, 1);
	check_zero_tail(&largest, sizeof(largest.stats));

	memset(largest.bytes, 0xff, sizeof(largest.bytes));
	largest.timeout.size = sizeof(largest);
	check_int(tw_timeout_get(handle, &largest.timeout), 0);
	check_true(largest.timeout.kind == &probe_kind);
	check_zero_tail(&largest, sizeof(largest.timeout));

	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	fixture_close(&fixture);
}

Test(sizes, largest_kind_is_accepted_if_its_tail_is_zero)
{
	static union largest largest;
	struct fixture fixture;
	atomic_int runs = 0;

	largest.kind = count_kind;
	largest.kind.size = sizeof(largest);
	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, 1, &largest.kind, &runs);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(runs, 1);
	largest.bytes[4095] = 1;
	check_int(tw_schedule(fixture.engine, 1, &largest.kind, &runs, NULL), -E2BIG);
	fixture_close(&fixture);
}

Test(sizes, absurd_size_of_a_kind_is_rejected)
{
	struct tw_kind kind = probe_kind;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	kind.size = 4097;
	check_int(tw_schedule(fixture.engine, 1, &kind, NULL, NULL), -E2BIG);
	kind.size = UINT32_MAX;
	check_int(tw_schedule(fixture.engine, 1, &kind, NULL, NULL), -E2BIG);
	fixture_close(&fixture);
}

Test(sizes, extreme_codes_are_unknown_errors)
{
	check_int(strcmp(tw_strerror(INT_MIN), "unknown error"), 0);
	check_int(strcmp(tw_strerror(INT_MAX), "unknown error"), 0);
	check_int(strcmp(tw_strerror(EINVAL), tw_strerror(-EINVAL)), 0);
}
