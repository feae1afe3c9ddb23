#define _GNU_SOURCE
#include "run_record.h"

#include "call_number.h"
#include "layer.h"

#include <stdio.h>
#include <string.h>

struct record run_record_make(const struct served_run *r, const char *id, const struct run_result *result)
{
	struct record ret = { .profile   = r->profile->name,
			      .rootfs    = r->profile->profile.rootfs,
			      .result    = result,
			      .call_name = call_name };

	memcpy(ret.run_id, id, sizeof ret.run_id);
	return ret;
}

static void put_missing_layers(struct json_text *t, uint64_t layers, const char *why)
{
	if (!layers)
		return;
	json_text_comma(t);
	json_text_raw(t, "{");
	json_text_key(t, "layers");
	json_text_raw(t, "[");
	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (layers & (1ull << i)) {
			json_text_comma(t);
			json_text_string(t, layer_name((enum layer)i));
		}
	json_text_raw(t, "]");
	json_text_key(t, "why");
	json_text_string(t, why);
	json_text_raw(t, "}");
}

/* Each missing layer once, with the reason on this host. */
static void put_missing_layers_with_reasons(struct json_text *t, const struct run_result *end)
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
		put_missing_layers(t, left & rows[i].layers, rows[i].why);
		left &= ~rows[i].layers;
	}
	put_missing_layers(t, left, "");
	json_text_raw(t, "]");
}

void run_record_put_ended_event(struct json_text *t, const struct record *record, uint64_t tag)
{
	const struct run_result *end = record->result;
	const char      *exec_error = end->exec_errno ? strerrorname_np(end->exec_errno) : NULL;
	const char      *left       = end->left.kind != ERR_NONE ? end->left.text : NULL;
	char             text[RECORD_TEXT_MAX], lost[RECORD_TEXT_MAX];
	struct json_text r = json_text_in(text, sizeof text), l = json_text_in(lost, sizeof lost);

	record_put_json(&r, record);
	put_missing_layers_with_reasons(&l, end);
	t->full |= !json_text_finish(&r) || !json_text_finish(&l);
	protocol_put_ended(t, record->run_id, tag, text, exec_error, lost, left);
}
