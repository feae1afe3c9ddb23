/* policy_calls.c - names, numbers and groups of calls: read, 462, @file-read, ?statmount */
#include "policy_parser.h"
#include "text.h"

#include <string.h>

static int add_call(struct policy_parser *p, int number, const char *word, struct policy_call_set *set)
{
	struct policy_call *call = &p->policy->call[number];

	if (!*call->name)
		snprintf(call->name, sizeof call->name, "%.31s", word);
	set->has[number] = true;
	return 0;
}

/* The name is the number printed again: a word like "00...041" would be cut and become another number. */
static int add_call_by_number(struct policy_parser *p, const char *word, struct policy_call_set *set)
{
	uint64_t number;
	char     name[16];

	if (text_to_u64(word, &number) < 0 || number > POLICY_NEWEST_CALL)
		return policy_err(p, "%s is not the number of a system call; they go from 0 to %d", word,
				  POLICY_NEWEST_CALL);
	snprintf(name, sizeof name, "%u", (unsigned)number);
	return add_call(p, (int)number, name, set);
}

static int add_call_by_name(struct policy_parser *p, const char *word, struct policy_call_set *set)
{
	bool perhaps = *word == '?';
	int  number  = p->number(word + perhaps);

	if (number > POLICY_NEWEST_CALL) /* libseccomp knows a call that is newer than our table */
		number = POLICY_CALL_UNKNOWN;
	if (number == POLICY_CALL_NOWHERE || (number == POLICY_CALL_UNKNOWN && perhaps))
		return 0;
	if (number < 0)
		return policy_err(p, "\"%s\" is not a known system call; write its number, or ?%s if it may be missing", word, word);
	return add_call(p, number, word + perhaps, set);
}

struct policy_call_set *policy_find_group(struct policy_parser *p, const char *name)
{
	for (size_t i = 0; i < p->groups; i++)
		if (strcmp(p->group[i].name, name) == 0)
			return &p->group[i].calls;
	return NULL;
}

static int add_calls_of_group(struct policy_parser *p, const char *word, struct policy_call_set *set)
{
	const struct policy_call_set *group = policy_find_group(p, word + 1);

	if (!group)
		return policy_err(p, "%s: no such group so far; \"group %s: ...\" makes one", word, word + 1);
	for (size_t i = 0; i < POLICY_CALLS; i++)
		set->has[i] |= group->has[i];
	return 0;
}

int policy_parse_calls(struct policy_parser *p, struct policy_call_set *set)
{
	size_t first = p->at;

	*set = (struct policy_call_set){ 0 };
	while (policy_peek_word(p) && !policy_is_keyword(policy_peek_word(p))) {
		const char *word = policy_next_word(p);
		int         answer;
		if (*word == '@')
			answer = add_calls_of_group(p, word, set);
		else if (*word >= '0' && *word <= '9')
			answer = add_call_by_number(p, word, set);
		else
			answer = add_call_by_name(p, word, set);
		if (answer < 0)
			return -1;
	}
	return p->at > first ? 0 : policy_err(p, "expected names of system calls, numbers or @groups");
}
