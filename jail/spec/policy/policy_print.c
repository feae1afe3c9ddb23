#include "policy.h"
#include "policy_value.h"

#include <string.h>

static void print_test(const char *call, const struct policy_test *t, FILE *out)
{
	bool most = __builtin_popcount(t->mask) > 16;
	char bits[400];

	fprintf(out, " arg%u", t->arg);
	if (t->mask != UINT32_MAX && t->n == 1 && t->value[0] == 0) {
		policy_value_print_bits(call, t->arg, t->mask, bits, sizeof bits);
		fprintf(out, " has no %s", bits);
		return;
	}
	if (t->mask != UINT32_MAX) {
		policy_value_print_bits(call, t->arg, most ? ~t->mask : t->mask, bits, sizeof bits);
		fprintf(out, " %s %s", most ? "without" : "of", bits);
	}
	fputs(" in", out);
	for (size_t i = 0; i < t->n; i++) {
		const char *name = policy_value_name(call, t->arg, t->value[i]);

		if (name)
			fprintf(out, " %s", name);
		else
			fprintf(out, t->value[i] < 10 ? " %u" : " 0x%x", t->value[i]);
	}
}

static void print_clauses(const struct policy *p, unsigned number, const char *before, FILE *out)
{
	const struct policy_call *call = &p->call[number];

	for (size_t i = 0; i < p->clauses; i++) {
		const struct policy_clause *c = &p->clause[i];

		if (c->call != number || !policy_clause_can_hold(c))
			continue;
		fprintf(out, "%sallow %s if", before, call->name);
		for (size_t k = 0; k < c->n; k++) {
			fputs(k ? " and" : "", out);
			print_test(call->name, &c->test[k], out);
		}
		fprintf(out, " else errno %s\n", policy_errno_name(policy_call_errnum(p, call)));
	}
}

static const char *const verdicts[] = {
	[POLICY_ALLOW] = "allow", [POLICY_REFUSE] = "errno", [POLICY_SKIP] = "skip", [POLICY_KILL] = "kill", [POLICY_WHEN] = "errno",
};

static void print_call(const struct policy *p, unsigned number, FILE *out)
{
	const struct policy_call *call      = &p->call[number];
	bool                      has_errno = call->verdict == POLICY_REFUSE || call->verdict == POLICY_WHEN;

	if (call->verdict == POLICY_UNSET)
		return;
	fprintf(out, "%s%s%s %s\n", verdicts[call->verdict], has_errno ? " " : "",
	        has_errno ? policy_errno_name(policy_call_errnum(p, call)) : "", call->name);
	/* The errno comes first: "deny" may have removed all values, so that no clause is printed. */
	if (call->verdict == POLICY_WHEN)
		print_clauses(p, number, "", out);
}

int policy_print(const struct policy *p, FILE *out)
{
	fprintf(out, "default errno %s\n", policy_errno_name(p->default_errnum));
	for (unsigned i = 0; i < POLICY_CALLS; i++)
		print_call(p, i, out);
	return ferror(out) ? -1 : 0;
}

/* Prints the calls of a source with the same verdict, wrapped. Returns how many. */
static size_t print_calls_of_verdict(const struct policy *p, int source, enum policy_verdict verdict, int errnum,
				     FILE *out)
{
	char   head[64];
	size_t column = 0, n = 0;

	snprintf(head, sizeof head, "  %s%s%s", verdicts[verdict], errnum ? " " : "", errnum ? policy_errno_name(errnum) : "");
	for (unsigned i = 0; i < POLICY_CALLS; i++) {
		const struct policy_call *call = &p->call[i];

		if (call->source != source || call->verdict != verdict ||
		    (verdict == POLICY_REFUSE && policy_call_errnum(p, call) != errnum))
			continue;
		if (column == 0 || column + strlen(call->name) + 1 > 100)
			column = (size_t)fprintf(out, n ? "\n\t" : "%s", head);
		column += (size_t)fprintf(out, n && column == 2 ? "%s" : " %s", call->name);
		n++;
	}
	if (n)
		fputc('\n', out);
	return n;
}

static void explain_source(const struct policy *p, int source, const char *title, FILE *out)
{
	char before[32];
	bool is_empty = true;

	for (unsigned i = 0; i < POLICY_CALLS; i++)
		is_empty &= p->call[i].source != source;
	fprintf(out, "%s%s\n", title, is_empty ? ": only groups, and statements that later files replace" : "");
	print_calls_of_verdict(p, source, POLICY_ALLOW, 0, out);
	for (unsigned i = 0; i < POLICY_CALLS; i++)
		if (p->call[i].source == source && p->call[i].verdict == POLICY_WHEN) {
			snprintf(before, sizeof before, "  line %u: ", p->call[i].line);
			print_clauses(p, i, before, out);
		}
	for (int errnum = 1; errnum < 134; errnum++)
		print_calls_of_verdict(p, source, POLICY_REFUSE, errnum, out);
	print_calls_of_verdict(p, source, POLICY_SKIP, 0, out);
	print_calls_of_verdict(p, source, POLICY_KILL, 0, out);
}

int policy_explain(const struct policy *p, FILE *out)
{
	explain_source(p, POLICY_BY_FLOOR, "floor, which nothing can remove", out);
	for (size_t i = p->sources; i-- > 0;)
		explain_source(p, (int)i, p->source[i], out);
	fprintf(out, "every other call\n  errno %s; numbers above %d: errno ENOSYS; i386 and x32: killed\n",
		policy_errno_name(p->default_errnum), POLICY_NEWEST_CALL);
	return ferror(out) ? -1 : 0;
}
