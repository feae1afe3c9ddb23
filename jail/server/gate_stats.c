/* gate_stats.c - what the service has done so far, and what it costs */
#define _GNU_SOURCE
#include "audit.h"
#include "clock.h"
#include "fd.h"
#include "gate.h"
#include "served_run.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Memory and CPU time of a process; null when they cannot be read. */
static json_t *process_usage_to_json(pid_t pid)
{
	char        path[32], text[1024] = "";
	const char *figures;
	json_t     *ret;
	scoped_fd   fd = -1;
	uint64_t    user, kernel;
	int64_t     pages;

	if (!pid)
		return json_null();
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	fd      = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)!read(fd, text, sizeof text - 1);
	figures = strrchr(text, ')'); /* behind the process's name, which may hold anything */
	ret     = json_pack("{sI sn sn}", "pid", (json_int_t)pid, "memory_bytes", "cpu_ms");
	if (!figures || sscanf(figures + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			       " %*d %*d %*d %*d %*d %*d %*u %*u %" SCNd64, &user, &kernel, &pages) != 3)
		return ret;
	json_object_set_new(ret, "memory_bytes", json_integer((json_int_t)pages * sysconf(_SC_PAGESIZE)));
	json_object_set_new(ret, "cpu_ms", json_real((double)(user + kernel) * 1000 / (double)sysconf(_SC_CLK_TCK)));
	return ret;
}

/* Sums of what brig-proxy reported, which may be any number: the mask keeps them from becoming negative. */
static json_t *network_counts_to_json(const struct server_counts *counts)
{
	static const uint64_t most = INT64_MAX;

	return json_pack("{sI sI sI sI sI}", "connections", (json_int_t)(counts->network.connections & most),
			 "refused", (json_int_t)(counts->network.refused & most),
			 "failed", (json_int_t)(counts->network.failed & most),
			 "bytes_in", (json_int_t)(counts->network.bytes_in & most),
			 "bytes_out", (json_int_t)(counts->network.bytes_out & most));
}

static json_t *audit_counts_to_json(const struct audit *a)
{
	struct audit_counts n = audit_get_counts(a);

	if (!a)
		return json_null();
	return json_pack("{sI sI sI sI}", "entries", (json_int_t)n.entries, "suppressed", (json_int_t)n.suppressed,
			 "journal_lost", (json_int_t)n.journal_lost, "file_lost", (json_int_t)n.file_lost);
}

/* A figure that the supervisor reported, which is not trusted: null if JSON cannot hold it. */
static json_t *figure_to_json(uint64_t figure)
{
	return figure > TAG_MAX ? json_null() : json_integer((json_int_t)figure);
}

static json_t *zygote_report_to_json(const struct zygote_report *reported)
{
	static const char *const states[] = { [ZYGOTE_NONE] = "none", [ZYGOTE_STARTING] = "starting",
					      [ZYGOTE_SERVING] = "serving", [ZYGOTE_REPLACED] = "replaced" };
	bool                        is  = reported->state > ZYGOTE_NONE && reported->state < ARRAY_LEN(states);
	const struct zygote_report *z   = is ? reported : &zygote_report_none;
	double                      age = clock_ms(CLOCK_MONOTONIC) - z->started_ms;
	bool                        has_age = is && age >= 0 && age < (double)TAG_MAX;

	return json_pack("{ss sI so so so so so so so}", "state", states[z->state],
			 "generation", (json_int_t)reported->generation,
			 "age_ms", has_age ? figure_to_json((uint64_t)age) : json_null(),
			 "runs", is ? figure_to_json(z->cells) : json_null(),
			 "memory_bytes", figure_to_json(z->shared_bytes),
			 "own_bytes", figure_to_json(z->own_bytes), "forks", figure_to_json(z->forks),
			 "fork_memory_bytes", figure_to_json(z->fork_shared_bytes),
			 "fork_own_bytes", figure_to_json(z->fork_own_bytes));
}

static json_t *profile_stats_to_json(const struct connection *c)
{
	const struct server *d    = c->server;
	json_t              *list = json_array();

	for (size_t i = 0; i < d->profiles.n; i++) {
		const struct served_profile *p       = d->profiles.item[i];
		struct backend_counts        n       = { 0 };
		json_int_t                   running = 0;
		json_t                      *zygote;
		const struct served_run     *r;

		if (!access_allows(c->access_rule, p->name))
			continue;
		if (d->backend.monitor)
			d->backend.count(d->backend.self, p, &n);
		TAILQ_FOREACH(r, &d->runs, link)
			running += strcmp(r->profile->name, p->name) == 0;
		zygote = p->profile.warm == WARM_NEVER || !d->backend.monitor ? json_null()
									      : zygote_report_to_json(&n.zygote);
		json_array_append_new(list, json_pack("{ss ss sI sI sI sI so}", "name", p->name,
						      "warm", profile_warm_name(p->profile.warm),
						      "ready", (json_int_t)n.ready, "tickets", (json_int_t)n.leases,
						      "building", (json_int_t)n.building, "running", running,
						      "zygote", zygote));
	}
	return list;
}

static json_t *confinement_to_json(const struct server *d)
{
	json_t *list = json_array();

	for (size_t i = 0; d->confinement && d->confinement[i]; i++)
		json_array_append_new(list, json_string(d->confinement[i]));
	return list;
}

int gate_handle_stats(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	const struct server *d       = c->server;
	json_t              *refused = json_object(), *ended = json_object();

	(void)request, (void)why;
	for (int i = 0; i < DENIAL_COUNT; i++)
		if (d->counts.refused[i])
			json_object_set_new(refused, denial_code_name((enum denial_code)i),
					    json_integer((json_int_t)d->counts.refused[i]));
	for (int i = 0; i < EXIT_REASONS; i++)
		if (d->counts.ended[i])
			json_object_set_new(ended, exit_reason_name((enum exit_reason)i),
					    json_integer((json_int_t)d->counts.ended[i]));
	json_object_set_new(reply, "brig", json_string(BRIG_VERSION));
	json_object_set_new(reply, "started_at", json_real(d->born_at));
	json_object_set_new(reply, "uptime_ms", json_integer((json_int_t)(clock_ms(CLOCK_MONOTONIC) - d->born_ms)));
	if (d->read_ms > 0)
		json_object_set_new(reply, "rules_age_ms",
				    json_integer((json_int_t)(clock_ms(CLOCK_MONOTONIC) - d->read_ms)));
	json_object_set_new(reply, "runs",
			    json_pack("{sI so}", "started", (json_int_t)d->counts.started, "ended", ended));
	json_object_set_new(reply, "running", json_integer((json_int_t)d->runs_len));
	json_object_set_new(reply, "waiting", json_integer((json_int_t)d->queued));
	json_object_set_new(reply, "refused", refused);
	json_object_set_new(reply, "tool_calls",
			    json_pack("{sI sI sI}", "ok", (json_int_t)d->counts.calls[CALL_OK], "denied",
				      (json_int_t)d->counts.calls[CALL_DENIED], "failed",
				      (json_int_t)d->counts.calls[CALL_FAILED]));
	json_object_set_new(reply, "network", network_counts_to_json(&d->counts));
	json_object_set_new(reply, "connections", json_integer((json_int_t)d->connections_len));
	json_object_set_new(reply, "connected", json_integer((json_int_t)d->counts.connections));
	json_object_set_new(reply, "audit", audit_counts_to_json(d->audit));
	json_object_set_new(reply, "profiles", profile_stats_to_json(c));
	json_object_set_new(reply, "door", process_usage_to_json(getpid()));
	json_object_set_new(reply, "keeper", process_usage_to_json(d->backend.monitor));
	json_object_set_new(reply, "confinement", confinement_to_json(d));
	return GATE_ANSWERED;
}
