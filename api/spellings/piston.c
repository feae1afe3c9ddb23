/* piston.c - Piston, version 2: /api/v2/runtimes and /api/v2/execute */
#define _GNU_SOURCE
#include "base64.h"
#include "member.h"
#include "profile_info.h"
#include "route.h"
#include "single_run.h"
#include "spelling.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what is there --- */

/* "3.11.2-1+b1" -> "3.11.2" */
static void print_language_version(const struct language *l, const json_t *explained, char ret[32])
{
	size_t  i;
	json_t *row;

	snprintf(ret, 32, "%s", l->preset);
	json_array_foreach(json_object_get(explained, "packages"), i, row) {
		const char *version = member_text(row, "version");
		size_t      n       = strspn(version, "0123456789.");

		if (strcmp(member_text(row, "name"), l->package) == 0 && n && n < 32)
			snprintf(ret, 32, "%.*s", (int)n, version);
	}
}

/* Both requests need the versions, which brigd knows. */
struct piston_work {
	struct exchange        *x;
	struct profile_question question;
	void                  (*known)(struct exchange *x, const json_t *explained);
};

static void piston_abandon(void *work)
{
	struct piston_work *w = work;

	profile_info_detach(&w->question);
	free(w);
}

static void piston_on_explained(void *owner, const json_t *reply, const struct err *why)
{
	struct piston_work *w     = owner;
	struct exchange    *x     = w->x;
	void              (*known)(struct exchange *, const json_t *) = w->known;

	if (!reply)
		exchange_refuse(x, 503, "unavailable", "%s", why->text);
	x->work = NULL;
	profile_info_detach(&w->question);
	if (reply)
		known(x, reply);
	free(w);
}

static void piston_ask(struct exchange *x, void (*known)(struct exchange *x, const json_t *explained))
{
	struct piston_work *w       = calloc(1, sizeof *w);
	const char         *profile = *x->token->profile ? x->token->profile : x->api->settings->profile;

	if (!w) {
		exchange_refuse(x, 503, "memory", "out of memory");
		return;
	}
	*w = (struct piston_work){ .x = x, .known = known };
	w->question = (struct profile_question){ .known = piston_on_explained, .owner = w };
	x->work     = w;
	x->abandon  = piston_abandon;
	profile_info_ask(&w->question, x->api->link, "explain", profile);
}

static void piston_answer_runtimes(struct exchange *x, const json_t *explained)
{
	json_t *all = json_array();

	for (const struct language *l = languages; l->name; l++) {
		json_t *aliases = json_array();
		char    version[32];

		for (size_t i = 0; i < LANGUAGE_NAMES && l->aliases[i]; i++)
			json_array_append_new(aliases, json_string(l->aliases[i]));
		print_language_version(l, explained, version);
		json_array_append_new(all, json_pack("{ss ss so}", "language", l->name, "version", version, "aliases",
						     aliases));
	}
	exchange_answer(x, 200, all);
}

void piston_runtimes(struct exchange *x)
{
	piston_ask(x, piston_answer_runtimes);
}

/* --- an answer --- */

static json_t *number_or_null(double value)
{
	return value < 0 ? json_null() : json_integer((json_int_t)(value + 0.5));
}

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

static json_t *piston_output_to_json(const struct run_outcome *o)
{
	char   *text = malloc(o->out_len + o->err_len + 1);
	json_t *all;

	if (!text)
		return json_string("");
	if (o->out_len)
		memcpy(text, o->out, o->out_len);
	if (o->err_len)
		memcpy(text + o->out_len, o->err, o->err_len);
	all = run_outcome_text_to_json(text, o->out_len + o->err_len);
	free(text);
	return all;
}

static json_t *piston_run_to_json(const struct run_outcome *o)
{
	bool        has_code = o->verdict == VERDICT_finished || o->verdict == VERDICT_failed;
	const char *signal   = has_code ? NULL : o->signal ? o->signal : "SIGKILL";

	return json_pack("{so so so so so so so so so so}", "stdout", run_outcome_text_to_json(o->out, o->out_len),
			 "stderr", run_outcome_text_to_json(o->err, o->err_len), "output", piston_output_to_json(o),
			 "code", has_code ? json_integer(o->exit_code) : json_null(), "signal", text_or_null(signal),
			 "message", text_or_null(single_run_limit_text(o)), "status",
			 text_or_null(verdict_names[o->verdict].piston), "cpu_time", number_or_null(o->cpu_ms),
			 "wall_time", number_or_null(o->wall_ms), "memory",
			 number_or_null((double)o->memory_peak_bytes));
}

static json_t *piston_encode(const struct exchange *x, const struct run_outcome *o)
{
	const struct language *l = language_find(member_text(x->json, "language"));

	return json_pack("{ss ss so so}", "language", l->name, "version", member_text(x->json, "brig_version"), "run",
			 piston_run_to_json(o), "brig", run_outcome_brig_to_json(o));
}

/* --- a request --- */

static char *decode_hex(const char *text, size_t len, size_t *ret_len)
{
	char *made = len % 2 ? NULL : malloc(len / 2 + 1);

	for (size_t i = 0; made && i < len / 2; i++) {
		int high = text_hex_digit(text[2 * i]), low = text_hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0) {
			free(made);
			return NULL;
		}
		made[i] = (char)(high << 4 | low);
	}
	*ret_len = len / 2;
	return made;
}

static char *copy_content(const char *text, size_t len)
{
	char *copy = malloc(len + 1);

	return copy ? memcpy(copy, text, len) : NULL;
}

/* malloc'ed; NULL with *e. */
static char *piston_decode(const json_t *file, size_t *len, struct err *e)
{
	const json_t *content  = json_object_get(file, "content");
	const char   *encoding = json_string_value(json_object_get(file, "encoding"));
	const char   *text     = json_string_value(content);
	char         *made     = NULL;

	*len = json_string_length(content);
	if (!text)
		err_set(e, ERR_BAD_SPEC, "content: expected a text");
	else if (!encoding || strcmp(encoding, "utf8") == 0)
		made = copy_content(text, *len);
	else if (strcmp(encoding, "base64") == 0)
		made = base64_decode(text, *len, len);
	else if (strcmp(encoding, "hex") == 0)
		made = decode_hex(text, *len, len);
	else
		err_set(e, ERR_BAD_SPEC, "encoding: expected utf8, base64 or hex");
	if (!made && text && !e->text[0])
		err_set(e, ERR_BAD_SPEC, "content: damaged; it is not in its encoding");
	return made;
}

/* The first file is the program; the others lie beside it. */
static int piston_read_file(struct program *p, size_t i, const json_t *file, struct err *e)
{
	const char *name = json_string_value(json_object_get(file, "name"));
	char        made_up[32];
	size_t      len;
	char       *bytes;
	int         r;

	e->text[0] = 0;
	bytes      = piston_decode(file, &len, e);
	if (!bytes)
		return -1;
	snprintf(made_up, sizeof made_up, "file%zu.code", i);
	r = i ? program_add_file(p, "name", name ? name : made_up, bytes, len, e) : program_set_code(p, bytes, len, e);
	free(bytes);
	return r;
}

static int piston_read_files(struct program *p, const json_t *files, struct err *e)
{
	size_t  i;
	json_t *file;

	if (!json_array_size(files))
		return err_set(e, ERR_BAD_SPEC, "files: expected a list with the program as its first file");
	json_array_foreach(files, i, file)
		if (piston_read_file(p, i, file, e) < 0)
			return err_wrap(e, "files[%zu]", i);
	return 0;
}

static void piston_execute_known(struct exchange *x, const json_t *explained)
{
	const char            *name = member_text(x->json, "language"), *wanted = member_text(x->json, "version");
	const struct language *l    = language_find(name);
	char                   version[32];
	scoped_program         p = { 0 };
	struct err             e;

	if (l)
		print_language_version(l, explained, version);
	if (!*name || !*wanted)
		exchange_refuse(x, 400, "bad_field", "language and version are required as texts");
	else if (!l || !language_has_version(version, wanted))
		exchange_refuse(x, 400, "bad_field", "%.40s-%.40s runtime is unknown", name, wanted);
	else if (program_read(&p, INTERFACE_piston, x->json, &e) < 0 ||
		 piston_read_files(&p, json_object_get(x->json, "files"), &e) < 0)
		single_run_refuse(x, &e);
	else {
		json_object_set_new(x->json, "brig_version", json_string(version));
		single_run_start(x, &p, NULL, piston_encode);
	}
}

void piston_execute(struct exchange *x)
{
	piston_ask(x, piston_execute_known);
}
