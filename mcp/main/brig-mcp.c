/* brig-mcp.c - Python in a jail for clients of the Model Context Protocol, on stdin and stdout; HTTP has a program of its own */
#define _GNU_SOURCE
#include "check.h"
#include "file.h"
#include "line_channel.h"
#include "paths.h"
#include "settings.h"
#include "stop.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STATUS_OK = 0, STATUS_FAILED = 1, STATUS_USAGE = 2 };

/* Above the numbers that libraries and children use. */
#define PROTOCOL_FD 10

/*
 * Moves the two descriptors of the protocol away from 0 and 1: what a library prints goes to stderr then, and what a child
 * reads is empty. It must come first.
 */
static int move_protocol_streams(int *in, int *out)
{
	int null;

	if (file_open_standard_fds() < 0 || (*in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, PROTOCOL_FD)) < 0 ||
	    (*out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, PROTOCOL_FD)) < 0)
		return -1;
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		return -1;
	return close(null);
}

static void print_notes(const struct settings *s)
{
	for (size_t i = 0; i < json_array_size(s->notes); i++)
		fprintf(stderr, "brig-mcp: %s\n", json_string_value(json_array_get(s->notes, i)));
}

/* Prints for people, to the original stdout. */
static int print_on_original_stdout(int out, const struct settings *s)
{
	if (dup2(out, STDOUT_FILENO) < 0)
		return STATUS_FAILED;
	if (s->version)
		puts("brig-mcp " BRIG_VERSION);
	else if (s->help)
		settings_print_help(stdout);
	else
		settings_print(s, stdout);
	print_notes(s);
	return fflush(stdout) == 0 && !ferror(stdout) ? STATUS_OK : STATUS_FAILED;
}

/* Executes brig-mcp-http with the same arguments, which it parses again. */
static int exec_http_program(char **argv, struct err *e)
{
	struct brig_paths places;
	char              path[PATH_SIZE + 20];

	if (brig_paths_find(&places, e) < 0)
		return -1;
	snprintf(path, sizeof path, "%s/brig-mcp-http", places.libexec); /* of a build tree */
	execv(path, argv);
	if (errno == ENOENT)
		execv(BRIG_LIBEXECDIR "/brig-mcp-http", argv);
	return err_sys(e, "%s, and " BRIG_LIBEXECDIR "/brig-mcp-http", path);
}

static void on_stop_signal(void *owner)
{
	line_channel_request_stop(owner);
}

static int serve_stdio_client(struct mcp *m, int in, int out, struct err *e)
{
	struct line_channel client;
	struct stop         stop;
	int                 r = -1;

	if (isatty(in)) /* a user would wait for a prompt, which a server does not show */
		fputs("brig-mcp: waits for the messages of an MCP client on stdin, and is usually started by one; "
		      "brig-mcp --check tries it out, Ctrl-D ends it\n",
		      stderr);
	if (line_channel_open(&client, m, in, out, e) == 0 && stop_open(&stop, &m->loop, on_stop_signal, &client, e) == 0) {
		r = loop_run(&m->loop, &m->ends, e);
		stop_close(&stop);
	}
	line_channel_close(&client);
	return r;
}

static int serve_stdio(const struct settings *s, int in, int out, struct err *e)
{
	struct mcp m;
	int        r;

	if (mcp_open(&m, s, e) < 0)
		return -1;
	r = serve_stdio_client(&m, in, out, e);
	mcp_close(&m);
	return r;
}

/* With neither stdio nor HTTP: brig-mcp sends the requests to itself. */
static int run_check(const struct settings *s, int out, struct err *e)
{
	if (dup2(out, STDOUT_FILENO) < 0)
		return err_sys(e, "standard output");
	if (check_run(s, stdout, e) < 0)
		return -1;
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : err_sys(e, "write to standard output");
}

static int run_chosen_mode(const struct settings *s, char **argv, int in, int out, struct err *e)
{
	if (s->http && !s->check)
		return exec_http_program(argv, e);
	print_notes(s);
	settings_unset_token_variable();
	if (s->check)
		return run_check(s, out, e);
	return serve_stdio(s, in, out, e);
}

int main(int argc, char **argv)
{
	scoped_settings s = { 0 };
	struct err      e = { 0 };
	int             in, out;

	if (argc < 1)
		return STATUS_USAGE;
	if (move_protocol_streams(&in, &out) < 0) {
		fprintf(stderr, "brig-mcp: descriptors 0 to 2: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	if (settings_load(&s, argc, argv, &e) < 0) {
		fprintf(stderr, "brig-mcp: %s\n", e.text);
		return settings_exit_status(&e);
	}
	if (s.help || s.version || s.print_config)
		return print_on_original_stdout(out, &s);
	if (run_chosen_mode(&s, argv, in, out, &e) == 0)
		return STATUS_OK;
	fprintf(stderr, "brig-mcp: %s\n", e.text);
	return STATUS_FAILED;
}
