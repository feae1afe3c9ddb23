#include "policy_parser.h"

#include <stdarg.h>
#include <string.h>

int policy_err(struct policy_parser *p, const char *fmt, ...)
{
	size_t  last = p->at ? p->at - 1 : 0;
	char    text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return err_set(p->e, ERR_BAD_SPEC, "%s:%u: %s", p->source->where, p->words->word[last].line, text);
}

const char *policy_peek_word(const struct policy_parser *p)
{
	return p->at < p->words->n ? p->words->word[p->at].text : NULL;
}

const char *policy_next_word(struct policy_parser *p)
{
	return p->at < p->words->n ? p->words->word[p->at++].text : NULL;
}

bool policy_accept_word(struct policy_parser *p, const char *word)
{
	bool is = policy_peek_word(p) && strcmp(policy_peek_word(p), word) == 0;

	p->at += is;
	return is;
}

bool policy_is_keyword(const char *word)
{
	static const char *const keywords[] = { "if", "else", "and", "in", "of", "without", "has", "no", "errno" };

	for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
		if (strcmp(keywords[i], word) == 0)
			return true;
	return false;
}
