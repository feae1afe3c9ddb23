#define _GNU_SOURCE
#include "report.h"

#include "color.h"
#include "command.h"
#include "exact.h"
#include "fd.h"
#include "file.h"
#include "interrupt.h"
#include "layer.h"
#include "network_summary.h"
#include "paths.h"
#include "result.h"
#include "run_id.h"
#include "summary.h"
#include "text.h"
#include "why.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_SIGINT = 130, STATUS_SIGPIPE = 141, STATUS_NO_EXEC = 126, STATUS_NOT_FOUND = 127 };

/* --- the record --- */

/* A record of a run of which only the reason for its end is known. */
static json_t *make_bare_record(const struct request *r, const char *run, enum exit_reason reason, const struct err *why)
{
	struct run_result result = RUN_RESULT_NONE;
	struct record     record = { .profile = r->profile, .result = &result };
	struct err        ignored;

	if (*run)
		snprintf(record.run_id, sizeof record.run_id, "%s", run);
	else
		(void)!run_id_make(record.run_id, &ignored); /* brigd gave it none */
	result.reason = reason;
	result.why    = *why;
	return record_to_json(&record);
}

/* clang-format off */
static const struct {
	enum denial_code code;
	enum exit_reason reason;
	enum err_kind    kind;
} refusals[] = {
	{ DENIAL_bad_message,     EXIT_denied,       ERR_PROTOCOL },
	{ DENIAL_unknown_request, EXIT_denied,       ERR_PROTOCOL },
	{ DENIAL_bad_field,       EXIT_denied,       ERR_BAD_SPEC },
	{ DENIAL_bad_descriptors, EXIT_denied,       ERR_BAD_SPEC },
	{ DENIAL_denied,          EXIT_denied,       ERR_DENIED },
	{ DENIAL_above_ceiling,   EXIT_denied,       ERR_DENIED },
	{ DENIAL_unknown_profile, EXIT_denied,       ERR_BAD_SPEC },
	{ DENIAL_missing,         EXIT_setup_failed, ERR_MISSING },
	{ DENIAL_busy,            EXIT_busy,         ERR_LIMIT },
	{ DENIAL_not_found,       EXIT_denied,       ERR_BAD_SPEC },
	{ DENIAL_unavailable,     EXIT_setup_failed, ERR_MISSING },
	{ DENIAL_broken,          EXIT_setup_failed, ERR_BROKEN },
};
/* clang-format on */

/* brigd's message, after the option that the user wrote for the key it is about. */
static json_t *make_record_of_refusal(const struct foreground_run *c)
{
	const json_t *error = json_object_get(c->refused, "error");
	const json_t *field = json_object_get(error, "field"), *wait = json_object_get(error, "retry_after_ms");
	const char   *code = json_string_value(json_object_get(error, "code"));
	char          name[300] = "", later[48] = "";
	struct err    e;

	if (json_is_string(field))
		request_field_to_option(c->request, json_string_value(field), name, sizeof name);
	if (json_is_integer(wait))
		snprintf(later, sizeof later, "; try again in %" JSON_INTEGER_FORMAT " ms", json_integer_value(wait));
	for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
		if (strcmp(denial_code_name(refusals[i].code), code) != 0)
			continue;
		err_set(&e, refusals[i].kind, "%s%s%s%s", name, !*name ? "" : refusals[i].code == DENIAL_above_ceiling ? " " : ": ", json_string_value(json_object_get(error, "message")), later);
		return make_bare_record(c->request, "", refusals[i].reason, &e);
	}
	err_set(&e, ERR_BROKEN, "brigd refused without a reason");
	return make_bare_record(c->request, "", EXIT_setup_failed, &e);
}

json_t *report_make_record(const struct foreground_run *c)
{
	json_t *record;

	if (c->refused)
		return make_record_of_refusal(c);
	if (!c->ended && !c->sent)
		return make_bare_record(c->request, "", EXIT_denied, &c->lost);
	record = c->ended ? json_incref(json_object_get(c->ended, "record")) : make_bare_record(c->request, c->run.id, EXIT_cancelled, &c->lost);
	if (c->run.state == RUN_RUNS)
		run_client_add_byte_counts(&c->run, record);
	if (c->files)
		json_object_set(record, "files", c->files);
	return record;
}

/* --- printed as JSON --- */

static json_t *output_to_json(const struct stream *s)
{
	size_t  len;
	char   *text = text_as_utf8(s->data ? s->data : "", s->len, &len);
	json_t *j    = text ? json_stringn_nocheck(text, len) : json_null();

	free(text);
	return j;
}

/* -1, with a message, if the record cannot be written: brig's exit status must show it. */
static int write_json_line(int to, const json_t *object)
{
	size_t len  = 0;
	char  *text = json_dump_exact(object, JSON_INDENT(2), &len);
	int    r;

	if (text)
		text[len] = '\n'; /* replaces the NUL, so that one write has everything */
	r = text ? file_write_all(to, text, len + 1) : -1;
	if (r < 0)
		fprintf(stderr, "brig: the record cannot be written: %m\n");
	free(text);
	return r;
}

int report_print_json(const json_t *object)
{
	return write_json_line(STDOUT_FILENO, object);
}

static int print_record(const struct foreground_run *c, const json_t *record, const json_t *report, const struct err *why)
{
	json_t *whole = json_copy((json_t *)record);
	int     r;

	json_object_set_new(whole, "stdout", c->run.state == RUN_RUNS ? output_to_json(&c->run.out.stream) : json_null());
	json_object_set_new(whole, "stderr", c->run.state == RUN_RUNS ? output_to_json(&c->run.err.stream) : json_null());
	if (report)
		program_report_copy_to_record(whole, report);
	else if (why->kind != ERR_NONE)
		program_report_set_warning(whole, why);
	r = report_print_json(whole);
	json_decref(whole);
	return r;
}

/* --- messages for people --- */

static bool foreground_run_has_exec_error(const struct foreground_run *c)
{
	return json_is_string(json_object_get(c->ended, "exec_error"));
}

/* True if the kernel refused a set-up step: then the host lacks something. */
static bool points_to_doctor(const struct foreground_run *c, const json_t *record)
{
	const char      *type = json_string_value(json_object_get(json_object_get(record, "error"), "type"));
	enum exit_reason reason;

	return summary_get_exit_reason(record, &reason) && reason == EXIT_setup_failed && type &&
	       strcmp(type, err_kind_name(ERR_SETUP)) == 0 && !foreground_run_has_exec_error(c);
}

static void print_plain_text(const json_t *text, FILE *to)
{
	char plain[256];

	snprintf(plain, sizeof plain, "%s", json_string_value(text) ? json_string_value(text) : "");
	text_make_plain(plain);
	fputs(plain, to);
}

/* The missing layers; with the reason in brackets with --verbose. */
static void print_missing_layers(const json_t *row, bool with_reason, FILE *to)
{
	const json_t *layers = json_object_get(row, "layers"), *why = json_object_get(row, "why");

	for (size_t i = 0; i < json_array_size(layers); i++) {
		fputs(i ? ", " : "", to);
		print_plain_text(json_array_get(layers, i), to);
	}
	if (!with_reason || !json_string_length(why))
		return;
	fputs(" (", to);
	print_plain_text(why, to);
	fputc(')', to);
}

/* False for layers that this kernel lacks for root as well: only the record names them. */
static bool layers_need_root(const json_t *row)
{
	const char *first = json_string_value(json_array_get(json_object_get(row, "layers"), 0));

	for (int i = 0; first && i < LAYER_COUNT; i++)
		if (strcmp(layer_name((enum layer)i), first) == 0 && layer_need((enum layer)i) == NEED_ROOT)
			return true;
	return *json_string_value(json_object_get(row, "why"));
}

enum { SAID_AGAIN_S = 24 * 60 * 60 };

/* True once a day, and when the words have changed. They are kept in the user's own runtime directory; where there is none, it is always true. */
static bool losses_are_new(const char *text, size_t len)
{
	struct brig_paths places;
	struct err        e;
	char              path[PATH_SIZE + 16], before[1024];
	struct stat       st;
	ssize_t           n;

	if (brig_paths_find(&places, &e) < 0)
		return true;
	snprintf(path, sizeof path, "%s/layers-said", places.runtime);
	scoped_fd fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return true;
	n = read(fd, before, sizeof before);
	if (n == (ssize_t)len && memcmp(before, text, len) == 0 && st.st_mtime <= time(NULL) && time(NULL) - st.st_mtime < SAID_AGAIN_S)
		return false;
	if (ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, text, len, 0);
	return true;
}

/*
 * Names the layers that only root has, in one short line, once a day; with -v always, and with the reasons. For root there is nothing to
 * say: its run is refused if one is missing.
 */
static void print_losses(const struct foreground_run *c)
{
	const json_t *lost = json_object_get(c->ended, "lost");
	char         *text = NULL;
	size_t        len  = 0;
	FILE         *to   = json_array_size(lost) && geteuid() != 0 ? open_memstream(&text, &len) : NULL;

	for (size_t i = 0; to && i < json_array_size(lost); i++) {
		if (!layers_need_root(json_array_get(lost, i)))
			continue;
		fputs(ftell(to) ? c->request->verbose ? "; " : ", " : "", to);
		print_missing_layers(json_array_get(lost, i), c->request->verbose, to);
	}
	if (to && fclose(to) == 0 && len && (c->request->verbose || losses_are_new(text, len)))
		fprintf(stderr, "brig: not in force without root: %s; brig doctor says how to get them\n", text);
	free(text);
}

/* In a loop of a shell that reads the same input, what brig took and did not give back is missing. */
static void print_stdin_hint(const struct foreground_run *c)
{
	if (!c->request->stdin_unnamed)
		return;
	if (c->request->half_read && c->taken > c->unread)
		fputs("brig: standard input was a file that is half read, as in a loop of a shell, and the program read on in it; --stdin /dev/null leaves it to the loop\n", stderr);
	else if (c->taken && c->taken == c->unread && !c->given_back)
		fprintf(stderr, "brig: the program did not read its standard input, and the %" PRIu64 " bytes that brig took from it are lost; in a loop of a shell, --stdin /dev/null leaves them to the loop\n", c->taken);
}

static const char *errno_name_to_text(const char *name)
{
	const char *known;

	for (int i = 1; (known = strerrorname_np(i)); i++)
		if (strcmp(known, name) == 0)
			return strerror(i);
	return name;
}

/* brigd's message about a command that cannot be executed does not name it, to keep arguments of runs out of brigd's log. */
static void print_refusal(const struct foreground_run *c, const json_t *record, const char *why)
{
	const char *op = json_string_value(json_object_get(c->request->message, "op"));
	char        name[200];

	snprintf(name, sizeof name, "%s", c->request->program);
	text_make_plain(name);
	if (foreground_run_has_exec_error(c) && op && strcmp(op, "exec") == 0)
		fprintf(stderr, "brig: %s (in the rootfs): %s\n", name, errno_name_to_text(json_string_value(json_object_get(c->ended, "exec_error"))));
	else
		fprintf(stderr, "brig: %s%s\n", why, points_to_doctor(c, record) ? "; brig doctor says what this host lacks" : "");
}

static int exit_status_of(const struct foreground_run *c, const json_t *record)
{
	enum exit_reason reason;

	if (foreground_run_has_exec_error(c))
		return strcmp(json_string_value(json_object_get(c->ended, "exec_error")), "ENOENT") == 0 ? STATUS_NOT_FOUND : STATUS_NO_EXEC;
	if (c->run.out.stream.broken || c->run.err.stream.broken)
		return STATUS_SIGPIPE;
	if (summary_get_exit_reason(record, &reason) && (reason == EXIT_cancelled || reason == EXIT_busy) &&
	    interrupt_caught() == SIGINT) /* busy: the run waited */
		return STATUS_SIGINT;
	return summary_exit_status(record);
}

/* Prints why there was no run, or the summary of an unusual end. */
void report_print_ending(const struct foreground_run *c, const json_t *record)
{
	const json_t    *left   = json_object_get(c->ended, "left");
	int              broken = c->run.out.stream.broken ? c->run.out.stream.broken : c->run.err.stream.broken;
	char             why[sizeof c->lost.text], limit[48];
	enum exit_reason reason     = EXIT_cancelled;
	bool             has_reason = summary_get_exit_reason(record, &reason);
	struct err       e;

	if (broken == EPIPE && !c->request->verbose)
		return; /* brig run ... | head: like other commands, brig ends without a message */
	if (broken)
		fprintf(stderr, "brig: the output cannot be %s: %s\n", c->run.out.stream.unread || c->run.err.stream.unread ? "read" : "written", strerror(broken));
	if (*summary_copy_error_text(record, why, sizeof why) && c->run.state == RUN_WAITS) {
		print_refusal(c, record, why);
	} else if (!c->request->quiet && (!has_reason || reason != EXIT_exited ||
					  json_is_true(json_object_get(record, "truncated")) || c->request->verbose)) {
		fprintf(stderr, "%sbrig:%s ", color_start_code(stderr, exit_status_of(c, record) ? COLOR_BAD : COLOR_GOOD), color_reset_code(stderr));
		/* a run that was cancelled may have exceeded a limit meanwhile */
		summary_print(record, !has_reason || reason == EXIT_cancelled || reason == EXIT_client_gone ? "" : foreground_run_print_hit_limit(c, limit, sizeof limit), stderr);
	}
	if (!c->request->quiet) {
		print_losses(c);
		print_stdin_hint(c);
	}
	if (json_is_string(left)) {
		err_set(&e, ERR_SETUP, "%s", json_string_value(left));
		fprintf(stderr, "brig: left behind: %s\n", e.text);
	}
}

/* Prints the value of a call, unless --json prints it, and saves its pictures. */
static int print_call_result(const struct foreground_run *c, const json_t *report, const struct err *why)
{
	int status = STATUS_OK;

	if (!c->request->json && !c->run.out.stream.broken && result_print_values(report) < 0)
		status = STATUS_SIGPIPE;
	if (!result_save_pictures(c->request, report) && status == STATUS_OK)
		status = STATUS_NOT_SAVED;
	if (!report && why->kind != ERR_NONE)
		fprintf(stderr, "brig: what the call reported cannot be used: %s\n", why->text);
	return status;
}

int report_run(const struct foreground_run *c)
{
	struct err   why    = { 0 };
	scoped_json *record = report_make_record(c), *report = NULL;
	int          status, written = 0, shown = STATUS_OK;

	if (c->run.report.stream.seen || c->run.report.stream.unread) /* else the program did not get that far, or ran without the guest runner */
		report = run_client_report(&c->run, PROGRAM_REPORT_run, &why);
	if (c->request->json && print_record(c, record, report, &why) < 0)
		written = -1;
	if (c->request->record_fd >= 0 && write_json_line(c->request->record_fd, record) < 0)
		written = -1;
	if (c->request->by == BY_CALL)
		shown = print_call_result(c, report, &why);
	if (!c->request->quiet)
		result_print_session_state(json_object_get(record, "session"));
	report_print_ending(c, record);
	status = written < 0 ? STATUS_SIGPIPE : exit_status_of(c, record);
	if (status == STATUS_OK)
		status = shown;
	if (run_files_print_left_out(c->files, "saved", c->request->quiet) && status == 0)
		status = STATUS_NOT_SAVED;
	if (c->request->why)
		why_print_all(c, record);
	else if ((status || network_proxy_is_lost(record)) && !c->request->json && !c->request->quiet && !c->request->session)
		why_print_line(c, record);
	return status;
}
