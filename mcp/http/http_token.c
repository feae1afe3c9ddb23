#define OPENSSL_SUPPRESS_DEPRECATED /* the one-shot SHA256() would link half of libcrypto for its providers */
#include "http_token.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define TOKEN_HOW "make one with:  (umask 077; openssl rand -hex 32 >brig-token)  and say:  --token-file brig-token"

static void digest(const char *text, unsigned char ret[32])
{
	SHA256_CTX sha;

	SHA256_Init(&sha);
	SHA256_Update(&sha, text, strlen(text));
	SHA256_Final(ret, &sha);
}

static bool is_plain(const char *text)
{
	for (; *text; text++)
		if (*text <= 0x20 || *text >= 0x7f)
			return false;
	return true;
}

int token_set(struct token *ret, const char *text, struct err *e)
{
	size_t len = strlen(text);

	if (!len)
		return err_set(e, ERR_BAD_SPEC, "HTTP needs a bearer token; " TOKEN_HOW "; or, on a loopback address only:  --insecure-loopback");
	if (len < TOKEN_MIN)
		return err_set(e, ERR_BAD_SPEC, "the bearer token has %zu characters and needs at least %d; " TOKEN_HOW, len, TOKEN_MIN);
	if (len > TOKEN_MAX || !is_plain(text))
		return err_set(e, ERR_BAD_SPEC, "the bearer token must be at most %d printable ASCII characters without blanks; " TOKEN_HOW, TOKEN_MAX);
	ret->wanted = true;
	digest(text, ret->digest);
	return 0;
}

bool token_fits(const struct token *t, const char *authorization)
{
	unsigned char given[32], differ = 0;

	if (!t->wanted)
		return true;
	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return false;
	digest(authorization + 7 + strspn(authorization + 7, " "), given);
	for (size_t i = 0; i < sizeof given; i++)
		differ |= (unsigned char)(given[i] ^ t->digest[i]);
	return !differ;
}

/* A digest of the digest: this name is written into logs. */
void token_principal(const struct token *t, char *ret, size_t size)
{
	unsigned char name[32];
	SHA256_CTX    sha;
	size_t        n = (size_t)snprintf(ret, size, t->wanted ? "http-" : "http");

	SHA256_Init(&sha);
	SHA256_Update(&sha, t->digest, sizeof t->digest);
	SHA256_Final(name, &sha);
	for (size_t i = 0; t->wanted && i < 16 && n + 2 < size; i++, n += 2)
		(void)snprintf(ret + n, size - n, "%02x", name[i]);
}
