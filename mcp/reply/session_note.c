#define _GNU_SOURCE
#include "session_note.h"

#include "member.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* "10 min", "45 s" */
static const char *format_duration(uint64_t ms, char *buf, size_t len)
{
	unsigned long long s = (ms + 999) / 1000;

	if (s >= 120)
		snprintf(buf, len, "%llu min", (s + 30) / 60);
	else
		snprintf(buf, len, "%llu s", s);
	return buf;
}

/* Why the interpreter is gone: from how the call ended. */
static void describe_interpreter_end(const struct outcome *o, char *buf, size_t len)
{
	static const char *const reasons[][2] = {
		{ "oom", "out of memory" },
		{ "timeout_wall", "out of time" },
		{ "timeout_cpu", "out of CPU time" },
		{ "output_limit", "too much output" },
		{ "cancelled", "it was cancelled" },
		{ "client_gone", "it was cancelled" },
	};
	const char *signal = member_text(o->record, "signal");
	int         code   = (int)json_integer_value(json_object_get(o->record, "exit_code"));

	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (strcmp(reasons[i][0], o->exit_reason) == 0) {
			snprintf(buf, len, "%s", reasons[i][1]);
			return;
		}
	if (*signal)
		snprintf(buf, len, "killed by %.20s", signal);
	else if (code > 128 && sigabbrev_np(code - 128))
		snprintf(buf, len, "killed by SIG%s", sigabbrev_np(code - 128));
	else
		snprintf(buf, len, "exit code %d", code);
}

__attribute__((format(printf, 2, 3))) static void format_session_note(struct outcome *o, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(o->session_note, sizeof o->session_note, format, args);
	va_end(args);
}

/* A call that ended as cancelled, but not by the client, has ended with its whole session. */
static void note_session_lost(struct outcome *o, bool stopped)
{
	char why[80];

	describe_interpreter_end(o, why, sizeof why);
	if (strcmp(o->exit_reason, "cancelled") == 0 && !stopped)
		format_session_note(o,
		     "Session '%s': lost: the whole session has ended, with its variables and files. The next call "
		     "makes a new one.",
		     o->session);
	else
		format_session_note(
			o, "Session '%s': lost: the interpreter ended (%s); variables are gone; files are still there.",
			o->session, why);
}

static void note_session_state(struct outcome *o, const json_t *session, const char *lost, bool stopped)
{
	char left[32];

	format_duration((uint64_t)json_integer_value(json_object_get(session, "idle_left_ms")), left, sizeof left);
	if (strcmp(o->session_state, "lost") == 0)
		note_session_lost(o, stopped);
	else if (strcmp(o->session_state, "reset") == 0)
		format_session_note(o,
		     "Session '%s': reset: this call had a new interpreter, without the earlier variables; files are "
		     "still there.",
		     o->session);
	else if (strcmp(o->session_state, "new") == 0 && *lost)
		format_session_note(o,
		     "Session '%s': the earlier one is lost, with its variables and files: %s. This one is new, and is "
		     "kept for %s.",
		     o->session, lost, left);
	else if (strcmp(o->session_state, "new") == 0)
		format_session_note(o, "Session '%s' is new: variables and files are kept for %s.", o->session, left);
	else
		format_session_note(o, "Session '%s': variables and files are kept for %s.", o->session, left);
}

void session_note_fill(struct outcome *o, const char *lost, bool stopped)
{
	const json_t *session = json_object_get(o->record, "session");

	snprintf(o->session_state, sizeof o->session_state, "%s", member_text(session, "state"));
	if (json_is_object(session))
		note_session_state(o, session, lost, stopped);
	else if (*lost)
		format_session_note(o, "Session '%s': the earlier one is lost, with its variables and files: %s.",
				    o->session, lost);
}
