#include "tool_policy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *tool_verdict_name(enum tool_verdict v)
{
	static const char *const names[] = { [TOOL_ALLOW] = "allow", [TOOL_ASK] = "ask", [TOOL_DENY] = "deny" };

	return names[v];
}

bool tool_pattern_fits(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL; /* the last '*', and where its text ends so far */

	while (*text) {
		if (*pattern == '*') {
			star = pattern++;
			from = text;
		} else if (*pattern == '?' || *pattern == *text) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text    = ++from;
		} else {
			return false;
		}
	}
	return !pattern[strspn(pattern, "*")];
}

bool tool_pattern_is(const char *pattern)
{
	for (const char *p = pattern; *p; p++)
		if ((unsigned char)*p <= 0x20 || *p == 0x7f)
			return false;
	return strchr(pattern, '.') || strcmp(pattern, "*") == 0;
}

/* A tool has two names, its own and the one in Python: a pattern may be written for either. */
static const char *find(const json_t *list, const struct catalog_tool *t)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *pattern = json_string_value(json_array_get(list, i));

		if (tool_pattern_fits(pattern, t->full) || tool_pattern_fits(pattern, t->own))
			return pattern;
	}
	return NULL;
}

static enum tool_verdict by_hints(const struct catalog_tool *t, char *why, size_t len)
{
	if (t->read_only) {
		snprintf(why, len, "it only reads (readOnlyHint)");
		return TOOL_ALLOW;
	}
	if (!t->destructive) {
		snprintf(why, len, "it destroys nothing (destructiveHint)");
		return TOOL_ALLOW;
	}
	snprintf(why, len, "it may change or destroy something: it does not say that it only reads");
	return TOOL_ASK;
}

static enum tool_verdict by_other(enum tool_other other, const struct catalog_tool *t, char *why, size_t len)
{
	static const enum tool_verdict verdicts[] = { [TOOL_OTHER_ALLOW] = TOOL_ALLOW, [TOOL_OTHER_ASK] = TOOL_ASK, [TOOL_OTHER_DENY] = TOOL_DENY };

	if (other == TOOL_OTHER_HINTS)
		return by_hints(t, why, len);
	snprintf(why, len, "--other-tools %s", tool_verdict_name(verdicts[other]));
	return verdicts[other];
}

enum tool_verdict tool_policy_judge(const struct tool_policy *p, const struct catalog_tool *t, char *why, size_t len)
{
	const struct {
		const json_t     *list;
		enum tool_verdict verdict;
	} rows[] = { { p->deny, TOOL_DENY }, { p->ask, TOOL_ASK }, { p->allow, TOOL_ALLOW } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *pattern = find(rows[i].list, t);

		if (pattern) {
			snprintf(why, len, "--%s-tools %.80s", tool_verdict_name(rows[i].verdict), pattern);
			return rows[i].verdict;
		}
	}
	return by_other(p->other, t, why, len);
}
