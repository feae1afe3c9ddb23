#include "tool_policy.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *tool_verdict_name(enum tool_verdict v)
{
	static const char *const names[] = { [TOOL_ALLOW] = "allow", [TOOL_ASK] = "ask", [TOOL_DENY] = "deny" };

	return names[v];
}

/* Up to the ends. */
static bool wildcard_matches(const char *pattern, const char *pattern_end, const char *text, const char *text_end)
{
	const char *star = NULL, *from = NULL; /* the last '*', and where its text ends so far */

	while (text < text_end) {
		if (pattern < pattern_end && *pattern == '*') {
			star = pattern++;
			from = text;
		} else if (pattern < pattern_end && (*pattern == '?' || *pattern == *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star + 1;
			text    = ++from;
		} else {
			return false;
		}
	}
	return pattern + strspn(pattern, "*") >= pattern_end;
}

bool tool_pattern_matches(const char *pattern, const char *text)
{
	return wildcard_matches(pattern, pattern + strlen(pattern), text, text + strlen(text));
}

/* Server and tool apart, at the last dot of the pattern: as one text, io.git.* would fit the tool git.wipe of a server io. */
static bool matches_server_and_tool(const char *pattern, const char *text, const char *tool)
{
	const char *dot = strrchr(pattern, '.');

	return dot && wildcard_matches(pattern, dot, text, tool - 1) && tool_pattern_matches(dot + 1, tool);
}

bool tool_pattern_is_valid(const char *pattern)
{
	for (const char *p = pattern; *p; p++)
		if ((unsigned char)*p <= 0x20 || *p == 0x7f)
			return false;
	return strchr(pattern, '.') || strcmp(pattern, "*") == 0;
}

/* A tool has two names, its own and the one in Python: a pattern may be written for either. is_strict: the pattern allows something. */
static bool pattern_matches_tool(const char *pattern, const struct catalog_tool *t, bool is_strict)
{
	if (!is_strict || strcmp(pattern, "*") == 0)
		return tool_pattern_matches(pattern, t->full) || tool_pattern_matches(pattern, t->own);
	return matches_server_and_tool(pattern, t->full, strchr(t->full, '.') + 1) || matches_server_and_tool(pattern, t->own, t->own + strlen(t->own) - strlen(t->name));
}

static enum tool_verdict verdict_by_hints(const struct catalog_tool *t, char *why, size_t len)
{
	if (t->read_only) {
		snprintf(why, len, "it only reads (readOnlyHint)");
		return TOOL_ALLOW;
	}
	if (!t->destructive) {
		snprintf(why, len, "it destroys nothing (destructiveHint)");
		return TOOL_ALLOW;
	}
	snprintf(why, len, "it may change or destroy something: it is not marked as read-only");
	return TOOL_ASK;
}

static enum tool_verdict verdict_by_default(enum tool_other other, const struct catalog_tool *t, char *why, size_t len)
{
	static const enum tool_verdict verdicts[] = { [TOOL_OTHER_ALLOW] = TOOL_ALLOW, [TOOL_OTHER_ASK] = TOOL_ASK, [TOOL_OTHER_DENY] = TOOL_DENY };

	if (other == TOOL_OTHER_HINTS)
		return verdict_by_hints(t, why, len);
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
		size_t  k;
		json_t *pattern;

		json_array_foreach(rows[i].list, k, pattern) {
			if (!pattern_matches_tool(json_string_value(pattern), t, rows[i].verdict == TOOL_ALLOW))
				continue;
			snprintf(why, len, "--%s-tools %.80s", tool_verdict_name(rows[i].verdict), json_string_value(pattern));
			return rows[i].verdict;
		}
	}
	return verdict_by_default(p->other, t, why, len);
}
