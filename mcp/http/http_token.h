/*
 * http_token.h - the bearer token that lets clients in.
 *
 * Only its digest is kept, so that it cannot come out of here, and digests are
 * compared: how long the comparison takes says nothing about the token.
 */
#pragma once
#include "err.h"

enum { TOKEN_MIN = 32, TOKEN_MAX = 4096 };

struct token {
	bool          wanted; /* false: everybody is let in */
	unsigned char digest[32];
};

/* Refuses one that is too short, or that no header can carry, and says how to make one. */
must_use int token_set(struct token *ret, const char *text, struct err *e);

/* authorization: the value of the header, or NULL. */
bool token_fits(const struct token *t, const char *authorization);

/* Whose handles these are, for struct channel: the same for the same token, and nothing can be learnt from it. */
void token_principal(const struct token *t, char *ret, size_t size);
