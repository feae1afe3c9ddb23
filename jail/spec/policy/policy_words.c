#include "policy_words.h"

#include <string.h>

struct policy_reader policy_reader_init(const char *name, const void *bytes, size_t len)
{
	return (struct policy_reader){ .name = name, .at = bytes, .end = (const char *)bytes + len, .line = 1 };
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static void skip_blanks(struct policy_reader *r)
{
	while (r->at < r->end && is_blank(*r->at))
		r->at++;
	if (r->at < r->end && *r->at == '#')
		while (r->at < r->end && *r->at != '\n')
			r->at++;
}

static int read_word(struct policy_reader *r, struct policy_words *ret, struct err *e)
{
	const char *from = r->at;

	while (r->at < r->end && *r->at > ' ' && *r->at < 0x7f)
		r->at++;
	size_t len = (size_t)(r->at - from);
	if (len == 0)
		return err_set(e, ERR_BAD_SPEC, "%s:%u: byte 0x%02x has no place here; a policy is plain text", r->name, r->line,
			       (unsigned char)*from);
	if (len > POLICY_WORD_MAX)
		return err_set(e, ERR_BAD_SPEC, "%s:%u: a word of %zu bytes; the longest has %d", r->name, r->line, len, POLICY_WORD_MAX);
	if (ret->n == POLICY_WORDS_MAX)
		return err_set(e, ERR_BAD_SPEC, "%s:%u: a statement of more than %d words; begin another", r->name, r->line,
			       POLICY_WORDS_MAX);
	struct policy_word *word = &ret->word[ret->n++];
	word->line               = r->line;
	memcpy(word->text, from, len);
	word->text[len] = 0;
	return 0;
}

static int read_line(struct policy_reader *r, struct policy_words *ret, struct err *e)
{
	for (skip_blanks(r); r->at < r->end && *r->at != '\n'; skip_blanks(r))
		if (read_word(r, ret, e) < 0)
			return -1;
	if (r->at < r->end)
		r->at++;
	r->line++;
	return 0;
}

int policy_words_next(struct policy_reader *r, struct policy_words *ret, struct err *e)
{
	ret->n = 0;
	while (r->at < r->end && ret->n == 0) {
		bool indented = is_blank(*r->at);

		if (read_line(r, ret, e) < 0)
			return -1;
		if (indented && ret->n)
			return err_set(e, ERR_BAD_SPEC, "%s:%u: continues a line, but there is none before it", r->name, ret->word[0].line);
	}
	/* A line continues the statement if it begins with a blank, is empty, or is a comment. */
	while (ret->n && r->at < r->end && (is_blank(*r->at) || *r->at == '\n' || *r->at == '#'))
		if (read_line(r, ret, e) < 0)
			return -1;
	return ret->n > 0;
}
