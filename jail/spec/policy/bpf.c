#include "bpf.h"

#include <string.h>

#define LOAD    (BPF_LD | BPF_W | BPF_ABS)
#define AND     (BPF_ALU | BPF_AND | BPF_K)
#define JUMP    (BPF_JMP | BPF_JA)
#define IF_EQ   (BPF_JMP | BPF_JEQ | BPF_K)
#define IF_GT   (BPF_JMP | BPF_JGT | BPF_K)
#define IF_GE   (BPF_JMP | BPF_JGE | BPF_K)
#define IF_BITS (BPF_JMP | BPF_JSET | BPF_K)
#define RETURN  (BPF_RET | BPF_K)

/* Jumps only go forward, so every path ends if every jump stays inside the program. */
static const char *check_instruction(const struct sock_filter *i, size_t left)
{
	switch (i->code) {
	case LOAD:
		return i->k % 4 || i->k >= sizeof(struct seccomp_data) ? "a load outside seccomp_data" : NULL;
	case AND:
	case RETURN:
		return NULL;
	case JUMP:
		return i->k >= left ? "a jump behind the end" : NULL;
	case IF_EQ:
	case IF_GT:
	case IF_GE:
	case IF_BITS:
		return i->jt >= left || i->jf >= left ? "a branch behind the end" : NULL;
	default:
		return "an instruction that our compiler does not write";
	}
}

const char *bpf_check(const struct sock_filter *insn, size_t n)
{
	if (n == 0 || n > BPF_PROGRAM_MAX)
		return "not between 1 and 4096 instructions";
	for (size_t i = 0; i < n; i++) {
		const char *wrong = check_instruction(&insn[i], n - 1 - i);

		if (wrong)
			return wrong;
	}
	return insn[n - 1].code == RETURN ? NULL : "no return at the end";
}

bool bpf_branch_holds(const struct sock_filter *i, uint32_t a)
{
	switch (i->code) {
	case IF_EQ:
		return a == i->k;
	case IF_GT:
		return a > i->k;
	case IF_GE:
		return a >= i->k;
	default:
		return a & i->k;
	}
}

/* Records comparisons of the low halves of arguments: our compiler compares no others. */
static void record_compared_argument(struct bpf_look *look, uint32_t from, bool masked, uint32_t a)
{
	for (unsigned i = 0; i < BPF_ARGS; i++)
		if (from == BPF_AT_ARGUMENT(i)) {
			look->seen |= (uint8_t)(1u << i);
			look->masked |= (uint8_t)(masked << i);
			look->arg[i] |= a;
		}
}

uint32_t bpf_run_recording(const struct sock_filter *insn, size_t n, const struct seccomp_data *data,
			   struct bpf_look *ret)
{
	uint32_t a = 0, from = 0;
	bool     masked = false;

	*ret = (struct bpf_look){ 0 };
	for (size_t i = 0; i < n; i++) {
		switch (insn[i].code) {
		case LOAD:
			from   = insn[i].k;
			masked = false;
			memcpy(&a, (const char *)data + from, sizeof a);
			break;
		case AND:
			a &= insn[i].k;
			masked = true;
			break;
		case JUMP:
			i += insn[i].k;
			break;
		case RETURN:
			return insn[i].k;
		default:
			record_compared_argument(ret, from, masked, a);
			i += bpf_branch_holds(&insn[i], a) ? insn[i].jt : insn[i].jf;
		}
	}
	return SECCOMP_RET_KILL_PROCESS;
}

uint32_t bpf_run(const struct sock_filter *insn, size_t n, const struct seccomp_data *data)
{
	struct bpf_look unused;

	return bpf_run_recording(insn, n, data, &unused);
}
