#define _GNU_SOURCE
#include "record.h"

#include "layer.h"
#include "text.h"

#include <stdlib.h>
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

char *record_signal_name(int signal, char *buf, size_t len)
{
	const char *name = sigabbrev_np(signal);

	if (name)
		snprintf(buf, len, "SIG%s", name);
	else
		snprintf(buf, len, "SIG%d", signal);
	return buf;
}

static json_t *json_figure(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

/* Milliseconds to the microsecond: 7.412 */
static json_t *json_ms(double ms)
{
	return ms < 0 ? json_null() : json_real((double)(int64_t)(ms * 1000 + 0.5) / 1000);
}

/* A caller's word may be no UTF-8: it is told as well as JSON can, not left out. */
static json_t *json_text(const char *text)
{
	size_t  len   = 0;
	char   *plain = text ? text_as_utf8(text, strlen(text), &len) : NULL;
	json_t *json  = plain ? json_stringn(plain, len) : json_null();

	free(plain);
	return json;
}

/* Which tree exactly: "basic@sha256:2bc0..." */
static json_t *json_rootfs(const struct record *r)
{
	return r->rootfs && r->rootfs_digest ? json_sprintf("%s@sha256:%s", r->rootfs, r->rootfs_digest) : json_text(r->rootfs);
}

static json_t *json_hits(const struct record *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->hits; i++)
		json_array_append_new(list, json_pack("{ss so so so}", "name", r->hit[i].name, "value", json_figure(r->hit[i].value),
						      "peak", json_figure(r->hit[i].peak), "times", json_figure(r->hit[i].times)));
	return list;
}

static json_t *json_isolation(const struct record *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		if (r->layers & (1ull << i))
			json_array_append_new(list, json_string(layer_name(i)));
		if (r->layers_missing & (1ull << i))
			json_array_append_new(list, json_sprintf("missing:%s", layer_name(i)));
	}
	return list;
}

static json_t *json_time(double seconds)
{
	char      text[64];
	time_t    whole = (time_t)seconds;
	struct tm tm;
	size_t    n;

	if (seconds < 0 || !gmtime_r(&whole, &tm))
		return json_null();
	n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + n, sizeof text - n, ".%06uZ", (unsigned)((seconds - (double)whole) * 1e6));
	return json_string(text);
}

static json_t *json_why(const struct record *r)
{
	if (r->why.kind == ERR_NONE)
		return json_null();
	return json_pack("{ss ss sn sn sn sn}", "type", err_kind_name(r->why.kind), "message", r->why.text, "traceback", "line", "offset", "text");
}

json_t *record_json(const struct record *r)
{
	char    name[16];
	json_t *signal = r->signal ? json_string(record_signal_name(r->signal, name, sizeof name)) : json_null();
	json_t *j      = json_object();

#define PUT(key, value) json_object_set_new(j, key, value)
	PUT("run_id", json_string(r->run_id));
	PUT("profile", json_text(r->profile));
	PUT("rootfs", json_rootfs(r));
	PUT("exit_reason", json_string(exit_reason_name(r->exit_reason)));
	PUT("exit_code", json_figure(r->exit_code));
	PUT("signal", signal);
	PUT("limits_hit", json_hits(r));
	PUT("wall_ms", json_ms(r->wall_ms));
	PUT("cpu_ms", json_ms(r->cpu_ms));
	PUT("memory_peak_bytes", json_figure(r->memory_peak_bytes));
	PUT("pids_peak", json_figure(r->pids_peak));
	PUT("io_read_bytes", json_figure(r->io_read_bytes));
	PUT("io_write_bytes", json_figure(r->io_write_bytes));
	PUT("stdout_bytes", json_figure(r->stdout_bytes));
	PUT("stderr_bytes", json_figure(r->stderr_bytes));
	PUT("truncated", r->truncated < 0 ? json_null() : json_boolean(r->truncated));
	PUT("started_at", json_time(r->started_at));
	PUT("setup_ms", json_ms(r->setup_ms));
	PUT("warm", json_boolean(r->warm));
	PUT("isolation", json_isolation(r));
	PUT("result", json_null());
	PUT("result_repr", json_null());
	PUT("error", json_why(r));
	PUT("variables", json_null());
	PUT("security_event", json_null());
	PUT("security_warnings", json_null());
	PUT("files", json_null());
#undef PUT
	return j;
}
