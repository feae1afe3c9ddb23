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

/* The rest of /proc/PID/stat after the process's name, which may hold anything: so it ends at the last ')'. */
static const char *after_name(const char *text)
{
	const char *end = NULL;

	for (; *text; text++)
		if (*text == ')')
			end = text + 1;
	return end;
}

static void read_process(pid_t pid, json_int_t *bytes, double *cpu_ms)
{
	char      path[32], text[1024];
	scoped_fd fd = -1;
	ssize_t   n;
	uint64_t  user, kernel;
	int64_t   pages;

	*bytes  = -1;
	*cpu_ms = -1;
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n  = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n <= 0)
		return;
	text[n] = 0;
	if (!after_name(text) || sscanf(after_name(text), " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
				       " %*d %*d %*d %*d %*d %*d %*u %*u %" SCNd64, &user, &kernel, &pages) != 3)
		return;
	*bytes  = (json_int_t)pages * sysconf(_SC_PAGESIZE);
	*cpu_ms = (double)(user + kernel) * 1000 / (double)sysconf(_SC_CLK_TCK);
}

static json_t *process(pid_t pid)
{
	json_int_t bytes;
	double     cpu_ms;

	if (!pid)
		return json_null();
	read_process(pid, &bytes, &cpu_ms);
	return json_pack("{sI so so}", "pid", (json_int_t)pid, "memory_bytes", bytes < 0 ? json_null() : json_integer(bytes), "cpu_ms",
			 cpu_ms < 0 ? json_null() : json_real(cpu_ms));
}

static json_t *refusals(const struct server_counts *counts)
{
	json_t *refused = json_object();

	for (int i = 0; i < DENIAL_COUNT; i++)
		if (counts->refused[i])
			json_object_set_new(refused, denial_code_name((enum denial_code)i), json_integer((json_int_t)counts->refused[i]));
	return refused;
}

static json_t *calls(const struct server_counts *counts)
{
	return json_pack("{sI sI sI}", "ok", (json_int_t)counts->calls[CALL_OK], "denied", (json_int_t)counts->calls[CALL_DENIED], "failed",
			 (json_int_t)counts->calls[CALL_FAILED]);
}

/* Sums of what brig-proxy reported, which may be any number: the mask keeps them from becoming negative. */
static json_t *network(const struct server_counts *counts)
{
	static const uint64_t most = INT64_MAX;

	return json_pack("{sI sI sI sI sI}", "connections", (json_int_t)(counts->network.connections & most), "refused", (json_int_t)(counts->network.refused & most), "failed",
			 (json_int_t)(counts->network.failed & most), "bytes_in", (json_int_t)(counts->network.bytes_in & most), "bytes_out", (json_int_t)(counts->network.bytes_out & most));
}

static json_t *audit(const struct audit *a)
{
	struct audit_counts n = audit_count(a);

	if (!a)
		return json_null();
	return json_pack("{sI sI sI sI}", "entries", (json_int_t)n.entries, "suppressed", (json_int_t)n.suppressed, "journal_lost",
			 (json_int_t)n.journal_lost, "file_lost", (json_int_t)n.file_lost);
}

static json_t *run_counts(const struct server_counts *counts)
{
	json_t *ended = json_object();

	for (int i = 0; i < EXIT_REASONS; i++)
		if (counts->ended[i])
			json_object_set_new(ended, exit_reason_name((enum exit_reason)i), json_integer((json_int_t)counts->ended[i]));
	return json_pack("{sI so}", "started", (json_int_t)counts->started, "ended", ended);
}

static json_int_t count_running(const struct server *d, const struct served_profile *p)
{
	const struct served_run *r;
	json_int_t               n = 0;

	TAILQ_FOREACH(r, &d->runs, link)
		n += strcmp(r->profile->name, p->name) == 0;
	return n;
}

/* A figure that the supervisor reported, which is not trusted: null if JSON cannot hold it. */
static json_t *known(uint64_t figure)
{
	return figure > TAG_MAX ? json_null() : json_integer((json_int_t)figure);
}

static json_t *zygote(const struct zygote_report *told)
{
	static const char *const states[] = { [ZYGOTE_NONE] = "none", [ZYGOTE_STARTING] = "starting", [ZYGOTE_SERVING] = "serving",
					      [ZYGOTE_REPLACED] = "replaced" };
	bool                        is  = told->state > ZYGOTE_NONE && told->state < ARRAY_LEN(states);
	const struct zygote_report *z   = is ? told : &zygote_report_none;
	double                      age = clock_ms(CLOCK_MONOTONIC) - z->started_ms;

	return json_pack("{ss sI so so so so so so so}", "state", states[z->state], "generation", (json_int_t)told->generation,
			 "age_ms", is && age >= 0 && age < (double)TAG_MAX ? known((uint64_t)age) : json_null(), "runs", is ? known(z->cells) : json_null(),
			 "memory_bytes", known(z->shared_bytes), "own_bytes", known(z->own_bytes), "forks", known(z->forks),
			 "fork_memory_bytes", known(z->fork_shared_bytes), "fork_own_bytes", known(z->fork_own_bytes));
}

static json_t *profiles(const struct connection *c)
{
	const struct server *d    = c->server;
	json_t              *list = json_array();

	for (size_t i = 0; i < d->profiles.n; i++) {
		const struct served_profile *p = d->profiles.item[i];
		struct backend_counts        n = { 0 };

		if (!access_allows(c->access_rule, p->name))
			continue;
		if (d->backend.monitor)
			d->backend.count(d->backend.self, p, &n);
		json_array_append_new(list, json_pack("{ss ss sI sI sI sI so}", "name", p->name, "warm", profile_warm_name(p->profile.warm), "ready",
						      (json_int_t)n.ready, "tickets", (json_int_t)n.leases, "building", (json_int_t)n.building, "running", count_running(d, p),
						      "zygote", p->profile.warm == WARM_NEVER || !d->backend.monitor ? json_null() : zygote(&n.zygote)));
	}
	return list;
}

static json_t *confinement(const struct server *d)
{
	json_t *list = json_array();

	for (size_t i = 0; d->confinement && d->confinement[i]; i++)
		json_array_append_new(list, json_string(d->confinement[i]));
	return list;
}

int gate_stats(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	const struct server *d     = c->server;

	(void)request, (void)why;
	json_object_set_new(reply, "brig", json_string(BRIG_VERSION));
	json_object_set_new(reply, "started_at", json_real(d->born_at));
	json_object_set_new(reply, "uptime_ms", json_integer((json_int_t)(clock_ms(CLOCK_MONOTONIC) - d->born_ms)));
	if (d->read_ms > 0)
		json_object_set_new(reply, "rules_age_ms", json_integer((json_int_t)(clock_ms(CLOCK_MONOTONIC) - d->read_ms)));
	json_object_set_new(reply, "runs", run_counts(&d->counts));
	json_object_set_new(reply, "running", json_integer((json_int_t)d->runs_len));
	json_object_set_new(reply, "waiting", json_integer((json_int_t)d->queued));
	json_object_set_new(reply, "refused", refusals(&d->counts));
	json_object_set_new(reply, "tool_calls", calls(&d->counts));
	json_object_set_new(reply, "network", network(&d->counts));
	json_object_set_new(reply, "connections", json_integer((json_int_t)d->connections_len));
	json_object_set_new(reply, "connected", json_integer((json_int_t)d->counts.connections));
	json_object_set_new(reply, "audit", audit(d->audit));
	json_object_set_new(reply, "profiles", profiles(c));
	json_object_set_new(reply, "door", process(getpid()));
	json_object_set_new(reply, "keeper", process(d->backend.monitor));
	json_object_set_new(reply, "confinement", confinement(d));
	return GATE_ANSWERED;
}
