/* SPDX-License-Identifier: MIT */
/* Describes the machine, from the data of the system and of the build. */
#include "report/machine.h"

#include "build_info.h"
#include "harness/measure.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

static void date_read(char *ret_text)
{
	time_t now = time(NULL);
	struct tm parts;

	if (gmtime_r(&now, &parts))
		strftime(ret_text, MACHINE_TEXT_BYTES, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* Returns the text after the colon if the line names the CPU model, otherwise NULL. */
static const char *model_of(char *line)
{
	static const char key[] = "model name";
	char *colon = strchr(line, ':');

	if (strncmp(line, key, sizeof(key) - 1) != 0 || !colon)
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return colon + 1 + strspn(colon + 1, " \t");
}

static void cpu_read(char *ret_text, const char *otherwise)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	const char *model = NULL;
	char line[256];

	while (file && !model && fgets(line, sizeof(line), file))
		model = model_of(line);
	snprintf(ret_text, MACHINE_TEXT_BYTES, "%s", model && *model ? model : otherwise);
	if (file)
		fclose(file);
}

const struct machine *machine_get(void)
{
	static struct machine machine;
	struct utsname system = {0};

	if (machine.compiler)
		return &machine;
	uname(&system);
	date_read(machine.date);
	cpu_read(machine.cpu, system.machine);
	snprintf(machine.kernel, sizeof(machine.kernel), "%.60s %.60s", system.sysname,
		 system.release);
	machine.cpus = measure_cpu_count();
	machine.memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	machine.compiler = COMPILER;
	machine.flags = BUILD_FLAGS;
	return &machine;
}
