/*
 * api_token.h - the tokens that let clients in, and what each may do.
 *
 * A file has either one token, or a line for each client: NAME:SHA256 of its token, then any of profile=NAME, runs=N
 * (at once), per_minute=N and apis=LIST. In memory there are digests only.
 */
#pragma once
#include "http_digest.h"
#include "http_head.h"
#include "interface.h"
#include "rate_limit.h"

enum { API_TOKENS_MAX = 256, API_TOKEN_NAME_MAX = 32, API_TOKEN_MIN = 32, API_TOKEN_MAX = 4096 };

struct api_token {
	char          name[API_TOKEN_NAME_MAX + 1];
	unsigned char digest[HTTP_DIGEST_BYTES];
	char          profile[64];        /* "": that of the settings */
	uint64_t      runs, per_minute;   /* 0: no limit of its own */
	interface_set interfaces;
	uint64_t      running;            /* runs under way */
	struct rate_bucket starts;
};

struct api_tokens {
	bool             wanted; /* false: clients need none, and share row[0] */
	size_t           n;
	struct api_token row[API_TOKENS_MAX];
};

/* For a server without tokens. */
void         api_tokens_set_none(struct api_tokens *ret);
/* text: of the file. Refuses what no client could send; *e names the line. */
must_use int api_tokens_parse(struct api_tokens *ret, const char *text, struct err *e);

/*
 * The row of a request, by Authorization (Bearer TOKEN, or Basic with the token as password, as in a URL) or
 * X-Auth-Token. Every row is compared, in constant time. NULL: none.
 */
struct api_token *api_tokens_find(struct api_tokens *t, const struct http_head *h);
