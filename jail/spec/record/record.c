#define _GNU_SOURCE
#include "record.h"

#include "layer.h"
#include "policy_value.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct {
	const char *name;
	int         status;
	const char *doc;
} reasons[] = {
#define EXIT(name, status, doc) { #name, status, doc },
#include "exit.def"
#undef EXIT
};

const char *exit_reason_name(enum exit_reason reason)
{
	return reasons[reason].name;
}

const char *exit_reason_doc(enum exit_reason reason)
{
	return reasons[reason].doc;
}

int exit_reason_status(enum exit_reason reason)
{
	return reasons[reason].status;
}

void record_init(struct record *r)
{
	*r = (struct record){
		.exit_code         = RECORD_NONE,
		.wall_ms           = RECORD_NONE,
		.cpu_ms            = RECORD_NONE,
		.setup_ms          = RECORD_NONE,
		.memory_peak_bytes = RECORD_NONE,
		.pids_peak         = RECORD_NONE,
		.io_read_bytes     = RECORD_NONE,
		.io_write_bytes    = RECORD_NONE,
		.stdout_bytes      = RECORD_NONE,
		.stderr_bytes      = RECORD_NONE,
		.truncated         = RECORD_NONE,
		.started_at        = RECORD_NONE,
	};
}

void record_add_hit(struct record *r, const char *name, int64_t value, int64_t peak, int64_t times)
{
	if (r->hits < ARRAY_LEN(r->hit))
		r->hit[r->hits++] = (struct limit_hit){ name, value, peak, times };
}

void record_add_refusal(struct record *r, const struct refused_call *c, const char *name)
{
	struct record_refusal *row;

	if (r->refusals == ARRAY_LEN(r->refused))
		return;
	row         = &r->refused[r->refusals++];
	row->errnum = c->errnum;
	row->count  = c->count;
	snprintf(row->call, sizeof row->call, "%s", name);
	refused_call_print(c, name, row->argument, sizeof row->argument);
}

char *record_signal_name(int signal, char *buf, size_t len)
{
	const char *name = sigabbrev_np(signal);

	if (name)
		snprintf(buf, len, "SIG%s", name);
	else
		snprintf(buf, len, "SIG%d", signal);
	return buf;
}

/* "basic@sha256:2bc0..." */
static void put_rootfs(struct json_text *t, const struct record *r)
{
	char text[256];

	if (r->rootfs && r->rootfs_digest)
		snprintf(text, sizeof text, "%s@sha256:%s", r->rootfs, r->rootfs_digest);
	json_text_string(t, r->rootfs && r->rootfs_digest ? text : r->rootfs);
}

static void put_hits(struct json_text *t, const struct record *r)
{
	json_text_raw(t, "[");
	for (size_t i = 0; i < r->hits; i++) {
		json_text_next(t);
		json_text_raw(t, "{");
		json_text_key(t, "name");
		json_text_string(t, r->hit[i].name);
		json_text_key(t, "value");
		json_text_figure(t, r->hit[i].value);
		json_text_key(t, "peak");
		json_text_figure(t, r->hit[i].peak);
		json_text_key(t, "times");
		json_text_figure(t, r->hit[i].times);
		json_text_raw(t, "}");
	}
	json_text_raw(t, "]");
}

static void put_refused(struct json_text *t, const struct record *r)
{
	json_text_raw(t, r->refused_known ? "[" : "null");
	for (size_t i = 0; r->refused_known && i < r->refusals; i++) {
		json_text_next(t);
		json_text_raw(t, "{");
		json_text_key(t, "call");
		json_text_string(t, r->refused[i].call);
		json_text_key(t, "argument");
		json_text_string(t, *r->refused[i].argument ? r->refused[i].argument : NULL);
		json_text_key(t, "count");
		json_text_integer(t, r->refused[i].count);
		json_text_key(t, "answer");
		json_text_string(t, policy_errno_name(r->refused[i].errnum));
		json_text_raw(t, "}");
	}
	json_text_raw(t, r->refused_known ? "]" : "");
}

static void put_layer(struct json_text *t, const char *prefix, enum layer layer)
{
	json_text_next(t);
	json_text_raw(t, "\"");
	json_text_raw(t, prefix);
	json_text_raw(t, layer_name(layer));
	json_text_raw(t, "\"");
}

static void put_isolation(struct json_text *t, const struct record *r)
{
	json_text_raw(t, "[");
	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		if (r->layers & (1ull << i))
			put_layer(t, "", i);
		if (r->layers_missing & (1ull << i))
			put_layer(t, "missing:", i);
	}
	json_text_raw(t, "]");
}

static void put_time(struct json_text *t, double seconds)
{
	char      text[64];
	time_t    whole = (time_t)seconds;
	struct tm tm;
	size_t    n;

	if (seconds < 0 || !gmtime_r(&whole, &tm)) {
		json_text_raw(t, "null");
		return;
	}
	n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof text - n, ".%06uZ", (unsigned)((seconds - (double)whole) * 1e6));
	json_text_string(t, text);
}

static void put_why(struct json_text *t, const struct record *r)
{
	if (r->why.kind == ERR_NONE) {
		json_text_raw(t, "null");
		return;
	}
	json_text_raw(t, "{");
	json_text_key(t, "type");
	json_text_string(t, err_kind_name(r->why.kind));
	json_text_key(t, "message");
	json_text_string(t, r->why.text);
	json_text_raw(t, ",\"traceback\":null,\"line\":null,\"offset\":null,\"text\":null}");
}

static void put_session(struct json_text *t, const struct record *r)
{
	if (!r->session.is_there) {
		json_text_raw(t, "null");
		return;
	}
	json_text_raw(t, "{");
	json_text_key(t, "id");
	json_text_string(t, r->session.id);
	json_text_key(t, "context");
	json_text_string(t, r->session.context);
	json_text_key(t, "state");
	json_text_string(t, r->session.state);
	json_text_key(t, "age_ms");
	json_text_integer(t, r->session.age_ms);
	json_text_key(t, "idle_left_ms");
	json_text_integer(t, r->session.idle_left_ms);
	json_text_raw(t, "}");
}

/* --- the network --- */

/* The count comes from brig-proxy, which is not trusted: it may be too large for JSON. */
static int64_t as_figure(uint64_t count)
{
	return count < INT64_MAX ? (int64_t)count : INT64_MAX;
}

static void put_address(struct json_text *t, const struct net_connection *c)
{
	char text[INET6_ADDRSTRLEN];

	json_text_string(t, c->family && inet_ntop(c->family, c->address, text, sizeof text) ? text : NULL);
}

/* The caller gives each connection its own buffer, so that one that does not fit is left out as a whole. */
static void put_connection(struct json_text *t, const struct net_connection *c)
{
	const char *reason = net_reason_name(c->reason);

	json_text_raw(t, "{");
	json_text_key(t, "name");
	json_text_string(t, c->name);
	json_text_key(t, "port");
	json_text_figure(t, c->port ? c->port : RECORD_NONE);
	json_text_key(t, "address");
	put_address(t, c);
	json_text_key(t, "verdict");
	json_text_string(t, net_verdict_name(c->verdict));
	json_text_key(t, "reason");
	json_text_string(t, *reason ? reason : NULL);
	json_text_key(t, "bytes_in");
	json_text_integer(t, as_figure(c->bytes_in));
	json_text_key(t, "bytes_out");
	json_text_integer(t, as_figure(c->bytes_out));
	json_text_key(t, "ms");
	json_text_ms(t, c->ended_ms > 0 ? c->ended_ms - c->began_ms : RECORD_NONE);
	json_text_key(t, "secret");
	json_text_bool(t, c->has_secret);
	json_text_raw(t, "}");
}

/* Returns how many connections did not fit. */
static uint32_t put_connections(struct json_text *t, const struct net_report *n)
{
	uint32_t told = 0;
	size_t   left = RECORD_NETWORK_MAX;

	json_text_raw(t, "[");
	for (uint32_t i = 0; i < n->n; i++) {
		char             text[1024];
		struct json_text row = json_text_in(text, sizeof text);
		size_t           len;

		put_connection(&row, &n->connection[i]);
		len = json_text_end(&row);
		if (!len || len + 1 > left)
			continue;
		json_text_next(t);
		json_text_raw(t, text);
		left -= len + 1;
		told++;
	}
	json_text_raw(t, "]");
	return n->n - told;
}

static void put_network(struct json_text *t, const struct record *r)
{
	const struct net_report *n = r->network;
	uint32_t                 untold;

	if (!n) {
		json_text_raw(t, "null");
		return;
	}
	json_text_raw(t, "{");
	json_text_key(t, "connections");
	untold = put_connections(t, n);
	json_text_key(t, "left_out");
	json_text_integer(t, (int64_t)n->left_out + untold);
	json_text_key(t, "refused");
	json_text_integer(t, as_figure(n->refused));
	json_text_key(t, "failed");
	json_text_integer(t, as_figure(n->failed));
	json_text_key(t, "bytes_in");
	json_text_integer(t, as_figure(n->bytes_in));
	json_text_key(t, "bytes_out");
	json_text_integer(t, as_figure(n->bytes_out));
	json_text_raw(t, "}");
}

void record_put(struct json_text *t, const struct record *r)
{
	char name[16];

#define PUT(key, how, ...) (json_text_key(t, key), how(t, __VA_ARGS__))
	json_text_raw(t, "{");
	PUT("run_id", json_text_string, r->run_id);
	PUT("profile", json_text_string, r->profile);
	PUT("rootfs", put_rootfs, r);
	PUT("exit_reason", json_text_string, exit_reason_name(r->exit_reason));
	PUT("exit_code", json_text_figure, r->exit_code);
	PUT("signal", json_text_string, r->signal ? record_signal_name(r->signal, name, sizeof name) : NULL);
	PUT("limits_hit", put_hits, r);
	PUT("refused", put_refused, r);
	PUT("wall_ms", json_text_ms, r->wall_ms);
	PUT("cpu_ms", json_text_ms, r->cpu_ms);
	PUT("memory_peak_bytes", json_text_figure, r->memory_peak_bytes);
	PUT("pids_peak", json_text_figure, r->pids_peak);
	PUT("io_read_bytes", json_text_figure, r->io_read_bytes);
	PUT("io_write_bytes", json_text_figure, r->io_write_bytes);
	PUT("stdout_bytes", json_text_figure, r->stdout_bytes);
	PUT("stderr_bytes", json_text_figure, r->stderr_bytes);
	PUT("truncated", json_text_raw, r->truncated < 0 ? "null" : r->truncated ? "true" : "false");
	PUT("started_at", put_time, r->started_at);
	PUT("setup_ms", json_text_ms, r->setup_ms);
	PUT("warm", json_text_bool, r->warm);
	PUT("isolation", put_isolation, r);
	PUT("result", json_text_raw, "null");
	PUT("result_repr", json_text_raw, "null");
	PUT("error", put_why, r);
	PUT("variables", json_text_raw, "null");
	PUT("security_event", json_text_raw, "null");
	PUT("security_warnings", json_text_raw, "null");
	PUT("files", json_text_raw, "null");
	PUT("tool_calls", json_text_raw, "null");
	PUT("session", put_session, r);
	if (r->session_end)
		PUT("session_end", json_text_string, r->session_end);
	PUT("network", put_network, r);
	json_text_raw(t, "}");
#undef PUT
}

json_t *record_json(const struct record *r)
{
	char             text[RECORD_TEXT_MAX];
	struct json_text t = json_text_in(text, sizeof text);

	record_put(&t, r);
	return json_loadb(text, json_text_end(&t), 0, NULL);
}
