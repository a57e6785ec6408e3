/* SPDX-License-Identifier: MIT */
/*
 * A server of keys that expire, with the Redis protocol. libevent's loop runs on this thread, and
 * tickwheel's worker on a thread of its own; with --loop there is no worker. main reads the
 * options, opens the port, runs the loop, and prints an account at the end.
 */
#include "server.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>

#define LISTEN_BACKLOG 511

struct options {
	uint16_t port;
	int64_t idle_ns;
	uint64_t tick_ns;
	bool loop;
};

static const char usage[] =
	"usage: ttl-server [--port N] [--idle-ms N] [--tick-us N] [--loop]\n"
	"  --port N     listen on 127.0.0.1:N; 0: a free port (6380)\n"
	"  --idle-ms N  close a connection after N ms without traffic; 0: never (300000)\n"
	"  --tick-us N  the time step of the wheel (1000)\n"
	"  --loop       no second thread: the event loop runs what is due\n";

static int64_t parse_number(const char *text, int64_t min, int64_t max)
{
	int64_t number;

	if (span_to_int64((struct span){text, strlen(text)}, &number) && number >= min &&
	    number <= max)
		return number;
	fprintf(stderr, "ttl-server: not a number from %" PRId64 " to %" PRId64 ": %s\n%s", min,
		max, text, usage);
	exit(2);
}

static void usage_exit(void)
{
	fputs(usage, stderr);
	exit(2);
}

static struct options parse_options(int argc, char **argv)
{
	static const struct option known[] = {{"port", required_argument, NULL, 'p'},
					      {"idle-ms", required_argument, NULL, 'i'},
					      {"tick-us", required_argument, NULL, 't'},
					      {"loop", no_argument, NULL, 'l'},
					      {NULL, 0, NULL, 0}};
	struct options options = {6380, TW_MINUTES(5), TW_MS(1), false};
	int name;

	while ((name = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (name == 'p')
			options.port = (uint16_t)parse_number(optarg, 0, UINT16_MAX);
		else if (name == 'i')
			options.idle_ns = TW_MS(parse_number(optarg, 0, INT32_MAX));
		else if (name == 't')
			options.tick_ns = (uint64_t)TW_US(parse_number(optarg, 1, 3600000000));
		else if (name == 'l')
			options.loop = true;
		else
			usage_exit();
	}
	if (optind != argc)
		usage_exit();
	return options;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *peer,
		      int peer_bytes, void *context)
{
	(void)listener;
	(void)peer;
	(void)peer_bytes;
	connection_open(context, fd);
}

static void on_alarms(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	alarms_run(context);
}

static void on_signal(evutil_socket_t number, short what, void *context)
{
	(void)number;
	(void)what;
	event_base_loopbreak(context);
}

static struct evconnlistener *open_port(struct server *server, uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t address_bytes = sizeof(address);
	struct evconnlistener *listener = evconnlistener_new_bind(
		server->base, on_accept, server,
		LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, LISTEN_BACKLOG,
		(struct sockaddr *)&address, sizeof(address));

	if (listener == NULL) {
		fprintf(stderr, "ttl-server: port %u: %s\n", (unsigned)port, strerror(errno));
		return NULL;
	}
	getsockname(evconnlistener_get_fd(listener), (struct sockaddr *)&address, &address_bytes);
	printf("listening on 127.0.0.1:%u\n", (unsigned)ntohs(address.sin_port));
	fflush(stdout);
	return listener;
}

/* Runs until a signal or a failure. Returns false after a failure. */
static bool run_loop(struct server *server, uint16_t port)
{
	struct event *events[] = {
		event_new(server->base, alarms_fd(server->alarms), EV_READ | EV_PERSIST, on_alarms,
			  server->alarms),
		evsignal_new(server->base, SIGINT, on_signal, server->base),
		evsignal_new(server->base, SIGTERM, on_signal, server->base),
	};
	const size_t count = sizeof(events) / sizeof(events[0]);
	struct evconnlistener *listener = NULL;
	bool good = true;

	for (size_t i = 0; i < count; i++)
		good = good && events[i] != NULL && event_add(events[i], NULL) == 0;
	if (good)
		listener = open_port(server, port);
	good = listener != NULL && event_base_dispatch(server->base) == 0;
	if (listener != NULL)
		evconnlistener_free(listener);
	for (size_t i = 0; i < count; i++) {
		if (events[i] != NULL)
			event_free(events[i]);
	}
	return good;
}

/* Stops the engine first. From then on no alarm exists, and everything else can be freed in any
 * order. */
static bool shut_down(struct server *server)
{
	int rc = alarms_stop(server->alarms);

	if (rc < 0) {
		fprintf(stderr, "ttl-server: stop: %s\n", tw_strerror(rc));
		return false;
	}
	connections_close(server);
	store_done(&server->store);
	event_base_free(server->base);
	return alarms_account(server->alarms, stdout) == 0;
}

int main(int argc, char **argv)
{
	static struct server server;
	const struct options options = parse_options(argc, argv);
	bool good;
	int rc;

	signal(SIGPIPE, SIG_IGN);
	/*
	 * Without this call, glibc keeps small freed blocks apart, and joins all of them at once
	 * later. After 50,000 keys had expired, this delayed the loop for 40 ms.
	 */
	mallopt(M_MXFAST, 0);
	server.idle_ns = options.idle_ns;
	server.tick_ns = options.tick_ns;
	server.base = event_base_new();
	rc = server.base == NULL ? -ENOMEM
				 : alarms_create(options.tick_ns, options.loop, &server.alarms);
	if (rc < 0) {
		fprintf(stderr, "ttl-server: %s\n", tw_strerror(rc));
		return 1;
	}
	server.store.alarms = server.alarms;
	good = run_loop(&server, options.port);
	good = shut_down(&server) && good;
	alarms_destroy(server.alarms);
	return good ? 0 : 1;
}
