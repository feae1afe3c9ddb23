/*
 * tool_audit.h - a line of JSON for each call of a tool, when it was judged and when it has ended.
 *
 *     {"time":"2026-11-25T02:13:08.123Z","event":"call","run":"...","call":7,"tool":"github.search_issues","verdict":"allow","why":"...","args_sha256":"..."}
 *     {"time":"...","event":"end","run":"...","call":7,"tool":"github.search_issues","outcome":"ok","ms":12,"bytes":345}
 *
 * A call is written down before its server hears of it. Into a file that is
 * appended to, else to stderr; what stderr does not take at once is left out
 * and counted, as nobody must be able to stop the server by not reading it.
 */
#pragma once
#include "stream_end.h"

#include <jansson.h>

struct tool_audit {
	struct stream_end end;
	bool              arguments; /* are written down as well */
	bool              is_file, complained;
	uint64_t          lost;
};

/* path NULL or "": stderr. */
must_use int tool_audit_open(struct tool_audit *a, const char *path, bool arguments, struct err *e);
void         tool_audit_close(struct tool_audit *a);

/* Of the compact JSON of the arguments with sorted keys, in hexadecimal. */
void tool_audit_digest(const json_t *arguments, char ret[65]);

void tool_audit_call(struct tool_audit *a, const char *run, int64_t call, const char *tool, const char *verdict, const char *why, const json_t *arguments,
		     const char *digest);
void tool_audit_end(struct tool_audit *a, const char *run, int64_t call, const char *tool, const char *outcome, int64_t ms, size_t bytes);
/* A sentence of a server, or about it; to stderr only. */
void tool_audit_say(const char *line);
