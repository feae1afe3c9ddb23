/*
 * filter_notice.h - a filter that stops, and tells, when a program makes a call that somebody has to hear of
 *
 * The filter answers such a call with SECCOMP_RET_USER_NOTIF where it said something else before: the caller waits, and
 * whoever listens answers in the filter's place, as the program says that was compiled. Nothing else is answered in
 * another way. Only for programs that bpf_check() accepts.
 */
#pragma once
#include "bpf.h"

enum network_notice {
	NETWORK_NOTICE_NEEDLESS,   /* no socket but local ones gets past this filter */
	NETWORK_NOTICE_GIVEN,      /* as below */
	NETWORK_NOTICE_IMPOSSIBLE, /* there are sockets, and no way to tell: nothing was changed */
};

/*
 * Of each socket that is not local, where the filter allowed it: a program whose listener was never woken has never had a
 * socket of a network. Whatever compiled the filter: every path that such a call can take through it is followed.
 */
must_use enum network_notice network_notice_add(struct sock_filter *insn, size_t n);

/*
 * Of each call that is refused with an errno, but ENOSYS: with that a policy sends libraries on their other road, in
 * runs as well that nothing is refused to. After network_notice_add(), if that is wanted. False: there is no way to
 * tell, and nothing was changed.
 */
must_use bool refusal_notice_add(struct sock_filter *insn, size_t n);

/* It has to be installed with a listener. May be asked after clone(). */
bool filter_notice_is_in(const struct sock_filter *insn, size_t n);
