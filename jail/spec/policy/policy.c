/* policy.c - what the statements of a policy do */
#include "policy_parser.h"
#include "text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- what statements do --- */

/* Replaces all that earlier statements decided about the call. */
static void set_call_verdict(struct policy_parser *p, unsigned number, enum policy_verdict verdict, int errnum)
{
	struct policy *policy = p->policy;
	size_t         kept   = 0;

	for (size_t i = 0; i < policy->clauses; i++)
		if (policy->clause[i].call != number)
			policy->clause[kept++] = policy->clause[i];
	policy->clauses              = kept;
	policy->call[number].verdict = verdict;
	policy->call[number].errnum  = errnum;
}

static void set_call_source(struct policy_parser *p, unsigned number)
{
	p->policy->call[number].source = (int)(p->source - p->bundle->source);
	p->policy->call[number].line   = p->words->word[0].line;
}

static int allow_call(struct policy_parser *p, unsigned number)
{
	const char *reason = policy_floor_forbids_clause(&p->floor, number, NULL);

	if (reason)
		return policy_err(p, "%s cannot be allowed, at least not with all arguments: the floor forbids it (%s)",
			      p->policy->call[number].name, reason);
	set_call_verdict(p, number, POLICY_ALLOW, 0);
	return 0;
}

static int allow_call_if(struct policy_parser *p, unsigned number, struct policy_clause clause, int errnum)
{
	struct policy_call *call   = &p->policy->call[number];
	const char         *reason = policy_floor_forbids_clause(&p->floor, number, &clause);

	if (reason)
		return policy_err(p, "%s cannot be allowed so: the floor forbids it (%s)", call->name, reason);
	if (call->verdict == POLICY_ALLOW)
		return policy_err(p, "%s is allowed already, with all arguments; \"deny %s\" first to narrow it",
				  call->name, call->name);
	if (p->policy->clauses == POLICY_CLAUSES)
		return policy_err(p, "more than %d conditions in a policy", POLICY_CLAUSES);
	clause.call   = number;
	call->verdict = POLICY_WHEN;
	call->errnum  = errnum ? errnum : call->errnum;
	p->policy->clause[p->policy->clauses++] = clause;
	return 0;
}

static int parse_allow(struct policy_parser *p)
{
	struct policy_clause   clause;
	struct policy_call_set set;
	int                    errnum;

	if (policy_parse_calls(p, &set) < 0 || policy_parse_condition(p, &clause) < 0 ||
	    policy_parse_else(p, &errnum) < 0 ||
	    policy_expect_end(p) < 0)
		return -1;
	if (errnum && clause.n == 0)
		return policy_err(p, "\"else\" without \"if\"");
	for (unsigned i = 0; i < POLICY_CALLS; i++) {
		if (!set.has[i])
			continue;
		if ((clause.n ? allow_call_if(p, i, clause, errnum) : allow_call(p, i)) < 0)
			return -1;
		set_call_source(p, i);
	}
	return 0;
}

static void remove_test_values(struct policy_test *from, const struct policy_test *what)
{
	size_t kept = 0;

	for (size_t i = 0; i < from->n; i++) {
		bool listed = false;

		for (size_t k = 0; k < what->n; k++)
			listed |= what->value[k] == from->value[i];
		if (!listed)
			from->value[kept++] = from->value[i];
	}
	from->n = kept;
}

/* Values can only be removed from lists of values: a test cannot express "all but these". */
static int deny_call_values(struct policy_parser *p, unsigned number, const struct policy_clause *what)
{
	struct policy_call *call = &p->policy->call[number];

	if (what->n != 1)
		return policy_err(p, "deny takes a condition with one test");
	if (call->verdict == POLICY_ALLOW)
		return policy_err(p, "%s is allowed with all arguments; deny it, then allow values", call->name);
	for (size_t i = 0; i < p->policy->clauses; i++) {
		struct policy_clause *clause = &p->policy->clause[i];
		struct policy_test   *test   = NULL;

		if (clause->call != number)
			continue;
		for (size_t k = 0; k < clause->n && !test; k++)
			if (clause->test[k].arg == what->test[0].arg && clause->test[k].mask == what->test[0].mask)
				test = &clause->test[k];
		if (!test)
			return policy_err(p, "%s is allowed by a condition on other bits; deny it, then allow values",
					  call->name);
		remove_test_values(test, &what->test[0]);
	}
	return 0;
}

static int parse_deny(struct policy_parser *p)
{
	struct policy_clause   what;
	struct policy_call_set set;

	if (policy_parse_calls(p, &set) < 0 || policy_parse_condition(p, &what) < 0 || policy_expect_end(p) < 0)
		return -1;
	for (unsigned i = 0; i < POLICY_CALLS; i++) {
		if (!set.has[i])
			continue;
		if (what.n == 0)
			set_call_verdict(p, i, POLICY_REFUSE, 0);
		else if (deny_call_values(p, i, &what) < 0)
			return -1;
		set_call_source(p, i);
	}
	return 0;
}

/* "errno NAME CALLS", "skip CALLS", "kill CALLS" */
static int parse_verdict(struct policy_parser *p)
{
	const char            *word    = p->words->word[0].text;
	enum policy_verdict    verdict = strcmp(word, "skip") == 0 ? POLICY_SKIP : strcmp(word, "kill") == 0 ? POLICY_KILL : POLICY_REFUSE;
	struct policy_call_set set;
	int                    errnum = 0;

	if (verdict == POLICY_REFUSE && policy_parse_errno(p, &errnum) < 0)
		return -1;
	if (policy_parse_calls(p, &set) < 0 || policy_expect_end(p) < 0)
		return -1;
	for (unsigned i = 0; i < POLICY_CALLS; i++) {
		/* SKIP reports success: a program must not believe that a forbidden call was made. */
		const char *reason = set.has[i] && verdict == POLICY_SKIP ?
			policy_floor_forbids_clause(&p->floor, i, NULL) : NULL;

		if (reason)
			return policy_err(p, "%s cannot be skipped: the floor forbids it (%s)",
					  p->policy->call[i].name, reason);
		if (set.has[i]) {
			set_call_verdict(p, i, verdict, errnum);
			set_call_source(p, i);
		}
	}
	return 0;
}

static int parse_default(struct policy_parser *p)
{
	if (!policy_accept_word(p, "errno"))
		return policy_err(p, "expected \"default errno NAME\"");
	if (p->default_is_set)
		return policy_err(p, "the default was set before; a policy has one");
	p->default_is_set = true;
	return policy_parse_errno(p, &p->policy->default_errnum) < 0 ? -1 : policy_expect_end(p);
}

/* A second "group NAME: ..." adds to the group. */
static int parse_group(struct policy_parser *p)
{
	const char             *word = policy_next_word(p);
	size_t                  len  = word ? strlen(word) : 0;
	char                    name[POLICY_WORD_MAX + 1];
	struct policy_call_set *known, set;

	if (len < 2 || word[len - 1] != ':')
		return policy_err(p, "expected \"group NAME: calls\"");
	snprintf(name, sizeof name, "%.*s", (int)len - 1, word);
	if (!text_is_name(name))
		return policy_err(p, "\"%s\" is not a valid group name; use a-z, 0-9, '-'", name);
	if (policy_parse_calls(p, &set) < 0 || policy_expect_end(p) < 0)
		return -1;
	known = policy_find_group(p, name);
	if (!known && p->groups == POLICY_GROUPS_MAX)
		return policy_err(p, "more than %d groups", POLICY_GROUPS_MAX);
	if (!known) {
		memcpy(p->group[p->groups].name, name, sizeof name);
		known = &p->group[p->groups++].calls;
	}
	for (size_t i = 0; i < POLICY_CALLS; i++)
		known->has[i] |= set.has[i];
	return 0;
}

static int parse_source(struct policy_parser *p, const struct policy_source *source);

static int parse_include(struct policy_parser *p)
{
	const char                 *name  = policy_next_word(p);
	const struct policy_source *found = name ? policy_bundle_find(p->bundle, name) : NULL;

	if (!found)
		return policy_err(p, "expected the name of a policy to include");
	if (policy_expect_end(p) < 0)
		return -1;
	size_t i = (size_t)(found - p->bundle->source);
	if (p->begun[i] && !p->done[i])
		return policy_err(p, "%s is being read already: they include each other", found->where);
	return p->done[i] ? 0 : parse_source(p, found);
}

/* clang-format off */
static const struct {
	const char *word;
	int       (*read)(struct policy_parser *);
	bool        may_extend; /* allowed in policy_extend of a profile */
} statements[] = {
	{ "allow",   parse_allow,   true },
	{ "deny",    parse_deny,    true },
	{ "errno",   parse_verdict, true },
	{ "skip",    parse_verdict, true },
	{ "kill",    parse_verdict, true },
	{ "default", parse_default, false },
	{ "group",   parse_group,   false },
	{ "include", parse_include, false },
};
/* clang-format on */

static int parse_statement(struct policy_parser *p)
{
	const char *word = policy_next_word(p);

	for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
		if (strcmp(statements[i].word, word) != 0)
			continue;
		if (p->source->extends && !statements[i].may_extend)
			return policy_err(p, "\"%s\" is for policy files; a profile may use allow, deny, errno, skip or kill", word);
		return statements[i].read(p);
	}
	return policy_err(p, "\"%s\": expected allow, deny, errno, skip, kill, default, group or include", word);
}

static int parse_statements(struct policy_parser *p, struct policy_words *words)
{
	struct policy_reader r = policy_reader_init(p->source->where, p->source->text, p->source->len);
	int                  more;

	while ((more = policy_words_next(&r, words, p->e)) > 0) {
		p->words = words;
		p->at    = 0;
		if (parse_statement(p) < 0)
			return -1;
	}
	return more;
}

/* The words are on the heap, since includes recurse. */
static int parse_source(struct policy_parser *p, const struct policy_source *source)
{
	const struct policy_source *before       = p->source;
	const struct policy_words  *words_before = p->words;
	size_t                      at_before = p->at, i = (size_t)(source - p->bundle->source);
	struct policy_words        *words = malloc(sizeof *words);

	if (!words)
		return err_sys(p->e, "read %s", source->where);
	p->source   = source;
	p->begun[i] = true;
	int answer  = parse_statements(p, words);
	p->done[i]  = true;
	p->source   = before;
	p->words    = words_before;
	p->at       = at_before;
	free(words);
	return answer;
}

static int parse_bundle(struct policy_parser *p)
{
	policy_floor_apply(&p->floor, p->policy);
	if (parse_source(p, &p->bundle->source[0]) < 0)
		return -1;
	for (size_t i = 1; i < p->bundle->n; i++)
		if (p->bundle->source[i].extends && parse_source(p, &p->bundle->source[i]) < 0)
			return -1;
	return 0;
}

int policy_parse(struct policy *ret, const struct policy_bundle *b, policy_number_fn *number, struct err *e)
{
	struct policy        *policy = calloc(1, sizeof *policy);
	struct policy_parser *p      = calloc(1, sizeof *p);
	int                   answer = -1;

	if (b->n == 0)
		err_set(e, ERR_BROKEN, "a policy without a text");
	else if (!policy || !p)
		err_sys(e, "parse %s", b->source[0].where);
	else {
		policy->default_errnum = EPERM;
		policy->sources        = b->n;
		for (size_t i = 0; i < b->n; i++)
			memcpy(policy->source[i], b->source[i].where, sizeof policy->source[i]);
		for (size_t i = 0; i < POLICY_CALLS; i++)
			policy->call[i].source = POLICY_BY_DEFAULT;
		*p = (struct policy_parser){ .policy = policy, .bundle = b, .number = number, .floor = policy_floor_init(number), .e = e };
		answer = parse_bundle(p);
	}
	if (answer == 0)
		*ret = *policy;
	free(p);
	free(policy);
	return answer;
}

bool policy_clause_can_hold(const struct policy_clause *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->test[i].n == 0)
			return false;
	return true;
}

static bool test_may_hold(const struct policy_test *t, const struct bpf_look *look)
{
	for (size_t i = 0; i < t->n; i++)
		if (!(look->seen & 1u << t->arg) || (look->arg[t->arg] & t->mask) == t->value[i])
			return true;
	return false;
}

static bool clause_may_hold(const struct policy_clause *c, const struct bpf_look *look)
{
	for (size_t i = 0; i < c->n; i++)
		if (!test_may_hold(&c->test[i], look))
			return false;
	return true;
}

bool policy_may_allow(const struct policy *p, unsigned call, const struct bpf_look *look)
{
	enum policy_verdict verdict = p->call[call].verdict;

	for (size_t i = 0; verdict == POLICY_WHEN && i < p->clauses; i++)
		if (p->clause[i].call == call && clause_may_hold(&p->clause[i], look))
			return true;
	return verdict == POLICY_ALLOW || verdict == POLICY_SKIP;
}

int policy_call_errnum(const struct policy *p, const struct policy_call *call)
{
	return call->errnum ? call->errnum : p->default_errnum;
}
