#define _GNU_SOURCE
#include "run_record.h"

#include "call_number.h"
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
	char name[32];

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
	ret->refused_known = end->refused_known;
	for (unsigned i = 0; i < end->refused.n; i++)
		record_add_refusal(ret, &end->refused.row[i], call_name(end->refused.row[i].call, name, sizeof name));
	fill_outcome(ret, end);
}

static void put_layers(struct json_text *t, uint64_t layers)
{
	json_text_raw(t, "[");
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (layers & (1ull << i)) {
			json_text_next(t);
			json_text_string(t, layer_name((enum layer)i));
		}
	json_text_raw(t, "]");
}

static void put_loss(struct json_text *t, uint64_t layers, const char *why)
{
	if (!layers)
		return;
	json_text_next(t);
	json_text_raw(t, "{");
	json_text_key(t, "layers");
	put_layers(t, layers);
	json_text_key(t, "why");
	json_text_string(t, why);
	json_text_raw(t, "}");
}

/* Each missing layer once, with the reason on this host. */
static void put_lost(struct json_text *t, const struct run_end *end)
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

	json_text_raw(t, "[");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		put_loss(t, left & rows[i].layers, rows[i].why);
		left &= ~rows[i].layers;
	}
	put_loss(t, left, "");
	json_text_raw(t, "]");
}

void run_record_put_ended(struct json_text *t, const struct record *record, uint64_t tag, const struct run_end *end)
{
	const char      *exec_error = end->exec_errno ? strerrorname_np(end->exec_errno) : NULL;
	const char      *left       = end->left.kind != ERR_NONE ? end->left.text : NULL;
	char             text[RECORD_TEXT_MAX], lost[RECORD_TEXT_MAX];
	struct json_text r = json_text_in(text, sizeof text), l = json_text_in(lost, sizeof lost);

	record_put(&r, record);
	put_lost(&l, end);
	t->full |= !json_text_end(&r) || !json_text_end(&l);
	protocol_put_ended(t, record->run_id, tag, text, exec_error, lost, left);
}
