#include "span.h"

#include <string.h>
#include <strings.h>

bool span_equals(struct span s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

bool span_begins_with(struct span s, const char *text)
{
	return s.len >= strlen(text) && strncasecmp(s.at, text, strlen(text)) == 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

bool span_is_for_cgi(struct span s, const char *name)
{
	if (s.len != strlen(name))
		return false;
	for (size_t i = 0; i < s.len; i++) {
		char a = s.at[i] == '_' ? '-' : s.at[i], b = name[i] == '_' ? '-' : name[i];

		if (strncasecmp(&a, &b, 1) != 0)
			return false;
	}
	return true;
}

struct span span_trim(struct span s)
{
	for (; s.len && is_blank(*s.at); s.len--)
		s.at++;
	while (s.len && is_blank(s.at[s.len - 1]))
		s.len--;
	return s;
}

bool span_cut(struct span *rest, char c, struct span *part)
{
	const char *at = rest->len ? memchr(rest->at, c, rest->len) : NULL;

	if (!at)
		return false;
	*part = (struct span){ rest->at, (size_t)(at - rest->at) };
	rest->len -= part->len + 1;
	rest->at = at + 1;
	return true;
}

bool span_next(struct span *list, struct span *item)
{
	if (!list->len)
		return false;
	if (!span_cut(list, ',', item)) {
		*item     = *list;
		list->len = 0;
	}
	*item = span_trim(*item);
	return true;
}
