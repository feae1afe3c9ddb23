/*
 * tool_audit.h - a line of JSON for each call of a tool, when it was judged and when it has ended.
 *
 *     {"time":"2026-11-25T02:13:08.123Z","event":"call","run":"...","call":7,"tool":"github.search_issues","verdict":"allow","why":"...","args_sha256":"..."}
 *     {"time":"...","event":"end","run":"...","call":7,"tool":"github.search_issues","outcome":"ok","ms":12,"bytes":345}
 *
 * The line of a call is written before the call is sent to its server. Lines are appended to a file, or go to stderr. A line
 * that stderr does not take at once is dropped and counted: a client that does not read stderr must not block brig-mcp.
 */
#pragma once
#include "stream_end.h"

#include <jansson.h>

struct tool_audit {
	struct stream_end end;
	bool              arguments; /* the lines have the arguments of calls, too */
	bool              is_file, complained;
	uint64_t          lost;
};

/* path NULL or "": stderr. */
must_use int tool_audit_open(struct tool_audit *a, const char *path, bool arguments, struct err *e);
void         tool_audit_close(struct tool_audit *a);

/* SHA-256 of the arguments as compact JSON with sorted keys, in hexadecimal. */
void tool_audit_digest_arguments(const json_t *arguments, char ret[65]);

void tool_audit_write_call(struct tool_audit *a, const char *run, int64_t call, const char *tool, const char *verdict, const char *why, const json_t *arguments,
		     const char *digest);
void tool_audit_write_end(struct tool_audit *a, const char *run, int64_t call, const char *tool, const char *outcome, int64_t ms, size_t bytes);
/* Writes a line of a server, or about one, to stderr only. */
void tool_audit_print_stderr(const char *line);
