/*
 * fuzz_filter.c - any bytes as a policy, compiled: the program answers as the policy says, and never lets a few calls through.
 *
 * What must never be let through is written here once more, by hand: an error in
 * the floor's own arithmetic would agree with itself.
 */
#include "call_number.h"
#include "filter.h"
#include "fuzz_texts.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

/* clang-format off */
static const struct {
	const char *call;
	unsigned    arg;
	uint32_t    value; /* with whatever else is in the other arguments */
	uint32_t    mask;  /* bits that may be anything: they are tried at random */
} never[] = {
	{ "clone",  0, CLONE_NEWUSER,  ~(uint32_t)CLONE_NEWUSER },
	{ "clone",  0, CLONE_NEWNS,    ~(uint32_t)CLONE_NEWNS },
	{ "clone",  0, CLONE_NEWNET,   ~(uint32_t)CLONE_NEWNET },
	{ "ioctl",  1, TIOCSTI,        0 },
	{ "ioctl",  1, TIOCSETD,       0 },
	{ "prctl",  0, PR_SET_SECCOMP, 0 },
	{ "prctl",  0, PR_SET_MM,      0 },
	{ "socket", 0, AF_NETLINK,     0 },
	{ "socket", 0, AF_PACKET,      0 },
	{ "socket", 1, SOCK_RAW,       ~(uint32_t)0xf },
	{ "mknod",  1, S_IFCHR,        ~(uint32_t)S_IFMT },
	{ "mknodat", 2, S_IFBLK,       ~(uint32_t)S_IFMT },
	{ "mount",  0, 0,              UINT32_MAX },
	{ "setns",  0, 0,              UINT32_MAX },
	{ "bpf",    0, 0,              UINT32_MAX },
	{ "ptrace", 0, 0,              UINT32_MAX },
	{ "io_uring_setup", 0, 0,      UINT32_MAX },
};
/* clang-format on */

/* The same numbers for the same bytes. */
static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static bool test_holds(const struct policy_test *t, const struct seccomp_data *call)
{
	for (size_t i = 0; i < t->n; i++)
		if (((uint32_t)call->args[t->arg] & t->mask) == t->value[i])
			return true;
	return false;
}

static bool clause_holds(const struct policy_clause *c, const struct seccomp_data *call)
{
	for (size_t i = 0; i < c->n; i++)
		if (!test_holds(&c->test[i], call))
			return false;
	return true;
}

static uint32_t answer(const struct policy *p, const struct seccomp_data *call)
{
	if (call->nr > POLICY_NEWEST_CALL)
		return SECCOMP_RET_ERRNO | ENOSYS;
	const struct policy_call *said = &p->call[call->nr];
	if (said->verdict == POLICY_ALLOW)
		return SECCOMP_RET_ALLOW;
	if (said->verdict == POLICY_SKIP)
		return SECCOMP_RET_ERRNO;
	if (said->verdict == POLICY_KILL)
		return SECCOMP_RET_KILL_PROCESS;
	for (size_t i = 0; i < p->clauses; i++)
		if (p->clause[i].call == (unsigned)call->nr && clause_holds(&p->clause[i], call))
			return SECCOMP_RET_ALLOW;
	return SECCOMP_RET_ERRNO | (unsigned)(said->verdict == POLICY_UNSET ? p->default_errnum : policy_call_errnum(p, said));
}

static void must_answer(const struct policy *p, const struct filter *f, struct seccomp_data call)
{
	uint32_t want = answer(p, &call), got = filter_evaluate(f, &call);
	char     text[160];

	snprintf(text, sizeof text, "call %d (0x%llx, 0x%llx, 0x%llx): 0x%x, not 0x%x", call.nr, (unsigned long long)call.args[0],
		 (unsigned long long)call.args[1], (unsigned long long)call.args[2], got, want);
	must_about(text, got == want);
}

static struct seccomp_data call_of(int nr, uint64_t *state)
{
	struct seccomp_data call = { .nr = nr, .arch = NATIVE };

	for (size_t i = 0; i < ARRAY_LEN(call.args); i++)
		call.args[i] = next(state) >> (next(state) % 64);
	return call;
}

/* Every value of every condition, with the high half of the register full of something. */
static void check_clause(const struct policy *p, const struct filter *f, const struct policy_clause *c, uint64_t *state)
{
	for (size_t i = 0; i < POLICY_TEST_VALUES; i++) {
		struct seccomp_data call = call_of((int)c->call, state);

		for (size_t k = 0; k < c->n; k++)
			if (c->test[k].n)
				call.args[c->test[k].arg] = next(state) << 32 | c->test[k].value[i % c->test[k].n] |
							    ((uint32_t)next(state) & ~c->test[k].mask);
		must_answer(p, f, call);
		call.args[c->test[0].arg] ^= 1u << (next(state) % 32);
		must_answer(p, f, call);
	}
}

static void check_never(const struct filter *f, uint64_t *state)
{
	for (size_t i = 0; i < ARRAY_LEN(never); i++)
		for (int k = 0; k < 4; k++) {
			struct seccomp_data call = call_of(call_number(never[i].call), state);

			if (k < 3 && strcmp(never[i].call, "socket") == 0) /* what is otherwise allowed, with one thing wrong */
				call.args[0] = AF_INET, call.args[1] = SOCK_STREAM, call.args[2] = 0;
			call.args[never[i].arg] = never[i].value | (k ? (uint32_t)next(state) & never[i].mask : 0);
			must_about(never[i].call, call.nr < 0 || filter_evaluate(f, &call) != SECCOMP_RET_ALLOW);
		}
}

static void check_filter(const struct policy *p, const struct filter *f, uint64_t state)
{
	must(!bpf_check(f->insn, f->len));
	for (int nr = 0; nr < POLICY_CALLS + 2; nr++)
		must_answer(p, f, call_of(nr, &state));
	for (size_t i = 0; i < p->clauses; i++)
		check_clause(p, f, &p->clause[i], &state);
	check_never(f, &state);
	struct seccomp_data foreign = { .nr = 1, .arch = AUDIT_ARCH_I386 };
	must(filter_evaluate(f, &foreign) == SECCOMP_RET_KILL_PROCESS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy p;
	struct fuzz_texts    t = fuzz_texts_take(data, size);
	scoped_filter        f = { 0 };
	struct err           e = { 0 };

	if (fuzz_policy_parse(&p, &t, call_number)) {
		if (filter_compile(&p, &f, &e) < 0)
			must_say_why(&e);
		else
			check_filter(&p, &f, 0x9e3779b97f4a7c15u ^ size);
	}
	fuzz_texts_done(&t);
	return 0;
}
