/* SPDX-License-Identifier: MIT */
#include "cycle.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	COMMITS = 6, /* how many commits a session makes */
	MORE = 3,    /* how many commits are made after a failure */
};

static void clear(const char *path)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	char name[512];

	while (directory != NULL && (entry = readdir(directory)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		unlink(name);
	}
	if (directory != NULL)
		closedir(directory);
}

void cycle_create(struct cycle *cycle)
{
	/*
	 * Uses a file system in memory if possible. The simulated disk decides what survives, so
	 * the real disk does not matter.
	 */
	snprintf(cycle->directory, sizeof(cycle->directory), "%s/tickwheel-durable-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (mkdtemp(cycle->directory) == NULL)
		abort();
	snprintf(cycle->path, sizeof(cycle->path), "%s/timers", cycle->directory);
}

void cycle_destroy(struct cycle *cycle)
{
	disk_end();
	clear(cycle->directory);
	rmdir(cycle->directory);
}

void cycle_begin(struct cycle *cycle, uint64_t seed)
{
	disk_end();
	clear(cycle->directory);
	disk_begin(cycle->directory);
	model_init(&cycle->model, cycle->path, seed);
}

/*
 * Checks that the store refuses each call after a commit whose outcome is unknown. If it did not,
 * it could append to data that may be lost.
 */
static void final_check(struct model *model, int result)
{
	struct tw_durable_op op = {.type = TW_DURABLE_OP_DELETE, .row = {.id = {1, INT64_MAX}}};
	uint64_t serial;

	if (!model->open || result == 0 || result == -ECANCELED)
		return;
	if (model->store.ops->commit(model->store.store, &op, 1, model->now_ns) >= 0 ||
	    model->store.ops->reserve(model->store.store, 1, &serial) >= 0)
		snprintf(model->failure, sizeof(model->failure), "it goes on after a failure");
}

static int session(struct cycle *cycle, bool clean)
{
	struct model *model = &cycle->model;
	int result = model_open(model);

	/* Finds out first which of the possible states the store has. */
	if (result == 0 && (model->unknown || model->trimmed) && !model_check(model))
		result = -ECANCELED;
	if (result == 0)
		model->unknown = model->trimmed = false;
	for (int i = 0; i < COMMITS && result == 0; i++) {
		result = model_commit(model);
		/*
		 * A commit that returns -EAGAIN or -ENOSPC did nothing, so the cycle continues. On
		 * a full disk, ends of timers must still be written.
		 */
		if (result == -ENOSPC)
			result = model_commit_ends(model);
		if (result == -EAGAIN || result == -ENOSPC)
			result = 0;
	}
	final_check(model, result);
	model_close(model, clean && result == 0);
	return result;
}

int cycle_run(struct cycle *cycle, int sessions)
{
	int result = 0;

	for (int i = 0; i < sessions && result == 0; i++)
		result = session(cycle, i % 2 == 0);
	return result;
}

static bool look(struct cycle *cycle)
{
	struct model *model = &cycle->model;
	int result = model_open(model);

	if (result != 0) {
		snprintf(model->failure, sizeof(model->failure), "open says %d", result);
		return false;
	}
	return model_check(model);
}

bool cycle_survives(struct cycle *cycle)
{
	struct model *model = &cycle->model;
	bool good;

	disk_heal();
	good = model->failure[0] == '\0' && look(cycle);
	for (int i = 0; i < MORE && good; i++)
		good = model_commit(model) == 0;
	if (!good && model->failure[0] == '\0')
		snprintf(model->failure, sizeof(model->failure), "a commit fails");
	/* Ends the process and the power: from here on, no call reaches the disk. */
	disk_die(1);
	model_close(model, false);
	disk_restart(DISK_DROP, 0);
	good = good && look(cycle);
	model_close(model, true);
	return good;
}
