/* judge0.c - Judge0: submissions, one or many, waited for or asked for later */
#define _GNU_SOURCE
#include "base64.h"
#include "member.h"
#include "route.h"
#include "single_run.h"
#include "spelling.h"
#include "submission.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { JUDGE0_BATCH_MAX = 20, JUDGE0_QUEUED = 1, JUDGE0_PROCESSING = 2, JUDGE0_ACCEPTED = 3, JUDGE0_WRONG = 4,
       JUDGE0_INTERNAL = 13 };
#define JUDGE0_VERSION "1.14.0" /* its clients map languages to ids by it */

static const char *const judge0_statuses_texts[] = {
	NULL, "In Queue", "Processing", "Accepted", "Wrong Answer", "Time Limit Exceeded", "Compilation Error",
	"Runtime Error (SIGSEGV)", "Runtime Error (SIGXFSZ)", "Runtime Error (SIGFPE)", "Runtime Error (SIGABRT)",
	"Runtime Error (NZEC)", "Runtime Error (Other)", "Internal Error", "Exec Format Error",
};

static const struct {
	const char *signal;
	int         status;
} judge0_signals[] = { { "SIGSEGV", 7 }, { "SIGXFSZ", 8 }, { "SIGFPE", 9 }, { "SIGABRT", 10 } };

/* --- an answer --- */

static size_t trimmed_length(const char *text, size_t len)
{
	while (len && strchr(" \t\r\n", text[len - 1]))
		len--;
	return len;
}

/* Trailing blanks of both do not count, as with Judge0. */
static bool output_is_expected(const struct submission *s)
{
	size_t a = s->out ? trimmed_length(s->out, s->outcome.out_len) : 0,
	       b = s->expected ? trimmed_length(s->expected, s->expected_len) : 0;

	return !s->expected || (a == b && (!a || memcmp(s->out, s->expected, a) == 0));
}

static int judge0_status_of(const struct submission *s)
{
	const struct run_outcome *o = &s->outcome;

	if (s->run)
		return api_run_is_under_way(s->run) ? JUDGE0_PROCESSING : JUDGE0_QUEUED;
	if (o->fault != FAULT_NONE)
		return JUDGE0_INTERNAL;
	for (size_t i = 0; o->verdict == VERDICT_signaled && o->signal && i < ARRAY_LEN(judge0_signals); i++)
		if (strcmp(judge0_signals[i].signal, o->signal) == 0)
			return judge0_signals[i].status;
	if (o->verdict == VERDICT_finished)
		return output_is_expected(s) ? JUDGE0_ACCEPTED : JUDGE0_WRONG;
	return verdict_names[o->verdict].judge0;
}

static json_t *judge0_status_to_json(int id)
{
	return json_pack("{si ss}", "id", id, "description", judge0_statuses_texts[id]);
}

static json_t *judge0_bytes_to_json(const char *bytes, size_t len, bool base64)
{
	char   *text;
	json_t *made;

	if (!bytes || !len)
		return json_null();
	if (!base64)
		return run_outcome_text_to_json(bytes, len);
	text = base64_encode(bytes, len);
	made = text ? json_string_nocheck(text) : json_null();
	free(text);
	return made;
}

static json_t *judge0_moment_to_json(int64_t ms)
{
	time_t    s = (time_t)(ms / 1000);
	struct tm tm;
	char      text[32];

	if (!ms)
		return json_null();
	strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", gmtime_r(&s, &tm));
	return json_sprintf("%s.%03dZ", text, (int)(ms % 1000));
}

static json_t *judge0_seconds_to_json(double ms)
{
	return ms < 0 ? json_null() : json_sprintf("%.3f", ms / 1000);
}

static const char *judge0_message(const struct submission *s, char *buf, size_t len)
{
	const struct run_outcome *o = &s->outcome;

	*buf = 0;
	if (s->run)
		return buf;
	if (o->fault != FAULT_NONE)
		snprintf(buf, len, "%s", o->text);
	else if (o->verdict == VERDICT_failed)
		snprintf(buf, len, "Exited with error status %d", o->exit_code);
	else if (o->signal && o->verdict == VERDICT_signaled)
		snprintf(buf, len, "Caught fatal signal %s", o->signal);
	else
		snprintf(buf, len, "%s", single_run_limit_text(o));
	return buf;
}

static void judge0_put_result(json_t *row, const struct submission *s, bool base64)
{
	const struct run_outcome *o        = &s->outcome;
	bool                      is_over  = !s->run, has_code = is_over && o->fault == FAULT_NONE && !o->signal;
	bool                      has_signal = is_over && o->verdict == VERDICT_signaled && o->signal;
	json_int_t                kib      = is_over ? (json_int_t)(o->memory_peak_bytes / 1024) : 0;
	char                      text[600];

	judge0_message(s, text, sizeof text);
	json_object_set_new(row, "stdout", judge0_bytes_to_json(o->out, o->out_len, base64));
	json_object_set_new(row, "stderr", judge0_bytes_to_json(o->err, o->err_len, base64));
	json_object_set_new(row, "compile_output", json_null());
	json_object_set_new(row, "message", judge0_bytes_to_json(text, strlen(text), base64));
	json_object_set_new(row, "time", is_over ? judge0_seconds_to_json(o->cpu_ms) : json_null());
	json_object_set_new(row, "wall_time", is_over ? judge0_seconds_to_json(o->wall_ms) : json_null());
	json_object_set_new(row, "memory", kib > 0 ? json_integer(kib) : json_null());
	json_object_set_new(row, "exit_code", has_code ? json_integer(o->exit_code) : json_null());
	json_object_set_new(row, "exit_signal", has_signal ? json_integer(o->exit_code - 128) : json_null());
	if (is_over) /* not beside the others: judge0 of PyPI refuses an answer with a member that it does not know */
		json_object_set_new(json_object_get(row, "status"), "brig", run_outcome_brig_to_json(o));
}

/* All that is known of it. */
static json_t *judge0_all_fields(const struct submission *s, bool base64)
{
	json_t *row    = json_object();
	int     status = judge0_status_of(s);

	json_object_set_new(row, "token", json_string(s->token));
	json_object_set_new(row, "status", judge0_status_to_json(status));
	json_object_set_new(row, "status_id", json_integer(status));
	json_object_set(row, "language_id", json_object_get(s->asked, "language_id"));
	json_object_set_new(row, "source_code", judge0_bytes_to_json(s->source, s->source_len, base64));
	json_object_set_new(row, "stdin", judge0_bytes_to_json(s->input, s->input_len, base64));
	json_object_set_new(row, "expected_output", judge0_bytes_to_json(s->expected, s->expected_len, base64));
	json_object_set_new(row, "created_at", judge0_moment_to_json(s->created_ms));
	json_object_set_new(row, "finished_at", judge0_moment_to_json(s->finished_ms));
	judge0_put_result(row, s, base64);
	return row;
}

/* fields: names with commas, or "*"; NULL: those that Judge0 sends when it is asked for none. */
static json_t *judge0_submission_to_json(const struct submission *s, const char *fields, bool base64)
{
	static const char preset[] = "stdout,time,memory,stderr,token,compile_output,message,status";
	json_t           *all      = judge0_all_fields(s, base64), *row = json_object();
	const char       *p        = fields && *fields ? fields : preset;

	if (strcmp(p, "*") == 0) {
		json_decref(row);
		return all;
	}
	while (*p) {
		size_t  n = strcspn(p, ",");
		json_t *value;
		char    key[40];

		snprintf(key, sizeof key, "%.*s", (int)(n < sizeof key ? n : 0), p);
		if ((value = json_object_get(all, key)))
			json_object_set(row, key, value);
		p += n + (p[n] == ',');
	}
	json_decref(all);
	return row;
}

/* --- a request --- */

/* Clients of Judge0 break base64 into lines. */
static char *judge0_decode(const char *text, size_t len, size_t *ret_len)
{
	char  *joined = malloc(len + 1), *made;
	size_t n      = 0;

	for (size_t i = 0; joined && i < len; i++)
		if (!strchr(" \t\r\n", text[i]))
			joined[n++] = text[i];
	made = joined ? base64_decode(joined, n, ret_len) : NULL;
	free(joined);
	return made;
}

/* Decodes a member into *ret. It may be missing. */
static int judge0_read_bytes(const json_t *body, const char *key, bool base64, char **ret, size_t *len, struct err *e)
{
	const json_t *value = json_object_get(body, key);
	const char   *text  = json_string_value(value);
	size_t        n     = json_string_length(value);

	if (!value || json_is_null(value))
		return 0;
	if (!text)
		return err_set(e, ERR_BAD_SPEC, "%s: expected a text", key);
	if (base64) {
		*ret = judge0_decode(text, n, len);
		return *ret ? 0 : err_set(e, ERR_BAD_SPEC, "%s: expected base64", key);
	}
	if (!(*ret = malloc(n + 1)))
		return err_set(e, ERR_LIMIT, "out of memory");
	memcpy(*ret, text, n + 1);
	*len = n;
	return 0;
}

/* Words at blanks; a quote has no meaning, as no shell reads them. */
static int judge0_read_args(struct program *p, const json_t *value, struct err *e)
{
	const char *text = json_string_value(value);

	if (!value || json_is_null(value))
		return 0;
	if (!text || strlen(text) != json_string_length(value))
		return err_set(e, ERR_BAD_SPEC, "command_line_arguments: expected a text");
	p->args = json_array();
	while (*(text += strspn(text, " \t\r\n"))) {
		size_t n = strcspn(text, " \t\r\n");

		json_array_append_new(p->args, json_stringn(text, n));
		text += n;
	}
	return 0;
}

static int refuse_what_is_not_here(const json_t *body, struct err *e)
{
	const json_t *runs = json_object_get(body, "number_of_runs");

	if (json_is_true(json_object_get(body, "enable_network")))
		return err_set(e, ERR_BAD_SPEC, "enable_network: enabling network is not allowed; the profile decides");
	if (*member_text(body, "additional_files"))
		return err_set(e, ERR_BAD_SPEC, "additional_files: not served here");
	if (json_is_integer(runs) && json_integer_value(runs) > 1)
		return err_set(e, ERR_BAD_SPEC, "number_of_runs: only 1 is served here");
	if (*member_text(body, "callback_url"))
		return err_set(e, ERR_BAD_SPEC, "callback_url: not served here; ask for the result");
	return 0;
}

static int judge0_read(struct submission *s, struct program *p, const json_t *body, bool base64, struct err *e)
{
	const json_t *id = json_object_get(body, "language_id");

	/* what may be base64 is read here, all else by the rows of all interfaces */
	json_t *rest = json_copy((json_t *)body);
	int     r;

	json_object_del(rest, "stdin");
	json_object_set_new(rest, "source_code", json_string(""));
	r = program_read(p, INTERFACE_judge0, rest, e);
	json_decref(rest);
	if (r < 0 || refuse_what_is_not_here(body, e) < 0 ||
	    judge0_read_bytes(body, "source_code", base64, &s->source, &s->source_len, e) < 0 ||
	    judge0_read_bytes(body, "stdin", base64, &s->input, &s->input_len, e) < 0 ||
	    judge0_read_bytes(body, "expected_output", base64, &s->expected, &s->expected_len, e) < 0 ||
	    judge0_read_args(p, json_object_get(body, "command_line_arguments"), e) < 0)
		return -1;
	p->language = language_find_judge0(json_integer_value(id));
	if (!p->language)
		return err_set(e, ERR_BAD_SPEC,
			       "language_id: there is no language %" JSON_INTEGER_FORMAT " here; see /languages",
			       json_integer_value(id));
	if (!s->source || !s->source_len)
		return err_set(e, ERR_BAD_SPEC, "source_code: can't be blank");
	s->asked = json_pack("{sO}", "language_id", id);
	if (s->input && program_set_input(p, s->input, s->input_len, e) < 0)
		return -1;
	return program_set_code(p, s->source, s->source_len, e) < 0 ? err_wrap(e, "source_code") : 0;
}

/* NULL with the fault of o. */
static struct submission *judge0_begin(struct exchange *x, const json_t *body, bool base64, struct run_outcome *o)
{
	struct submission *s = submission_create(x->api->submissions, x->token);
	scoped_program     p = { 0 };
	struct err         e;

	if (!s)
		run_outcome_fail(o, FAULT_BUSY, "queue", "queue is full");
	else if (judge0_read(s, &p, body, base64, &e) < 0)
		run_outcome_fail(o, FAULT_REQUEST, "bad_field", "%s", e.text);
	else if (submission_start(s, &p) && !api_run_refusal(s->run))
		return s;
	else if (s->run)
		run_outcome_copy_fault(o, api_run_refusal(s->run));
	else
		run_outcome_fail(o, FAULT_BRIG, "memory", "out of memory");
	if (s)
		submission_delete(s);
	return NULL;
}

/* --- waiting for it --- */

struct judge0_wait {
	struct exchange   *x;
	struct submission *s;
	char              *fields;
	bool               base64;
};

static void judge0_wait_free(struct judge0_wait *w)
{
	free(w->fields);
	free(w);
}

static void judge0_on_ended(void *waiter, struct submission *s)
{
	struct judge0_wait *w = waiter;

	s->ended = NULL;
	if (s->outcome.fault != FAULT_NONE)
		exchange_answer_fault(w->x, &s->outcome);
	else
		exchange_answer(w->x, 201, judge0_submission_to_json(s, w->fields, w->base64));
	judge0_wait_free(w);
}

/* The submission goes with the client that waits for it. */
static void judge0_wait_abandon(void *work)
{
	struct judge0_wait *w = work;

	w->s->ended = NULL;
	submission_delete(w->s);
	judge0_wait_free(w);
}

static void judge0_wait_for(struct exchange *x, struct submission *s, bool base64)
{
	struct judge0_wait *w = calloc(1, sizeof *w);

	if (!w) {
		submission_delete(s);
		exchange_refuse(x, 503, "memory", "out of memory");
		return;
	}
	*w         = (struct judge0_wait){ .x = x, .s = s, .base64 = base64 };
	w->fields  = exchange_parameter(x, "fields");
	s->ended   = judge0_on_ended;
	s->waiter  = w;
	x->work    = w;
	x->abandon = judge0_wait_abandon;
}

void judge0_submit(struct exchange *x)
{
	bool               base64 = exchange_flag(x, "base64_encoded", false);
	struct run_outcome o      = { 0 };
	struct submission *s      = judge0_begin(x, x->json, base64, &o);

	if (!s)
		exchange_answer_fault(x, &o);
	else if (exchange_flag(x, "wait", false))
		judge0_wait_for(x, s, base64);
	else
		exchange_answer(x, 201, json_pack("{ss}", "token", s->token));
}

void judge0_submit_all(struct exchange *x)
{
	const json_t *list   = json_object_get(x->json, "submissions");
	bool          base64 = exchange_flag(x, "base64_encoded", false);
	json_t       *all, *one;
	size_t        i;

	if (!json_array_size(list) || json_array_size(list) > JUDGE0_BATCH_MAX) {
		exchange_refuse(x, json_array_size(list) ? 422 : 400, "bad_field",
				"submissions: expected a list of 1 to %d submissions", JUDGE0_BATCH_MAX);
		return;
	}
	all = json_array();
	json_array_foreach(list, i, one) {
		struct run_outcome o = { 0 };
		struct submission *s = judge0_begin(x, one, base64, &o);

		json_array_append_new(all, s ? json_pack("{ss}", "token", s->token)
					     : json_pack("{ss}", "error", o.text));
	}
	exchange_answer(x, 201, all);
}

/* --- asking for it --- */

void judge0_get(struct exchange *x)
{
	struct submission *s      = submission_find(x->api->submissions, x->token, x->argument);
	char              *fields = exchange_parameter(x, "fields");

	if (s)
		exchange_answer(x, 200,
				judge0_submission_to_json(s, fields, exchange_flag(x, "base64_encoded", false)));
	else
		exchange_refuse(x, 404, "not_found", "There is no such submission, or it is older than ten minutes");
	free(fields);
}

void judge0_get_all(struct exchange *x)
{
	char   *tokens = exchange_parameter(x, "tokens"), *rest = tokens, *one;
	char   *fields = exchange_parameter(x, "fields");
	bool    base64 = exchange_flag(x, "base64_encoded", false);
	json_t *all    = json_array();

	while (tokens && (one = strsep(&rest, ",")) && json_array_size(all) <= JUDGE0_BATCH_MAX) {
		struct submission *s = submission_find(x->api->submissions, x->token, one);

		json_array_append_new(all, s ? judge0_submission_to_json(s, fields, base64) : json_null());
	}
	if (tokens && *tokens && json_array_size(all) <= JUDGE0_BATCH_MAX)
		exchange_answer(x, 200, json_pack("{sO}", "submissions", all));
	else
		exchange_refuse(x, 400, "bad_field", "tokens: expected 1 to %d tokens with commas", JUDGE0_BATCH_MAX);
	json_decref(all);
	free(tokens);
	free(fields);
}

void judge0_delete(struct exchange *x)
{
	struct submission *s = submission_find(x->api->submissions, x->token, x->argument);

	if (!s || s->ended) {
		exchange_refuse(x, 404, "not_found", "There is no such submission, or a client waits for it");
		return;
	}
	exchange_answer(x, 200, judge0_submission_to_json(s, NULL, exchange_flag(x, "base64_encoded", false)));
	submission_delete(s);
}

/* --- what there is --- */

static json_t *judge0_language_to_json(const struct language *l, int id)
{
	return json_pack("{si ss sb ss}", "id", id, "name", l->judge0_name, "is_archived", 0, "source_file",
			 l->is_native ? "main.py" : l->file);
}

void judge0_languages(struct exchange *x)
{
	json_t *all = json_array();

	for (const struct language *l = languages; l->name; l++)
		for (size_t i = 0; i < LANGUAGE_IDS && l->judge0[i]; i++)
			json_array_append_new(all, judge0_language_to_json(l, l->judge0[i]));
	exchange_answer(x, 200, all);
}

void judge0_language(struct exchange *x)
{
	uint64_t               id = 0;
	const struct language *l  = text_to_u64(x->argument, &id) == 0 ? language_find_judge0((int64_t)id) : NULL;

	if (l)
		exchange_answer(x, 200, judge0_language_to_json(l, (int)id));
	else
		exchange_refuse(x, 404, "not_found", "There is no such language here");
}

void judge0_statuses(struct exchange *x)
{
	json_t *all = json_array();

	for (int id = 1; id < (int)ARRAY_LEN(judge0_statuses_texts); id++)
		json_array_append_new(all, judge0_status_to_json(id));
	exchange_answer(x, 200, all);
}

void judge0_about(struct exchange *x)
{
	exchange_answer(x, 200,
			json_pack("{ss ss ss}", "version", JUDGE0_VERSION, "homepage", "", "brig", BRIG_VERSION));
}

/* What Judge0's clients read of it; limits are those of the profile, which lowers what is above them. */
void judge0_config(struct exchange *x)
{
	static const char *const off[] = {
		"allow_enable_network", "allow_enable_per_process_and_thread_memory_limit",
		"allow_enable_per_process_and_thread_time_limit", "enable_additional_files", "enable_compiler_options",
		"enable_network", "enable_per_process_and_thread_memory_limit",
		"enable_per_process_and_thread_time_limit", "maintenance_mode", "redirect_stderr_to_stdout",
		"use_docs_as_homepage", "enable_callbacks",
	};
	static const char *const on[] = { "enable_batched_submissions", "enable_command_line_arguments",
					  "enable_submission_delete", "enable_wait_result" };
	static const struct {
		const char *name;
		int         value;
	} numbers[] = {
		/* clang-format off */
		{ "callbacks_max_tries", 1 }, { "callbacks_timeout", 5 }, { "cpu_extra_time", 0 },
		{ "cpu_time_limit", 30 }, { "max_cpu_extra_time", 0 }, { "max_cpu_time_limit", 300 },
		{ "max_extract_size", 0 }, { "max_file_size", 1048576 }, { "max_max_file_size", 1048576 },
		{ "max_max_processes_and_or_threads", 256 }, { "max_memory_limit", 1048576 },
		{ "max_number_of_runs", 1 }, { "max_processes_and_or_threads", 64 }, { "max_stack_limit", 1048576 },
		{ "max_submission_batch_size", JUDGE0_BATCH_MAX }, { "max_wall_time_limit", 300 },
		{ "memory_limit", 262144 }, { "number_of_runs", 1 }, { "stack_limit", 1048576 },
		{ "submission_cache_duration", 0 }, { "wall_time_limit", 30 },
		/* clang-format on */
	};
	json_t *all = json_pack("{s[] sI}", "allowed_languages_for_compile_options", "max_queue_size",
				(json_int_t)x->api->settings->queue);

	for (size_t i = 0; i < ARRAY_LEN(off); i++)
		json_object_set_new(all, off[i], json_false());
	for (size_t i = 0; i < ARRAY_LEN(on); i++)
		json_object_set_new(all, on[i], json_true());
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		json_object_set_new(all, numbers[i].name, json_integer(numbers[i].value));
	exchange_answer(x, 200, all);
}
