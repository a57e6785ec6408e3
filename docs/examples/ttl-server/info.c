/* SPDX-License-Identifier: MIT */
/* The report of INFO. Other files count the figures; this one only prints them. */
#include "reply.h"
#include "server.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <tickwheel.h>

static void figure(struct evbuffer *text, const char *name, uint64_t value)
{
	evbuffer_add_printf(text, "%s:%" PRIu64 "\r\n", name, value);
}

static void print_server(struct evbuffer *text, const struct server *server)
{
	evbuffer_add_printf(text, "# Server\r\ntickwheel_version:%s\r\n", tw_version_string());
	figure(text, "tick_us", server->tick_ns / 1000);
	figure(text, "idle_ms", (uint64_t)(server->idle_ns / TW_MS(1)));
	figure(text, "commands", server->command_count);
	evbuffer_add_printf(text, "\r\n# Connections\r\n");
	figure(text, "connections", server->connection_count);
	figure(text, "connections_accepted", server->accepted_count);
	figure(text, "idle_closed", server->idle_closed_count);
}

static void print_keys(struct evbuffer *text, const struct server *server)
{
	struct alarms_figures figures;

	alarms_figures_get(server->alarms, &figures);
	evbuffer_add_printf(text, "\r\n# Keys\r\n");
	figure(text, "keys", store_count(&server->store));
	figure(text, "keys_expiring", server->store.expiring_count);
	figure(text, "keys_expired", server->store.expired_count);
	evbuffer_add_printf(text, "\r\n# Alarms\r\n");
	figure(text, "alarms_rung", figures.rung_count);
	figure(text, "alarms_overtaken", figures.overtaken_count);
	figure(text, "expired_early", figures.early_count);
	figure(text, "lateness_p50_us", figures.lateness_p50_us);
	figure(text, "lateness_p99_us", figures.lateness_p99_us);
	figure(text, "lateness_max_us", figures.lateness_max_us);
}

static void print_engine(struct evbuffer *text, const struct server *server)
{
	struct tw_stats stats;
	uint64_t accounted;

	alarms_stats_get(server->alarms, &stats);
	accounted = stats.expired + stats.cancelled + stats.unexpired + stats.pending;
	evbuffer_add_printf(text, "\r\n# Tickwheel\r\n");
	figure(text, "tw_scheduled", stats.scheduled);
	figure(text, "tw_pending", stats.pending);
	figure(text, "tw_expired", stats.expired);
	figure(text, "tw_cancelled", stats.cancelled);
	figure(text, "tw_unexpired", stats.unexpired);
	/*
	 * The counters are read one after the other. So the figure may be wrong by the number of
	 * timeouts that expire at this moment.
	 */
	evbuffer_add_printf(text, "tw_lost:%" PRId64 "\r\n",
			    (int64_t)(stats.scheduled - accounted));
}

void info_reply(struct server *server, struct evbuffer *out)
{
	struct evbuffer *text = evbuffer_new();

	if (text == NULL) {
		reply_error(out, "OOM out of memory");
		return;
	}
	print_server(text, server);
	print_keys(text, server);
	print_engine(text, server);
	reply_bulk(out, (struct span){(const char *)evbuffer_pullup(text, -1),
				      evbuffer_get_length(text)});
	evbuffer_free(text);
}
