#define _GNU_SOURCE
#include "run_record.h"

#include "layer.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

static void fill_outcome(struct record *r, const struct run_end *end)
{
	if (end->wait_status < 0)
		return;
	if (WIFSIGNALED(end->wait_status)) {
		r->signal    = WTERMSIG(end->wait_status);
		r->exit_code = 128 + r->signal;
	} else {
		r->exit_code = WEXITSTATUS(end->wait_status);
	}
}

void run_record_fill(struct record *ret, const char *id, const struct served_profile *profile, const struct run_end *end)
{
	record_init(ret);
	snprintf(ret->run_id, sizeof ret->run_id, "%s", id);
	ret->profile           = profile->name;
	ret->rootfs            = profile->profile.rootfs;
	ret->rootfs_digest     = end->rootfs_digest[0] ? end->rootfs_digest : NULL;
	ret->exit_reason       = end->reason;
	ret->wall_ms           = end->wall_ms;
	ret->cpu_ms            = end->cpu_ms;
	ret->setup_ms          = end->setup_ms;
	ret->started_at        = end->started_at;
	ret->memory_peak_bytes = end->memory_peak_bytes;
	ret->pids_peak         = end->pids_peak;
	ret->io_read_bytes     = end->io_read_bytes;
	ret->io_write_bytes    = end->io_write_bytes;
	ret->layers            = end->layers;
	ret->layers_missing    = end->missing;
	ret->why               = end->why;
	ret->warm              = end->warm;
	for (unsigned i = 0; i < end->hits; i++)
		record_add_hit(ret, limits_fields[end->hit[i].limit].name, end->hit[i].value, end->hit[i].peak, end->hit[i].times);
	fill_outcome(ret, end);
}

static json_t *layer_names(uint64_t layers)
{
	json_t *names = json_array();

	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (layers & (1ull << i))
			json_array_append_new(names, json_string(layer_name((enum layer)i)));
	return names;
}

/* Each missing layer once, with what this host said about it. */
static json_t *lost(const struct run_end *end)
{
	const struct {
		uint64_t    layers;
		const char *why;
	} rows[] = {
		{ LAYER_BIT(OWN_IDS) | LAYER_BIT(NO_GROUPS), end->missing_why[0] },
		{ LAYER_BIT(INERT_RO), "sockets in what --ro shows can be connected to" },
		{ LAYER_BIT(MEMORY) | LAYER_BIT(PIDS) | LAYER_BIT(CPU) | LAYER_BIT(CPU_TIME), end->missing_why[1] },
	};
	uint64_t left = end->missing;
	json_t  *list = json_array();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (left & rows[i].layers)
			json_array_append_new(list, json_pack("{so ss}", "layers", layer_names(left & rows[i].layers), "why", rows[i].why));
		left &= ~rows[i].layers;
	}
	if (left)
		json_array_append_new(list, json_pack("{so ss}", "layers", layer_names(left), "why", ""));
	return list;
}

json_t *run_record_ended(const struct record *record, uint64_t tag, const struct run_end *end)
{
	const char *exec_error = end->exec_errno ? strerrorname_np(end->exec_errno) : NULL;
	const char *left       = end->left.kind != ERR_NONE ? end->left.text : NULL;

	return protocol_ended(record->run_id, tag, record_json(record), exec_error, lost(end), left);
}
