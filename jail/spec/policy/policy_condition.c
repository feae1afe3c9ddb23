/* policy_condition.c - conditions: arg1 without SOCK_CLOEXEC in SOCK_STREAM SOCK_DGRAM and ... */
#include "policy_parser.h"
#include "policy_value.h"
#include "text.h"

#include <errno.h>
#include <string.h>

struct values {
	size_t   n;
	uint32_t value[POLICY_TEST_VALUES];
	uint32_t bits; /* all of them or-ed */
	bool     too_many;
};

static void keep_value(void *context, uint32_t value)
{
	struct values *v = context;

	v->bits |= value;
	for (size_t i = 0; i < v->n; i++)
		if (v->value[i] == value)
			return;
	if (v->n == POLICY_TEST_VALUES)
		v->too_many = true;
	else
		v->value[v->n++] = value;
}

static int take_values(struct policy_parser *p, struct values *ret)
{
	*ret = (struct values){ 0 };
	while (policy_peek(p) && !policy_is_keyword(policy_peek(p)))
		if (!policy_value_each(policy_take(p), keep_value, ret))
			return policy_refuse(p, "\"%s\" is no value known here; write its number", p->words->word[p->at - 1].text);
	if (ret->n == 0)
		return policy_refuse(p, "expected values, like TCGETS or 0x5401");
	return ret->too_many ? policy_refuse(p, "more than %d values; split the statement", POLICY_TEST_VALUES) : 0;
}

static int take_mask(struct policy_parser *p, uint32_t *mask)
{
	bool          without = policy_take_if(p, "without");
	struct values v;

	*mask = UINT32_MAX;
	if (!without && !policy_take_if(p, "of"))
		return 0;
	if (take_values(p, &v) < 0)
		return -1;
	*mask = without ? ~v.bits : v.bits;
	return 0;
}

static int take_test_has_no(struct policy_parser *p, struct policy_test *ret)
{
	struct values v;

	if (!policy_take_if(p, "no"))
		return policy_refuse(p, "expected \"has no FLAGS\"");
	if (take_values(p, &v) < 0)
		return -1;
	ret->mask = v.bits;
	ret->n    = 1;
	return 0;
}

static int take_test_in(struct policy_parser *p, struct policy_test *ret)
{
	struct values v;

	if (take_mask(p, &ret->mask) < 0)
		return -1;
	if (!policy_take_if(p, "in"))
		return policy_refuse(p, "expected argN [of BITS | without FLAGS] in VALUES, or argN has no FLAGS");
	if (take_values(p, &v) < 0)
		return -1;
	for (size_t i = 0; i < v.n; i++)
		if (v.value[i] & ~ret->mask)
			return policy_refuse(p, "0x%x can never match: the condition looks at 0x%x only", v.value[i], ret->mask);
	memcpy(ret->value, v.value, sizeof v.value);
	ret->n = v.n;
	return 0;
}

static int take_test(struct policy_parser *p, struct policy_test *ret)
{
	const char *word = policy_take(p);

	if (!word || !begins_with(word, "arg") || word[3] < '0' || word[3] > '5' || word[4])
		return policy_refuse(p, "expected arg0 to arg5 after \"if\" and \"and\"");
	*ret = (struct policy_test){ .arg = (unsigned)(word[3] - '0') };
	return policy_take_if(p, "has") ? take_test_has_no(p, ret) : take_test_in(p, ret);
}

/* "if TEST and TEST"; n stays 0 when there is none. */
int policy_take_condition(struct policy_parser *p, struct policy_clause *ret)
{
	*ret = (struct policy_clause){ 0 };
	if (!policy_take_if(p, "if"))
		return 0;
	do {
		if (ret->n == POLICY_CLAUSE_TESTS)
			return policy_refuse(p, "more than %d tests in a condition", POLICY_CLAUSE_TESTS);
		if (take_test(p, &ret->test[ret->n++]) < 0)
			return -1;
	} while (policy_take_if(p, "and"));
	return 0;
}

int policy_take_errno(struct policy_parser *p, int *ret)
{
	const char *name = policy_take(p);

	*ret = name ? policy_errno_number(name) : 0;
	return *ret ? 0 : policy_refuse(p, "expected an errno, like EPERM or ENOSYS");
}

int policy_take_else(struct policy_parser *p, int *ret)
{
	*ret = 0;
	if (!policy_take_if(p, "else"))
		return 0;
	return policy_take_if(p, "errno") ? policy_take_errno(p, ret) : policy_refuse(p, "expected \"else errno NAME\"");
}

int policy_take_end(struct policy_parser *p)
{
	return policy_peek(p) ? policy_refuse(p, "\"%s\" is left over", policy_take(p)) : 0;
}
