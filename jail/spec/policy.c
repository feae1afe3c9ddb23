#include "policy.h"

#include "policy_floor.h"
#include "policy_value.h"
#include "policy_words.h"
#include "text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_MAX 64

struct call_set {
	bool has[POLICY_CALLS];
};

struct parser {
	struct policy              *policy;
	const struct policy_bundle *bundle;
	const struct policy_source *source; /* being read */
	policy_number_fn           *number;
	struct policy_floor         floor;
	bool                        begun[POLICY_SOURCES_MAX], done[POLICY_SOURCES_MAX], default_said;
	size_t                      groups;
	struct {
		char            name[POLICY_WORD_MAX + 1];
		struct call_set calls;
	} group[GROUPS_MAX];
	const struct policy_words *words;
	size_t                     at; /* next word of the statement */
	struct err                *e;
};

static int printf_like(2, 3) refuse(struct parser *p, const char *fmt, ...)
{
	size_t  last = p->at ? p->at - 1 : 0;
	char    text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	return err_set(p->e, ERR_BAD_SPEC, "%s:%u: %s", p->source->where, p->words->word[last].line, text);
}

static const char *peek(const struct parser *p)
{
	return p->at < p->words->n ? p->words->word[p->at].text : NULL;
}

static const char *take(struct parser *p)
{
	return p->at < p->words->n ? p->words->word[p->at++].text : NULL;
}

static bool take_if(struct parser *p, const char *word)
{
	bool is = peek(p) && strcmp(peek(p), word) == 0;

	p->at += is;
	return is;
}

static bool is_keyword(const char *word)
{
	static const char *const keywords[] = { "if", "else", "and", "in", "of", "without", "has", "no", "errno" };

	for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
		if (strcmp(keywords[i], word) == 0)
			return true;
	return false;
}

/* --- words that name calls: read, 462, @file-read, ?statmount --- */

static int add_call(struct parser *p, int number, const char *word, struct call_set *set)
{
	struct policy_call *call = &p->policy->call[number];

	if (!*call->name)
		snprintf(call->name, sizeof call->name, "%.31s", word);
	set->has[number] = true;
	return 0;
}

static int add_number(struct parser *p, const char *word, struct call_set *set)
{
	uint64_t number;

	if (text_to_u64(word, &number) < 0 || number > POLICY_NEWEST_CALL)
		return refuse(p, "%s is no number of a system call; they go from 0 to %d", word, POLICY_NEWEST_CALL);
	return add_call(p, (int)number, word, set);
}

static int add_name(struct parser *p, const char *word, struct call_set *set)
{
	bool perhaps = *word == '?';
	int  number  = p->number(word + perhaps);

	if (number > POLICY_NEWEST_CALL) /* a library that knows more than we do */
		number = POLICY_CALL_UNKNOWN;
	if (number == POLICY_CALL_NOWHERE || (number == POLICY_CALL_UNKNOWN && perhaps))
		return 0;
	if (number < 0)
		return refuse(p, "\"%s\" is no system call known here; write its number, or ?%s if it may be missing", word, word);
	return add_call(p, number, word + perhaps, set);
}

static struct call_set *find_group(struct parser *p, const char *name)
{
	for (size_t i = 0; i < p->groups; i++)
		if (strcmp(p->group[i].name, name) == 0)
			return &p->group[i].calls;
	return NULL;
}

static int add_group(struct parser *p, const char *word, struct call_set *set)
{
	const struct call_set *group = find_group(p, word + 1);

	if (!group)
		return refuse(p, "%s: no such group so far; \"group %s: ...\" makes one", word, word + 1);
	for (size_t i = 0; i < POLICY_CALLS; i++)
		set->has[i] |= group->has[i];
	return 0;
}

static int take_calls(struct parser *p, struct call_set *set)
{
	size_t first = p->at;

	*set = (struct call_set){ 0 };
	while (peek(p) && !is_keyword(peek(p))) {
		const char *word = take(p);
		int (*add)(struct parser *, const char *, struct call_set *) = *word == '@'                   ? add_group
									       : *word >= '0' && *word <= '9' ? add_number
													      : add_name;
		if (add(p, word, set) < 0)
			return -1;
	}
	return p->at > first ? 0 : refuse(p, "expected names of system calls, numbers or @groups");
}

/* --- conditions: arg1 without SOCK_CLOEXEC in SOCK_STREAM SOCK_DGRAM and ... --- */

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

static int take_values(struct parser *p, struct values *ret)
{
	*ret = (struct values){ 0 };
	while (peek(p) && !is_keyword(peek(p)))
		if (!policy_value_each(take(p), keep_value, ret))
			return refuse(p, "\"%s\" is no value known here; write its number", p->words->word[p->at - 1].text);
	if (ret->n == 0)
		return refuse(p, "expected values, like TCGETS or 0x5401");
	return ret->too_many ? refuse(p, "more than %d values; split the statement", POLICY_TEST_VALUES) : 0;
}

static int take_mask(struct parser *p, uint32_t *mask)
{
	bool          without = take_if(p, "without");
	struct values v;

	*mask = UINT32_MAX;
	if (!without && !take_if(p, "of"))
		return 0;
	if (take_values(p, &v) < 0)
		return -1;
	*mask = without ? ~v.bits : v.bits;
	return 0;
}

static int take_test_has_no(struct parser *p, struct policy_test *ret)
{
	struct values v;

	if (!take_if(p, "no"))
		return refuse(p, "expected \"has no FLAGS\"");
	if (take_values(p, &v) < 0)
		return -1;
	ret->mask = v.bits;
	ret->n    = 1;
	return 0;
}

static int take_test_in(struct parser *p, struct policy_test *ret)
{
	struct values v;

	if (take_mask(p, &ret->mask) < 0)
		return -1;
	if (!take_if(p, "in"))
		return refuse(p, "expected argN [of BITS | without FLAGS] in VALUES, or argN has no FLAGS");
	if (take_values(p, &v) < 0)
		return -1;
	for (size_t i = 0; i < v.n; i++)
		if (v.value[i] & ~ret->mask)
			return refuse(p, "0x%x can never match: the condition looks at 0x%x only", v.value[i], ret->mask);
	memcpy(ret->value, v.value, sizeof v.value);
	ret->n = v.n;
	return 0;
}

static int take_test(struct parser *p, struct policy_test *ret)
{
	const char *word = take(p);

	if (!word || strncmp(word, "arg", 3) != 0 || word[3] < '0' || word[3] > '5' || word[4])
		return refuse(p, "expected arg0 to arg5 after \"if\" and \"and\"");
	*ret = (struct policy_test){ .arg = (unsigned)(word[3] - '0') };
	return take_if(p, "has") ? take_test_has_no(p, ret) : take_test_in(p, ret);
}

/* "if TEST and TEST"; n stays 0 when there is none. */
static int take_condition(struct parser *p, struct policy_clause *ret)
{
	*ret = (struct policy_clause){ 0 };
	if (!take_if(p, "if"))
		return 0;
	do {
		if (ret->n == POLICY_CLAUSE_TESTS)
			return refuse(p, "more than %d tests in a condition", POLICY_CLAUSE_TESTS);
		if (take_test(p, &ret->test[ret->n++]) < 0)
			return -1;
	} while (take_if(p, "and"));
	return 0;
}

static int take_errno(struct parser *p, int *ret)
{
	const char *name = take(p);

	*ret = name ? policy_errno_number(name) : 0;
	return *ret ? 0 : refuse(p, "expected an errno, like EPERM or ENOSYS");
}

static int take_else(struct parser *p, int *ret)
{
	*ret = 0;
	if (!take_if(p, "else"))
		return 0;
	return take_if(p, "errno") ? take_errno(p, ret) : refuse(p, "expected \"else errno NAME\"");
}

static int take_end(struct parser *p)
{
	return peek(p) ? refuse(p, "\"%s\" is left over", take(p)) : 0;
}

/* --- what statements do --- */

static void forget_clauses(struct policy *policy, unsigned call)
{
	size_t kept = 0;

	for (size_t i = 0; i < policy->clauses; i++)
		if (policy->clause[i].call != call)
			policy->clause[kept++] = policy->clause[i];
	policy->clauses = kept;
}

/* Everything said so far about the call is replaced. */
static void say(struct parser *p, unsigned number, enum policy_verdict verdict, int errnum)
{
	struct policy_call *call = &p->policy->call[number];

	forget_clauses(p->policy, number);
	call->verdict = verdict;
	call->errnum  = errnum;
}

static void sign(struct parser *p, unsigned number)
{
	p->policy->call[number].source = (int)(p->source - p->bundle->source);
	p->policy->call[number].line   = p->words->word[0].line;
}

static int allow_always(struct parser *p, unsigned number)
{
	const char *reason = policy_floor_forbids(&p->floor, number, NULL);

	if (reason)
		return refuse(p, "%s cannot be allowed, at least not with all arguments: the floor forbids it (%s)",
			      p->policy->call[number].name, reason);
	say(p, number, POLICY_ALLOW, 0);
	return 0;
}

static int allow_when(struct parser *p, unsigned number, struct policy_clause clause, int errnum)
{
	struct policy_call *call   = &p->policy->call[number];
	const char         *reason = policy_floor_forbids(&p->floor, number, &clause);

	if (reason)
		return refuse(p, "%s cannot be allowed so: the floor forbids it (%s)", call->name, reason);
	if (call->verdict == POLICY_ALLOW)
		return refuse(p, "%s is allowed already, with all arguments; \"deny %s\" first to narrow it", call->name, call->name);
	if (p->policy->clauses == POLICY_CLAUSES)
		return refuse(p, "more than %d conditions in a policy", POLICY_CLAUSES);
	clause.call   = number;
	call->verdict = POLICY_WHEN;
	call->errnum  = errnum ? errnum : call->errnum;
	p->policy->clause[p->policy->clauses++] = clause;
	return 0;
}

static int read_allow(struct parser *p)
{
	struct policy_clause clause;
	struct call_set      set;
	int                  errnum;

	if (take_calls(p, &set) < 0 || take_condition(p, &clause) < 0 || take_else(p, &errnum) < 0 || take_end(p) < 0)
		return -1;
	if (errnum && clause.n == 0)
		return refuse(p, "\"else\" without \"if\"");
	for (unsigned i = 0; i < POLICY_CALLS; i++) {
		if (!set.has[i])
			continue;
		if ((clause.n ? allow_when(p, i, clause, errnum) : allow_always(p, i)) < 0)
			return -1;
		sign(p, i);
	}
	return 0;
}

static void remove_values(struct policy_test *from, const struct policy_test *what)
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

static struct policy_test *find_test(struct policy_clause *c, unsigned arg, uint32_t mask)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->test[i].arg == arg && c->test[i].mask == mask)
			return &c->test[i];
	return NULL;
}

/* Values can only be taken back from lists: "all but these" would have to be a list of the rest. */
static int deny_values(struct parser *p, unsigned number, const struct policy_clause *what)
{
	struct policy_call *call = &p->policy->call[number];

	if (what->n != 1)
		return refuse(p, "deny takes a condition with one test");
	if (call->verdict == POLICY_ALLOW)
		return refuse(p, "%s is allowed with all arguments; deny it, then allow values", call->name);
	for (size_t i = 0; i < p->policy->clauses; i++) {
		struct policy_clause *clause = &p->policy->clause[i];
		struct policy_test   *test   = find_test(clause, what->test[0].arg, what->test[0].mask);

		if (clause->call != number)
			continue;
		if (!test)
			return refuse(p, "%s is allowed by a condition on other bits; deny it, then allow values", call->name);
		remove_values(test, &what->test[0]);
	}
	return 0;
}

static int read_deny(struct parser *p)
{
	struct policy_clause what;
	struct call_set      set;

	if (take_calls(p, &set) < 0 || take_condition(p, &what) < 0 || take_end(p) < 0)
		return -1;
	for (unsigned i = 0; i < POLICY_CALLS; i++) {
		if (!set.has[i])
			continue;
		if (what.n == 0)
			say(p, i, POLICY_REFUSE, 0);
		else if (deny_values(p, i, &what) < 0)
			return -1;
		sign(p, i);
	}
	return 0;
}

static int read_errno(struct parser *p)
{
	struct call_set set;
	int             errnum;

	if (take_errno(p, &errnum) < 0 || take_calls(p, &set) < 0 || take_end(p) < 0)
		return -1;
	for (unsigned i = 0; i < POLICY_CALLS; i++)
		if (set.has[i]) {
			say(p, i, POLICY_REFUSE, errnum);
			sign(p, i);
		}
	return 0;
}

static int read_kill(struct parser *p)
{
	struct call_set set;

	if (take_calls(p, &set) < 0 || take_end(p) < 0)
		return -1;
	for (unsigned i = 0; i < POLICY_CALLS; i++)
		if (set.has[i]) {
			say(p, i, POLICY_KILL, 0);
			sign(p, i);
		}
	return 0;
}

static int read_default(struct parser *p)
{
	if (!take_if(p, "errno"))
		return refuse(p, "expected \"default errno NAME\"");
	if (p->default_said)
		return refuse(p, "the default was set before; a policy has one");
	p->default_said = true;
	return take_errno(p, &p->policy->default_errnum) < 0 ? -1 : take_end(p);
}

/* "group NAME: ..." again adds to the group. */
static int read_group(struct parser *p)
{
	const char      *word = take(p);
	size_t           len  = word ? strlen(word) : 0;
	char             name[POLICY_WORD_MAX + 1];
	struct call_set *known, set;

	if (len < 2 || word[len - 1] != ':')
		return refuse(p, "expected \"group NAME: calls\"");
	snprintf(name, sizeof name, "%.*s", (int)len - 1, word);
	if (!text_is_name(name))
		return refuse(p, "\"%s\" is no name for a group; use a-z, 0-9, '-'", name);
	if (take_calls(p, &set) < 0 || take_end(p) < 0)
		return -1;
	known = find_group(p, name);
	if (!known && p->groups == GROUPS_MAX)
		return refuse(p, "more than %d groups", GROUPS_MAX);
	if (!known) {
		memcpy(p->group[p->groups].name, name, sizeof name);
		known = &p->group[p->groups++].calls;
	}
	for (size_t i = 0; i < POLICY_CALLS; i++)
		known->has[i] |= set.has[i];
	return 0;
}

static int read_source(struct parser *p, const struct policy_source *source);

static int read_include(struct parser *p)
{
	const char                 *name  = take(p);
	const struct policy_source *found = name ? policy_bundle_find(p->bundle, name) : NULL;

	if (!found)
		return refuse(p, "expected the name of a policy to include");
	if (take_end(p) < 0)
		return -1;
	size_t i = (size_t)(found - p->bundle->source);
	if (p->begun[i] && !p->done[i])
		return refuse(p, "%s is being read already: they include each other", found->where);
	return p->done[i] ? 0 : read_source(p, found);
}

/* clang-format off */
static const struct {
	const char *word;
	int       (*read)(struct parser *);
	bool        may_extend; /* profiles extend: they cannot choose another base */
} statements[] = {
	{ "allow",   read_allow,   true },
	{ "deny",    read_deny,    true },
	{ "errno",   read_errno,   true },
	{ "kill",    read_kill,    true },
	{ "default", read_default, false },
	{ "group",   read_group,   false },
	{ "include", read_include, false },
};
/* clang-format on */

static int read_statement(struct parser *p)
{
	const char *word = take(p);

	for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
		if (strcmp(statements[i].word, word) != 0)
			continue;
		if (p->source->extends && !statements[i].may_extend)
			return refuse(p, "\"%s\" is for policy files; a profile may say allow, deny, errno or kill", word);
		return statements[i].read(p);
	}
	return refuse(p, "\"%s\": expected allow, deny, errno, kill, default, group or include", word);
}

static int read_statements(struct parser *p, struct policy_words *words)
{
	struct policy_reader r = policy_reader_init(p->source->where, p->source->text, p->source->len);
	int                  more;

	while ((more = policy_words_next(&r, words, p->e)) > 0) {
		p->words = words;
		p->at    = 0;
		if (read_statement(p) < 0)
			return -1;
	}
	return more;
}

/* Words live on the heap: includes nest, stacks are small. */
static int read_source(struct parser *p, const struct policy_source *source)
{
	const struct policy_source *before       = p->source;
	const struct policy_words  *words_before = p->words;
	size_t                      at_before = p->at, i = (size_t)(source - p->bundle->source);
	struct policy_words        *words = malloc(sizeof *words);

	if (!words)
		return err_sys(p->e, "read %s", source->where);
	p->source   = source;
	p->begun[i] = true;
	int answer  = read_statements(p, words);
	p->done[i]  = true;
	p->source   = before;
	p->words    = words_before;
	p->at       = at_before;
	free(words);
	return answer;
}

static int parse(struct parser *p)
{
	policy_floor_apply(&p->floor, p->policy);
	if (read_source(p, &p->bundle->source[0]) < 0)
		return -1;
	for (size_t i = 1; i < p->bundle->n; i++)
		if (p->bundle->source[i].extends && read_source(p, &p->bundle->source[i]) < 0)
			return -1;
	return 0;
}

static void policy_preset(struct policy *policy, const struct policy_bundle *b)
{
	memset(policy, 0, sizeof *policy);
	policy->default_errnum = EPERM;
	policy->sources        = b->n;
	for (size_t i = 0; i < b->n; i++)
		memcpy(policy->source[i], b->source[i].where, sizeof policy->source[i]);
	for (size_t i = 0; i < POLICY_CALLS; i++)
		policy->call[i].source = POLICY_BY_DEFAULT;
}

int policy_parse(struct policy *ret, const struct policy_bundle *b, policy_number_fn *number, struct err *e)
{
	struct policy *policy = malloc(sizeof *policy);
	struct parser *p      = calloc(1, sizeof *p);
	int            answer = -1;

	if (b->n == 0)
		err_set(e, ERR_BROKEN, "a policy without a text");
	else if (!policy || !p)
		err_sys(e, "parse %s", b->source[0].where);
	else {
		policy_preset(policy, b);
		*p = (struct parser){ .policy = policy, .bundle = b, .number = number, .floor = policy_floor_init(number), .e = e };
		answer = parse(p);
	}
	if (answer == 0)
		*ret = *policy;
	free(p);
	free(policy);
	return answer;
}

int policy_call_errnum(const struct policy *p, const struct policy_call *call)
{
	return call->errnum ? call->errnum : p->default_errnum;
}
