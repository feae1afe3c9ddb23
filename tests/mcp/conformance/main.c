/* main.c - mcp_conformance: the options of brig-mcp, and what the official conformance suite wants, on stdio or with --http */
#include "conformance.h"
#include "file.h"
#include "http_server.h"
#include "line_channel.h"
#include "metrics.h"
#include "stop.h"

#include <stdio.h>
#include <unistd.h>

static void end_lines(void *owner)
{
	line_channel_request_stop(owner);
}

static int serve_lines(struct mcp *m, struct err *e)
{
	struct line_channel client;
	struct stop         stop;
	int                 r = -1;

	if (line_channel_open(&client, m, STDIN_FILENO, STDOUT_FILENO, e) == 0 && stop_open(&stop, &m->loop, end_lines, &client, e) == 0) {
		r = loop_run(&m->loop, &m->ends, e);
		stop_close(&stop);
	}
	line_channel_close(&client);
	return r;
}

static void end_http(void *owner)
{
	struct http_server *server = owner;

	http_server_drain(server, server->mcp->settings->drain_ms);
}

static int serve_http(struct mcp *m, struct err *e)
{
	struct http_server server;
	struct stop        stop;
	int                r = -1;

	if (http_server_open(&server, m, e) < 0)
		return -1;
	if (stop_open(&stop, &m->loop, end_http, &server, e) == 0) {
		fprintf(stderr, "mcp_conformance: serving %s\n", server.url);
		r = loop_run(&m->loop, &m->ends, e);
		stop_close(&stop);
	}
	http_server_close(&server);
	return r;
}

static int run(const struct settings *s, struct err *e)
{
	struct conformance c;
	int                r;

	if (conformance_open(&c, s, e) < 0)
		return -1;
	c.mcp.metrics = metrics_create();
	r             = s->http ? serve_http(&c.mcp, e) : serve_lines(&c.mcp, e);
	metrics_destroy(c.mcp.metrics);
	c.mcp.metrics = NULL;
	conformance_close(&c);
	return r;
}

int main(int argc, char **argv)
{
	scoped_settings s = { 0 };
	struct err      e = { 0 };

	if (file_open_standard_fds() == 0 && settings_load(&s, argc, argv, &e) == 0 && run(&s, &e) == 0)
		return 0;
	fprintf(stderr, "mcp_conformance: %s\n", e.text);
	return 1;
}
