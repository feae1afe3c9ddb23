#define _GNU_SOURCE
#include "probe.h"
#include "surroundings.h"
#include "tap.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static bool hangs(struct probe *p)
{
	(void)p;
	fork(); /* and its child hangs, too */
	while (pause() < 0)
		;
	return true;
}

static bool dies(struct probe *p)
{
	(void)p;
	raise(SIGKILL);
	return true;
}

static bool is_killed_by_a_filter(struct probe *p)
{
	(void)p;
	raise(SIGSYS);
	return true;
}

static bool leaves(struct probe *p)
{
	(void)p;
	_exit(3);
}

static bool works(struct probe *p)
{
	(void)p;
	return true;
}

static bool says_nothing(struct probe *p)
{
	(void)p;
	return false;
}

static const struct {
	const char      *name;
	struct probe_row row;
	enum result      result;
	const char      *cause; /* a part of it */
} rows[] = {
	{ "a probe that works is ok",             { "x", NEED_DEFAULT, works, 0, 0, "" },                 RESULT_OK,
	       "" },
	{ "a probe that hangs has timed out",     { "x", NEED_DEFAULT, hangs, 0, 0, "" },
	                 RESULT_MISSING,  "timed out after 50 ms" },
	{ "a probe that dies is not ok",          { "x", NEED_DEFAULT, dies, 0, 0, "" },
	                  RESULT_MISSING,  "SIGKILL" },
	{ "SIGSYS is the mark of a filter",       { "x", NEED_DEFAULT, is_killed_by_a_filter, 0, 0, "" },
	 RESULT_MISSING,  "seccomp filter" },
	{ "a probe that leaves silently is told", { "x", NEED_DEFAULT, leaves, 0, 0, "" },
	                RESULT_MISSING,  "status 3" },
	{ "what is optional is only degraded",    { "x", NEED_OPTIONAL, dies, 0, 0, "" },
	                 RESULT_DEGRADED, "SIGKILL" },
};

/* On a busy machine a process that a sanitizer watches takes a while to begin. */
enum { HANG_MS = 20000 };

int main(void)
{
	struct surroundings at;
	struct finding      f;
	static const struct probe_row mute = { "x", NEED_DEFAULT, says_nothing, 0, 0, "" };

	surroundings_detect(&at);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		memset(&f, 0xff, sizeof f);
		probe_run(&rows[i].row, &at, rows[i].row.run == hangs ? 50 : HANG_MS, &f);
		tap_ok(f.result == rows[i].result && strstr(f.cause, rows[i].cause), "%s", rows[i].name);
		tap_ok(f.result == RESULT_OK || f.fix[0], "and there is advice");
	}
	probe_run(&mute, &at, HANG_MS, &f);
	tap_ok(f.result == RESULT_MISSING, "a refusal without a word is still one");
	tap_ok(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "no process outlives its probe");
	for (size_t i = 0; i < probe_rows_len; i++)
		tap_ok(probe_rows[i].run && strlen(probe_rows[i].name) <= 19 && strlen(probe_rows[i].purpose) <= 58,
		       "%s fits its columns", probe_rows[i].name);
	return tap_done();
}
