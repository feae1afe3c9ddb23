#include "run_outcome.h"

#include "member.h"
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct verdict_names verdict_names[VERDICT_COUNT] = {
#define VERDICT(name, fusion, nemo, piston, judge0) [VERDICT_##name] = { fusion, nemo, piston, judge0 },
#include "verdict_name.def"
#undef VERDICT
};

void run_outcome_done(struct run_outcome *o)
{
	json_decref(o->record);
	json_decref(o->report);
	json_decref(o->files);
	json_decref(o->notes);
	*o = (struct run_outcome){ 0 };
}

void run_outcome_fail(struct run_outcome *o, enum run_fault fault, const char *code, const char *fmt, ...)
{
	va_list args;

	if (o->fault != FAULT_NONE)
		return; /* the first one has the reason */
	o->fault = fault;
	snprintf(o->code, sizeof o->code, "%s", code);
	va_start(args, fmt);
	(void)vsnprintf(o->text, sizeof o->text, fmt, args);
	va_end(args);
	text_make_plain(o->text);
}

void run_outcome_copy_fault(struct run_outcome *o, const struct run_outcome *from)
{
	run_outcome_fail(o, from->fault, from->code, "%s", from->text);
	o->retry_after_ms = from->retry_after_ms;
}

void run_outcome_add_note(struct run_outcome *o, const char *fmt, ...)
{
	char    text[400];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	text_make_plain(text);
	if (!o->notes)
		o->notes = json_array();
	json_array_append_new(o->notes, json_string(text));
}

/* --- what brigd answers --- */

static enum run_fault fault_of_denial(const char *code)
{
	static const enum denial_code clients[] = { DENIAL_bad_message, DENIAL_bad_field, DENIAL_bad_descriptors,
						    DENIAL_above_ceiling };

	for (size_t i = 0; i < ARRAY_LEN(clients); i++)
		if (strcmp(code, denial_code_name(clients[i])) == 0)
			return FAULT_REQUEST;
	return strcmp(code, denial_code_name(DENIAL_busy)) == 0 ? FAULT_BUSY : FAULT_BRIG;
}

void run_outcome_set_denial(struct run_outcome *o, const json_t *error)
{
	const char *code = member_text(error, "code"), *field = member_text(error, "field");

	o->retry_after_ms = (uint64_t)json_integer_value(json_object_get(error, "retry_after_ms"));
	run_outcome_fail(o, fault_of_denial(code), code, "%s%s%s", field, *field ? ": " : "",
			 member_text(error, "message"));
}

static const struct {
	const char      *reason;
	enum run_verdict verdict;
	int              exit_code; /* as brig run exits; 0: the program's own */
} verdicts[] = {
	/* clang-format off */
	{ "exited",       VERDICT_finished, 0 },
	{ "signaled",     VERDICT_signaled, 0 },
	{ "timeout_wall", VERDICT_time,     124 },
	{ "timeout_cpu",  VERDICT_time,     124 },
	{ "oom",          VERDICT_memory,   137 },
	{ "output_limit", VERDICT_output,   153 },
	/* clang-format on */
};

static double record_number(const json_t *record, const char *key)
{
	const json_t *value = json_object_get(record, key);

	return json_is_number(value) ? json_number_value(value) : -1;
}

static void set_figures_of_record(struct run_outcome *o)
{
	o->wall_ms           = record_number(o->record, "wall_ms");
	o->cpu_ms            = record_number(o->record, "cpu_ms");
	o->memory_peak_bytes = (int64_t)record_number(o->record, "memory_peak_bytes");
	o->exit_code         = (int)json_integer_value(json_object_get(o->record, "exit_code"));
	o->signal            = json_string_value(json_object_get(o->record, "signal"));
}

void run_outcome_set_ended(struct run_outcome *o, const json_t *event)
{
	const char *reason, *exec_error = json_string_value(json_object_get(event, "exec_error"));

	o->record = json_copy(json_object_get(event, "record"));
	reason    = member_text(o->record, "exit_reason");
	set_figures_of_record(o);
	if (exec_error) {
		run_outcome_fail(o, FAULT_BRIG, "missing", "the rootfs of this profile has no such interpreter (%.40s)",
				 exec_error);
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(verdicts); i++)
		if (strcmp(reason, verdicts[i].reason) == 0) {
			o->verdict = verdicts[i].verdict;
			if (verdicts[i].exit_code)
				o->exit_code = verdicts[i].exit_code;
			if (o->verdict == VERDICT_finished && o->exit_code != 0)
				o->verdict = VERDICT_failed;
			return;
		}
	run_outcome_fail(o, FAULT_BRIG, reason, "the run has no result: %.60s %.300s", reason,
			 member_text(json_object_get(o->record, "error"), "message"));
}

/* --- members of answers --- */

json_t *run_outcome_text_to_json(const char *bytes, size_t len)
{
	size_t  n;
	char   *text = text_as_utf8(bytes ? bytes : "", bytes ? len : 0, &n);
	json_t *made = text ? json_stringn_nocheck(text, n) : NULL;

	free(text);
	return made ? made : json_string("");
}

static json_t *limits_hit_to_json(const json_t *record)
{
	json_t *list = json_array(), *hit;
	size_t  i;

	json_array_foreach(json_object_get(record, "limits_hit"), i, hit)
		json_array_append_new(list, json_string(member_text(hit, "name")));
	return list;
}

json_t *run_outcome_brig_to_json(const struct run_outcome *o)
{
	static const char *const figures[] = { "wall_ms", "cpu_ms", "memory_peak_bytes", "run_id" };
	json_t                  *brig;

	if (o->fault != FAULT_NONE)
		brig = json_pack("{ss ss}", "exit_reason", o->code, "message", o->text);
	else
		brig = json_pack("{ss so sb}", "exit_reason", member_text(o->record, "exit_reason"), "limits_hit",
				 limits_hit_to_json(o->record), "truncated", o->truncated);
	for (size_t i = 0; i < ARRAY_LEN(figures) && o->record; i++)
		json_object_set(brig, figures[i], json_object_get(o->record, figures[i]));
	if (json_array_size(o->notes))
		json_object_set(brig, "notes", o->notes);
	return brig;
}
