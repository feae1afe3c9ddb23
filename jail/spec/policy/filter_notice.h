/*
 * filter_notice.h - changes a filter so that certain calls notify a listener before they are answered
 *
 * The filter answers such a call with SECCOMP_RET_USER_NOTIF instead: the caller waits, and the process with the
 * listener answers as the unchanged filter would. Every other call is answered as before. Only for filters that
 * bpf_check() accepts.
 */
#pragma once
#include "bpf.h"

enum network_notice {
	NETWORK_NOTICE_NEEDLESS,   /* the filter allows AF_UNIX sockets only */
	NETWORK_NOTICE_ADDED,      /* the filter was changed, see network_notice_add() */
	NETWORK_NOTICE_IMPOSSIBLE, /* it allows other sockets, but no notice is possible; nothing was changed */
};

/*
 * Adds a notice for each call that creates a socket other than AF_UNIX and that the filter allows. As long as the
 * listener has received none, the program has never had a network socket. Follows every path that such a call can take
 * through the filter, so it does not depend on the compiler.
 */
must_use enum network_notice network_notice_add(struct sock_filter *insn, size_t n);

/*
 * Adds a notice for each call that is refused with an errno other than ENOSYS. A policy answers ENOSYS to make
 * libraries use a fallback, which happens in every normal run. Call network_notice_add() first, if both are wanted.
 * False: no notice is possible, and nothing was changed.
 */
must_use bool refusal_notice_add(struct sock_filter *insn, size_t n);

/* True: the filter has notices and must be installed with a listener. May be called after clone(). */
bool filter_has_notice(const struct sock_filter *insn, size_t n);
