#define _GNU_SOURCE
#include "exchange.h"

#include "exact.h"
#include "route.h"
#include "text.h"
#include "wire.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define EXCHANGE_BODIES_MAX (256 * MIB) /* of all requests together */
#define EXCHANGE_WEIGHT_MAX 500000      /* of wire_memory_weight(): 32 MiB */

/* --- parameters --- */

/* libmicrohttpd is told to decode nothing (http_daemon.c). */
static char *decode_parameter(const char *text)
{
	char *made = malloc(strlen(text) + 1), *to = made;

	for (; made && *text; text++) {
		int high = *text == '%' ? text_hex_digit(text[1]) : -1, low = high >= 0 ? text_hex_digit(text[2]) : -1;

		if (*text == '%' && (low < 0 || high + low == 0)) {
			free(made);
			return NULL;
		}
		*to++ = (char)(*text == '%' ? high << 4 | low : *text == '+' ? ' ' : *text);
		text += *text == '%' ? 2 : 0;
	}
	if (made)
		*to = 0;
	return made;
}

char *exchange_parameter(const struct exchange *x, const char *name)
{
	const char *text = MHD_lookup_connection_value(x->connection, MHD_GET_ARGUMENT_KIND, name);

	return text ? decode_parameter(text) : NULL;
}

bool exchange_flag(const struct exchange *x, const char *name, bool preset)
{
	char *text = exchange_parameter(x, name);
	bool  on   = !text               ? preset
		     : !strcasecmp(text, "true")  ? true
		     : !strcasecmp(text, "false") ? false
						  : strcmp(text, "1") == 0;

	free(text);
	return on;
}

/* --- the body --- */

bool exchange_add_body(struct exchange *x, const char *bytes, size_t len, size_t *all_bodies)
{
	size_t room = x->body_room ? x->body_room : 4096;
	char  *grown;

	while (room < x->body_len + len)
		room *= 2;
	if (room != x->body_room) {
		grown = *all_bodies + room - x->body_room > EXCHANGE_BODIES_MAX ? NULL : realloc(x->body, room);
		if (!grown)
			return false;
		*all_bodies += room - x->body_room;
		x->body      = grown;
		x->body_room = room;
	}
	memcpy(x->body + x->body_len, bytes, len);
	x->body_len += len;
	return true;
}

void exchange_free_body(struct exchange *x)
{
	free(x->body);
	x->body     = NULL;
	x->body_len = 0;
}

bool exchange_parse_body(struct exchange *x)
{
	struct err e;

	if (wire_memory_weight(x->body ? x->body : "", x->body_len) > EXCHANGE_WEIGHT_MAX) {
		exchange_refuse(x, 413, "size", "The body has too many values");
		return false;
	}
	x->json = wire_parse_with_nul(x->body ? x->body : "", x->body_len, x->body_max, &e);
	if (x->json)
		return true;
	text_make_plain(e.text);
	exchange_refuse(x, 400, "json", "The body is not one JSON object: %s", e.text);
	return false;
}

/* --- the answer --- */

static void exchange_set_answer(struct exchange *x, int status, char *text, size_t len)
{
	free(x->answer);
	x->answer     = text;
	x->answer_len = len;
	x->status     = text ? status : 500;
	x->work       = NULL;
	exchange_resume(x);
}

void exchange_answer(struct exchange *x, int status, json_t *body)
{
	size_t len  = 0;
	char  *text = body ? json_dump_exact(body, JSON_COMPACT, &len) : NULL;

	json_decref(body);
	exchange_set_answer(x, status, text, len);
}

void exchange_answer_text(struct exchange *x, int status, const char *type, const char *text)
{
	char *copy = strdup(text);

	x->type = type;
	exchange_set_answer(x, status, copy, copy ? strlen(copy) : 0);
}

void exchange_refuse(struct exchange *x, int status, const char *code, const char *fmt, ...)
{
	char    text[640];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	text_make_plain(text); /* it may quote the request */
	api_metrics_count_refused(&x->api->metrics, code);
	exchange_answer(x, status,
			json_pack("{ss ss s{ss}}", "error", text, "message", text, "brig", "exit_reason", code));
}

/*
 * A status that makes the interface's clients send the request again, where it is brig's fault: verl repeats 504 alone,
 * NeMo-Skills 502 alone; each would take any other status as the program's failure.
 */
static const struct {
	int request, rate, busy, brig;
} fault_status[] = {
	/* clang-format off */
	[INTERFACE_run_code] = { 400, 504, 504, 504 },
	[INTERFACE_nemo]     = { 400, 502, 502, 502 },
	[INTERFACE_piston]   = { 400, 429, 503, 503 },
	[INTERFACE_judge0]   = { 422, 429, 503, 503 },
	[INTERFACE_NONE]     = { 400, 429, 503, 503 },
	/* clang-format on */
};

int exchange_fault_status(enum interface by, enum run_fault fault)
{
	switch (fault) {
	case FAULT_REQUEST:
		return fault_status[by].request;
	case FAULT_RATE:
		return fault_status[by].rate;
	case FAULT_BUSY:
		return fault_status[by].busy;
	case FAULT_NONE:
	case FAULT_BRIG:
		break;
	}
	return fault_status[by].brig;
}

void exchange_answer_fault(struct exchange *x, const struct run_outcome *o)
{
	if (o->fault == FAULT_RATE || o->fault == FAULT_BUSY)
		x->retry_after_s = (o->retry_after_ms + 999) / 1000 ? (o->retry_after_ms + 999) / 1000 : 1;
	exchange_refuse(x, exchange_fault_status(x->route->api, o->fault), o->code, "%s", o->text);
}

/* --- libmicrohttpd --- */

void exchange_resume(struct exchange *x)
{
	if (!x->is_suspended)
		return;
	x->is_suspended = false;
	MHD_resume_connection(x->connection);
	http_daemon_run_soon(&x->api->http);
}

void exchange_set_gone(struct exchange *x)
{
	x->is_gone = true;
	if (x->work)
		x->abandon(x->work);
	x->work = NULL;
	exchange_resume(x);
}

static void exchange_suspend(struct exchange *x)
{
	MHD_suspend_connection(x->connection);
	x->is_suspended = true;
	if (x->wire && x->wire->ended)
		exchange_set_gone(x);
}

static bool is_listed_origin(const struct api *a, const char *origin)
{
	for (size_t i = 0; origin && a->settings->allow_origin[i]; i++)
		if (strcasecmp(a->settings->allow_origin[i], origin) == 0)
			return true;
	return false;
}

static void exchange_add_headers(const struct exchange *x, struct MHD_Response *r)
{
	char text[24];

	(void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	(void)MHD_add_response_header(r, "Cache-Control", "no-store");
	if (x->answer_len)
		(void)MHD_add_response_header(r, "Content-Type", x->type ? x->type : "application/json");
	if (x->status == 401)
		(void)MHD_add_response_header(r, "WWW-Authenticate", "Bearer");
	if (x->allow)
		(void)MHD_add_response_header(r, "Allow", x->allow);
	if (x->must_close)
		(void)MHD_add_response_header(r, "Connection", "close");
	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)x->retry_after_s);
	if (x->retry_after_s)
		(void)MHD_add_response_header(r, "Retry-After", text);
	if (!is_listed_origin(x->api, x->head.origin))
		return;
	(void)MHD_add_response_header(r, "Access-Control-Allow-Origin", x->head.origin);
	(void)MHD_add_response_header(r, "Access-Control-Allow-Methods", "GET, POST, DELETE");
	(void)MHD_add_response_header(r, "Access-Control-Allow-Headers",
				      "authorization, content-type, x-session-id, x-auth-token");
	(void)MHD_add_response_header(r, "Vary", "Origin");
}

enum MHD_Result exchange_respond(struct exchange *x)
{
	struct MHD_Response *r;
	enum MHD_Result      done;

	if (x->is_gone)
		return MHD_NO;
	if (!x->status) {
		exchange_suspend(x);
		return MHD_YES;
	}
	r = x->answer ? MHD_create_response_from_buffer(x->answer_len, x->answer, MHD_RESPMEM_MUST_FREE)
		      : MHD_create_response_from_buffer(0, (void *)"", MHD_RESPMEM_PERSISTENT);
	if (!r)
		return MHD_NO;
	exchange_add_headers(x, r);
	x->answer = NULL;
	done      = MHD_queue_response(x->connection, (unsigned)x->status, r);
	MHD_destroy_response(r);
	return done;
}
