/* SPDX-License-Identifier: MIT */
/*
 * A server that ends gracefully. One thread waits for sockets, signals and tw_engine_fd in one
 * poll.
 *
 *     graceful-stop PORT GRACE_MS FILE      PORT 0: a free one, which it prints
 *
 * Each connection sends one line, and the server closes it after its answer:
 *
 *     run MS           answers "done" after MS milliseconds
 *     later MS TEXT    answers "accepted", and prints TEXT after MS milliseconds
 *
 * On SIGTERM the server stops listening, and closes connections that have not sent a request.
 * Running requests may end within the grace time. Then the server stops the engine, which hands
 * back the pending timeouts. The server writes each reminder to FILE for its next start, and
 * answers "cut off" to each request.
 *
 * Exit code: 0; 1 if a request was cut off; 2 if the server could not start, or could not write
 * FILE. A second SIGTERM ends the process at once, as if there were no handler.
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

enum { CONNECTIONS_MAX = 256, LISTENER = CONNECTIONS_MAX, ENGINE, SIGNALS, DESCRIPTORS };

static struct tw_engine *engine;
/*
 * The first descriptors are those of connections that have not sent a request yet; the listener,
 * the engine and the signals follow. -1 is an unused element.
 */
static struct pollfd ready[DESCRIPTORS];
static unsigned running, cut_off;
static bool stopping, grace_over;

static void reply(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

/* The argument of a request is its connection. */
static void on_done(struct tw_handle self, void *arg)
{
	(void)self;
	running--;
	reply((int)(intptr_t)arg, "done\n");
}

static void on_reminder(struct tw_handle self, void *arg)
{
	(void)self;
	printf("reminder: %s\n", (const char *)arg);
	fflush(stdout);
}

/* Runs after an expiry, and after a stop, when the hook has written the reminder to the file. */
static void on_reminder_end(void *arg, enum tw_end end)
{
	(void)end;
	free(arg);
}

static void on_grace(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	grace_over = true;
}

static const struct tw_kind request = TW_KIND(on_done, NULL);
static const struct tw_kind reminder = TW_KIND(on_reminder, on_reminder_end);
static const struct tw_kind grace = TW_KIND(on_grace, NULL);

static int reminder_add(int64_t delay_ns, const char *text)
{
	char *copy = strdup(text);
	int error = copy == NULL ? -1 : tw_schedule(engine, delay_ns, &reminder, copy, NULL);

	if (error != 0)
		free(copy);
	return error;
}

static void line_serve(int fd, const char *line)
{
	int64_t ms;
	char text[200];

	if (sscanf(line, "run %" SCNd64, &ms) == 1 && ms >= 0 && ms < INT32_MAX &&
	    tw_schedule(engine, TW_MS(ms), &request, (void *)(intptr_t)fd, NULL) == 0) {
		running++;
		return;
	}
	if (sscanf(line, "later %" SCNd64 " %199[^\n]", &ms, text) == 2 && ms >= 0 &&
	    ms < INT32_MAX && reminder_add(TW_MS(ms), text) == 0)
		reply(fd, "accepted\n");
	else
		reply(fd, "refused\n");
}

/* A request is a short line, which must arrive in one piece; otherwise it is refused. */
static void connection_read(struct pollfd *connection)
{
	char line[256];
	ssize_t count = recv(connection->fd, line, sizeof(line) - 1, MSG_DONTWAIT);
	int fd = connection->fd;

	connection->fd = -1;
	if (count <= 0) {
		close(fd);
		return;
	}
	line[count] = '\0';
	line_serve(fd, line);
}

static void accept_one(void)
{
	int fd = accept(ready[LISTENER].fd, NULL, NULL);

	for (int i = 0; fd >= 0 && i < CONNECTIONS_MAX; i++) {
		if (ready[i].fd < 0) {
			ready[i] = (struct pollfd){fd, POLLIN, 0};
			return;
		}
	}
	if (fd >= 0)
		reply(fd, "refused\n");
}

/* Begins the stop. The loop continues until the last request has ended, or the grace time is
 * over. */
static void stop_begin(int64_t grace_ns)
{
	sigset_t set;

	stopping = true;
	close(ready[LISTENER].fd);
	close(ready[SIGNALS].fd);
	ready[LISTENER].fd = ready[SIGNALS].fd = -1;
	for (int i = 0; i < CONNECTIONS_MAX; i++) {
		/* Its line may already have arrived. Then the request is still served. */
		if (ready[i].fd >= 0)
			connection_read(&ready[i]);
	}
	grace_over = tw_schedule(engine, grace_ns, &grace, NULL, NULL) != 0;
	printf("stopping, %u requests run\n", running);
	fflush(stdout);
	/* Restores the default effect of the signal, which then works even if this thread hangs. */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	signal(SIGTERM, SIG_DFL);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static void serve(int64_t grace_ns)
{
	while (!stopping || (running > 0 && !grace_over)) {
		if (poll(ready, DESCRIPTORS, -1) < 0)
			continue;
		for (int i = 0; i < CONNECTIONS_MAX; i++) {
			if (ready[i].fd >= 0 && ready[i].revents != 0)
				connection_read(&ready[i]);
		}
		if (ready[LISTENER].revents != 0)
			accept_one();
		if (ready[ENGINE].revents != 0)
			tw_engine_poll(engine, 0);
		if (!stopping && ready[SIGNALS].revents != 0) {
			struct signalfd_siginfo info;

			(void)!read(ready[SIGNALS].fd, &info, sizeof(info));
			stop_begin(grace_ns);
		}
	}
}

/* The hand-back hook: runs once for each timeout that is pending at the stop. A reminder's
 * finaliser follows. */
static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)handle;
	if (kind == &reminder) {
		/* An overdue reminder is stored with 0 ms, so the next start prints it at once. */
		fprintf(context, "%" PRId64 " %s\n", remaining_ns > 0 ? remaining_ns / TW_MS(1) : 0,
			(const char *)arg);
	} else if (kind == &request) {
		cut_off++;
		reply((int)(intptr_t)arg, "cut off\n");
	}
}

/* Writes the file under another name and renames it, so that it is complete or not there. */
static int stop_end(const char *path)
{
	char draft[4096];
	FILE *file;
	bool good;

	snprintf(draft, sizeof(draft), "%s.new", path);
	file = fopen(draft, "w");
	if (file == NULL)
		return -1;
	tw_engine_stop(engine, on_unexpired, file, TW_NEVER);
	tw_engine_destroy(engine);
	good = fflush(file) == 0 && fsync(fileno(file)) == 0;
	return fclose(file) == 0 && good && rename(draft, path) == 0 ? 0 : -1;
}

/* Reads the reminders of the last stop. A missing file is no error. */
static void reminders_read(const char *path)
{
	FILE *file = fopen(path, "r");
	int64_t ms;
	char text[200];

	while (file != NULL && fscanf(file, "%" SCNd64 " %199[^\n]", &ms, text) == 2)
		reminder_add(TW_MS(ms), text);
	if (file != NULL)
		fclose(file);
}

static int port_open(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (bind(fd, (struct sockaddr *)&address, bytes) != 0 || listen(fd, 128) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &bytes) != 0)
		return -1;
	printf("listening on 127.0.0.1:%u\n", (unsigned)ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static int start(uint16_t port, const char *path)
{
	struct tw_options options;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_engine_create(&options, &engine) != 0)
		return -1;
	reminders_read(path);
	for (int i = 0; i < CONNECTIONS_MAX; i++)
		ready[i].fd = -1;
	ready[ENGINE] = (struct pollfd){tw_engine_fd(engine), POLLIN, 0};
	ready[SIGNALS] = (struct pollfd){signalfd(-1, &set, SFD_CLOEXEC), POLLIN, 0};
	ready[LISTENER] = (struct pollfd){port_open(port), POLLIN, 0};
	return ready[LISTENER].fd < 0 || ready[SIGNALS].fd < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
	if (argc != 4 || start((uint16_t)atoi(argv[1]), argv[3]) != 0)
		return 2;
	serve(TW_MS(atoll(argv[2])));
	if (stop_end(argv[3]) != 0)
		return 2;
	return cut_off > 0 ? 1 : 0;
}
