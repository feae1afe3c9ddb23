#define _GNU_SOURCE
#include "outcome.h"

#include "hints.h"
#include "bundle.h"
#include "clean.h"
#include "frames.h"
#include "image.h"
#include "member.h"
#include "named_session.h"
#include "program_report.h"
#include "ask_hosts.h"
#include "network_summary.h"
#include "refused_summary.h"
#include "session_note.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The most bytes of each stream in a reply. A reply is one line, with JSON inside of JSON, and clients close the
 * connection at 10 MiB. 1 MiB of newlines takes 3 MiB.
 */
#define STREAM_DUMPED_MAX (3 * MIB)

struct excerpt outcome_stream_excerpt(const struct outcome_stream *s, size_t len)
{
	return (struct excerpt){
		s->text ? s->text : "", len, s->tail, s->tail_len, s->bytes, *s->file ? s->file : NULL
	};
}

void outcome_done(struct outcome *o)
{
	json_decref(o->record);
	json_decref(o->result);
	images_done(&o->gallery);
	json_decref(o->displays);
	json_decref(o->findings);
	json_decref(o->warnings);
	free(o->out.text);
	free(o->out.tail);
	free(o->err.text);
	free(o->err.tail);
	free(o->traceback);
	*o = (struct outcome){ 0 };
}

/* --- output --- */

/* How much of the stream is whole characters. goes_on: the rest of one may still come. */
static size_t whole_characters_len(const struct stream *s, bool goes_on)
{
	return (stream_is_truncated(s) || goes_on) && s->len ? clean_whole_characters(s->data, s->len) : s->len;
}

/* Without detail, bytes that were in an earlier answer are left out. */
static void outcome_fill_stream(struct outcome_stream *ret, const struct run_pipe *p, const struct execution *x)
{
	const struct stream *s            = &p->stream;
	bool                 keep_escapes = x->mcp->settings->keep_ansi, is_brief = !x->answer_form.detail,
	     is_cut  = stream_is_truncated(s);
	size_t whole = whole_characters_len(s, x->run.state != RUN_OVER), from = is_brief ? p->reported : 0, fits;

	from       = from < whole ? from : whole;
	ret->bytes = s->seen;
	ret->text  = clean_text(s->data ? s->data + from : NULL, whole - from, keep_escapes, &ret->len);
	if (is_cut && s->tail_len)
		ret->tail = clean_text(s->tail, clean_whole_characters(s->tail, s->tail_len), keep_escapes, &ret->tail_len);
	if (is_brief && !keep_escapes) {
		ret->len      = ret->text ? clean_drop_overwritten(ret->text, ret->len) : 0;
		ret->tail_len = ret->tail ? clean_drop_overwritten(ret->tail, ret->tail_len) : 0;
	}
	if (!ret->text)
		return;
	fits        = clean_fit_escaped(ret->text, ret->len, STREAM_DUMPED_MAX);
	ret->is_cut = is_cut || fits < ret->len;
}

/* The traceback as it was written to stderr, without most library frames. */
static void outcome_fill_traceback(struct outcome *o)
{
	const json_t *raw = json_object_get(json_object_get(o->record, "error"), "traceback");
	size_t        len = 0;
	char         *plain =
		json_is_string(raw) ? clean_text(json_string_value(raw), json_string_length(raw), false, &len) : NULL;

	if (plain && len && !o->err.tail && len <= o->err.len &&
	    memcmp(o->err.text + o->err.len - len, plain, len) == 0)
		o->traceback_len = len;
	if (plain && len)
		o->traceback = frames_shorten_traceback(plain);
	free(plain);
}

/* Replaces data URLs of images, in a reply without detail. */
static void replace_image_urls(struct outcome_stream *s)
{
	size_t len = 0;
	char  *text = s->text && memmem(s->text, s->len, "data:image/", 11) ? image_replace_urls_in_text(s->text, s->len, &len)
									    : NULL;

	if (!text)
		return;
	free(s->text);
	s->text = text;
	s->len  = len;
}

/* --- why it ended --- */

/* Both texts come from programs in part: they are made clean. */
static __attribute__((format(printf, 3, 0))) void vformat_clean_text(char *buf, size_t size, const char *fmt, va_list ap)
{
	size_t len;
	char  *plain;

	vsnprintf(buf, size, fmt, ap);
	len   = clean_whole_characters(buf, strlen(buf));
	plain = clean_text(buf, len, false, &len);
	snprintf(buf, size, "%s", plain ? plain : "");
	free(plain);
}

static void __attribute__((format(printf, 2, 3))) outcome_set_error(struct outcome *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vformat_clean_text(o->error, sizeof o->error, fmt, ap);
	va_end(ap);
}

static void __attribute__((format(printf, 2, 3))) outcome_set_hint(struct outcome *o, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vformat_clean_text(o->hint, sizeof o->hint, fmt, ap);
	va_end(ap);
}

/* What the program raised, in the form that clients of the published server expect. */
static void explain_exception(struct outcome *o, const json_t *error)
{
	const char *type = member_text(error, "type"), *message = member_text(error, "message");

	if (strcmp(type, "SyntaxError") == 0 || strcmp(type, "IndentationError") == 0 || strcmp(type, "TabError") == 0)
		outcome_set_error(o, "Syntax error: %.1000s", message);
	else if (strcmp(member_text(o->record, "security_event"), "blocked_import") == 0 &&
		 begins_with(message, "Import of "))
		outcome_set_error(o, "%.1000s", message);
	else
		outcome_set_error(o, "%.150s%s%.1000s", type, *message ? ": " : "", message);
}

/*
 * Why nothing is shown although the program made an image or a figure: the image is too large, or the rootfs has a
 * runner of an older brig.
 */
static void explain_unshown_figure(struct outcome *o)
{
	const char *repr = member_text(o->record, "result_repr");

	if (json_array_size(o->gallery.content) || json_array_size(o->displays))
		return;
	if (json_is_null(json_object_get(o->record, "result")) && begins_with(repr, "'data:image/"))
		outcome_set_hint(o, "The image is too large to be shown, 512 KiB as base64 is the most: save it smaller, as "
			    "with plt.savefig(b, dpi=60).");
	else if (json_integer_value(json_object_get(o->record, "figures")) > 0 &&
		 !json_object_get(o->record, "left_out"))
		outcome_set_hint(o, "A figure was drawn, and the rootfs of this profile is too old to show it: brig rootfs "
			    "build makes a new one.");
}

/* Names what is in /workspace instead. */
static void explain_host_path(struct outcome *o, const json_t *error, const struct execution *x)
{
	const json_t *names = json_object_get(x->program_report, "workspace");
	size_t        at    = 0;
	char          list[250] = "";

	if (!advice_is_host_path_error(error))
		return;
	for (size_t i = 0; i < json_array_size(names) && at < 180; i++) {
		const char *name = json_string_value(json_array_get(names, i));

		at += (size_t)snprintf(list + at, sizeof list - at, "%s%.*s", at ? ", " : "",
				       (int)clean_cut_length(name, strlen(name), 60), name);
	}
	text_make_plain(list);
	outcome_set_hint(o,
		 "Files of the host are not in here. /workspace has %s. The argument files puts more there; a person "
		 "can show a folder, with --ro of brig-mcp.",
		 *list ? list : "none");
}

static void explain_oom(struct outcome *o, const struct execution *x)
{
	const json_t *error  = json_object_get(o->record, "error");
	const char   *above = strcmp(member_text(error, "type"), "LIMIT") == 0 ? member_text(error, "message") : "";
	uint64_t    limit = x->answer_form.memory_bytes;

	if (*above) {
		outcome_set_error(o, "Out of memory: %.1000s", above);
		outcome_set_hint(o, "Try again later: more with the argument memory_limit does not help.");
		return;
	}
	outcome_set_error(o, "Out of memory: more than %llu MiB were used", (unsigned long long)(limit / MIB));
	outcome_set_hint(o, "Work on less data at a time, or ask for more with the argument memory_limit, as \"%llum\".",
		 (unsigned long long)(2 * limit / MIB));
}

static void explain_output_limit(struct outcome *o, const struct execution *x)
{
	char text[32];

	text_from_size(x->run.out.stream.keep, text, sizeof text);
	if (stream_is_truncated(&x->run.report.stream)) {
		outcome_set_error(o, "Output limit: the report, which the program must not write, has more than %u MiB",
			  (unsigned)(PROGRAM_REPORT_MAX / MIB));
		return;
	}
	outcome_set_error(o, "Output limit: more than 8 x %s bytes were written to stdout or stderr", text);
	outcome_set_hint(o, "Print less: a summary, or a part; the first %s bytes were kept.", text);
}

static void explain_exited(struct outcome *o, const struct execution *x)
{
	static const char *const refusals[] = { "PermissionError", "OSError", "MemoryError" };
	const json_t            *error      = json_object_get(o->record, "error");
	json_int_t               code       = json_integer_value(json_object_get(o->record, "exit_code"));
	char                     hosts[NETWORK_SUMMARY_MAX], calls[REFUSED_SUMMARY_MAX];
	const struct advice_about about = {
		.has_stdin    = json_is_true(json_object_get(x->message, "stdin")),
		.in_session   = *x->queued.session,
		.has_sessions = named_sessions_are_offered(x->mcp->settings),
	};

	if (!json_is_object(error)) {
		if (code)
			outcome_set_error(o, "The program exited with code %" JSON_INTEGER_FORMAT, code);
		else
			explain_unshown_figure(o);
		return;
	}
	explain_exception(o, error);
	if (*network_print_summary(o->record, 2, hosts)) /* before other hints: it is from brig-proxy, and names the host */
		outcome_set_hint(o,
			 "This program may not reach, or did not reach, %.250s. Trying again does not help where it "
			 "says not_allowed: "
			 "a person can allow a host with --net of brig-mcp, or in the profile.",
			 hosts);
	if (!*o->hint)
		explain_host_path(o, error, x);
	if (!*o->hint)
		outcome_set_hint(o, "%s", advice_for_exception(error, &about));
	/*
	 * The exceptions that Python raises for a refused call. With others the refused call may be a library's
	 * probe.
	 */
	for (size_t i = 0; i < ARRAY_LEN(refusals) && !*o->hint; i++)
		if (strcmp(refusals[i], member_text(error, "type")) == 0 && *refused_print_summary(o->record, 2, calls))
			outcome_set_hint(o, "The jail refused %.200s; trying again does not help.", calls);
}

static void explain_signaled(struct outcome *o, const struct execution *x)
{
	static const char crashed[] =
		"It crashed in compiled code: a bug in an extension, a ctypes call, or recursion that is too deep.";
	static const char *const hints[][2] = {
		{ "SIGSYS", "It made a system call that the profile does not allow." },
		{ "SIGBUS", "It used mapped memory that has no page: /workspace or /tmp is full, or a mapped file "
			    "became shorter." },
		{ "SIGSEGV", crashed },
		{ "SIGILL", crashed },
		{ "SIGFPE", crashed },
	};
	const json_t *error = json_object_get(o->record, "error");
	const char   *name  = member_text(o->record, "signal");

	(void)x;
	if (strcmp(name, "SIGINT") == 0 && strcmp(member_text(error, "type"), "KeyboardInterrupt") == 0) {
		explain_exception(o, error); /* the program did not catch it, so Python ended by the signal */
		return;
	}
	outcome_set_error(o, "Killed by signal %.20s", name);
	outcome_set_hint(o, "The program sent the signal to itself; it did not come from outside.");
	for (size_t i = 0; i < ARRAY_LEN(hints); i++)
		if (strcmp(hints[i][0], name) == 0)
			outcome_set_hint(o, "%s", hints[i][1]);
}

static void explain_timeout(struct outcome *o, const struct execution *x)
{
	bool is_wall = strcmp(o->exit_reason, "timeout_wall") == 0;
	char text[32];

	text_from_milli(x->run.limit_value || !is_wall ? x->run.limit_value : x->answer_form.timeout_ms, text, sizeof text);
	if (is_wall)
		outcome_set_error(o, "Execution timeout: timed out after %s %s", text,
			  strcmp(text, "1") == 0 ? "second" : "seconds");
	else
		outcome_set_error(o, "Execution timeout: used %s seconds of CPU time", text);
	outcome_set_hint(o, "Do less in one call, or ask for more time with the argument timeout (at most %llu s)%s",
		 (unsigned long long)(x->mcp->settings->max_timeout_ms / 1000),
		 is_wall ? "." : ": the CPU time grows with it.");
}

static void explain_not_run(struct outcome *o, const struct execution *x)
{
	const char *message = member_text(json_object_get(o->record, "error"), "message");

	if (*x->exec_error)
		outcome_set_error(o, "The program could not be started: %s%s%.900s", x->exec_error, *message ? ": " : "",
			  message);
	else
		outcome_set_error(o, "%.1000s", *message ? message : "The program could not be started");
}

static void explain_ending(struct outcome *o, const struct execution *x)
{
	/* clang-format off */
	static const struct {
		const char *reason;
		void      (*explain)(struct outcome *o, const struct execution *x); /* or error */
		const char *error;
		bool        is_failure;
	} endings[] = {
		{ "exited",       explain_exited,   NULL, false },
		{ "signaled",     explain_signaled, NULL, false },
		{ "timeout_wall", explain_timeout,  NULL, false },
		{ "timeout_cpu",  explain_timeout,  NULL, false },
		{ "oom",          explain_oom,      NULL, false },
		{ "output_limit", explain_output_limit,    NULL, false },
		{ "cancelled",    NULL,             "Cancelled", false },
		{ "client_gone",  NULL,             "The connection to brigd was lost", true },
		{ "setup_failed", explain_not_run,  NULL, true },
		{ "denied",       explain_not_run,  NULL, true },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		if (strcmp(endings[i].reason, o->exit_reason) != 0)
			continue;
		if (endings[i].explain)
			endings[i].explain(o, x);
		else
			outcome_set_error(o, "%s", endings[i].error);
		o->is_failure = endings[i].is_failure;
		return;
	}
	outcome_set_error(o, "It ended for a reason that is not known here: %.23s", o->exit_reason);
	o->is_failure = true;
}

/* --- no record --- */

const char *outcome_argument_of_field(const char *field)
{
	/* clang-format off */
	static const struct { const char *field, *argument; } arguments[] = {
		{ "limits.wall_ms",      "timeout" },
		{ "limits.cpu_ms",       "timeout" },
		{ "limits.memory_bytes", "memory_limit" },
		{ "profile",             "profile" },
		{ "imports",             "allowed_imports" },
		{ "args",                "args" },
		{ "env",                 "env" },
		{ "code",                "code" },
		{ "files",               "files" },
		{ "session",             "session" },
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(arguments); i++) {
		size_t n = strlen(arguments[i].field);

		if (strncmp(field, arguments[i].field, n) == 0 && (field[n] == 0 || field[n] == '['))
			return arguments[i].argument;
	}
	return NULL;
}

/* The exit_reason of a failure: it was refused, was not possible, or was lost while it ran. */
static const char *exit_reason_of_failure(const char *code)
{
	static const struct {
		const char *code, *reason;
	} reasons[] = {
		{ "cancelled", "cancelled" },
		{ "lost", "cancelled" },
		{ "busy", "busy" },
		{ "missing", "setup_failed" },
		{ "unavailable", "setup_failed" },
		{ "broken", "setup_failed" },
	};

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (strcmp(reasons[i].code, code) == 0)
			return reasons[i].reason;
	return "denied";
}

static void explain_failure(struct outcome *o, const struct execution *x)
{
	const char   *argument = outcome_argument_of_field(x->failure.field), *entry = NULL;
	const json_t *env      = json_object_get(x->message, "env");
	char          name[120];
	size_t        i;

	snprintf(name, sizeof name, "%s", argument ? argument : x->failure.field);
	if (denial_parse_index(x->failure.field, "env", &i))
		entry = json_string_value(json_array_get(env, i));
	if (entry) { /* the name of the variable, not its index in a list that the client never saw */
		snprintf(name, sizeof name, "env: %.*s", (int)strcspn(entry, "="), entry);
		text_make_plain(name);
	}
	outcome_set_error(o, "%s%s%.1000s", name, *name ? ": " : "", x->failure.text);
	o->is_failure = strcmp(x->failure.code, "cancelled") != 0;
	snprintf(o->exit_reason, sizeof o->exit_reason, "%s", exit_reason_of_failure(x->failure.code));
}

/* --- */

/* exit_reason is "running" for one that waits, too: clients go on with wait_execution by it. */
static void explain_running(struct outcome *o, const struct execution *x)
{
	char behind[QUEUED_BEHIND_MAX];

	snprintf(o->exit_reason, sizeof o->exit_reason, "running");
	o->seconds   = (double)(loop_now_ms() - x->asked_ms) / 1000;
	o->is_queued = x->run.state == RUN_WAITS;
	if (!*x->handle)
		return;
	if (o->is_queued && *queued_call_print_blocker(&x->queued, behind, sizeof behind))
		outcome_set_hint(o,
			 "It has not begun: it waits behind %s; wait for it or cancel it (cancel_execution). The "
			 "result of this call: wait_execution with execution_id \"%s\".",
			 behind, x->handle);
	else if (o->is_queued)
		outcome_set_hint(o,
			 "It has not begun: it waits for %s. Call wait_execution with execution_id \"%s\", or "
			 "cancel_execution to give it up.",
			 *x->queued.session ? "its session" : "a free place", x->handle);
	else
		outcome_set_hint(o,
			 "It still runs. Call wait_execution with execution_id \"%s\" for the rest, or "
			 "cancel_execution to end it.",
			 x->handle);
}

/* Appends to the warnings about the arguments. That list is shared, so it is copied. */
static void add_left_out_warnings(struct outcome *o, const json_t *list)
{
	json_t *all = json_array_size(list) ? json_array() : NULL;

	if (!all)
		return;
	json_array_extend(all, o->warnings);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one  = json_array_get(list, i);
		json_t       *text = clean_text_to_json(json_string_value(one), json_string_length(one));

		if (text)
			json_array_append_new(all, text);
	}
	json_decref(o->warnings);
	o->warnings = all;
}

/* "Wrote a.csv (120 bytes), b.png (3072 bytes, shown). Gone now; name a session to keep them." */
static void describe_written_files(struct outcome *o, const json_t *files, const struct execution *x)
{
	enum { NAMED_MAX = 6, NAME_SHOWN = 50, AFTER_MAX = 80 };
	size_t      n = json_array_size(files), i, at;
	const char *after;

	if (!n)
		return;
	at = (size_t)snprintf(o->written, sizeof o->written, "Wrote ");
	for (i = 0; i < n && i < NAMED_MAX && at < sizeof o->written - AFTER_MAX; i++) {
		const json_t *row  = json_array_get(files, i);
		const char   *path = member_text(row, "path");
		int           len  = (int)clean_cut_length(path, strlen(path), NAME_SHOWN);

		at += (size_t)snprintf(o->written + at, sizeof o->written - at, "%s%.*s%s (%lld bytes%s)",
				       i ? ", " : "", len, path, path[len] ? "..." : "",
				       (long long)json_integer_value(json_object_get(row, "bytes")),
				       json_is_true(json_object_get(row, "shown")) ? ", shown" : "");
	}
	at = strlen(o->written);
	if (i < n)
		at += (size_t)snprintf(o->written + at, sizeof o->written - at, " and %zu more", n - i);
	if (*x->queued.session)
		after = ".";
	else
		after = named_sessions_are_offered(x->mcp->settings) ? ". Gone now; name a session to keep them." : ". Gone now.";
	snprintf(o->written + at, sizeof o->written - at, "%s", after);
	text_make_plain(o->written);
}

/* A value that is not JSON is shown as Python prints it; a value with a bundle is shown by that. */
static void outcome_fill_from_record(struct outcome *o, const struct execution *x)
{
	const json_t *report = x->is_report ? x->program_report : NULL, *bundle = json_object_get(report, "bundle");
	const json_t *displays = json_object_get(report, "displays"), *result = json_object_get(x->record, "result");

	o->record = json_incref(x->record);
	snprintf(o->exit_reason, sizeof o->exit_reason, "%s", member_text(x->record, "exit_reason"));
	for (size_t i = 0; i < json_array_size(displays); i++) {
		json_t *words = bundle_add_to_reply(json_array_get(displays, i), &o->gallery);

		if (words)
			json_array_append_new(o->displays, words);
	}
	add_left_out_warnings(o, json_object_get(report, "left_out"));
	describe_written_files(o, json_object_get(report, "written"), x);
	if (!result || json_is_null(result))
		result = json_object_get(x->record, "result_repr");
	o->result = bundle ? bundle_add_to_reply(bundle, &o->gallery) : NULL;
	if (!o->result)
		o->result = image_move_to_gallery(result ? result : json_null(), &o->gallery);
	explain_ending(o, x);
	if (!o->is_failure)
		outcome_fill_traceback(o);
}

void outcome_mark_reported(struct execution *x)
{
	if (x->run.state == RUN_OVER)
		return;
	x->run.out.reported = whole_characters_len(&x->run.out.stream, true);
	x->run.err.reported = whole_characters_len(&x->run.err.stream, true);
}

void outcome_fill(struct outcome *ret, const struct execution *x)
{
	char hosts[sizeof ret->hint];

	*ret = (struct outcome){ .displays = json_array(), .seconds = -1, .timeout_ms = x->answer_form.timeout_ms };
	if (json_array_size(x->answer_form.warnings))
		ret->warnings = json_incref(x->answer_form.warnings);
	images_init(&ret->gallery, x->mcp->artifacts, x->run.id);
	snprintf(ret->session, sizeof ret->session, "%s", x->queued.session);
	snprintf(ret->execution_id, sizeof ret->execution_id, "%s", *x->handle ? x->handle : x->run.id);
	snprintf(ret->profile, sizeof ret->profile, "%s", x->profile);
	ret->is_rest = !x->answer_form.detail && (x->run.out.reported || x->run.err.reported);
	if (x->answer_form.capture) {
		outcome_fill_stream(&ret->out, &x->run.out, x);
		outcome_fill_stream(&ret->err, &x->run.err, x);
	}
	if (!x->answer_form.detail)
		replace_image_urls(&ret->out);
	if (x->run.state != RUN_OVER) {
		explain_running(ret, x);
	} else if (x->record) {
		outcome_fill_from_record(ret, x);
		hosts_print_hint(x, hosts, sizeof hosts);
		if (*hosts) /* a person's answer comes before other advice, whether the program raised or not */
			outcome_set_hint(ret, "%s", hosts);
	} else {
		explain_failure(ret, x);
	}
	if (*ret->session)
		session_note_fill(ret, x->queued.lost, x->run.cancelled);
}

void outcome_init_refused(struct outcome *ret, const char *why)
{
	*ret = (struct outcome){ .displays = json_array(), .seconds = -1, .is_failure = true };
	images_init(&ret->gallery, NULL, "");
	snprintf(ret->exit_reason, sizeof ret->exit_reason, "denied");
	outcome_set_error(ret, "%s", why);
}
