/*
 * filter_notice.h - changes a filter so that certain calls notify a listener before they are answered
 *
 * The filter answers such a call with SECCOMP_RET_USER_NOTIF instead: the caller waits, and the listener answers as the
 * unchanged filter would. Every other call is answered as before. Only for programs that bpf_check() accepts.
 */
#pragma once
#include "bpf.h"

enum network_notice {
	NETWORK_NOTICE_NEEDLESS,   /* no socket but local ones gets past this filter */
	NETWORK_NOTICE_GIVEN,      /* as below */
	NETWORK_NOTICE_IMPOSSIBLE, /* there are such sockets, but no notice is possible: nothing was changed */
};

/*
 * For each socket that is not local and that the filter allows: if the listener was never woken, the program has never
 * had a socket of a network. Follows every path that such a call can take through the filter, whatever compiled it.
 */
must_use enum network_notice network_notice_add(struct sock_filter *insn, size_t n);

/*
 * For each call that is refused with an errno other than ENOSYS, with which a policy makes libraries use their fallback,
 * in normal runs, too. After network_notice_add(), if that is wanted. False: no notice is possible, and nothing was
 * changed.
 */
must_use bool refusal_notice_add(struct sock_filter *insn, size_t n);

/* Such a filter has to be installed with a listener. May be called after clone(). */
bool filter_notice_is_in(const struct sock_filter *insn, size_t n);
