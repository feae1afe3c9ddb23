#define _GNU_SOURCE
#include "outcome.h"

#include "hints.h"
#include "bundle.h"
#include "clean.h"
#include "frames.h"
#include "image.h"
#include "named_sessions.h"
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
 * The most bytes of each stream in a reply. A reply is one line, with JSON inside of JSON, and clients close the connection at
 * 10 MiB. 1 MiB of newlines takes 3 MiB.
 */
#define STREAM_DUMPED_MAX (3 * MIB)

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
static size_t whole_of(const struct stream *s, bool goes_on)
{
	return (stream_is_truncated(s) || goes_on) && s->len ? clean_whole(s->data, s->len) : s->len;
}

/* from: the bytes before it were in an earlier answer. */
static void take_stream(struct outcome_stream *ret, const struct stream *s, size_t from, bool keep_escapes, bool is_brief, bool goes_on)
{
	bool   is_cut = stream_is_truncated(s);
	size_t whole  = whole_of(s, goes_on), fits;

	from       = from < whole ? from : whole;
	ret->bytes = s->seen;
	ret->text  = clean_text(s->data ? s->data + from : NULL, whole - from, keep_escapes, &ret->len);
	if (is_cut && s->tail_len)
		ret->tail = clean_text(s->tail, clean_whole(s->tail, s->tail_len), keep_escapes, &ret->tail_len);
	if (is_brief && !keep_escapes) {
		ret->len      = ret->text ? clean_overwritten(ret->text, ret->len) : 0;
		ret->tail_len = ret->tail ? clean_overwritten(ret->tail, ret->tail_len) : 0;
	}
	if (!ret->text)
		return;
	fits        = clean_fit(ret->text, ret->len, STREAM_DUMPED_MAX);
	ret->is_cut = is_cut || fits < ret->len;
}

/* The traceback as it was written to stderr, without most library frames. */
static void take_traceback(struct outcome *o)
{
	const json_t *raw = json_object_get(json_object_get(o->record, "error"), "traceback");
	size_t        len = 0;
	char         *plain = json_is_string(raw) ? clean_text(json_string_value(raw), json_string_length(raw), false, &len) : NULL;

	if (plain && len && !o->err.tail && len <= o->err.len && memcmp(o->err.text + o->err.len - len, plain, len) == 0)
		o->traceback_len = len;
	if (plain && len)
		o->traceback = frames_brief(plain);
	free(plain);
}

/* Replaces data URLs of images, in a reply without detail. */
static void name_images(struct outcome_stream *s)
{
	size_t len = 0;
	char  *text = s->text && memmem(s->text, s->len, "data:image/", 11) ? image_name_in_text(s->text, s->len, &len) : NULL;

	if (!text)
		return;
	free(s->text);
	s->text = text;
	s->len  = len;
}

/* --- why it ended --- */

struct room {
	char  *buf;
	size_t len;
};

static void __attribute__((format(printf, 2, 3))) say(struct room w, const char *fmt, ...)
{
	va_list ap;
	size_t  len;
	char   *plain;

	va_start(ap, fmt);
	vsnprintf(w.buf, w.len, fmt, ap);
	va_end(ap);
	len   = clean_whole(w.buf, strlen(w.buf));
	plain = clean_text(w.buf, len, false, &len);
	snprintf(w.buf, w.len, "%s", plain ? plain : "");
	free(plain);
}

#define ERROR_OF(o) ((struct room){ (o)->error, sizeof(o)->error })
#define HINT_OF(o)  ((struct room){ (o)->hint, sizeof(o)->hint })

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const char *seconds_text(uint64_t ms, char *buf, size_t len)
{
	return text_from_milli(ms, buf, len);
}

/* What the program raised, in the form that clients of the published server expect. */
static void say_exception(struct outcome *o, const json_t *error)
{
	const char *type = text_of(error, "type"), *message = text_of(error, "message");

	if (strcmp(type, "SyntaxError") == 0 || strcmp(type, "IndentationError") == 0 || strcmp(type, "TabError") == 0)
		say(ERROR_OF(o), "Syntax error: %.1000s", message);
	else if (strcmp(text_of(o->record, "security_event"), "blocked_import") == 0 && strncmp(message, "Import of ", 10) == 0)
		say(ERROR_OF(o), "%.1000s", message);
	else
		say(ERROR_OF(o), "%.150s%s%.1000s", type, *message ? ": " : "", message);
}

/* Why nothing is shown although the program made an image or a figure: the image is too large, or the rootfs has a runner of an older brig. */
static void say_figure(struct outcome *o)
{
	const char *repr = text_of(o->record, "result_repr");

	if (json_array_size(o->gallery.content) || json_array_size(o->displays))
		return;
	if (json_is_null(json_object_get(o->record, "result")) && strncmp(repr, "'data:image/", 12) == 0)
		say(HINT_OF(o), "The image is too large to be shown, 512 KiB as base64 is the most: save it smaller, as with plt.savefig(b, dpi=60).");
	else if (json_integer_value(json_object_get(o->record, "figures")) > 0 && !json_object_get(o->record, "left_out"))
		say(HINT_OF(o), "A figure was drawn, and the rootfs of this profile is too old to show it: brig rootfs build makes a new one.");
}

/* The exceptions that Python raises for a refused call. Others get no such hint: the refused call may be a library's probe. */
static void say_refused(struct outcome *o, const json_t *error)
{
	static const char *const types[] = { "PermissionError", "OSError", "MemoryError" };
	const char              *type    = text_of(error, "type");
	char                     words[REFUSED_SUMMARY_MAX];

	for (size_t i = 0; i < ARRAY_LEN(types) && !*o->hint; i++)
		if (strcmp(types[i], type) == 0 && *refused_summary(o->record, 2, words))
			say(HINT_OF(o), "The jail refused %.200s; trying again does not help.", words);
}

/* This hint comes before others: it is from brig-proxy, and names the host. */
static void say_network(struct outcome *o)
{
	char words[NETWORK_SUMMARY_MAX];

	if (*network_summary(o->record, 2, words))
		say(HINT_OF(o), "This program may not reach, or did not reach, %.250s. Trying again does not help where it says not_allowed: a person can allow a host with --net of brig-mcp, or in the profile.", words);
}

/* A person's answer comes before other advice, whether the program raised or not. */
static void say_hosts(struct outcome *o, const struct execution *x)
{
	char words[sizeof o->hint];

	hosts_hint(x, words, sizeof words);
	if (*words)
		say(HINT_OF(o), "%s", words);
}

/* Names what is in /workspace instead. */
static void say_host(struct outcome *o, const json_t *error, const struct execution *x)
{
	const json_t *names = json_object_get(x->program_report, "workspace");
	size_t        at    = 0;
	char          list[250] = "";

	if (!advice_is_of_host(error))
		return;
	for (size_t i = 0; i < json_array_size(names) && at < 180; i++) {
		const char *name = json_string_value(json_array_get(names, i));

		at += (size_t)snprintf(list + at, sizeof list - at, "%s%.*s", at ? ", " : "", (int)clean_cut(name, strlen(name), 60), name);
	}
	text_make_plain(list);
	say(HINT_OF(o), "Files of the host are not in here. /workspace has %s. The argument files puts more there; a person can show a folder, with --ro of brig-mcp.",
	    *list ? list : "none");
}

static void say_exited(struct outcome *o, const struct execution *x)
{
	const json_t *error = json_object_get(o->record, "error");
	json_int_t    code  = json_integer_value(json_object_get(o->record, "exit_code"));

	if (json_is_object(error)) {
		say_exception(o, error);
		say_network(o);
		if (!*o->hint)
			say_host(o, error, x);
		if (!*o->hint)
			say(HINT_OF(o), "%s", advice_of(error, &(struct advice_about){ .has_stdin = json_is_true(json_object_get(x->message, "stdin")), .in_session = *x->turn.session,
										       .has_sessions = named_sessions_are_offered(x->mcp->settings) }));
		say_refused(o, error);
	} else if (code) {
		say(ERROR_OF(o), "The program exited with code %" JSON_INTEGER_FORMAT, code);
	} else {
		say_figure(o);
	}
}

static void say_signaled(struct outcome *o, const struct execution *x)
{
	const json_t *error = json_object_get(o->record, "error");
	const char   *name  = text_of(o->record, "signal");

	(void)x;
	if (strcmp(name, "SIGINT") == 0 && strcmp(text_of(error, "type"), "KeyboardInterrupt") == 0) {
		say_exception(o, error); /* the program did not catch it, so Python ended by the signal */
		return;
	}
	say(ERROR_OF(o), "Killed by signal %.20s", name);
	if (strcmp(name, "SIGSYS") == 0)
		say(HINT_OF(o), "It made a system call that the profile does not allow.");
	else if (strcmp(name, "SIGBUS") == 0)
		say(HINT_OF(o), "It used mapped memory that has no page: /workspace or /tmp is full, or a mapped file became shorter.");
	else if (strcmp(name, "SIGSEGV") == 0 || strcmp(name, "SIGILL") == 0 || strcmp(name, "SIGFPE") == 0)
		say(HINT_OF(o), "It crashed in compiled code: a bug in an extension, a ctypes call, or recursion that is too deep.");
	else
		say(HINT_OF(o), "The program sent the signal to itself; it did not come from outside.");
}

static void say_wall(struct outcome *o, const struct execution *x)
{
	char text[32];

	seconds_text(x->limit_value ? x->limit_value : x->answer_form.timeout_ms, text, sizeof text);
	say(ERROR_OF(o), "Execution timeout: timed out after %s %s", text, strcmp(text, "1") == 0 ? "second" : "seconds");
	say(HINT_OF(o), "Do less in one call, or ask for more time with the argument timeout (at most %llu s).",
	    (unsigned long long)(x->mcp->settings->max_timeout_ms / 1000));
}

static void say_cpu(struct outcome *o, const struct execution *x)
{
	char text[32];

	seconds_text(x->limit_value, text, sizeof text);
	say(ERROR_OF(o), "Execution timeout: used %s seconds of CPU time", text);
	say(HINT_OF(o), "Do less in one call, or ask for more time with the argument timeout (at most %llu s): the CPU time grows with it.",
	    (unsigned long long)(x->mcp->settings->max_timeout_ms / 1000));
}

static void say_oom(struct outcome *o, const struct execution *x)
{
	const json_t *said  = json_object_get(o->record, "error");
	const char   *above = strcmp(text_of(said, "type"), "LIMIT") == 0 ? text_of(said, "message") : "";
	uint64_t    limit = x->answer_form.memory_bytes;

	if (*above) {
		say(ERROR_OF(o), "Out of memory: %.1000s", above);
		say(HINT_OF(o), "Try again later: more with the argument memory_limit does not help.");
		return;
	}
	say(ERROR_OF(o), "Out of memory: more than %llu MiB were used", (unsigned long long)(limit / MIB));
	say(HINT_OF(o), "Work on less data at a time, or ask for more with the argument memory_limit, as \"%llum\".", (unsigned long long)(2 * limit / MIB));
}

static void say_flood(struct outcome *o, const struct execution *x)
{
	char text[32];

	text_from_size(x->out.stream.keep, text, sizeof text);
	if (stream_is_truncated(&x->report.stream)) {
		say(ERROR_OF(o), "Output limit: the report, which the program must not write, has more than %u MiB", (unsigned)(PROGRAM_REPORT_MAX / MIB));
		return;
	}
	say(ERROR_OF(o), "Output limit: more than 8 x %s bytes were written to stdout or stderr", text);
	say(HINT_OF(o), "Print less: a summary, or a part; the first %s bytes were kept.", text);
}

static void say_cancelled(struct outcome *o, const struct execution *x)
{
	(void)x;
	say(ERROR_OF(o), "Cancelled");
}

static void say_gone(struct outcome *o, const struct execution *x)
{
	(void)x;
	say(ERROR_OF(o), "The connection to brigd was lost");
	o->is_failure = true;
}

static void say_not_run(struct outcome *o, const struct execution *x)
{
	const char *message = text_of(json_object_get(o->record, "error"), "message");

	if (*x->exec_error)
		say(ERROR_OF(o), "The program could not be started: %s%s%.900s", x->exec_error, *message ? ": " : "", message);
	else
		say(ERROR_OF(o), "%.1000s", *message ? message : "The program could not be started");
	o->is_failure = true;
}

/* clang-format off */
static const struct {
	const char *reason;
	void      (*say)(struct outcome *o, const struct execution *x);
} endings[] = {
	{ "exited",       say_exited },
	{ "signaled",     say_signaled },
	{ "timeout_wall", say_wall },
	{ "timeout_cpu",  say_cpu },
	{ "oom",          say_oom },
	{ "output_limit", say_flood },
	{ "cancelled",    say_cancelled },
	{ "client_gone",  say_gone },
	{ "setup_failed", say_not_run },
	{ "denied",       say_not_run },
};
/* clang-format on */

static void say_ending(struct outcome *o, const struct execution *x)
{
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		if (strcmp(endings[i].reason, o->exit_reason) != 0)
			continue;
		endings[i].say(o, x);
		return;
	}
	say(ERROR_OF(o), "It ended for a reason that is not known here: %.23s", o->exit_reason);
	o->is_failure = true;
}

/* --- no record --- */

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

const char *outcome_argument(const char *field)
{
	for (size_t i = 0; i < ARRAY_LEN(arguments); i++) {
		size_t n = strlen(arguments[i].field);

		if (strncmp(field, arguments[i].field, n) == 0 && (field[n] == 0 || field[n] == '['))
			return arguments[i].argument;
	}
	return NULL;
}

/* The name of the variable, not its place in a list that the client never saw. */
static void say_variable(char *buf, size_t len, const struct execution *x)
{
	const json_t *list = json_object_get(x->message, "env");
	size_t        i;

	if (denial_item(x->failure.field, "env", &i) && json_is_string(json_array_get(list, i))) {
		const char *entry = json_string_value(json_array_get(list, i));

		snprintf(buf, len, "env: %.*s", (int)strcspn(entry, "="), entry);
		text_make_plain(buf);
	}
}

/* The exit_reason of a failure: it was refused, was not possible, or was lost while it ran. */
static const char *reason_of(const char *code)
{
	static const struct {
		const char *code, *reason;
	} reasons[] = { { "cancelled", "cancelled" }, { "lost", "cancelled" }, { "busy", "busy" }, { "missing", "setup_failed" }, { "unavailable", "setup_failed" }, { "broken", "setup_failed" } };

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (strcmp(reasons[i].code, code) == 0)
			return reasons[i].reason;
	return "denied";
}

static void say_failure(struct outcome *o, const struct execution *x)
{
	const char *argument = outcome_argument(x->failure.field);
	char        name[120];

	snprintf(name, sizeof name, "%s", argument ? argument : x->failure.field);
	say_variable(name, sizeof name, x);
	say(ERROR_OF(o), "%s%s%.1000s", name, *name ? ": " : "", x->failure.text);
	o->is_failure = strcmp(x->failure.code, "cancelled") != 0;
	snprintf(o->exit_reason, sizeof o->exit_reason, "%s", reason_of(x->failure.code));
}

/* --- */

/* exit_reason is "running" for one that waits, too: clients go on with wait_execution by it. */
static void say_running(struct outcome *o, const struct execution *x)
{
	char behind[TURN_BEHIND_MAX];

	snprintf(o->exit_reason, sizeof o->exit_reason, "running");
	o->seconds   = (double)(loop_now_ms() - x->asked_ms) / 1000;
	o->is_queued = x->state == EXECUTION_WAITS;
	if (!*x->handle)
		return;
	if (o->is_queued && *turn_behind(&x->turn, behind, sizeof behind))
		say(HINT_OF(o), "It has not begun: it waits behind %s; wait for it or cancel it (cancel_execution). The result of this call: wait_execution with execution_id \"%s\".",
		    behind, x->handle);
	else if (o->is_queued)
		say(HINT_OF(o), "It has not begun: it waits for %s. Call wait_execution with execution_id \"%s\", or cancel_execution to give it up.",
		    *x->turn.session ? "its session" : "a free place", x->handle);
	else
		say(HINT_OF(o), "It still runs. Call wait_execution with execution_id \"%s\" for the rest, or cancel_execution to end it.", x->handle);
}

/* A value that is not JSON is shown as Python prints it; a value with a bundle is shown by that. */
static void take_result(struct outcome *o, const json_t *bundle)
{
	const json_t *result = json_object_get(o->record, "result"), *repr = json_object_get(o->record, "result_repr");

	if (!result || json_is_null(result))
		result = repr;
	o->result = bundle ? bundle_take(bundle, &o->gallery) : NULL;
	if (!o->result)
		o->result = image_take(result ? result : json_null(), &o->gallery);
}

static void take_displays(struct outcome *o, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *words = bundle_take(json_array_get(list, i), &o->gallery);

		if (words)
			json_array_append_new(o->displays, words);
	}
}

/* Appends to the warnings about the arguments. That list is shared, so it is copied. */
static void take_left_out(struct outcome *o, const json_t *list)
{
	json_t *all = json_array_size(list) ? json_array() : NULL;

	if (!all)
		return;
	json_array_extend(all, o->warnings);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one  = json_array_get(list, i);
		size_t        len  = 0;
		char         *text = clean_text(json_string_value(one), json_string_length(one), false, &len);

		if (text)
			json_array_append_new(all, json_stringn(text, len));
		free(text);
	}
	json_decref(o->warnings);
	o->warnings = all;
}

/* "Wrote a.csv (120 bytes), b.png (3072 bytes, shown). Gone now; name a session to keep them." */
static void say_written(struct outcome *o, const json_t *files, const struct execution *x)
{
	enum { NAMED_MAX = 6, NAME_SHOWN = 50, AFTER_MAX = 80 };
	size_t n = json_array_size(files), i, at;

	if (!n)
		return;
	at = (size_t)snprintf(o->written, sizeof o->written, "Wrote ");
	for (i = 0; i < n && i < NAMED_MAX && at < sizeof o->written - AFTER_MAX; i++) {
		const json_t *row  = json_array_get(files, i);
		const char   *path = text_of(row, "path");
		int           len  = (int)clean_cut(path, strlen(path), NAME_SHOWN);

		at += (size_t)snprintf(o->written + at, sizeof o->written - at, "%s%.*s%s (%lld bytes%s)", i ? ", " : "", len, path, path[len] ? "..." : "",
				       (long long)json_integer_value(json_object_get(row, "bytes")), json_is_true(json_object_get(row, "shown")) ? ", shown" : "");
	}
	at = strlen(o->written);
	if (i < n)
		at += (size_t)snprintf(o->written + at, sizeof o->written - at, " and %zu more", n - i);
	snprintf(o->written + at, sizeof o->written - at, ".%s%s", *x->turn.session ? "" : " Gone now",
		 *x->turn.session ? "" : named_sessions_are_offered(x->mcp->settings) ? "; name a session to keep them." : ".");
	text_make_plain(o->written);
}

static void take_record(struct outcome *o, const struct execution *x)
{
	o->record = json_incref(x->record);
	snprintf(o->exit_reason, sizeof o->exit_reason, "%s", text_of(x->record, "exit_reason"));
	if (x->is_report) {
		take_displays(o, json_object_get(x->program_report, "displays"));
		take_left_out(o, json_object_get(x->program_report, "left_out"));
		say_written(o, json_object_get(x->program_report, "written"), x);
	}
	take_result(o, x->is_report ? json_object_get(x->program_report, "bundle") : NULL);
	say_ending(o, x);
	if (!o->is_failure)
		take_traceback(o);
}

static void take_pipe(struct outcome_stream *ret, const struct execution_pipe *p, const struct execution *x)
{
	bool detail = x->answer_form.detail;

	take_stream(ret, &p->stream, detail ? 0 : p->told, x->mcp->settings->keep_ansi, !detail, x->state != EXECUTION_ENDED);
}

void outcome_was_told(struct execution *x)
{
	if (x->state == EXECUTION_ENDED)
		return;
	x->out.told = whole_of(&x->out.stream, true);
	x->err.told = whole_of(&x->err.stream, true);
}

void outcome_of(struct outcome *ret, const struct execution *x)
{
	*ret = (struct outcome){ .displays = json_array(), .seconds = -1, .timeout_ms = x->answer_form.timeout_ms, .warnings = json_incref(x->answer_form.warnings) };
	images_init(&ret->gallery, x->mcp->artifacts, x->id);
	snprintf(ret->session, sizeof ret->session, "%s", x->turn.session);
	snprintf(ret->execution_id, sizeof ret->execution_id, "%s", *x->handle ? x->handle : x->id);
	snprintf(ret->profile, sizeof ret->profile, "%s", x->profile);
	ret->is_rest = !x->answer_form.detail && (x->out.told || x->err.told);
	if (x->answer_form.capture) {
		take_pipe(&ret->out, &x->out, x);
		take_pipe(&ret->err, &x->err, x);
	}
	if (!x->answer_form.detail)
		name_images(&ret->out);
	if (x->state != EXECUTION_ENDED) {
		say_running(ret, x);
	} else if (x->record) {
		take_record(ret, x);
		say_hosts(ret, x);
	} else {
		say_failure(ret, x);
	}
	if (*ret->session)
		session_note_fill(ret, x->turn.lost, x->cancelled);
}

void outcome_refused(struct outcome *ret, const char *why)
{
	*ret = (struct outcome){ .displays = json_array(), .seconds = -1, .is_failure = true };
	images_init(&ret->gallery, NULL, "");
	snprintf(ret->exit_reason, sizeof ret->exit_reason, "denied");
	say(ERROR_OF(ret), "%s", why);
}
