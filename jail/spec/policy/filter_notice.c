#include "filter_notice.h"

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* --- every path of one call through the program --- */

/*
 * What the accumulator holds when an instruction is reached. UNREACHED: no path leads there. NUMBER: a known number.
 * NOT_LOCAL: the first argument, of which only is known that it is not AF_UNIX.
 */
enum loaded { UNREACHED, ANYTHING, NUMBER, NOT_LOCAL };

struct state {
	enum loaded loaded;
	uint32_t    number;
};

struct walk {
	struct state at[BPF_PROGRAM_MAX];
	uint32_t     nr;
	bool         not_local;
	bool         by_packet_send; /* a sendmsg(): the third argument is the flags of packet_send() */
};

static void state_merge(struct state *at, struct state s)
{
	if (at->loaded == UNREACHED)
		*at = s;
	else if (at->loaded != s.loaded || at->number != s.number)
		*at = (struct state){ .loaded = ANYTHING };
}

static struct state state_after_load(const struct walk *w, uint32_t from)
{
	if (from == offsetof(struct seccomp_data, nr))
		return (struct state){ NUMBER, w->nr };
	if (from == offsetof(struct seccomp_data, arch))
		return (struct state){ NUMBER, BPF_NATIVE };
	if (w->by_packet_send && from == BPF_AT_ARGUMENT(2))
		return (struct state){ NUMBER, MSG_NOSIGNAL };
	return (struct state){ .loaded = w->not_local && from == BPF_AT_ARGUMENT(0) ? NOT_LOCAL : ANYTHING };
}

/* Jumps only go forward, so all paths to an instruction are known when the loop gets to it. */
static void trace_call_paths(struct walk *w, const struct sock_filter *insn, size_t n)
{
	w->at[0] = (struct state){ .loaded = ANYTHING };
	for (size_t i = 1; i < n; i++)
		w->at[i] = (struct state){ .loaded = UNREACHED };
	for (size_t i = 0; i < n; i++) {
		struct state s = w->at[i], *next = &w->at[i + 1];

		if (s.loaded == UNREACHED || BPF_CLASS(insn[i].code) == BPF_RET)
			continue;
		if (BPF_CLASS(insn[i].code) == BPF_LD)
			state_merge(next, state_after_load(w, insn[i].k));
		else if (BPF_CLASS(insn[i].code) == BPF_ALU)
			state_merge(next, s.loaded == NUMBER ? (struct state){ NUMBER, s.number & insn[i].k } :
			                                        (struct state){ .loaded = ANYTHING });
		else if (BPF_OP(insn[i].code) == BPF_JA)
			state_merge(&next[insn[i].k], s);
		else {
			bool is_other = s.loaded == NOT_LOCAL && BPF_OP(insn[i].code) == BPF_JEQ && insn[i].k == AF_UNIX;
			bool holds    = s.loaded == NUMBER && bpf_branch_holds(&insn[i], s.number);

			if (s.loaded == NUMBER ? holds : !is_other)
				state_merge(&next[insn[i].jt], s);
			if (!holds)
				state_merge(&next[insn[i].jf], s);
		}
	}
}

/* --- the answers at the ends of the paths --- */

static uint32_t return_action(const struct sock_filter *i)
{
	return i->k & SECCOMP_RET_ACTION_FULL;
}

/* The call is made, or may be: SECCOMP_RET_ALLOW, but also LOG, TRACE and USER_NOTIF. */
static bool insn_lets_call_through(const struct sock_filter *i)
{
	return BPF_CLASS(i->code) == BPF_RET && return_action(i) != SECCOMP_RET_ERRNO &&
	       return_action(i) != SECCOMP_RET_TRAP &&
	       return_action(i) != SECCOMP_RET_KILL_THREAD && return_action(i) != SECCOMP_RET_KILL_PROCESS;
}

/*
 * Returns how many answers let the call through; of one that creates a socket, only where it is another one than
 * AF_UNIX. change: makes these answers notify.
 */
static size_t count_allowing_returns(struct sock_filter *insn, size_t n, uint32_t nr, bool change)
{
	struct walk w     = { .nr = nr, .not_local = nr == SYS_socket || nr == SYS_socketpair };
	size_t      found = 0;

	trace_call_paths(&w, insn, n);
	for (size_t i = 0; i < n; i++)
		if (w.at[i].loaded != UNREACHED && insn_lets_call_through(&insn[i])) {
			found++;
			if (change)
				insn[i].k = SECCOMP_RET_USER_NOTIF;
		}
	return found;
}

/* The process that installs the filter sends the listener with packet_send(): the filter must allow that without a notice. */
static bool allows_packet_send(const struct sock_filter *insn, size_t n)
{
	struct walk w = { .nr = SYS_sendmsg, .by_packet_send = true };

	trace_call_paths(&w, insn, n);
	for (size_t i = 0; i < n; i++)
		if (w.at[i].loaded != UNREACHED && BPF_CLASS(insn[i].code) == BPF_RET &&
		    return_action(&insn[i]) != SECCOMP_RET_ALLOW)
			return false;
	return true;
}

enum network_notice network_notice_add(struct sock_filter *insn, size_t n)
{
	/* io_uring creates sockets without a system call, so without a notice. */
	if (count_allowing_returns(insn, n, SYS_io_uring_setup, false))
		return NETWORK_NOTICE_IMPOSSIBLE;
	if (count_allowing_returns(insn, n, SYS_socket, false) + count_allowing_returns(insn, n, SYS_socketpair,
											false) == 0)
		return NETWORK_NOTICE_NEEDLESS;
	if (!allows_packet_send(insn, n))
		return NETWORK_NOTICE_IMPOSSIBLE;
	count_allowing_returns(insn, n, SYS_socket, true);
	count_allowing_returns(insn, n, SYS_socketpair, true);
	return NETWORK_NOTICE_ADDED;
}

static bool insn_refuses_with_errno(const struct sock_filter *i)
{
	uint32_t errnum = i->k & SECCOMP_RET_DATA;

	return BPF_CLASS(i->code) == BPF_RET && return_action(i) == SECCOMP_RET_ERRNO && errnum != 0 &&
	       errnum != ENOSYS;
}

bool refusal_notice_add(struct sock_filter *insn, size_t n)
{
	if (!allows_packet_send(insn, n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (insn_refuses_with_errno(&insn[i]))
			insn[i].k = SECCOMP_RET_USER_NOTIF;
	return true;
}

bool filter_has_notice(const struct sock_filter *insn, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (insn[i].code == (BPF_RET | BPF_K) && insn[i].k == SECCOMP_RET_USER_NOTIF)
			return true;
	return false;
}
