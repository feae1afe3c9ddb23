/* What is told about a run: every key in JSON, a first line and bounded sections in text. */
#define _GNU_SOURCE
#include "reply.h"
#include "tap.h"
#include "text.h"

static json_t *record(const char *changes)
{
	json_t *j = json_loads("{\"run_id\":\"6f0c0d5e-0000-4000-8000-000000000001\",\"profile\":\"basic\",\"rootfs\":\"basic@sha256:00\",\"exit_reason\":\"exited\","
			       "\"exit_code\":0,\"signal\":null,\"limits_hit\":[],\"wall_ms\":412.4,\"cpu_ms\":40.0,\"memory_peak_bytes\":39845888,\"pids_peak\":1,"
			       "\"io_read_bytes\":null,\"io_write_bytes\":null,\"stdout_bytes\":6,\"stderr_bytes\":0,\"truncated\":false,\"setup_ms\":1.0,\"warm\":false,"
			       "\"isolation\":[\"user-ns\"],\"result\":null,\"result_repr\":null,\"error\":null,\"variables\":[\"x\"],\"files\":null,"
			       "\"security_event\":null,\"security_warnings\":[]}",
			       0, NULL),
	       *change = json_loads(changes, 0, NULL);

	json_object_update(j, change);
	json_decref(change);
	return j;
}

static struct outcome make(const char *changes, const char *out, const char *err)
{
	struct outcome o = { .record = record(changes), .displays = json_array(), .seconds = -1, .timeout_ms = 30000, .profile = "basic" };

	gallery_init(&o.gallery, NULL, "");
	strcpy(o.execution_id, "6f0c0d5e-0000-4000-8000-000000000001");
	snprintf(o.exit_reason, sizeof o.exit_reason, "%s", json_string_value(json_object_get(o.record, "exit_reason")));
	o.result = json_incref(json_object_get(o.record, "result"));
	o.out    = (struct outcome_stream){ .text = strdup(out), .len = strlen(out), .bytes = strlen(out) };
	o.err    = (struct outcome_stream){ .text = strdup(err), .len = strlen(err), .bytes = strlen(err) };
	return o;
}

/* --- JSON --- */

static const struct answer_wish detail = { .detail = true }, echo = { .detail = true, .echo = true };

static const char *const keys[] = { "success",   "execution_id", "result",     "stdout",   "stderr",      "execution_time", "variables",
				    "error",     "error_type",   "traceback",  "exit_reason", "exit_code", "signal",        "timeout",
				    "limits_hit", "refused", "usage",       "truncated",  "files",    "security_warnings", "security_event", "validation_errors", "return_code", "isolation" };

static void has_all_keys(const struct outcome *o, const char *name)
{
	json_t *j       = reply_json(o, &detail);
	size_t  missing = 0;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		missing += !json_object_get(j, keys[i]);
	tap_ok(!missing, "%s: every published key is there", name);
	json_decref(j);
}

static void test_keys(void)
{
	scoped_outcome ok = make("{\"result\":4}", "hi\n", ""), denied, running = make("{}", "", "");

	outcome_refused(&denied, "Empty code provided");
	json_decref(running.record);
	running.record  = NULL;
	running.seconds = 2.5;
	strcpy(running.exit_reason, "running");
	has_all_keys(&ok, "a run that ended");
	has_all_keys(&denied, "a refusal");
	has_all_keys(&running, "a run that goes on");
}

static void test_values(void)
{
	scoped_outcome o = make("{\"result\":4,\"result_repr\":\"4\"}", "hi\n", ""), denied;
	json_t        *j = reply_json(&o, &detail);

	tap_ok(json_is_true(json_object_get(j, "success")) && json_integer_value(json_object_get(j, "result")) == 4, "success and result");
	tap_ok(json_is_real(json_object_get(j, "execution_time")) && json_real_value(json_object_get(j, "execution_time")) == 0.4124, "execution_time is in seconds, a real");
	tap_ok(json_integer_value(json_object_get(j, "timeout")) == 30, "timeout is in seconds");
	tap_ok(json_real_value(json_object_get(json_object_get(j, "usage"), "mem_peak_mb")) == 38, "memory is in MiB");
	tap_ok(json_is_null(json_object_get(j, "security_warnings")) && json_is_null(json_object_get(j, "error")), "nothing to tell is null");
	json_decref(j);
	j = reply_json(&o, &echo);
	tap_is(json_string_value(json_object_get(j, "stdout")), "hi\n4\n", "echo appends the result to stdout");
	json_decref(j);
	outcome_refused(&denied, "Empty \x1b[31mcode\x01 provided");
	j = reply_json(&denied, &detail);
	tap_is(json_string_value(json_object_get(j, "error")), "Empty code provided", "an error is clean");
	tap_ok(json_is_null(json_object_get(j, "execution_id")) && json_is_null(json_object_get(j, "usage")) && json_is_null(json_object_get(j, "exit_code")),
	       "nothing was run: no id, no usage, no exit code");
	json_decref(j);
}

/* --- text --- */

static void first_line_is(const struct outcome *o, const char *want, const char *name)
{
	char *text = reply_text(o, 8192);

	text[strcspn(text, "\n")] = 0;
	tap_is(text, want, name);
	free(text);
}

static void test_first_lines(void)
{
	scoped_outcome ok = make("{}", "", ""), raised = make("{\"exit_code\":1}", "", ""), killed = make("{\"exit_reason\":\"timeout_wall\",\"exit_code\":null}", "", ""),
		       hit = make("{\"limits_hit\":[{\"name\":\"pids\",\"value\":64,\"peak\":64,\"times\":3}]}", "", ""), denied;

	strcpy(raised.error, "ValueError: two\nlines");
	strcpy(killed.error, "Execution timeout: timed out after 2 seconds");
	outcome_refused(&denied, "Empty code provided");
	first_line_is(&ok, "exit code 0 · 0.41 s · 38.0 MiB peak", "a program that ended");
	first_line_is(&raised, "exit code 1 · 0.41 s · 38.0 MiB peak · ValueError: two lines", "an exception, in one line");
	first_line_is(&killed, "killed (timeout_wall) · 0.41 s · 38.0 MiB peak · Execution timeout: timed out after 2 seconds", "a limit");
	first_line_is(&hit, "exit code 0 · 0.41 s · 38.0 MiB peak · limit hit: pids 64", "a limit that refused something");
	first_line_is(&denied, "Error (denied) · Empty code provided", "a refusal begins with Error");
}

static void test_sections(void)
{
	scoped_outcome o = make("{\"result\":[1,2.5],\"error\":{\"type\":\"E\",\"message\":\"m\",\"traceback\":\"Traceback\\nE: m\\n\",\"line\":1,\"offset\":null,\"text\":null}}", "out\n",
				"no newline");
	char *text;

	o.traceback = strdup("Traceback\nE: m\n");
	text        = reply_text(&o, 8192);
	tap_is(strchr(text, '\n') + 1, "--- stdout ---\nout\n--- stderr ---\nno newline\n--- traceback ---\nTraceback\nE: m\n--- result ---\n[1,2.5]\n", "stdout, stderr, traceback, result");
	free(text);
	free(o.err.text);
	o.err.text = strdup("mine\nTraceback\nE: m\n");
	o.err.len  = strlen(o.err.text);
	o.traceback_len = strlen(o.traceback);
	text            = reply_text(&o, 8192);
	tap_ok(strstr(text, "--- stderr ---\nmine\n--- traceback ---\nTraceback\nE: m\n--- result"), "a traceback that is in stderr as well is shown once");
	free(text);
}

/* Whatever there is, of whatever size. */
static void test_bound(void)
{
	static const size_t sizes[] = { 0, 1, 300, 3000, 9000, 200000 };
	bool                bounded = true, whole = true;

	for (size_t a = 0; a < ARRAY_LEN(sizes); a++)
		for (size_t b = 0; b < ARRAY_LEN(sizes); b++)
			for (size_t max = 1024; max < 40000; max = max * 3 / 2) {
				scoped_outcome o = make("{\"result\":\"x\"}", "", "");
				char          *text;

				o.out.text = realloc(o.out.text, 3 * sizes[a] + 1);
				o.err.text = realloc(o.err.text, sizes[b] + 1);
				for (size_t i = 0; i < sizes[a]; i++)
					memcpy(o.out.text + 3 * i, "\xe2\x82\xac", 3);
				memset(o.err.text, 'e', sizes[b]);
				o.out.len = 3 * sizes[a];
				o.err.len = sizes[b];
				memset(o.error, 'E', sizeof o.error - 1);
				memset(o.hint, 'H', sizeof o.hint - 1);
				text = reply_text(&o, max);
				bounded &= strlen(text) <= max;
				whole &= text_is_utf8(text, strlen(text));
				free(text);
			}
	tap_ok(bounded, "a text is never larger than it may be");
	tap_ok(whole, "nor cut inside of a character");
}

int main(void)
{
	test_keys();
	test_values();
	test_first_lines();
	test_sections();
	test_bound();
	return tap_done();
}
