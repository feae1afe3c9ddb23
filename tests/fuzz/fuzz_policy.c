/* fuzz_policy.c - any bytes as a policy and what it includes: the floor holds, and what is printed is the same policy */
#include "call_number.h"
#include "fuzz_texts.h"
#include "policy_floor.h"
#include "policy_value.h"

static void check_floor(const struct policy *p)
{
	struct policy_floor floor = policy_floor_init(call_number);

	for (unsigned i = 0; i < POLICY_CALLS; i++)
		must_about(p->call[i].name, p->call[i].verdict != POLICY_ALLOW ||
			   !policy_floor_forbids_clause(&floor, i, NULL));
	for (size_t i = 0; i < p->clauses; i++)
		must_about(p->call[p->clause[i].call].name,
			   !policy_floor_forbids_clause(&floor, p->clause[i].call, &p->clause[i]));
}

static void check_bounds(const struct policy *p)
{
	must(policy_errno_number(policy_errno_name(p->default_errnum)) == p->default_errnum);
	must(p->clauses <= POLICY_CLAUSES && p->sources <= POLICY_SOURCES_MAX);
	for (size_t i = 0; i < p->clauses; i++) {
		const struct policy_clause *c = &p->clause[i];

		must(c->call <= POLICY_NEWEST_CALL && c->n > 0 && c->n <= POLICY_CLAUSE_TESTS && p->call[c->call].verdict == POLICY_WHEN);
		for (size_t k = 0; k < c->n; k++)
			must(c->test[k].arg <= 5 && c->test[k].n <= POLICY_TEST_VALUES);
	}
	for (unsigned i = POLICY_NEWEST_CALL + 1; i < POLICY_CALLS; i++)
		must(p->call[i].verdict == POLICY_UNSET);
}

static char *print(const struct policy *p, size_t *len)
{
	char *text = NULL, *explained = NULL;
	FILE *out = open_memstream(&text, len);

	must(out && policy_print(p, out) == 0);
	fclose(out);
	out = open_memstream(&explained, &(size_t){ 0 });
	must(out && policy_explain(p, out) == 0);
	fclose(out);
	free(explained);
	return text;
}

/* A clause of which no value is left allows nothing: it is not printed. */
static bool is_empty(const struct policy_clause *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->test[i].n == 0)
			return true;
	return false;
}

static size_t count_clauses(const struct policy *p, unsigned call)
{
	size_t n = 0;

	for (size_t i = 0; i < p->clauses; i++)
		n += p->clause[i].call == call && !is_empty(&p->clause[i]);
	return n;
}

/* The answers of both, call by call; texts could agree and mean something else. */
static void must_mean_the_same(const struct policy *p, const struct policy *q)
{
	for (unsigned i = 0; i < POLICY_CALLS; i++) {
		const struct policy_call *a = &p->call[i], *b = &q->call[i];
		bool refused = a->verdict == POLICY_REFUSE || a->verdict == POLICY_WHEN;

		must_about(a->name, count_clauses(p, i) == count_clauses(q, i));
		must_about(a->name, (a->verdict == POLICY_ALLOW) == (b->verdict == POLICY_ALLOW) && (a->verdict == POLICY_KILL) == (b->verdict == POLICY_KILL));
		must_about(a->name, (a->verdict == POLICY_SKIP) == (b->verdict == POLICY_SKIP));
		must_about(a->name, !refused || policy_call_errnum(p, a) == policy_call_errnum(q, b));
	}
	must(p->default_errnum == q->default_errnum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy p, q;
	struct fuzz_texts    t = fuzz_texts_take(data, size);
	size_t               len, again;

	if (fuzz_policy_parse(&p, &t, call_number)) {
		check_bounds(&p);
		check_floor(&p);
		char *text = print(&p, &len);
		if (len <= POLICY_SOURCE_MAX) {
			must_about(text, fuzz_policy_parse(&q, &(struct fuzz_texts){ text, text, text, (char *)"" }, call_number));
			must_mean_the_same(&p, &q);
			char *twice = print(&q, &again);
			must_about(text, len == again && memcmp(text, twice, len) == 0);
			free(twice);
		}
		free(text);
	}
	fuzz_texts_done(&t);
	return 0;
}
