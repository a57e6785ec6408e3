/* SPDX-License-Identifier: MIT */
/*
 * Names that the code on the pages of docs uses without a declaration, because a reader knows them.
 * check_code.py puts this file before each page's code.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <tickwheel.h>
#include <tickwheel/glib.h>
#include <tickwheel/uv.h>
#include <tickwheel/uv_timer.h>
#include <unistd.h>

#define S INT64_C(1000000000)
#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)

struct request;

extern struct tw_engine *engine;
extern struct tw_options options;
extern struct tw_keyed *sessions;
extern struct tw_retry *queue;
extern struct tw_due copy;
extern struct request *request;
extern const struct tw_item *items;
extern size_t count, id_bytes;
extern const void *id;
extern void *arg, *connection, *order, *pool, *other;
extern int64_t date, delay_ns, due_ns, end_ns;
extern uint64_t life;
extern int error, left, scheduled, cancelled;

#ifdef PAGE_DOCS_RETRY
extern struct tw_retry_handle handle;
#else
extern struct tw_handle handle;
#endif

#if defined PAGE_DOCS_GROUPS || defined PAGE_DOCS_CLOCKS || defined PAGE_WALL
extern const struct tw_kind kind;
#endif

#ifdef PAGE_DOCS_KEYED
extern void *session;
#endif

#ifdef PAGE_DOCS_SCOPES
struct session {
	struct tw_scope *timeouts;
};
extern struct session *session;
extern const struct tw_kind idle, ping;
extern struct tw_handle idle_timeout;
void ping_send(struct session *session);
void session_free(struct session *session);
#endif

#ifdef PAGE_DOCS_SCALED
struct client {
	struct tw_handle idle_timeout;
};
extern struct tw_scaled *idle_timeouts;
extern struct client *client;
extern const struct tw_kind idle;
#endif

#ifdef PAGE_DOCS_TESTING_YOUR_CODE
extern struct tw_clock *clock;
#endif

void on_tick(struct tw_handle self, void *arg);
void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		  int64_t remaining_ns);
size_t pool_push_copies(void *pool, const struct tw_due *due, size_t count);
void report(tw_callback *callback, void *arg, int64_t run_ns, uint32_t running);

#ifdef PAGE_DOCS_HOSTS
struct uv_session {
	struct tw_uv_timer timer;
};
extern struct uv_session *session;
void on_idle(struct tw_uv_timer *timer);
#endif

#ifdef PAGE_EVENT
#include <sys/time.h>
#include <tickwheel/event.h>
extern struct event_base *base;
extern struct tw_event *event;
void on_timeout(int none, short what, void *arg);
#endif

#ifdef PAGE_UV_TIMER
extern struct tw_uv_timer *timer;
void on_timeout(struct tw_uv_timer *timer);
void on_close(struct tw_uv_timer *timer);
#endif

#if defined(PAGE_UV) || defined(PAGE_UV_TIMER) || defined(PAGE_DOCS_HOSTS)
typedef struct uv_loop_s uv_loop_t;
enum { UV_RUN_DEFAULT, UV_RUN_ONCE };
extern uv_loop_t *loop;
int uv_run(uv_loop_t *loop, int mode);
#endif
