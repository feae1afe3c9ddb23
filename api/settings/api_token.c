#include "api_token.h"

#include "base64.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define API_TOKEN_HOW \
	"make one with:  (umask 077; openssl rand -hex 32 >brig-token)  and use:  --token-file brig-token"

/* --- the file --- */

static int parse_digest(const char *text, unsigned char ret[HTTP_DIGEST_BYTES])
{
	if (strlen(text) != 2 * HTTP_DIGEST_BYTES)
		return -1;
	for (size_t i = 0; i < HTTP_DIGEST_BYTES; i++) {
		int high = text_hex_digit(text[2 * i]), low = text_hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -1;
		ret[i] = (unsigned char)(high << 4 | low);
	}
	return 0;
}

static int parse_token_option(struct api_token *t, const char *word, struct err *e)
{
	const char *equals = strchr(word, '='), *value = equals ? equals + 1 : "";

	if (begins_with(word, "profile=") && text_is_name(value)) {
		snprintf(t->profile, sizeof t->profile, "%s", value);
		return 0;
	}
	if (begins_with(word, "runs=") && text_to_u64(value, &t->runs) == 0 && t->runs)
		return 0;
	if (begins_with(word, "per_minute=") && text_to_u64(value, &t->per_minute) == 0 && t->per_minute)
		return 0;
	if (begins_with(word, "apis="))
		return interface_set_parse(value, &t->interfaces, e);
	return err_set(e, ERR_BAD_SPEC,
		       "\"%.60s\": expected profile=NAME, runs=N, per_minute=N or apis=LIST, with N from 1", word);
}

/* NAME:SHA256, already cut off from the rest of its line. */
static int parse_token_name(struct api_token *t, const char *word, struct err *e)
{
	const char *colon = strchr(word, ':');
	size_t      len   = colon ? (size_t)(colon - word) : 0;

	if (!len || len > API_TOKEN_NAME_MAX || parse_digest(colon + 1, t->digest) < 0)
		return err_set(e, ERR_BAD_SPEC,
			       "expected NAME:SHA256, a name of 1 to %d characters and the SHA-256 of its token; print "
			       "one with:  printf %%s TOKEN | sha256sum",
			       API_TOKEN_NAME_MAX);
	snprintf(t->name, sizeof t->name, "%.*s", (int)len, word);
	return text_is_visible_ascii(t->name) ? 0 : err_set(e, ERR_BAD_SPEC, "the name is not printable ASCII");
}

static int parse_api_token_line(struct api_tokens *ret, char *line, struct err *e)
{
	struct api_token *t    = &ret->row[ret->n];
	char             *rest = line, *word = strsep(&rest, " \t");

	if (ret->n == API_TOKENS_MAX)
		return err_set(e, ERR_BAD_SPEC, "more than %d tokens", API_TOKENS_MAX);
	*t = (struct api_token){ .interfaces = INTERFACE_ALL };
	if (parse_token_name(t, word, e) < 0)
		return -1;
	for (size_t i = 0; i < ret->n; i++)
		if (strcmp(ret->row[i].name, t->name) == 0 || http_digests_are_equal(ret->row[i].digest, t->digest))
			return err_set(e, ERR_BAD_SPEC, "%s: this name or this token comes twice", t->name);
	while ((word = strsep(&rest, " \t")))
		if (*word && parse_token_option(t, word, e) < 0)
			return err_wrap(e, "%s", t->name);
	ret->n++;
	return 0;
}

static int parse_bare_token(struct api_tokens *ret, const char *text, struct err *e)
{
	size_t len = strlen(text);

	if (len < API_TOKEN_MIN || len > API_TOKEN_MAX || !text_is_visible_ascii(text))
		return err_set(e, ERR_BAD_SPEC,
			       "the token has %zu characters and needs %d to %d printable ones without blanks; "
			       API_TOKEN_HOW,
			       len, API_TOKEN_MIN, API_TOKEN_MAX);
	ret->row[0] = (struct api_token){ .name = "token", .interfaces = INTERFACE_ALL };
	http_digest_text(text, ret->row[0].digest);
	ret->n = 1;
	return 0;
}

static void trim_line_end(char *line)
{
	size_t n = strlen(line);

	while (n && strchr(" \t\r", line[n - 1]))
		line[--n] = 0;
}

static bool line_counts(const char *line)
{
	return *line && *line != '#';
}

static int parse_token_lines_of(struct api_tokens *ret, char *text, struct err *e)
{
	unsigned number = 0;
	char    *line, *bare = NULL;

	while ((line = strsep(&text, "\n"))) {
		number++;
		trim_line_end(line);
		if (!line_counts(line))
			continue;
		if (bare)
			return err_set(e, ERR_BAD_SPEC, "line %u: expected one token alone, or NAME:SHA256 lines",
				       number);
		if (!strpbrk(line, ": \t") && !ret->n)
			bare = line;
		else if (parse_api_token_line(ret, line, e) < 0)
			return err_wrap(e, "line %u", number);
	}
	return bare ? parse_bare_token(ret, bare, e) : 0;
}

int api_tokens_parse(struct api_tokens *ret, const char *text, struct err *e)
{
	char *copy = strdup(text);
	int   r;

	*ret = (struct api_tokens){ .wanted = true };
	if (!copy)
		return err_set(e, ERR_LIMIT, "out of memory");
	r = parse_token_lines_of(ret, copy, e);
	explicit_bzero(copy, strlen(text));
	free(copy);
	if (r == 0 && !ret->n)
		return err_set(e, ERR_BAD_SPEC, "it has no token; " API_TOKEN_HOW);
	return r;
}

void api_tokens_set_none(struct api_tokens *ret)
{
	*ret = (struct api_tokens){ .n = 1, .row = { { .name = "everybody", .interfaces = INTERFACE_ALL } } };
}

/* --- a request --- */

static struct api_token *find_token_row(struct api_tokens *t, const char *token)
{
	unsigned char     given[HTTP_DIGEST_BYTES];
	struct api_token *found = NULL;

	http_digest_text(token, given);
	for (size_t i = 0; i < t->n; i++)
		found = http_digests_are_equal(given, t->row[i].digest) ? &t->row[i] : found;
	return found;
}

/* A client that can set no header has the token in its URL: http://any:TOKEN@host/. */
static struct api_token *find_row_of_basic(struct api_tokens *t, const char *text)
{
	size_t            len;
	char             *pair  = base64_decode(text, strlen(text), &len);
	const char       *colon = pair && strlen(pair) == len ? strchr(pair, ':') : NULL;
	struct api_token *found = colon ? find_token_row(t, colon + 1) : NULL;

	if (pair)
		explicit_bzero(pair, len);
	free(pair);
	return found;
}

struct api_token *api_tokens_find(struct api_tokens *t, const struct http_head *h)
{
	const char *given = h->authorization;

	if (!t->wanted)
		return &t->row[0];
	if (given && strncasecmp(given, "Bearer ", 7) == 0)
		return find_token_row(t, given + 7 + strspn(given + 7, " "));
	if (given && strncasecmp(given, "Basic ", 6) == 0)
		return find_row_of_basic(t, given + 6 + strspn(given + 6, " "));
	return h->x_auth_token ? find_token_row(t, h->x_auth_token) : NULL;
}
