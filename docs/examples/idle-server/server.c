/* SPDX-License-Identifier: MIT */
/*
 * A TCP server in one thread that closes idle connections: epoll, and an engine in loop mode, whose
 * descriptor is one more in the set. It sends back each byte that it receives.
 *
 *     idle-server PORT IDLE_MS      PORT 0: a free one, which it prints
 *
 * The trap: epoll_wait returns many events at once. The engine's comes first, and a timeout closes
 * connection 7. Then the listener's: the next connection gets descriptor 7, because that is free.
 * Then the event of the old connection 7, which has nothing to do with the new one. So each event
 * carries the generation of its descriptor, and is ignored if that has changed.
 */
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <tickwheel.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 65536, EVENTS_MAX = 4096 };

/* By its descriptor. No event holds a pointer, so none can outlive what it points to. */
static struct connection {
	struct tw_handle idle;
	uint32_t generation; /* how often the descriptor was a connection */
	bool open;
} connections[DESCRIPTORS_MAX];

static struct tw_engine *engine;
static int loop, listener, signals;
static int64_t idle_ns;
static uint64_t accepted, idle_closed, peer_closed, stale;
static bool ending;

static int descriptor_of(const struct connection *connection)
{
	return (int)(connection - connections);
}

/* Generation 0: descriptors that stay open, the listener's, the engine's and the signals'. */
static int watch(int fd, uint32_t events, uint32_t generation)
{
	struct epoll_event event = {.events = events,
				    .data.u64 = (uint64_t)generation << 32 | (uint32_t)fd};

	return epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

/* From an event, or from the timeout: then the cancel finds it running, which is fine. */
static void connection_close(struct connection *connection)
{
	connection->open = false;
	tw_cancel(connection->idle);
	/* No child shares the descriptor, so this also takes it out of the epoll set. */
	close(descriptor_of(connection));
}

static void on_idle(struct tw_handle self, void *arg);

/* Only this thread uses such timeouts, so a reschedule takes no atomic operation. */
static const struct tw_kind idle = TW_KIND_OWNER_ONLY(on_idle, NULL);

static void on_idle(struct tw_handle self, void *arg)
{
	struct connection *connection = arg;
	int waiting = 0;

	(void)self;
	/* At the edge: bytes came in time, and their event is later in this batch. */
	if (ioctl(descriptor_of(connection), FIONREAD, &waiting) == 0 && waiting > 0 &&
	    tw_schedule(engine, idle_ns, &idle, connection, &connection->idle) == 0)
		return;
	idle_closed++;
	connection_close(connection);
}

static void connection_open(int fd)
{
	struct connection *connection = &connections[fd];

	if (tw_schedule(engine, idle_ns, &idle, connection, &connection->idle) != 0) {
		close(fd);
		return;
	}
	connection->open = true;
	connection->generation++;
	accepted++;
	if (watch(fd, EPOLLIN, connection->generation) != 0)
		connection_close(connection);
}

static void accept_all(void)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		if (fd < DESCRIPTORS_MAX)
			connection_open(fd);
		else
			close(fd);
	}
}

/* One read for each event: what is left makes the next one. */
static void connection_serve(struct connection *connection)
{
	char bytes[4096];
	ssize_t count = recv(descriptor_of(connection), bytes, sizeof(bytes), 0);

	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* A peer that does not read its answers is closed, too. */
	if (count <= 0 ||
	    send(descriptor_of(connection), bytes, (size_t)count, MSG_NOSIGNAL) != count) {
		peer_closed++;
		connection_close(connection);
		return;
	}
	tw_reschedule(connection->idle, idle_ns);
}

/* The guard. That the descriptor is open is not enough: it may be another connection's by now. */
static bool event_is_stale(const struct connection *connection, uint32_t generation)
{
#ifdef WITHOUT_GUARD
	generation = connection->generation;
#endif
	return !connection->open || connection->generation != generation;
}

static void connection_event(int fd, uint32_t generation, uint32_t events)
{
	struct connection *connection = &connections[fd];

	if (event_is_stale(connection, generation)) {
		stale++;
	} else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
		peer_closed++;
		connection_close(connection);
	} else {
		connection_serve(connection);
	}
}

static void handle(const struct epoll_event *event)
{
	int fd = (int)(uint32_t)event->data.u64;

	if (fd == listener)
		accept_all();
	else if (fd == signals)
		ending = true;
	else if (fd == tw_engine_fd(engine))
		tw_engine_poll(engine, 0);
	else
		connection_event(fd, (uint32_t)(event->data.u64 >> 32), event->events);
}

static int port_open(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);

	listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(listener, (struct sockaddr *)&address, bytes) != 0 ||
	    listen(listener, SOMAXCONN) != 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &bytes) != 0)
		return -1;
	printf("listening on 127.0.0.1:%u\n", (unsigned)ntohs(address.sin_port));
	fflush(stdout);
	return 0;
}

static int start(uint16_t port)
{
	struct rlimit limit;
	struct tw_options options;
	sigset_t set;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	loop = epoll_create1(EPOLL_CLOEXEC);
	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	options.tick_ns = TW_MS(10); /* more timeouts share a turn of the loop */
	if (tw_engine_create(&options, &engine) != 0 || tw_loop_enter(engine) != 0 ||
	    watch(tw_engine_fd(engine), EPOLLIN, 0) != 0 || watch(signals, EPOLLIN, 0) != 0)
		return -1;
	return port_open(port) == 0 ? watch(listener, EPOLLIN, 0) : -1;
}

int main(int argc, char **argv)
{
	static struct epoll_event events[EVENTS_MAX];
	int64_t left;

	if (argc != 3 || (idle_ns = TW_MS(atoll(argv[2]))) <= 0 ||
	    start((uint16_t)atoi(argv[1])) != 0)
		return 2;
	while (!ending) {
		int count = epoll_wait(loop, events, EVENTS_MAX, -1);

		for (int i = 0; i < count; i++)
			handle(&events[i]);
	}
	left = tw_engine_pending(engine);
	printf("%" PRIu64 " accepted, %" PRIu64 " closed as idle, %" PRIu64
	       " by their peer, %" PRId64 " left, %" PRIu64 " stale events\n",
	       accepted, idle_closed, peer_closed, left, stale);
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	tw_engine_destroy(engine);
	return accepted != idle_closed + peer_closed + (uint64_t)left;
}
