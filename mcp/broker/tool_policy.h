/*
 * tool_policy.h - may a program call this tool? Pure.
 *
 * Patterns match "server.tool", where '*' stands for any text and '?' for one character. The strictest list with a match
 * decides: deny, then ask, then allow. A pattern that allows has the server before its last dot and the tool behind it, and never
 * fits another server; one that denies or asks fits the whole as well. A tool that no pattern matches is judged by `other`. By default (hints) it is allowed if
 * it says that it only reads or that it destroys nothing; else a person is asked.
 */
#pragma once
#include "catalog.h"

enum tool_verdict { TOOL_ALLOW, TOOL_ASK, TOOL_DENY };
enum tool_other { TOOL_OTHER_HINTS, TOOL_OTHER_ALLOW, TOOL_OTHER_ASK, TOOL_OTHER_DENY };

struct tool_policy {
	const json_t   *deny, *ask, *allow; /* lists of patterns; NULL: none */
	enum tool_other other;
};

const char *tool_verdict_name(enum tool_verdict v); /* "allow" */

/* why: what decided, as "--deny-tools github.*", "it may destroy (destructiveHint)". */
enum tool_verdict tool_policy_judge(const struct tool_policy *p, const struct catalog_tool *t, char *why, size_t len);

/* '*' and '?'; a text of n characters and a pattern of m take at most n times m steps. */
bool tool_pattern_matches(const char *pattern, const char *text);
/* Is this a valid pattern? It has a '.' or is "*", and has neither blanks nor control characters. */
bool tool_pattern_is_valid(const char *pattern);
