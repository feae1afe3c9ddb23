/*
 * http_token.h - the bearer token that lets clients in.
 *
 * struct token has only its digest, so that the token cannot leak from it. Digests are compared in constant time.
 */
#pragma once
#include "err.h"

enum { TOKEN_MIN = 32, TOKEN_MAX = 4096, TOKEN_NAME_MAX = 32, TOKENS_MAX = 64 };

struct token_row {
	char          name[TOKEN_NAME_MAX + 1]; /* "": it is the only one, and has none */
	unsigned char digest[32];
};

struct token {
	bool             wanted; /* false: clients need none */
	size_t           n;
	struct token_row row[TOKENS_MAX];
};

/*
 * text: a token, or lines of NAME TOKEN, one for each client; empty lines and those that begin with # count for
 * nothing. Refuses a token that is too short, or that no header can carry, and *e has how to make one.
 */
must_use int token_parse(struct token *ret, const char *text, struct err *e);

/* authorization: the value of the header, or NULL. */
bool token_authorizes(const struct token *t, const char *authorization);

/* Has each client a token of its own? */
bool token_rows_are_named(const struct token *t);

/*
 * The principal for struct channel: of the client that has this authorization. It has the name of its token, so that it
 * stays the same when the token is changed; of a token without a name it is the same for the same token, which cannot
 * be derived from it.
 */
void token_print_principal(const struct token *t, const char *authorization, char *ret, size_t size);
