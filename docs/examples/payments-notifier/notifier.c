/* SPDX-License-Identifier: MIT */
/*
 * Notifies a shop of its payments by HTTP, and repeats this at growing intervals until the shop
 * answers 200. The notifications are durable timers, so they outlive this process: kill it at any
 * time, and start it again.
 *
 *     notifier STORE accept ORDERS DIVISOR    stores a notification for each order, and ends
 *     notifier STORE serve PORT DIVISOR       notifies until it is ended by SIGTERM
 *
 * STORE is a file, "postgres:ADDRESS" or "redis:ADDRESS". With the latter two, several processes
 * may serve at once, on any machine.
 *
 * The intervals are the usual ones for payments (15 s, 15 s, 30 s, 3 m, ...), divided by DIVISOR.
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tickwheel.h>
#include <tickwheel/durable.h>
#include <tickwheel/durable_file.h>
#ifdef NOTIFIER_POSTGRES
#include <libpq-fe.h>
#include <tickwheel/durable_postgres.h>
#endif
#ifdef NOTIFIER_REDIS
#include <tickwheel/durable_redis.h>
#endif
#include <unistd.h>

enum { DELAYS_MAX = 32 };

static int port;
static int64_t delays[DELAYS_MAX];
static struct tw_retry_schedule intervals = TW_RETRY_TABLE(delays);

static int shop_connect(void)
{
	struct sockaddr_in shop = {
		.sin_family = AF_INET,
		.sin_port = htons((unsigned short)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct timeval patience = {.tv_sec = 2};
	int shop_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (shop_fd < 0)
		return -1;
	(void)setsockopt(shop_fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(shop_fd, (struct sockaddr *)&shop, sizeof(shop)) == 0)
		return shop_fd;
	close(shop_fd);
	return -1;
}

/* Returns the status of the answer; 0: there was none. */
static int shop_post(const char *request, size_t bytes)
{
	char answer[64] = "";
	int status = 0, shop_fd = shop_connect();

	if (shop_fd < 0)
		return 0;
	if (send(shop_fd, request, bytes, MSG_NOSIGNAL) == (ssize_t)bytes &&
	    recv(shop_fd, answer, sizeof(answer) - 1, MSG_WAITALL) > 0 &&
	    sscanf(answer, "HTTP/%*d.%*d %d", &status) != 1)
		status = 0;
	close(shop_fd);
	return status;
}

/* The id is the same in each attempt, and after each restart, so the shop can recognise a
 * repetition. */
static int on_notify(const struct tw_durable_self *self, const void *order, size_t bytes)
{
	char request[512];
	int length = snprintf(request, sizeof(request),
			      "POST /paid/%.*s HTTP/1.0\r\nIdempotency-Key: %016llx%016llx\r\n"
			      "Content-Length: 0\r\n\r\n",
			      (int)bytes, (const char *)order, (unsigned long long)self->id.place,
			      (unsigned long long)self->id.serial);

	return shop_post(request, (size_t)length) == 200 ? TW_RETRY_DONE : TW_RETRY_AGAIN;
}

static const struct tw_durable_kind notify = TW_DURABLE_KIND("notify", on_notify, &intervals);

static void intervals_set(int64_t divisor)
{
	static const struct tw_retry_schedule payment = TW_RETRY_READY(TW_RETRY_FORM_PAYMENT);
	int64_t delay_ns;

	for (intervals.delay_count = 0; intervals.delay_count < DELAYS_MAX;
	     intervals.delay_count++) {
		delay_ns = tw_retry_delay(&payment, intervals.delay_count);
		if (delay_ns < 0)
			break;
		delays[intervals.delay_count] = delay_ns / divisor;
	}
}

/* Each timer has the order as its key, so a second call for the same order does no harm. */
static int accept_orders(struct tw_durable *timers, long count)
{
	char order[32];
	struct tw_durable_spec spec = {.size = sizeof(spec), .kind = &notify};

	for (long i = 0; i < count; i++) {
		spec.key_bytes = (uint32_t)snprintf(order, sizeof(order), "order-%ld", i);
		spec.key = spec.payload = order;
		spec.payload_bytes = spec.key_bytes;
		spec.due_ns = TW_MS(1000 + i * 5);
		if (tw_durable_schedule(timers, &spec, NULL) < 0)
			return 1;
	}
	return tw_durable_flush(timers, TW_NEVER) < 0;
}

static int wait_for_the_end(const sigset_t *ends)
{
	int which;

	puts("serving");
	fflush(stdout);
	return sigwait(ends, &which);
}

#ifdef NOTIFIER_POSTGRES

/* Makes the tables if they do not exist. */
static int postgres_prepare(const char *address)
{
	PGconn *connection = PQconnectdb(address);
	int code = PQstatus(connection) == CONNECTION_OK
			   ? tw_durable_postgres_migrate(connection, "notifier")
			   : -1;

	if (code < 0)
		fputs(PQerrorMessage(connection), stderr);
	PQfinish(connection);
	return code;
}

static int postgres_store(const char *address, struct tw_durable_store *ret_store)
{
	struct tw_durable_postgres_options options;

	if (postgres_prepare(address) < 0 ||
	    tw_durable_postgres_options_init(&options, sizeof(options)) < 0)
		return -1;
	options.address = address;
	options.schema = "notifier";
	/* When a process has died, others take over its timers after this time. */
	options.session_ns = TW_S(2);
	return tw_durable_store_postgres(&options, ret_store);
}
#endif

#ifdef NOTIFIER_REDIS

static int redis_store(const char *address, struct tw_durable_store *ret_store)
{
	struct tw_durable_redis_options options;

	if (tw_durable_redis_options_init(&options, sizeof(options)) < 0)
		return -1;
	options.address = address;
	options.prefix = "notifier";
	options.session_ns = TW_S(2);
	return tw_durable_store_redis(&options, ret_store);
}
#endif

static int store_make(const char *word, struct tw_durable_store *ret_store)
{
#ifdef NOTIFIER_POSTGRES
	static const char postgres[] = "postgres:";

	if (strncmp(word, postgres, sizeof(postgres) - 1) == 0)
		return postgres_store(word + sizeof(postgres) - 1, ret_store);
#endif
#ifdef NOTIFIER_REDIS
	static const char redis[] = "redis:";

	if (strncmp(word, redis, sizeof(redis) - 1) == 0)
		return redis_store(word + sizeof(redis) - 1, ret_store);
#endif
	return tw_durable_store_file(word, ret_store);
}

int main(int argc, char **argv)
{
	const struct tw_durable_kind *kinds[] = {&notify};
	struct tw_durable_options options;
	struct tw_durable *timers;
	struct tw_engine *engine;
	sigset_t ends;
	int code;

	if (argc != 5 || atol(argv[4]) < 1)
		return 2;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	port = atoi(argv[3]);
	intervals_set(atol(argv[4]));
	if (tw_engine_create(NULL, &engine) < 0 ||
	    tw_durable_options_init(&options, sizeof(options)) < 0 ||
	    store_make(argv[1], &options.store) < 0)
		return 1;
	code = tw_durable_open(engine, kinds, 1, &options, &timers);
	if (code < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], tw_strerror(code));
		return 1;
	}
	code = strcmp(argv[2], "accept") == 0 ? accept_orders(timers, atol(argv[3]))
					      : wait_for_the_end(&ends);
	return tw_durable_close(timers, TW_NEVER) < 0 || code != 0;
}
