/*
 * http_token.h - the bearer token that lets clients in.
 *
 * struct token has only its digest, so that the token cannot leak from it. Digests are compared in constant time.
 */
#pragma once
#include "err.h"

enum { TOKEN_MIN = 32, TOKEN_MAX = 4096 };

struct token {
	bool          wanted; /* false: clients need none */
	unsigned char digest[32];
};

/* Refuses one that is too short, or that no header can carry, and says how to make one. */
must_use int token_set(struct token *ret, const char *text, struct err *e);

/* authorization: the value of the header, or NULL. */
bool token_fits(const struct token *t, const char *authorization);

/* The principal for struct channel: the same for the same token. The token cannot be derived from it. */
void token_principal(const struct token *t, char *ret, size_t size);
