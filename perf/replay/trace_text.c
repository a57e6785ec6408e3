/* SPDX-License-Identifier: MIT */
/*
 * Reads a trace's text, plain or zstd-compressed. In a build without libzstd, rejects a compressed
 * text.
 */
#include "replay/trace.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef PERF_HAVE_ZSTD
#include <zstd.h>
#endif

struct text {
	char *bytes;
	size_t used;
	size_t room;
};

/* Makes space for `more` bytes and a NUL. Returns false if there is no memory. */
static bool text_reserve(struct text *text, size_t more)
{
	size_t room = text->room ? text->room : (size_t)1 << 16;
	char *bytes;

	while (room - text->used <= more)
		room *= 2;
	if (room == text->room)
		return true;
	bytes = realloc(text->bytes, room);
	if (!bytes)
		return false;
	text->bytes = bytes;
	text->room = room;
	return true;
}

static int read_all(FILE *file, struct text *text)
{
	size_t got;

	do {
		if (!text_reserve(text, BUFSIZ))
			return ENOMEM;
		got = fread(text->bytes + text->used, 1, BUFSIZ, file);
		text->used += got;
	} while (got > 0);
	return ferror(file) ? errno : 0;
}

static int read_file(const char *path, struct text *text)
{
	FILE *file = fopen(path, "re");
	int error;

	if (!file)
		return errno;
	error = read_all(file, text);
	fclose(file);
	return error;
}

static bool is_zstd(const struct text *text)
{
	static const unsigned char magic[4] = {0x28, 0xb5, 0x2f, 0xfd};

	return text->used >= sizeof(magic) && memcmp(text->bytes, magic, sizeof(magic)) == 0;
}

#ifdef PERF_HAVE_ZSTD
static const char *decompress_with(ZSTD_DStream *stream, const struct text *packed,
				   struct text *plain)
{
	ZSTD_inBuffer in = {packed->bytes, packed->used, 0};
	size_t room = ZSTD_DStreamOutSize();
	size_t left;
	bool full;

	do {
		ZSTD_outBuffer out = {NULL, room, 0};

		if (!text_reserve(plain, room))
			return strerror(ENOMEM);
		out.dst = plain->bytes + plain->used;
		left = ZSTD_decompressStream(stream, &out, &in);
		if (ZSTD_isError(left))
			return ZSTD_getErrorName(left);
		plain->used += out.pos;
		full = out.pos == room;
	} while (in.pos < in.size || (left != 0 && full));
	return left == 0 ? NULL : "the compressed data ends too early";
}

static const char *decompress(const struct text *packed, struct text *plain)
{
	ZSTD_DStream *stream = ZSTD_createDStream();
	const char *problem = stream ? decompress_with(stream, packed, plain) : strerror(ENOMEM);

	ZSTD_freeDStream(stream);
	return problem;
}
#else
static const char *decompress(const struct text *packed, struct text *plain)
{
	(void)packed;
	(void)plain;
	return "built without libzstd; unpack it first: zstd -d FILE";
}
#endif

/* Returns a text that names the error, or NULL. */
static const char *unpack(struct text *text)
{
	struct text plain = {0};
	const char *problem;

	if (!is_zstd(text))
		return NULL;
	problem = decompress(text, &plain);
	free(text->bytes);
	*text = plain;
	return problem;
}

char *trace_text_read(const char *path, size_t *ret_bytes)
{
	struct text text = {0};
	int error = read_file(path, &text);
	const char *problem = error ? strerror(error) : unpack(&text);

	if (!problem && !text_reserve(&text, 0))
		problem = strerror(ENOMEM);
	if (problem) {
		fprintf(stderr, "tickwheel-perf: %s: %s\n", path, problem);
		free(text.bytes);
		return NULL;
	}
	text.bytes[text.used] = '\0';
	*ret_bytes = text.used;
	return text.bytes;
}
