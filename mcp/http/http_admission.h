/*
 * http_admission.h - who is let in, decided from the head of a request alone.
 *
 * Pure. Both Host and Origin are held against fixed lists: Host alone would not
 * stop a page elsewhere from posting to localhost, and an Origin that merely
 * has to equal Host is fooled by a name that was pointed at us afterwards
 * (DNS rebinding).
 */
#pragma once
#include "http_head.h"
#include "http_token.h"

#include <jansson.h>

struct admission {
	char               address[256];  /* that we listen at: it may be in Host; empty: any */
	const json_t      *allow_origin;  /* texts, exactly as browsers write them; borrowed */
	const json_t      *allow_host;    /* names, or name:port; borrowed */
	struct token       token;
	size_t             body_max;
};

enum route { ROUTE_REFUSED, ROUTE_MCP, ROUTE_HEALTH, ROUTE_METRICS, ROUTE_PREFLIGHT };

struct refusal {
	int         status;
	const char *code;      /* one word, for the metrics */
	const char *allow;     /* of 405; else NULL */
	char        text[320]; /* what to do instead */
};

enum route admission_decide(const struct admission *a, const struct http_head *h, const char *method, const char *path, struct refusal *ret);

bool admission_host(const struct admission *a, const char *host);
bool admission_origin(const struct admission *a, const char *origin);
/* One that was configured: a browser's page that is not of this host, and has to be told that it may read. */
bool admission_foreign(const struct admission *a, const char *origin);

/* An address that only this host can reach; "localhost" is one. */
bool address_is_loopback(const char *address);
