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

static void add_value(void *context, uint32_t value)
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

static int parse_values(struct policy_parser *p, struct values *ret)
{
	*ret = (struct values){ 0 };
	while (policy_peek_word(p) && !policy_is_keyword(policy_peek_word(p)))
		if (!policy_value_for_each(policy_next_word(p), add_value, ret))
			return policy_err(p, "\"%s\" is not a known value; write its number",
					  p->words->word[p->at - 1].text);
	if (ret->n == 0)
		return policy_err(p, "expected values, like TCGETS or 0x5401");
	return ret->too_many ? policy_err(p, "more than %d values; split the statement", POLICY_TEST_VALUES) : 0;
}

static int parse_mask(struct policy_parser *p, uint32_t *mask)
{
	bool          without = policy_accept_word(p, "without");
	struct values v;

	*mask = UINT32_MAX;
	if (!without && !policy_accept_word(p, "of"))
		return 0;
	if (parse_values(p, &v) < 0)
		return -1;
	*mask = without ? ~v.bits : v.bits;
	return 0;
}

static int parse_has_no_test(struct policy_parser *p, struct policy_test *ret)
{
	struct values v;

	if (!policy_accept_word(p, "no"))
		return policy_err(p, "expected \"has no FLAGS\"");
	if (parse_values(p, &v) < 0)
		return -1;
	ret->mask = v.bits;
	ret->n    = 1;
	return 0;
}

static int parse_test_in(struct policy_parser *p, struct policy_test *ret)
{
	struct values v;

	if (parse_mask(p, &ret->mask) < 0)
		return -1;
	if (!policy_accept_word(p, "in"))
		return policy_err(p, "expected argN [of BITS | without FLAGS] in VALUES, or argN has no FLAGS");
	if (parse_values(p, &v) < 0)
		return -1;
	for (size_t i = 0; i < v.n; i++)
		if (v.value[i] & ~ret->mask)
			return policy_err(p, "0x%x can never match: the condition looks at 0x%x only", v.value[i],
					  ret->mask);
	memcpy(ret->value, v.value, sizeof v.value);
	ret->n = v.n;
	return 0;
}

static int parse_test(struct policy_parser *p, struct policy_test *ret)
{
	const char *word = policy_next_word(p);

	if (!word || !begins_with(word, "arg") || word[3] < '0' || word[3] > '5' || word[4])
		return policy_err(p, "expected arg0 to arg5 after \"if\" and \"and\"");
	*ret = (struct policy_test){ .arg = (unsigned)(word[3] - '0') };
	return policy_accept_word(p, "has") ? parse_has_no_test(p, ret) : parse_test_in(p, ret);
}

/* "if TEST and TEST"; n stays 0 when there is none. */
int policy_parse_condition(struct policy_parser *p, struct policy_clause *ret)
{
	*ret = (struct policy_clause){ 0 };
	if (!policy_accept_word(p, "if"))
		return 0;
	do {
		if (ret->n == POLICY_CLAUSE_TESTS)
			return policy_err(p, "more than %d tests in a condition", POLICY_CLAUSE_TESTS);
		if (parse_test(p, &ret->test[ret->n++]) < 0)
			return -1;
	} while (policy_accept_word(p, "and"));
	return 0;
}

int policy_parse_errno(struct policy_parser *p, int *ret)
{
	const char *name = policy_next_word(p);

	*ret = name ? policy_errno_number(name) : 0;
	return *ret ? 0 : policy_err(p, "expected an errno, like EPERM or ENOSYS");
}

int policy_parse_else(struct policy_parser *p, int *ret)
{
	*ret = 0;
	if (!policy_accept_word(p, "else"))
		return 0;
	return policy_accept_word(p, "errno") ? policy_parse_errno(p, ret) :
		policy_err(p, "expected \"else errno NAME\"");
}

int policy_expect_end(struct policy_parser *p)
{
	return policy_peek_word(p) ? policy_err(p, "\"%s\" is left over", policy_next_word(p)) : 0;
}
