/*
 * exchange.h - one HTTP request and its answer.
 *
 * A handler (route.h) gets it with its body whole, and answers it at once or later; meanwhile the connection is
 * suspended. When the client goes first, abandon() must end what was begun for it, and must not answer any more.
 */
#pragma once
#include "api.h"
#include "run_outcome.h"

struct route;

struct exchange {
	TAILQ_ENTRY(exchange)   link;
	struct api             *api;
	struct MHD_Connection  *connection;
	struct http_connection *wire;      /* NULL: memory was short */
	struct http_head        head;
	const struct route     *route;     /* NULL: it was refused */
	struct api_token       *token;
	char                   *argument;  /* what stands in the path for {...}; owned; "": nothing */
	size_t                  body_max;
	char                   *body;
	size_t                  body_len, body_room, seen; /* seen: with bytes that were discarded */
	bool                    is_too_large, has_begun, is_suspended, must_close, is_gone;
	json_t                 *json;      /* the body, an object; NULL: it has none */
	int                     status;    /* of the answer; 0: there is none yet */
	const char             *type;      /* of the answer; NULL: JSON */
	char                   *answer;    /* malloc'ed */
	size_t                  answer_len;
	char                   *allow;     /* the header Allow of a 405; owned */
	uint64_t                retry_after_s; /* 0: no such header */
	void                   *work;      /* of the handler, until it has answered */
	void                  (*abandon)(void *work);
};

/* The value of a parameter in the URL, decoded; malloc'ed. NULL: it is not there, or damaged. */
char *exchange_parameter(const struct exchange *x, const char *name);
bool  exchange_flag(const struct exchange *x, const char *name, bool preset); /* "true", "1"; "false", "0" */

/* Each answers; the handler must not touch its work any more. body is taken over. */
void exchange_answer(struct exchange *x, int status, json_t *body);
void exchange_answer_text(struct exchange *x, int status, const char *type, const char *text);
/* {"error": text, "message": text, "brig": {"exit_reason": code}}, which the clients of all interfaces understand. */
void exchange_refuse(struct exchange *x, int status, const char *code, const char *fmt, ...) printf_like(4, 5);
/* By a run without a result; see fault_status in exchange.c. */
void exchange_answer_fault(struct exchange *x, const struct run_outcome *o);
int  exchange_fault_status(enum interface by, enum run_fault fault);

/* --- for api_server.c --- */

/* false: there is no memory for so many bodies. */
must_use bool    exchange_add_body(struct exchange *x, const char *bytes, size_t len, size_t *all_bodies);
/* What was made of it takes as much: body_room still counts among all bodies, until the exchange ends. */
void             exchange_free_body(struct exchange *x);
/* Parses the body. false: it was refused. */
must_use bool    exchange_parse_body(struct exchange *x);
/* The client is gone: nobody needs what was begun for it. */
void             exchange_set_gone(struct exchange *x);
/* Sends the answer, or suspends the connection until there is one. */
enum MHD_Result  exchange_respond(struct exchange *x);
void             exchange_resume(struct exchange *x);
