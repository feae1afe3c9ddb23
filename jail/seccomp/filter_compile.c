#include "filter.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/*
 * The program, from the top:
 *
 *   prefix      a call of a foreign ABI kills the process; a number above POLICY_NEWEST_CALL: ENOSYS
 *   search      a binary search for the range of numbers that the call is in; the calls of a range have one answer
 *   conditions  one block for each call that is allowed by its arguments
 *
 * Each fork of a zygote installs the program, and the kernel translates it each time: 0.13 us an instruction (Linux
 * 6.18). libseccomp could generate it, but its tree has a leaf for each call, and one answer for all values of an
 * argument that match nothing (we need ENOTTY for ioctl, EAFNOSUPPORT for socket): twice as many instructions. To find
 * out which calls are always allowed, the kernel emulates the program for each number, and then no longer runs it for
 * these; it gives up at an instruction other than LD, JMP, AND, RET.
 *
 * Classic BPF loads words of 32 bits, so every comparison in a block is on the low half of an argument, the only half
 * that the kernel uses in these calls (in CVE-2019-10063 and CVE-2019-9893 all 64 bits were compared).
 */

#define X32_BIT 0x40000000u
#define NO_CALL 0xffffffffu /* a tracer replaces the number by -1 to skip a call */

struct program {
	struct sock_filter insn[BPF_PROGRAM_MAX];
	size_t             n;
	bool               overflow;
};

static void emit_insn(struct program *out, struct sock_filter insn)
{
	if (out->n == BPF_PROGRAM_MAX)
		out->overflow = true;
	else
		out->insn[out->n++] = insn;
}

static void emit_prefix(struct program *out)
{
	/* clang-format off */
	const struct sock_filter prefix[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BPF_NATIVE, 0, 4),              /* i386 and others have other numbers for everything */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, POLICY_NEWEST_CALL, 0, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NO_CALL, 2, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),                 /* x32 has other numbers, too */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(prefix); i++)
		emit_insn(out, prefix[i]);
}

/* --- the search --- */

/* Calls with one answer: SECCOMP_RET_..., or BLOCK | the number of a call with conditions. A range ends where the next begins. */
struct range {
	unsigned first;
	uint32_t answer;
};

#define BLOCK 0x10000u /* larger than any jump, and different from every SECCOMP_RET_... */

static uint32_t filter_return_of_call(const struct policy *p, unsigned call)
{
	switch (p->call[call].verdict) {
	case POLICY_ALLOW:
		return SECCOMP_RET_ALLOW;
	case POLICY_SKIP:
		return SECCOMP_RET_ERRNO;
	case POLICY_KILL:
		return SECCOMP_RET_KILL_PROCESS;
	case POLICY_WHEN:
		return BLOCK | call;
	case POLICY_REFUSE:
		return SECCOMP_RET_ERRNO | (unsigned)policy_call_errnum(p, &p->call[call]);
	case POLICY_UNSET:
		break;
	}
	return SECCOMP_RET_ERRNO | (unsigned)p->default_errnum;
}

/* A branch of a test that leads to an answer. */
struct leaf {
	size_t   test;
	bool     is_jt;
	uint32_t answer;
};

struct leaves {
	struct leaf leaf[POLICY_CALLS];
	size_t      n;
};

/* Makes a branch of the test jump to the instruction that is emitted next. */
static void set_jump(struct program *out, size_t test, bool is_jt)
{
	size_t over = out->n - test - 1;

	if (test >= out->n || over > UINT8_MAX)
		out->overflow = true;
	else
		*(is_jt ? &out->insn[test].jt : &out->insn[test].jf) = (uint8_t)over;
}

/* Emits a binary tree of n - 1 tests for n ranges (two or more), and notes its leaves. */
static void emit_range_tests(struct program *out, const struct range *range, size_t n, struct leaves *l)
{
	size_t test = out->n, left = n / 2;

	emit_insn(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, range[left].first, 0, 0));
	if (left > 1)
		emit_range_tests(out, range, left, l);
	else
		l->leaf[l->n++] = (struct leaf){ test, false, range[0].answer };
	if (n - left == 1) {
		l->leaf[l->n++] = (struct leaf){ test, true, range[left].answer };
		return;
	}
	set_jump(out, test, true);
	emit_range_tests(out, range + left, n - left, l);
}

/* A jump to a block of conditions has the value BLOCK | call until link_block() sets it. */
static void emit_return(struct program *out, uint32_t answer)
{
	emit_insn(out, (struct sock_filter)BPF_STMT((answer & ~0xffffu) == BLOCK ? BPF_JMP | BPF_JA : BPF_RET | BPF_K, answer));
}

/* Emits each answer once, and sets the jumps of all leaves that have it. */
static void emit_returns(struct program *out, const struct leaves *l)
{
	for (size_t i = 0; i < l->n; i++) {
		uint32_t answer = l->leaf[i].answer;
		size_t   first  = 0;

		while (l->leaf[first].answer != answer)
			first++;
		for (size_t j = i; first == i && j < l->n; j++)
			if (l->leaf[j].answer == answer)
				set_jump(out, l->leaf[j].test, l->leaf[j].is_jt);
		if (first == i)
			emit_return(out, answer);
	}
}

/* A conditional jump reaches 255 instructions. With more ranges than that allows, an unconditional jump skips the first half of them. */
static void emit_search(struct program *out, const struct range *range, size_t n)
{
	enum { RANGES_MAX = 64 };
	struct leaves leaves = { .n = 0 };
	size_t        left = n / 2, jump;

	if (n == 1) {
		emit_return(out, range[0].answer);
		return;
	}
	if (n <= RANGES_MAX) {
		emit_range_tests(out, range, n, &leaves);
		emit_returns(out, &leaves);
		return;
	}
	emit_insn(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, range[left].first, 0, 1));
	emit_insn(out, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
	jump = out->n - 1;
	emit_search(out, range, left);
	out->insn[jump].k = (uint32_t)(out->n - jump - 1);
	emit_search(out, range + left, n - left);
}

/* --- the conditions --- */

/*
 * Falls through when one of the test's values (at least one) matches, and jumps when none does. Returns the instruction
 * of that jump, whose target the caller sets.
 */
static size_t emit_argument_test(struct program *out, const struct policy_test *t)
{
	emit_insn(out, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)BPF_AT_ARGUMENT(t->arg)));
	if (t->mask != UINT32_MAX)
		emit_insn(out, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, t->mask));
	for (size_t i = 0; i < t->n; i++)
		emit_insn(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, t->value[i], (uint8_t)(t->n - i - 1), 0));
	return out->n - 1;
}

static void emit_conditions(struct program *out, const struct policy *p, unsigned call)
{
	size_t miss[POLICY_CLAUSE_TESTS];

	for (const struct policy_clause *c = p->clause; c < p->clause + p->clauses; c++) {
		if (c->call != call || !policy_clause_can_hold(c))
			continue;
		for (size_t i = 0; i < c->n; i++)
			miss[i] = emit_argument_test(out, &c->test[i]);
		emit_insn(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
		for (size_t i = 0; i < c->n; i++)
			set_jump(out, miss[i], false);
	}
	emit_insn(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)policy_call_errnum(p, &p->call[call])));
}

static void link_block(struct program *out, size_t search, size_t search_end, unsigned call)
{
	for (size_t i = search; i < search_end; i++)
		if (out->insn[i].code == (BPF_JMP | BPF_JA) && out->insn[i].k == (BLOCK | call))
			out->insn[i].k = (uint32_t)(out->n - i - 1);
}

int filter_compile(const struct policy *p, struct filter *ret, struct err *e)
{
	struct program program = { .n = 0 };
	struct range   range[POLICY_CALLS];
	size_t         search, search_end, ranges = 0;
	const char    *wrong;

	for (unsigned call = 0; call <= POLICY_NEWEST_CALL; call++)
		if (ranges == 0 || filter_return_of_call(p, call) != range[ranges - 1].answer)
			range[ranges++] = (struct range){ call, filter_return_of_call(p, call) };
	emit_prefix(&program);
	search = program.n;
	emit_search(&program, range, ranges);
	search_end = program.n;
	for (unsigned call = 0; call < POLICY_CALLS; call++)
		if (p->call[call].verdict == POLICY_WHEN) {
			link_block(&program, search, search_end, call);
			emit_conditions(&program, p, call);
		}
	wrong = bpf_check(program.insn, program.n);
	if (program.overflow)
		return err_set(e, ERR_BAD_SPEC, "filter: more than %d instructions", BPF_PROGRAM_MAX);
	if (wrong)
		return err_set(e, ERR_BROKEN, "filter: %s", wrong);
	return filter_copy(ret, &(struct filter){ .insn = program.insn, .len = (unsigned short)program.n }, e);
}

bool filter_allows_inet_sockets(const struct filter *f)
{
	struct seccomp_data socket = { .nr = SYS_socket, .arch = BPF_NATIVE, .args = { AF_INET, SOCK_STREAM } };
	uint32_t            answer = filter_evaluate(f, &socket) & SECCOMP_RET_ACTION_FULL;

	return answer == SECCOMP_RET_ALLOW || answer == SECCOMP_RET_USER_NOTIF;
}
