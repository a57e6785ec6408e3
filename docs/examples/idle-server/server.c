/* SPDX-License-Identifier: MIT */
/*
 * A TCP server in one thread that closes idle connections. It uses epoll and an engine in loop
 * mode, whose descriptor is also in the epoll set. It sends back each byte that it receives.
 *
 *     idle-server PORT IDLE_MS      PORT 0: a free one, which it prints
 *
 * The trap: epoll_wait returns many events at once. The engine's event comes first, and a timeout
 * closes connection 7. Then comes the listener's event, and the new connection gets descriptor 7,
 * because that is free. Then comes the event of the old connection 7, which would be taken for one
 * of the new connection. So each event carries the generation of its descriptor, and is ignored if
 * the generation has changed.
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

/* The index is the descriptor. Events hold no pointers, so no event can point to freed memory. */
static struct connection {
	struct tw_handle idle;
	uint32_t generation; /* counts the connections that have had this descriptor */
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

/*
 * Adds a descriptor to the epoll set. Generation 0 is for the descriptors that stay open: those of
 * the listener, the engine and the signals.
 */
static int watch(int fd, uint32_t events, uint32_t generation)
{
	struct epoll_event event = {.events = events,
				    .data.u64 = (uint64_t)generation << 32 | (uint32_t)fd};

	return epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event);
}

/* Called for an event, or by the timeout's callback. In the callback the cancel returns RUNNING,
 * which does no harm. */
static void connection_close(struct connection *connection)
{
	connection->open = false;
	tw_cancel(connection->idle);
	/* No child process shares the descriptor, so closing it also removes it from the epoll
	 * set. */
	close(descriptor_of(connection));
}

static void on_idle(struct tw_handle self, void *arg);

/* Only this thread uses these timeouts, so a reschedule needs no atomic operation. */
static const struct tw_kind idle = TW_KIND_OWNER_ONLY(on_idle, NULL);

static void on_idle(struct tw_handle self, void *arg)
{
	struct connection *connection = arg;
	int waiting = 0;

	(void)self;
	/* If bytes have arrived in time, their event comes later in this batch. */
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

/* One read for each event. If bytes are left, epoll reports the descriptor again. */
static void connection_serve(struct connection *connection)
{
	char bytes[4096];
	ssize_t count = recv(descriptor_of(connection), bytes, sizeof(bytes), 0);

	if (count < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* If a peer does not read its answers, its connection is closed, too. */
	if (count <= 0 ||
	    send(descriptor_of(connection), bytes, (size_t)count, MSG_NOSIGNAL) != count) {
		peer_closed++;
		connection_close(connection);
		return;
	}
	tw_reschedule(connection->idle, idle_ns);
}

/*
 * The guard. An open descriptor does not prove that the event is valid, because a new connection
 * may have it by now.
 */
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
	options.tick_ns = TW_MS(10); /* more timeouts share one wake-up of the loop */
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
