/* SPDX-License-Identifier: MIT */
/*
 * A small shop: orders close by themselves after some time if they are not paid.
 *
 *     order-auto-close FILE CLOSED PORT [SECONDS]      PORT 0: any; SECONDS until an order closes: 1800
 *
 *     GET  /              a page
 *     POST /orders        opens an order: 201, its name and deadline
 *     GET  /orders        the open orders that close first
 *     POST /pay/NAME      200: paid, and it will never close; 409: it is closed, or was paid before
 *
 * 503: try again later. 500: the file has failed; restart the server. The server answers a request
 * when the change is on the disk.
 */
#include "orders.h"
#include "page.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void reply(struct evhttp_request *request, int status, const char *type, const char *text)
{
	struct evbuffer *body = evbuffer_new();

	if (body == NULL)
		return;
	evbuffer_add(body, text, strlen(text));
	evhttp_add_header(evhttp_request_get_output_headers(request), "Content-Type", type);
	evhttp_send_reply(request, status, NULL, body);
	evbuffer_free(body);
}

static void reply_code(struct evhttp_request *request, enum order_code code, const char *text)
{
	static const int statuses[] = {[ORDER_DONE] = 200,
				       [ORDER_GONE] = 409,
				       [ORDER_REFUSED] = 503,
				       [ORDER_FAILED] = 500};

	reply(request, statuses[code], "application/json", text);
}

static void on_open(struct evhttp_request *request)
{
	struct order order;
	enum order_code code = order_open(&order);
	char text[128] = "{}\n";

	if (code != ORDER_DONE) {
		reply_code(request, code, text);
		return;
	}
	snprintf(text, sizeof(text), "{\"order\":\"%s\",\"due_ns\":%" PRId64 "}\n", order.name,
		 order.due_ns);
	reply(request, 201, "application/json", text);
}

static void on_list(struct evhttp_request *request)
{
	static struct order orders[ORDERS_LISTED];
	static char text[ORDERS_LISTED * 128 + 128];
	int count = orders_list(orders);
	int at = snprintf(text, sizeof(text), "{\"state\":\"%s\",\"orders\":[", orders_state());

	for (int i = 0; i < count; i++)
		at += snprintf(text + at, sizeof(text) - (size_t)at,
			       "%s{\"order\":\"%s\",\"due_ns\":%" PRId64 "}", i > 0 ? "," : "",
			       orders[i].name, orders[i].due_ns);
	snprintf(text + at, sizeof(text) - (size_t)at, "]}\n");
	reply(request, count < 0 ? 500 : 200, "application/json", text);
}

static void on_request(struct evhttp_request *request, void *unused)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	int post = evhttp_request_get_command(request) == EVHTTP_REQ_POST;

	(void)unused;
	if (post && strcmp(path, "/orders") == 0)
		on_open(request);
	else if (post && strncmp(path, "/pay/", 5) == 0)
		reply_code(request, order_pay(path + 5), "{}\n");
	else if (!post && strcmp(path, "/orders") == 0)
		on_list(request);
	else if (!post && strcmp(path, "/") == 0)
		reply(request, 200, "text/html; charset=utf-8", page_text);
	else
		evhttp_send_error(request, HTTP_NOTFOUND, NULL);
}

static void on_end(evutil_socket_t number, short what, void *base)
{
	(void)number;
	(void)what;
	event_base_loopbreak(base);
}

/* Listens on a port; 0: any free port. Returns the port, or 0 on failure. */
static int listen_on(struct evhttp *http, int port)
{
	struct evhttp_bound_socket *bound =
		evhttp_bind_socket_with_handle(http, "127.0.0.1", (unsigned short)port);
	struct sockaddr_in address;
	socklen_t bytes = sizeof(address);

	if (bound == NULL || getsockname(evhttp_bound_socket_get_fd(bound),
					 (struct sockaddr *)&address, &bytes) != 0)
		return 0;
	return ntohs(address.sin_port);
}

static int serve(struct event_base *base, int port)
{
	struct evhttp *http = evhttp_new(base);
	struct event *end = evsignal_new(base, SIGTERM, on_end, base);
	int failed = http == NULL || end == NULL || event_add(end, NULL) != 0;

	if (!failed)
		port = listen_on(http, port);
	failed = failed || port == 0;
	if (!failed) {
		evhttp_set_allowed_methods(http, EVHTTP_REQ_GET | EVHTTP_REQ_POST);
		evhttp_set_gencb(http, on_request, NULL);
		printf("serving http://127.0.0.1:%d/\n", port);
		fflush(stdout);
		event_base_dispatch(base);
	}
	if (end != NULL)
		event_free(end);
	if (http != NULL)
		evhttp_free(http);
	return failed;
}

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	int64_t seconds = argc == 5 ? atoll(argv[4]) : 1800;
	int code;

	if (argc < 4 || argc > 5 || seconds < 1 || base == NULL)
		return 2;
	code = orders_begin(argv[1], argv[2], seconds * INT64_C(1000000000));
	if (code < 0) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-code));
		return 1;
	}
	code = serve(base, atoi(argv[3]));
	orders_end();
	event_base_free(base);
	return code;
}
