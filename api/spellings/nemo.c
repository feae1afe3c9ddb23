/* nemo.c - NeMo-Skills: /execute, alone or in a session that X-Session-ID names */
#define _GNU_SOURCE
#include "member.h"
#include "route.h"
#include "single_run.h"
#include "spelling.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

enum { NEMO_CHARACTERS = 1000, NEMO_TIMEOUT_MS = 10000 };
#define NEMO_CUT "<output cut>"

/* --- answers --- */

/* The bytes of the first n characters of UTF-8. */
static size_t count_bytes_of_characters(const char *text, size_t len, uint64_t n)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (((unsigned char)text[i] & 0xc0) != 0x80 && n-- == 0)
			break;
	return i;
}

/* Takes text over. */
static json_t *nemo_cut(json_t *text, uint64_t characters)
{
	const char *bytes = json_string_value(text);
	size_t      len   = json_string_length(text), kept = count_bytes_of_characters(bytes, len, characters);
	json_t     *made;
	char       *copy;

	if (kept == len || !(copy = malloc(kept + sizeof NEMO_CUT)))
		return text;
	memcpy(copy, bytes, kept);
	memcpy(copy + kept, NEMO_CUT, sizeof NEMO_CUT);
	made = json_stringn_nocheck(copy, kept + sizeof NEMO_CUT - 1);
	free(copy);
	json_decref(text);
	return made;
}

static uint64_t nemo_characters(const struct exchange *x)
{
	const json_t *asked = json_object_get(x->json, "max_output_characters");

	return json_is_integer(asked) && json_integer_value(asked) >= 0 ? (uint64_t)json_integer_value(asked) :
									  NEMO_CHARACTERS;
}

/* What an interactive Python prints for the value of the last expression is part of stdout. */
static json_t *nemo_stdout_to_json(const struct run_outcome *o)
{
	json_t     *text  = run_outcome_text_to_json(o->out, o->out_len), *made;
	const char *value = json_string_value(json_object_get(o->report, "result_repr"));

	if (!value || !json_object_get(o->report, "result_repr") || strcmp(value, "None") == 0)
		return text;
	made = json_sprintf("%s%s\n", json_string_value(text), value);
	if (!made)
		return text;
	json_decref(text);
	return made;
}

static json_t *nemo_encode_as(const struct exchange *x, const struct run_outcome *o, bool is_new)
{
	uint64_t characters = nemo_characters(x);

	return json_pack("{ss so so sb so}", "process_status", verdict_names[o->verdict].nemo, "stdout",
			 nemo_cut(nemo_stdout_to_json(o), characters), "stderr",
			 nemo_cut(single_run_stderr_to_json(o), characters), "new_session_created", is_new, "brig",
			 run_outcome_brig_to_json(o));
}

static json_t *nemo_encode(const struct exchange *x, const struct run_outcome *o)
{
	return nemo_encode_as(x, o, false);
}

/* It stays new until its client had a result: a fault is sent again, and its history has to be, too. */
static json_t *nemo_encode_in_session(const struct exchange *x, const struct run_outcome *o)
{
	struct api_session *s      = api_session_find(x->api, x->token, x->head.x_session_id);
	bool                is_new = s && !s->has_answered;

	if (s)
		s->has_answered = true;
	return nemo_encode_as(x, o, is_new);
}

/* --- requests --- */

static const char *nemo_session_name(struct exchange *x)
{
	const char *name = x->head.x_session_id;

	if (name && *name && strlen(name) <= API_SESSION_NAME_MAX && text_is_visible_ascii(name))
		return name;
	exchange_refuse(x, 400, "session", "%s", name && *name ?
			"X-Session-ID: expected 1 to 128 printable ASCII characters without blanks" :
			"ipython: send the header X-Session-ID, which names the session");
	return NULL;
}

static void nemo_execute_in_session(struct exchange *x, struct program *p)
{
	const char         *name = nemo_session_name(x);
	struct run_outcome  o    = { 0 };
	struct api_session *s;

	if (!name)
		return;
	s = api_session_find(x->api, x->token, name);
	if (s)
		api_session_use(s);
	else
		s = api_session_open(x->api, x->token, name, &o);
	if (s) {
		single_run_start(x, p, s, nemo_encode_in_session);
		api_session_leave(s); /* the run uses it */
	} else {
		exchange_answer_fault(x, &o);
	}
}

static bool nemo_is_ipython(const struct exchange *x)
{
	const char *language = json_string_value(json_object_get(x->json, "language"));

	return !language || strcmp(language, "ipython") == 0;
}

void nemo_execute(struct exchange *x)
{
	scoped_program p          = { 0 };
	bool           is_ipython = nemo_is_ipython(x);
	struct err     e;

	if (is_ipython)
		json_object_del(x->json, "language");
	if (program_read(&p, INTERFACE_nemo, x->json, &e) < 0) {
		single_run_refuse(x, &e);
		return;
	}
	if (!p.wall_ms)
		p.wall_ms = NEMO_TIMEOUT_MS;
	if (!is_ipython)
		single_run_start(x, &p, NULL, nemo_encode);
	else if (p.input && p.input_len)
		exchange_refuse(x, 400, "bad_field", "std_input: a session has none; use the language python");
	else
		nemo_execute_in_session(x, &p);
}

/* --- sessions --- */

void nemo_list(struct exchange *x)
{
	json_t             *all = json_object();
	struct api_session *s;

	TAILQ_FOREACH(s, &x->api->sessions, link)
		if (s->token == x->token && *s->name)
			json_object_set_new(all, s->name,
					    json_pack("{ss}", "state", s->is_busy ? "busy" : "idle"));
	exchange_answer(x, 200, json_pack("{so}", "sessions", all));
}

void nemo_delete(struct exchange *x)
{
	struct api_session *s = *x->argument ? api_session_find(x->api, x->token, x->argument) : NULL;

	if (!s) {
		exchange_refuse(x, 404, "not_found", "There is no such session");
		return;
	}
	api_session_close(s);
	exchange_answer(x, 200, json_pack("{ss s{ss}}", "message", "the session was closed", "brig", "exit_reason",
					  "session_ended"));
}

void nemo_health(struct exchange *x)
{
	if (x->api->drains)
		exchange_answer(x, 503, json_pack("{ss}", "status", "stopping"));
	else
		exchange_answer(x, 200, json_pack("{ss}", "status", "healthy"));
}
