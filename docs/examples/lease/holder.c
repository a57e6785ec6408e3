/* SPDX-License-Identifier: MIT */
/*
 * Holds a lease, and works only as long as it holds the lease.
 *
 *     lease-holder PORT NAME LEASE_MS      the lease server is at 127.0.0.1:PORT
 *
 * Lines to the server, and its answers:
 *
 *     acquire NAME LEASE_MS ID    granted ID TOKEN, or denied ID
 *     renew TOKEN LEASE_MS ID     renewed ID, or lost ID
 *     release TOKEN               (none)
 *     put TOKEN NS                (none) one step of the work, at the time NS of the holder's clock
 *
 * The holder renews its lease when a third of the lease has passed. It counts a lease from the time
 * when the request was sent, because the server begins to count later. If no answer comes in time,
 * a timeout, the fence, stops the work: the server may soon give the lease to another holder.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <tickwheel.h>
#include <unistd.h>

static struct tw_engine *engine;
static FILE *server;
static const char *name;
static int64_t lease_ns;

/* The state of the lease. */
static bool held;
static uint64_t token;
static int64_t fence_ns; /* from this time on no step may run */
static struct tw_handle fence, renewal, step;
/* The request that waits for its answer. Answers to earlier requests are ignored. */
static uint64_t request_id;
static int64_t request_ns;

static void on_fence(struct tw_handle self, void *arg);
static void on_renewal(struct tw_handle self, void *arg);
static void on_step(struct tw_handle self, void *arg);

static const struct tw_kind fence_kind = TW_KIND(on_fence, NULL);
static const struct tw_kind renewal_kind = TW_KIND(on_renewal, NULL);
static const struct tw_kind step_kind = TW_KIND(on_step, NULL);

static void say(const char *what)
{
	printf("%s %" PRIu64 "\n", what, token);
	fflush(stdout);
}

/* Ends the program, because a timeout that cannot be scheduled would leave a lease without its
 * fence. */
static void need(int error)
{
	if (error != 0) {
		fprintf(stderr, "lease-holder: %s\n", tw_strerror(error));
		exit(2);
	}
}

/* Requests a lease or its renewal, and schedules the next request for a third of the lease from
 * now. */
static void request_send(void)
{
	request_id++;
	request_ns = tw_engine_now(engine); /* before the request is sent */
	if (held)
		fprintf(server, "renew %" PRIu64 " %" PRId64 " %" PRIu64 "\n", token,
			lease_ns / TW_MS(1), request_id);
	else
		fprintf(server, "acquire %s %" PRId64 " %" PRIu64 "\n", name, lease_ns / TW_MS(1),
			request_id);
	fflush(server);
	need(tw_schedule(engine, lease_ns / 3, &renewal_kind, NULL, &renewal));
}

static void on_renewal(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	request_send();
}

/*
 * Returns when the fence stops the work. A tenth of the lease stays in reserve, because clocks do
 * not run at exactly the same rate.
 */
static int64_t fence_of(int64_t sent_ns)
{
	return sent_ns + lease_ns - lease_ns / 10;
}

static void work_stop(const char *why)
{
	held = false;
	tw_cancel(fence);
	tw_cancel(step);
	say(why);
}

static void on_fence(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	work_stop("fenced");
}

/*
 * Each step reads the clock itself. The fence's callback may be late, because the process was
 * stopped or its loop was busy. Then this step may run before that callback.
 */
static void on_step(struct tw_handle self, void *arg)
{
	int64_t now_ns = tw_engine_now(engine);

	(void)self;
	(void)arg;
	if (now_ns >= fence_ns)
		return; /* the fence is due, so this poll runs on_fence next */
	/* The process may be stopped between the read of the clock and the write. So each step
	 * carries the token. */
	fprintf(server, "put %" PRIu64 " %" PRId64 "\n", token, now_ns);
	fflush(server);
}

static void work_start(void)
{
	const struct tw_period every = TW_PERIOD_DELAY(TW_MS(2));

	held = true;
	say("granted");
	need(tw_schedule_at(engine, fence_ns, &fence_kind, NULL, &fence));
	need(tw_schedule_periodic(engine, &every, &step_kind, NULL, &step));
}

/* The answer may have been under way for so long that the lease is over, or nearly over. */
static void on_granted(uint64_t new_token)
{
	token = new_token;
	fence_ns = fence_of(request_ns);
	if (tw_engine_now(engine) < fence_ns)
		work_start();
}

static void on_renewed(void)
{
	/* The fence has run since the request was sent, or is due now. The work stays stopped. */
	if (!held || tw_engine_now(engine) >= fence_ns)
		return;
	fence_ns = fence_of(request_ns);
	if (tw_reschedule_at(fence, fence_ns) != TW_RESCHEDULE_DONE)
		work_stop("fenced");
}

static void answer_handle(const char *line)
{
	uint64_t id, new_token = 0;
	char what[16];

	if (sscanf(line, "%15s %" SCNu64 " %" SCNu64, what, &id, &new_token) < 2 ||
	    id != request_id)
		return;
	if (strcmp(what, "granted") == 0 && !held)
		on_granted(new_token);
	else if (strcmp(what, "renewed") == 0)
		on_renewed();
	else if (strcmp(what, "lost") == 0 && held)
		work_stop("lost");
}

/* Returns false if the server is gone. */
static bool answers_read(int fd)
{
	static char text[512];
	static size_t used;
	ssize_t count = recv(fd, text + used, sizeof(text) - 1 - used, 0);
	char *line = text, *end;

	if (count <= 0)
		return false;
	used += (size_t)count;
	text[used] = '\0';
	for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		answer_handle(line);
	}
	used -= (size_t)(line - text);
	memmove(text, line, used);
	return used < sizeof(text) - 1;
}

/* Runs until SIGTERM, or until the server is gone. */
static void serve(int fd, int signals)
{
	struct pollfd ready[] = {
		{tw_engine_fd(engine), POLLIN, 0}, {fd, POLLIN, 0}, {signals, POLLIN, 0}};

	request_send();
	while (ready[2].revents == 0) {
		if (poll(ready, 3, -1) < 0)
			continue;
		/* Runs the timeouts first, so that a due fence takes effect before a late
		 * answer. */
		if (ready[0].revents != 0)
			tw_engine_poll(engine, 0);
		if (ready[1].revents != 0 && !answers_read(fd))
			return;
	}
}

static int server_open(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return -1;
	server = fdopen(dup(fd), "w");
	return fd;
}

int main(int argc, char **argv)
{
	struct tw_options options;
	sigset_t set;
	int fd;

	if (argc != 4 || (fd = server_open((uint16_t)atoi(argv[1]))) < 0)
		return 2;
	name = argv[2];
	lease_ns = TW_MS(atoll(argv[3]));
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	need(tw_engine_create(&options, &engine));
	serve(fd, signalfd(-1, &set, SFD_CLOEXEC));
	if (held) {
		/* Stops the work before it releases the lease, so that two holders never work at
		 * once. The release saves the next holder the wait. */
		work_stop("released");
		fprintf(server, "release %" PRIu64 "\n", token);
		fflush(server);
	}
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	tw_engine_destroy(engine);
	fclose(server);
	close(fd);
	return 0;
}
