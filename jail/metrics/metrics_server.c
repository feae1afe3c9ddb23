#define _GNU_SOURCE
#include "metrics_server.h"

#include "exposition.h"
#include "fd.h"
#include "http_daemon.h"
#include "inet.h"
#include "metrics_page.h"
#include "stop.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MEMORY_MAX (16 * KIB) /* for each connection: the head of its request, and the buffer of its answer */

struct metrics_server {
	struct loop        loop;
	struct http_daemon http;
	/* the figures of brigd, or the reason why there are none; NULL: brigd was not asked yet */
	char              *page;
	unsigned           status;
	int64_t            page_ms;
	bool               ends;
};

/* --- the page --- */

/* Requests within METRICS_FRESH_MS get the same page. */
static void refresh_metrics_page(struct metrics_server *s)
{
	int64_t    now  = loop_now_ms();
	char      *text = NULL;
	size_t     len  = 0;
	struct err e;
	FILE      *out;

	if (s->page && now - s->page_ms < METRICS_FRESH_MS)
		return;
	out = open_memstream(&text, &len);
	if (!out)
		return;
	s->status = MHD_HTTP_OK;
	if (metrics_page_print(out, METRICS_BRIGD_MS, &e) < 0) {
		s->status = MHD_HTTP_SERVICE_UNAVAILABLE;
		(void)fprintf(out, "%s\n", e.text);
	}
	(void)fclose(out);
	free(s->page);
	s->page    = text;
	s->page_ms = loop_now_ms();
}

/* --- requests --- */

static enum MHD_Result queue_text_response(struct MHD_Connection *connection, unsigned status, const char *type,
					   const char *text)
{
	struct MHD_Response *r    = MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result      done = MHD_NO;

	if (!r)
		return MHD_NO;
	if (MHD_add_response_header(r, "Content-Type", type) == MHD_YES &&
	    MHD_add_response_header(r, "Connection", "close") == MHD_YES &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED || MHD_add_response_header(r, "Allow", "GET, HEAD") == MHD_YES))
		done = MHD_queue_response(connection, status, r);
	MHD_destroy_response(r);
	return done;
}

static enum MHD_Result queue_error_response(struct MHD_Connection *connection, unsigned status, const char *text)
{
	return queue_text_response(connection, status, "text/plain; charset=utf-8", text);
}

/*
 * An address, localhost or the name of this host. By any other name it is asked by a page of that name in a browser,
 * which was made to lead here (DNS rebinding). HTTP/1.0 has no Host.
 */
static bool is_own_host(const char *host)
{
	struct sockaddr_storage address;
	socklen_t               len;
	char                    name[256], own[256] = "";

	if (!host)
		return true;
	if (!http_parse_authority_host(host, name))
		return false;
	return inet_parse_address(name, 0, &address, &len) ||
	       (gethostname(own, sizeof own - 1) == 0 && strcasecmp(name, own) == 0);
}

/*
 * Called when the head of the request is there. The answer closes the connection, whatever the client sends after the
 * head.
 */
static enum MHD_Result metrics_on_request(void *owner, struct MHD_Connection *connection, const char *path,
					  const char *method, const char *version, const char *body, size_t *body_len,
					  void **context)
{
	struct metrics_server *s   = owner;
	const char            *len = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");

	(void)version, (void)body, (void)body_len, (void)context;
	if (!is_own_host(MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host")))
		return queue_error_response(connection, MHD_HTTP_FORBIDDEN,
					    "The Host of the request does not name this server: use an address, "
					    "localhost or the name of this host\n");
	if (strcmp(path, "/metrics") != 0)
		return queue_error_response(connection, MHD_HTTP_NOT_FOUND, "There is /metrics and nothing else\n");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return queue_error_response(connection, MHD_HTTP_METHOD_NOT_ALLOWED,
					    "GET and HEAD, and nothing else\n");
	if ((len && strcmp(len, "0") != 0) ||
	    MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding"))
		return queue_error_response(connection, MHD_HTTP_BAD_REQUEST, "A request for figures has no body\n");
	refresh_metrics_page(s);
	if (!s->page)
		return queue_error_response(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
	if (s->status != MHD_HTTP_OK)
		return queue_error_response(connection, s->status, s->page);
	return queue_text_response(connection, s->status, EXPOSITION_TYPE, s->page);
}

/* --- from beginning to end --- */

static void metrics_on_signal(void *owner)
{
	((struct metrics_server *)owner)->ends = true;
}

int metrics_serve(struct metrics_listener *l, struct err *e)
{
	static const struct http_events events = { .request = metrics_on_request };
	struct metrics_server           s      = { .loop = { .fd = -1 } };
	struct stop                     stop   = { .source = { .fd = -1 } };
	int                             r      = -1;

	s.http = (struct http_daemon){ .loop            = &s.loop,
				       .events          = &events,
				       .owner           = &s,
				       .connections_max = METRICS_CONNECTIONS_MAX,
				       .first_ms        = METRICS_SCRAPE_MS };
	if (loop_open(&s.loop, e) == 0 && stop_open(&stop, &s.loop, metrics_on_signal, &s, e) == 0)
		r = http_daemon_open(&s.http, l->fd, MEMORY_MAX, e);
	if (s.http.mhd)
		fd_take(&l->fd);
	if (r == 0) {
		fprintf(stderr, "brig metrics: serving %s\n", l->name);
		r = loop_run(&s.loop, &s.ends, e);
	}
	http_daemon_close(&s.http);
	stop_close(&stop);
	loop_close(&s.loop);
	free(s.page);
	return r;
}
