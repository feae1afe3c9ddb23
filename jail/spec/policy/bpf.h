/*
 * bpf.h - an interpreter for seccomp filters, as a pure function.
 *
 * Knows the instructions that our compiler emits and no others. Tests run
 * filters on it, and a filter from the cache is checked with bpf_check() before
 * it is installed.
 */
#pragma once
#include "defs.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#if defined(__x86_64__)
#define BPF_NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define BPF_NATIVE AUDIT_ARCH_AARCH64
#endif

/* Where the low half of argument i is: classic BPF loads words of 32 bits. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define BPF_AT_ARGUMENT(i) (offsetof(struct seccomp_data, args) + (i) * sizeof(uint64_t))
#else
#define BPF_AT_ARGUMENT(i) (offsetof(struct seccomp_data, args) + (i) * sizeof(uint64_t) + 4)
#endif

#define BPF_PROGRAM_MAX 4096 /* the kernel's own limit (BPF_MAXINSNS) */

/* NULL when every instruction is known, every jump stays inside and every path ends in RET; otherwise what is wrong. */
const char *bpf_check(const struct sock_filter *insn, size_t n);

/* The answer (SECCOMP_RET_*) to one system call. Only for filters that bpf_check() accepts. */
uint32_t bpf_run(const struct sock_filter *insn, size_t n, const struct seccomp_data *data);

/* Whether a conditional jump is taken when the accumulator has this value. */
bool bpf_branch_holds(const struct sock_filter *insn, uint32_t value);

enum { BPF_ARGS = 6 };

/* The arguments that the filter compared before it answered, and of each the bits that it compared. */
struct bpf_look {
	uint8_t  seen;   /* bit i: argument i was compared */
	uint8_t  masked; /* bit i: only some bits of argument i were */
	uint32_t arg[BPF_ARGS];
};
uint32_t bpf_run_recording(const struct sock_filter *insn, size_t n, const struct seccomp_data *data,
			   struct bpf_look *ret);
