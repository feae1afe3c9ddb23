#define _GNU_SOURCE
#include "http_token.h"

#include "http_digest.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TOKEN_HOW "make one with:  (umask 077; openssl rand -hex 32 >brig-token)  and use:  --token-file brig-token"

static int check_and_digest_token(unsigned char ret[32], const char *text, struct err *e)
{
	size_t len = strlen(text);

	if (!len)
		return err_set(e, ERR_BAD_SPEC,
			       "HTTP needs a bearer token; " TOKEN_HOW
			       "; or, on a loopback address only:  --insecure-loopback");
	if (len < TOKEN_MIN)
		return err_set(e, ERR_BAD_SPEC, "the bearer token has %zu characters and needs at least %d; " TOKEN_HOW,
			       len, TOKEN_MIN);
	if (len > TOKEN_MAX || !text_is_visible_ascii(text))
		return err_set(
			e, ERR_BAD_SPEC,
			"the bearer token must be at most %d printable ASCII characters without blanks; " TOKEN_HOW,
			TOKEN_MAX);
	http_digest_text(text, ret);
	return 0;
}

static int parse_token_line(struct token *ret, char *line, unsigned number, struct err *e)
{
	size_t            n   = strcspn(line, " \t");
	struct token_row *row = &ret->row[ret->n];

	if (ret->n == TOKENS_MAX)
		return err_set(e, ERR_BAD_SPEC, "line %u: more than %d tokens", number, TOKENS_MAX);
	if (!line[n] || !n || n > TOKEN_NAME_MAX)
		return err_set(e, ERR_BAD_SPEC,
			       "line %u: expected NAME TOKEN, a name of 1 to %d characters; " TOKEN_HOW, number,
			       TOKEN_NAME_MAX);
	(void)snprintf(row->name, sizeof row->name, "%.*s", (int)n, line);
	if (!text_is_visible_ascii(row->name) ||
	    check_and_digest_token(row->digest, line + n + strspn(line + n, " \t"), e) < 0)
		return err_wrap(e, "line %u", number);
	ret->n++;
	return 0;
}

/* Overwrites the copy of the tokens that it makes. */
static int parse_token_lines(struct token *ret, const char *text, struct err *e)
{
	char    *copy = strdup(text), *rest = copy, *line;
	size_t   len  = strlen(text);
	unsigned number = 0;
	int      r      = copy ? 0 : err_set(e, ERR_LIMIT, "out of memory");

	while (r == 0 && (line = strsep(&rest, "\n"))) {
		size_t n = strlen(line);

		while (n && strchr(" \t\r", line[n - 1]))
			line[--n] = 0;
		number++;
		if (*line && *line != '#')
			r = parse_token_line(ret, line, number, e);
	}
	if (copy)
		explicit_bzero(copy, len);
	free(copy);
	return r;
}

int token_parse(struct token *ret, const char *text, struct err *e)
{
	struct token made = { .wanted = true, .n = 0 };

	if (strpbrk(text, " \t\n") ? parse_token_lines(&made, text, e) < 0
				   : check_and_digest_token(made.row[made.n++].digest, text, e) < 0)
		return -1;
	if (!made.n)
		return check_and_digest_token(made.row[0].digest, "", e);
	*ret = made;
	return 0;
}

/* All rows are compared, whichever fits. */
static const struct token_row *token_find_row(const struct token *t, const char *authorization)
{
	const struct token_row *found = NULL;
	unsigned char           given[32];

	if (!authorization || strncasecmp(authorization, "Bearer ", 7) != 0)
		return NULL;
	http_digest_text(authorization + 7 + strspn(authorization + 7, " "), given);
	for (size_t i = 0; i < t->n; i++)
		found = http_digests_are_equal(given, t->row[i].digest) ? &t->row[i] : found;
	return found;
}

bool token_authorizes(const struct token *t, const char *authorization)
{
	return !t->wanted || token_find_row(t, authorization);
}

bool token_rows_are_named(const struct token *t)
{
	return t->n && *t->row[0].name;
}

/* A digest of the digest: this name is written into logs. */
static void print_principal_of_digest(const struct token_row *row, char *ret, size_t size)
{
	unsigned char name[HTTP_DIGEST_BYTES];
	size_t        n = (size_t)snprintf(ret, size, "http-");

	http_digest_bytes(row->digest, sizeof row->digest, name);
	for (size_t i = 0; i < 16 && n + 2 < size; i++, n += 2)
		(void)snprintf(ret + n, size - n, "%02x", name[i]);
}

void token_print_principal(const struct token *t, const char *authorization, char *ret, size_t size)
{
	const struct token_row *row = t->wanted ? token_find_row(t, authorization) : NULL;

	if (row && !*row->name)
		print_principal_of_digest(row, ret, size);
	else
		(void)snprintf(ret, size, "http%s%s", row ? ":" : "", row ? row->name : "");
}
