#include "dotenv.h"

#include "text.h"

#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"

void dotenv_init(struct dotenv *d, const char *bytes, size_t len)
{
	*d = (struct dotenv){ .at = bytes, .end = bytes + len, .next = 1 };
	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
		d->at += 3;
}

static void forget_row(struct dotenv *d)
{
	free(d->name);
	free(d->value);
	d->name = d->value = NULL;
}

void dotenv_done(struct dotenv *d)
{
	forget_row(d);
	*d = (struct dotenv){ 0 };
}

static bool is_blank(char c)
{
	return c && strchr(BLANKS, c);
}

static bool may_name(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

static const char *end_of_line(const struct dotenv *d)
{
	const char *newline = memchr(d->at, '\n', (size_t)(d->end - d->at));

	return newline ? newline : d->end;
}

static void skip_blanks(struct dotenv *d)
{
	while (d->at < d->end && is_blank(*d->at))
		d->at++;
}

/* To the beginning of the next line. */
static void skip_line(struct dotenv *d)
{
	d->at = end_of_line(d);
	if (d->at < d->end)
		d->at++;
	d->next++;
}

/* False: that line holds nothing. */
static bool begins_row(struct dotenv *d)
{
	skip_blanks(d);
	return d->at < d->end && *d->at != '\n' && *d->at != '#';
}

static char *copy(const char *from, const char *to)
{
	char *text = malloc((size_t)(to - from) + 1);

	if (text) {
		memcpy(text, from, (size_t)(to - from));
		text[to - from] = 0;
	}
	return text;
}

static const char *word_end(const struct dotenv *d)
{
	const char *p = d->at;

	while (p < d->end && may_name(*p, p == d->at))
		p++;
	return p;
}

static bool take_name(struct dotenv *d)
{
	const char *end = word_end(d);

	if (end - d->at == 6 && memcmp(d->at, "export", 6) == 0 && end < d->end && is_blank(*end)) {
		d->at = end;
		skip_blanks(d);
		end = word_end(d);
	}
	d->name = copy(d->at, end);
	d->at   = end;
	return d->name;
}

static char unescape(char c)
{
	static const char from[] = "ntr\"\\$", to[] = "\n\t\r\"\\$";
	const char       *p      = c ? strchr(from, c) : NULL;

	return p ? to[p - from] : 0;
}

/*
 * d->at is after the opening quote, and afterwards after the closing one. If that is missing d->at does not move, so that only
 * this line is skipped.
 */
static int take_quoted(struct dotenv *d, char quote, struct err *e)
{
	char       *to = d->value = malloc((size_t)(d->end - d->at) + 1);
	const char *p = d->at;
	unsigned    lines = 0;

	if (!to)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (; p < d->end && *p != quote; p++) {
		char meant = quote == '"' && *p == '\\' && p + 1 < d->end ? unescape(p[1]) : 0;

		lines += *p == '\n';
		p += meant != 0;
		*to++ = meant ? meant : *p;
	}
	*to = 0;
	if (p == d->end)
		return err_set(e, ERR_BAD_SPEC, "the quote %c is never closed", quote);
	if (memchr(d->value, 0, (size_t)(to - d->value)))
		return err_set(e, ERR_BAD_SPEC, "a NUL byte is not text");
	d->at = p + 1;
	d->next += lines;
	return 0;
}

/* A comment begins after a blank: "a#b" is a value. */
static int take_plain(struct dotenv *d, struct err *e)
{
	const char *end = end_of_line(d), *p = d->at;

	while (p < end && !(*p == '#' && (p == d->at || is_blank(p[-1]))))
		p++;
	while (p > d->at && is_blank(p[-1]))
		p--;
	if (memchr(d->at, 0, (size_t)(p - d->at)))
		return err_set(e, ERR_BAD_SPEC, "a NUL byte is not text");
	d->value = copy(d->at, p);
	d->at    = end;
	return d->value ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

static int take_value(struct dotenv *d, struct err *e)
{
	char quote = d->at < d->end && (*d->at == '"' || *d->at == '\'') ? *d->at++ : 0;

	if ((quote ? take_quoted(d, quote, e) : take_plain(d, e)) < 0)
		return -1;
	return begins_row(d) ? err_set(e, ERR_BAD_SPEC, "something stands behind the closing quote") : 0;
}

static int take_row(struct dotenv *d, struct err *e)
{
	if (!take_name(d))
		return err_set(e, ERR_LIMIT, "out of memory");
	skip_blanks(d);
	if (!*d->name || d->at == d->end || *d->at != '=')
		return err_set(e, ERR_BAD_SPEC, "expected NAME=VALUE");
	d->at++;
	skip_blanks(d);
	return take_value(d, e);
}

enum dotenv_step dotenv_next(struct dotenv *d, struct err *e)
{
	int bad;

	forget_row(d);
	while (d->at < d->end && !begins_row(d))
		skip_line(d);
	if (d->at == d->end)
		return DOTENV_END;
	d->line = d->next;
	bad     = take_row(d, e);
	skip_line(d);
	if (!bad)
		return DOTENV_ROW;
	free(d->value);
	d->value = NULL;
	if (!d->name)
		d->at = d->end;
	return DOTENV_BAD;
}
