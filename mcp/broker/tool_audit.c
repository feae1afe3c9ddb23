#define OPENSSL_SUPPRESS_DEPRECATED /* as in http_token.c */
#define _GNU_SOURCE
#include "tool_audit.h"

#include "exact.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/sha.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* --- where it goes --- */

int tool_audit_open(struct tool_audit *a, const char *path, bool arguments, struct err *e)
{
	struct stat st;
	int         fd;

	*a = (struct tool_audit){ .end = { .fd = -1 }, .arguments = arguments };
	a->is_file = path && *path;
	fd = a->is_file ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600) :
			  fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return err_sys(e, "%s", a->is_file ? path : "standard error");
	if (a->is_file && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		close(fd);
		return err_set(e, ERR_BAD_SPEC, "%s: not a regular file", path);
	}
	a->end.fd = fd;
	if (!a->is_file)
		stream_end_open(&a->end, fd, true);
	return 0;
}

void tool_audit_close(struct tool_audit *a)
{
	stream_end_close(&a->end);
}

/* false: the line was not written as a whole, and counts as lost. A write to stderr does not block. */
static bool write_audit_line(struct tool_audit *a, const char *line, size_t len)
{
	if (a->is_file)
		return write(a->end.fd, line, len) == (ssize_t)len;
	return stream_end_write(&a->end, line, len) == (ssize_t)len;
}

static void write_audit_entry(struct tool_audit *a, json_t *entry)
{
	size_t len  = 0;
	char  *line = json_dump_exact(entry, JSON_COMPACT | JSON_ENSURE_ASCII, &len), *with_nl = line ? realloc(line, len + 1) : NULL;

	json_decref(entry);
	if (with_nl)
		with_nl[len] = '\n';
	if (!with_nl || !write_audit_line(a, with_nl, len + 1)) {
		a->lost++;
		if (a->is_file && !a->complained)
			tool_audit_print_stderr("--tool-audit: a line could not be written; calls go on without one");
		a->complained = true;
	}
	free(with_nl ? with_nl : line);
}

void tool_audit_print_stderr(const char *line)
{
	struct pollfd on = { .fd = STDERR_FILENO, .events = POLLOUT };
	char          text[1000];
	int           n = snprintf(text, sizeof text, "brig-mcp: %s\n", line);

	if (n > 0 && poll(&on, 1, 0) > 0 && (on.revents & POLLOUT))
		(void)!write(STDERR_FILENO, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

/* --- what is written --- */

void tool_audit_digest_arguments(const json_t *arguments, char ret[65])
{
	unsigned char sum[SHA256_DIGEST_LENGTH];
	SHA256_CTX    sha;
	size_t        len  = 0;
	char         *text = json_dump_exact(arguments, JSON_COMPACT | JSON_SORT_KEYS, &len);

	SHA256_Init(&sha);
	SHA256_Update(&sha, text ? text : "", text ? len : 0);
	SHA256_Final(sum, &sha);
	text_put_hex(sum, sizeof sum, ret);
	free(text);
}

static json_t *new_audit_entry(const char *event, const char *run, int64_t call, const char *tool)
{
	char            text[64], at[32];
	struct timespec now;
	struct tm       utc;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text, sizeof text, "%s.%03ldZ", at, now.tv_nsec / 1000000);
	return json_pack("{ss ss ss sI ss}", "time", text, "event", event, "run", run, "call", (json_int_t)call, "tool", tool);
}

void tool_audit_write_call(struct tool_audit *a, const char *run, int64_t call, const char *tool, const char *verdict, const char *why, const json_t *arguments,
		     const char *digest)
{
	json_t *entry = new_audit_entry("call", run, call, tool);

	json_object_set_new(entry, "verdict", json_string(verdict));
	json_object_set_new(entry, "why", json_string(why));
	json_object_set_new(entry, "args_sha256", json_string(digest));
	if (a->arguments && (a->is_file || json_dumpb(arguments, NULL, 0, JSON_ENSURE_ASCII) < PIPE_BUF / 2)) /* stderr takes so much in one write */
		json_object_set(entry, "args", (json_t *)arguments);
	write_audit_entry(a, entry);
}

void tool_audit_write_end(struct tool_audit *a, const char *run, int64_t call, const char *tool, const char *outcome, int64_t ms, size_t bytes)
{
	json_t *entry = new_audit_entry("end", run, call, tool);

	json_object_set_new(entry, "outcome", json_string(outcome));
	json_object_set_new(entry, "ms", json_integer((json_int_t)ms));
	json_object_set_new(entry, "bytes", json_integer((json_int_t)bytes));
	write_audit_entry(a, entry);
}
