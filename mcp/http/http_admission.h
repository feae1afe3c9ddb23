/*
 * http_admission.h - is a request let in? Decided from its head alone.
 *
 * Pure. Host and Origin are both compared with fixed lists. A check of Host alone would let a page of any site post to
 * localhost. A check that Origin equals Host could be defeated by DNS rebinding: the name of an attacker's page is made
 * to point at this host afterwards.
 */
#pragma once
#include "http_head.h"
#include "http_token.h"

#include <jansson.h>

struct admission {
	/* that the server listens at, allowed in Host; "": it listens at all, and none is allowed by this */
	char               address[256];
	const json_t      *allow_origin;  /* texts, exactly as browsers write them; borrowed */
	const json_t      *allow_host;    /* names, or name:port; borrowed */
	struct token       token;
	size_t             body_max;
};

enum route { ROUTE_REFUSED, ROUTE_MCP, ROUTE_HEALTH, ROUTE_METRICS, ROUTE_PREFLIGHT, ROUTE_END };

struct refusal {
	int         status;
	const char *code;      /* one word, for the metrics */
	const char *allow;     /* the header Allow of a 405; else NULL */
	char        text[320]; /* what to do instead */
};

enum route admission_choose_route(const struct admission *a, const struct http_head *h, const char *method,
				  const char *path, struct refusal *ret);

bool admission_allows_host(const struct admission *a, const char *host);
bool admission_allows_origin(const struct admission *a, const char *origin);
/* Is this an origin of --allow-origin? Its pages may read the answer (CORS). */
bool admission_is_listed_origin(const struct admission *a, const char *origin);
