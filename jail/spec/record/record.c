#define _GNU_SOURCE
#include "record.h"

#include "layer.h"
#include "moment.h"
#include "policy_value.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

void record_describe_refusal(const struct record *r, uint32_t i, struct record_refusal *ret)
{
	const struct refused_call *row = &r->result->refused.row[i];

	r->call_name(row->call, ret->call, sizeof ret->call);
	refused_call_print(row, ret->call, ret->argument, sizeof ret->argument);
}

char *record_print_signal_name(int signal, char *buf, size_t len)
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

	if (!r->rootfs || !*r->result->rootfs_digest) {
		json_text_string(t, r->rootfs);
		return;
	}
	snprintf(text, sizeof text, "%s@sha256:%s", r->rootfs, r->result->rootfs_digest);
	json_text_string(t, text);
}

/* Key and value, of an object that has begun. */
#define PUT(key, how, ...) (json_text_key(t, key), how(t, __VA_ARGS__))

static void put_hits(struct json_text *t, const struct run_result *result)
{
	json_text_raw(t, "[");
	for (unsigned i = 0; i < result->hits; i++) {
		json_text_comma(t);
		json_text_raw(t, "{");
		PUT("name", json_text_string, limits_fields[result->hit[i].limit].name);
		PUT("value", json_text_count_or_null, result->hit[i].value);
		PUT("peak", json_text_count_or_null, result->hit[i].peak);
		PUT("times", json_text_count_or_null, result->hit[i].times);
		json_text_raw(t, "}");
	}
	json_text_raw(t, "]");
}

static void put_refused(struct json_text *t, const struct record *r)
{
	const struct run_result *result = r->result;
	struct record_refusal    refusal;

	if (!result->refused_known) { /* there was no listener */
		json_text_raw(t, "null");
		return;
	}
	json_text_raw(t, "[");
	for (uint32_t i = 0; i < result->refused.n; i++) {
		record_describe_refusal(r, i, &refusal);
		json_text_comma(t);
		json_text_raw(t, "{");
		PUT("call", json_text_string, refusal.call);
		PUT("argument", json_text_string, *refusal.argument ? refusal.argument : NULL);
		PUT("count", json_text_integer, result->refused.row[i].count);
		PUT("answer", json_text_string, policy_errno_name(result->refused.row[i].errnum));
		json_text_raw(t, "}");
	}
	json_text_raw(t, "]");
}

static void put_layer(struct json_text *t, const char *prefix, enum layer layer)
{
	json_text_comma(t);
	json_text_raw(t, "\"");
	json_text_raw(t, prefix);
	json_text_raw(t, layer_name(layer));
	json_text_raw(t, "\"");
}

static void put_isolation(struct json_text *t, const struct run_result *result)
{
	json_text_raw(t, "[");
	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		if (result->layers & (1ull << i))
			put_layer(t, "", i);
		if (result->missing & (1ull << i))
			put_layer(t, "missing:", i);
	}
	json_text_raw(t, "]");
}

static void put_time(struct json_text *t, double seconds)
{
	char text[MOMENT_TEXT];

	json_text_string(t, moment_print((int64_t)(seconds * 1e6), text) ? text : NULL);
}

static void put_error(struct json_text *t, const struct err *why)
{
	if (why->kind == ERR_NONE) {
		json_text_raw(t, "null");
		return;
	}
	json_text_raw(t, "{");
	PUT("type", json_text_string, err_kind_name(why->kind));
	PUT("message", json_text_string, why->text);
	json_text_raw(t, ",\"traceback\":null,\"line\":null,\"offset\":null,\"text\":null}");
}

static void put_session(struct json_text *t, const struct record *r)
{
	if (!r->session.is_there) {
		json_text_raw(t, "null");
		return;
	}
	json_text_raw(t, "{");
	PUT("id", json_text_string, r->session.id);
	PUT("context", json_text_string, r->session.context);
	PUT("state", json_text_string, r->session.state);
	PUT("age_ms", json_text_integer, r->session.age_ms);
	PUT("idle_left_ms", json_text_integer, r->session.idle_left_ms);
	json_text_raw(t, "}");
}

/* --- the network --- */

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
	PUT("name", json_text_string, c->name);
	PUT("port", json_text_count_or_null, c->port ? c->port : RECORD_NONE);
	PUT("address", put_address, c);
	PUT("verdict", json_text_string, net_verdict_name(c->verdict));
	PUT("reason", json_text_string, *reason ? reason : NULL);
	PUT("bytes_in", json_text_integer, net_report_count(c->bytes_in));
	PUT("bytes_out", json_text_integer, net_report_count(c->bytes_out));
	PUT("ms", json_text_ms, c->ended_ms > 0 ? c->ended_ms - c->began_ms : RECORD_NONE);
	PUT("secret", json_text_bool, c->has_secret);
	json_text_raw(t, "}");
}

/* Returns how many connections did not fit. */
static uint32_t put_connections(struct json_text *t, const struct net_report *n)
{
	uint32_t written = 0;
	size_t   left = RECORD_NETWORK_MAX;

	json_text_raw(t, "[");
	for (uint32_t i = 0; i < n->n; i++) {
		char             text[1024];
		struct json_text row = json_text_in(text, sizeof text);
		size_t           len;

		put_connection(&row, &n->connection[i]);
		len = json_text_finish(&row);
		if (!len || len + 1 > left)
			continue;
		json_text_comma(t);
		json_text_raw(t, text);
		left -= len + 1;
		written++;
	}
	json_text_raw(t, "]");
	return n->n - written;
}

static void put_network(struct json_text *t, const struct record *r)
{
	const struct net_report *n = r->network;
	uint32_t                 left_out;

	if (!n) {
		json_text_raw(t, "null");
		return;
	}
	json_text_raw(t, "{");
	json_text_key(t, "connections");
	left_out = put_connections(t, n);
	PUT("left_out", json_text_integer, (int64_t)n->left_out + left_out);
	PUT("refused", json_text_integer, net_report_count(n->refused));
	PUT("failed", json_text_integer, net_report_count(n->failed));
	PUT("bytes_in", json_text_integer, net_report_count(n->bytes_in));
	PUT("bytes_out", json_text_integer, net_report_count(n->bytes_out));
	json_text_raw(t, "}");
}

void record_put_json(struct json_text *t, const struct record *r)
{
	const struct run_result  *result = r->result;
	const struct run_figures *f      = &result->figures;
	int                       signal = run_result_signal(result);
	char                      name[16];

	json_text_raw(t, "{");
	PUT("run_id", json_text_string, r->run_id);
	PUT("profile", json_text_string, r->profile);
	PUT("rootfs", put_rootfs, r);
	PUT("exit_reason", json_text_string, exit_reason_name(result->reason));
	PUT("exit_code", json_text_count_or_null, run_result_exit_code(result));
	PUT("signal", json_text_string, signal ? record_print_signal_name(signal, name, sizeof name) : NULL);
	PUT("limits_hit", put_hits, result);
	PUT("refused", put_refused, r);
	PUT("wall_ms", json_text_ms, f->wall_ms);
	PUT("cpu_ms", json_text_ms, f->cpu_ms);
	PUT("memory_peak_bytes", json_text_count_or_null, f->memory_peak_bytes);
	PUT("pids_peak", json_text_count_or_null, f->pids_peak);
	PUT("io_read_bytes", json_text_count_or_null, f->io_read_bytes);
	PUT("io_write_bytes", json_text_count_or_null, f->io_write_bytes);
	/* The client counts what the streams held. */
	PUT("stdout_bytes", json_text_raw, "null");
	PUT("stderr_bytes", json_text_raw, "null");
	PUT("truncated", json_text_raw, "null");
	PUT("started_at", put_time, result->started_at);
	PUT("setup_ms", json_text_ms, f->setup_ms);
	PUT("warm", json_text_bool, result->warm);
	PUT("isolation", put_isolation, result);
	PUT("result", json_text_raw, "null");
	PUT("result_repr", json_text_raw, "null");
	PUT("error", put_error, &result->why);
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
}

json_t *record_to_json(const struct record *r)
{
	char             text[RECORD_TEXT_MAX];
	struct json_text t = json_text_in(text, sizeof text);

	record_put_json(&t, r);
	return json_loadb(text, json_text_finish(&t), 0, NULL);
}
