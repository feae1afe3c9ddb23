/*
 * bpf.h - the small machine that runs syscall filters, as a pure function.
 *
 * Knows the instructions that our compiler emits and no others. The promises
 * of a policy are tested on it, and what comes from the cache is checked by it
 * before the kernel sees it.
 */
#pragma once
#include "defs.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

#define BPF_PROGRAM_MAX 4096 /* the kernel's own limit (BPF_MAXINSNS) */

/* NULL when every instruction is known, every jump lands, every path ends in RET; else what is wrong. */
const char *bpf_check(const struct sock_filter *insn, size_t n);

/* The answer (SECCOMP_RET_*) to one system call. Only for programs that bpf_check() accepts. */
uint32_t bpf_run(const struct sock_filter *insn, size_t n, const struct seccomp_data *data);

enum { BPF_ARGS = 6 };

/* The arguments that were compared on the way to an answer, and of each the bits that were. */
struct bpf_look {
	uint8_t  seen;   /* bit i: argument i */
	uint8_t  masked; /* the same: only some of its bits */
	uint32_t arg[BPF_ARGS];
};
uint32_t bpf_run_looking(const struct sock_filter *insn, size_t n, const struct seccomp_data *data, struct bpf_look *ret);
