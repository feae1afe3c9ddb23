/* brig-mcp-http.c - brig-mcp for clients that come over HTTP; brig-mcp --http becomes this program */
#define _GNU_SOURCE
#include "file.h"
#include "http_server.h"
#include "metrics.h"
#include "settings.h"
#include "stop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATUS_OK = 0, STATUS_FAILED = 1 };

static void on_stop_signal(void *owner)
{
	struct http_server *server = owner;

	http_server_drain(server, server->mcp->settings->drain_ms);
}

/* Overwrites the bytes of the token: /proc/PID/environ would still show them after unsetenv(), and only its digest is needed now. */
static void erase_token(const struct settings *s)
{
	char *token = getenv("SANDBOX_API_TOKEN");

	if (token)
		explicit_bzero(token, strlen(token));
	if (s->token)
		explicit_bzero((char *)s->token, strlen(s->token));
	settings_unset_token_variable();
}

static int serve_http(struct mcp *m, struct err *e)
{
	struct http_server server;
	struct stop        stop;
	int                r;

	if (http_server_open(&server, m, e) < 0)
		return -1;
	erase_token(m->settings);
	r = stop_open(&stop, &m->loop, on_stop_signal, &server, e);
	if (r == 0) {
		fprintf(stderr, "brig-mcp: serving %s%s\n", server.url,
			server.admission.token.wanted ? "" : " without a token, to every user of this host");
		r = loop_run(&m->loop, &m->ends, e);
		stop_close(&stop);
	}
	http_server_close(&server);
	return r;
}

static int run_http_server(const struct settings *s, struct err *e)
{
	struct mcp m;
	int        r;

	if (mcp_open(&m, s, e) < 0)
		return -1;
	m.metrics = metrics_create();
	r         = serve_http(&m, e);
	metrics_destroy(m.metrics);
	m.metrics = NULL;
	mcp_close(&m);
	return r;
}

int main(int argc, char **argv)
{
	scoped_settings s = { 0 };
	struct err      e = { 0 };

	if (file_open_standard_fds() < 0) {
		fprintf(stderr, "brig-mcp: descriptors 0 to 2: %s\n", strerror(errno));
		return STATUS_FAILED;
	}
	if (settings_load(&s, argc, argv, &e) < 0) {
		fprintf(stderr, "brig-mcp: %s\n", e.text);
		return settings_exit_status(&e);
	}
	for (size_t i = 0; i < json_array_size(s.notes); i++)
		fprintf(stderr, "brig-mcp: %s\n", json_string_value(json_array_get(s.notes, i)));
	if (run_http_server(&s, &e) == 0)
		return STATUS_OK;
	fprintf(stderr, "brig-mcp: %s\n", e.text);
	return STATUS_FAILED;
}
