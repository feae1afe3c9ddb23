#define _GNU_SOURCE /* memfd_create */
#include "filter.h"

#include "fd.h"

#include <seccomp.h>

#include <errno.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/*
 * The program, from the top:
 *
 *   prefix      numbers that nobody had thought of when this was written: ENOSYS
 *   tree        libseccomp's: kills foreign ABIs, finds the call, answers
 *   conditions  one block for each call that is allowed by its arguments
 *
 * libseccomp could compile conditions too, but has one answer for all values
 * that match nothing (we need ENOTTY for ioctl, EAFNOSUPPORT for socket), and
 * needs a rule per combination. So a call with conditions gets the answer
 * RET_TRACE | number from libseccomp, and that return is then replaced by a
 * jump to its block. Classic BPF loads words of 32 bits, so every comparison
 * in a block is on the low half of an argument, which is the half that the
 * kernel reads (CVE-2019-10063 and CVE-2019-9893 compared all 64).
 */

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif
#define X32_BIT 0x40000000u
#define NO_CALL 0xffffffffu /* what a tracer puts in the place of a call that is not to be made */

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW_HALF 0
#else
#define LOW_HALF 4
#endif

struct program {
	struct sock_filter insn[BPF_PROGRAM_MAX];
	size_t             n;
	bool               overflow;
};

static void emit(struct program *out, struct sock_filter insn)
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
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE, 0, 5),                  /* foreign: the tree kills */
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, POLICY_NEWEST_CALL, 0, 3),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NO_CALL, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 1, 0),                 /* x32: the tree kills */
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(prefix); i++)
		emit(out, prefix[i]);
}

/* Goes on behind the test when a value matches, else jumps to a place that the caller fills in. Returns that jump. */
static size_t emit_test(struct program *out, const struct policy_test *t)
{
	uint32_t at = (uint32_t)(offsetof(struct seccomp_data, args) + t->arg * sizeof(uint64_t) + LOW_HALF);

	emit(out, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at));
	if (t->mask != UINT32_MAX)
		emit(out, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, t->mask));
	for (size_t i = 0; i < t->n; i++)
		emit(out, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, t->value[i], (uint8_t)(t->n - i), 0));
	emit(out, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
	return out->n - 1;
}

static void emit_clause(struct program *out, const struct policy_clause *c)
{
	size_t miss[POLICY_CLAUSE_TESTS];

	for (size_t i = 0; i < c->n; i++)
		miss[i] = emit_test(out, &c->test[i]);
	emit(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	for (size_t i = 0; i < c->n; i++)
		out->insn[miss[i]].k = (uint32_t)(out->n - miss[i] - 1);
}

static void emit_conditions(struct program *out, const struct policy *p, unsigned call)
{
	for (size_t i = 0; i < p->clauses; i++)
		if (p->clause[i].call == call)
			emit_clause(out, &p->clause[i]);
	emit(out, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)policy_call_errnum(p, &p->call[call])));
}

static bool is_marker(const struct sock_filter *i, unsigned call)
{
	return i->code == (BPF_RET | BPF_K) && i->k == (SECCOMP_RET_TRACE | call);
}

static void link_conditions(struct program *out, size_t tree, size_t tree_end, unsigned call)
{
	for (size_t i = tree; i < tree_end; i++)
		if (is_marker(&out->insn[i], call))
			out->insn[i] = (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, (uint32_t)(out->n - i - 1));
}

static uint32_t action_of(const struct policy *p, unsigned call)
{
	switch (p->call[call].verdict) {
	case POLICY_ALLOW:
		return SCMP_ACT_ALLOW;
	case POLICY_SKIP:
		return SCMP_ACT_ERRNO(0);
	case POLICY_KILL:
		return SCMP_ACT_KILL_PROCESS;
	case POLICY_WHEN:
		return SCMP_ACT_TRACE(call);
	case POLICY_REFUSE:
		return SCMP_ACT_ERRNO((unsigned)policy_call_errnum(p, &p->call[call]));
	case POLICY_UNSAID:
		break;
	}
	return SCMP_ACT_ERRNO((unsigned)p->default_errnum);
}

static int add_rules(scmp_filter_ctx tree, const struct policy *p, struct err *e)
{
	uint32_t preset = SCMP_ACT_ERRNO((unsigned)p->default_errnum);

	for (unsigned i = 0; i < POLICY_CALLS; i++) {
		uint32_t action = action_of(p, i);
		int      failed = action == preset ? 0 : seccomp_rule_add_exact(tree, action, (int)i, 0);

		if (failed)
			return errno = -failed, err_sys(e, "filter: rule for call %u", i);
	}
	return 0;
}

static int set_attributes(scmp_filter_ctx tree, struct err *e)
{
	/* clang-format off */
	static const struct { enum scmp_filter_attr attribute; uint32_t value; } rows[] = {
		{ SCMP_FLTATR_ACT_BADARCH,  SCMP_ACT_KILL_PROCESS }, /* i386 and x32 have other numbers for everything */
		{ SCMP_FLTATR_CTL_OPTIMIZE, 2 },                     /* a binary tree: 8 comparisons, not 300 */
		{ SCMP_FLTATR_CTL_NNP,      0 },                     /* a step of its own in the child */
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int failed = seccomp_attr_set(tree, rows[i].attribute, rows[i].value);

		if (failed)
			return errno = -failed, err_sys(e, "filter: attribute %d", rows[i].attribute);
	}
	return 0;
}

/* libseccomp 2.5.4 can only write to a descriptor; 2.6 would do it in memory. */
static int export_tree(scmp_filter_ctx tree, struct program *out, struct err *e)
{
	scoped_fd   fd = memfd_create("filter", MFD_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return err_sys(e, "filter: memory for its program");
	int failed = seccomp_export_bpf(tree, fd);
	if (failed)
		return errno = -failed, err_sys(e, "filter: export");
	if (fstat(fd, &st) < 0)
		return err_sys(e, "filter: size of its program");
	size_t room = (BPF_PROGRAM_MAX - out->n) * sizeof *out->insn, size = (size_t)st.st_size;
	if (size > room || size % sizeof *out->insn)
		return err_set(e, ERR_BAD_SPEC, "filter: more than %d instructions", BPF_PROGRAM_MAX);
	if (pread(fd, &out->insn[out->n], size, 0) != st.st_size)
		return err_sys(e, "filter: read its program");
	out->n += size / sizeof *out->insn;
	return 0;
}

static void seccomp_releasep(scmp_filter_ctx *tree)
{
	if (*tree)
		seccomp_release(*tree);
}

static int emit_tree(struct program *out, const struct policy *p, struct err *e)
{
	scoped(seccomp_releasep) scmp_filter_ctx tree = seccomp_init(SCMP_ACT_ERRNO((unsigned)p->default_errnum));

	if (!tree)
		return err_sys(e, "filter: start libseccomp");
	if (set_attributes(tree, e) < 0 || add_rules(tree, p, e) < 0)
		return -1;
	return export_tree(tree, out, e);
}

static int take_program(const struct program *program, struct filter *ret, struct err *e)
{
	const char *wrong = bpf_check(program->insn, program->n);

	if (program->overflow)
		return err_set(e, ERR_BAD_SPEC, "filter: more than %d instructions", BPF_PROGRAM_MAX);
	if (wrong)
		return err_set(e, ERR_BROKEN, "filter: %s", wrong);
	struct sock_filter *insn = malloc(program->n * sizeof *insn);
	if (!insn)
		return err_sys(e, "filter: memory for its program");
	memcpy(insn, program->insn, program->n * sizeof *insn);
	*ret = (struct filter){ .insn = insn, .len = (unsigned short)program->n, .block = insn };
	return 0;
}

int filter_compile(const struct policy *p, struct filter *ret, struct err *e)
{
	struct program program = { .n = 0 };

	emit_prefix(&program);
	size_t tree = program.n;
	if (emit_tree(&program, p, e) < 0)
		return -1;
	size_t tree_end = program.n;
	for (unsigned call = 0; call < POLICY_CALLS; call++)
		if (p->call[call].verdict == POLICY_WHEN) {
			link_conditions(&program, tree, tree_end, call);
			emit_conditions(&program, p, call);
		}
	return take_program(&program, ret, e);
}
