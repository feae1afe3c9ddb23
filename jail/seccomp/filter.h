/*
 * filter.h - a syscall policy as the program that the kernel runs before every call.
 *
 * The caller frees a filter with filter_free(). filter_install() may be called after clone().
 * Only call_number.h and filter_load_or_compile() use libseccomp, which knows the names of calls: a binary
 * that calls neither does not load that library.
 */
#pragma once
#include "bpf.h"
#include "policy.h"

struct filter {
	struct sock_filter *insn;
	unsigned short      len;
	void               *block; /* what to free */
};

must_use int filter_compile(const struct policy *p, struct filter *ret, struct err *e);
must_use int filter_copy(struct filter *ret, const struct filter *from, struct err *e);
void         filter_free(struct filter *f);
#define scoped_filter scoped(filter_free) struct filter

/* For this thread and all threads and processes that it starts; cannot be undone. no_new_privs must be set. 0 or -errno. */
must_use int filter_install(const struct filter *f);

/* What the filter answers, without a kernel: SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | n, ... */
uint32_t filter_evaluate(const struct filter *f, const struct seccomp_data *data);

/* Whether a program may open a TCP socket of IPv4. Without one it reaches nothing, whatever its network allows. */
bool filter_allows_inet_sockets(const struct filter *f);
