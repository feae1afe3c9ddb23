#include "filter_notice.h"

#include <errno.h>
#include <linux/audit.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define NATIVE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE AUDIT_ARCH_AARCH64
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LOW_HALF 0
#else
#define LOW_HALF 4
#endif
#define AT_DOMAIN (offsetof(struct seccomp_data, args) + LOW_HALF)
#define AT_FLAGS  (AT_DOMAIN + 2 * sizeof(uint64_t)) /* of sendmsg() */

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
	bool         by_packet_send; /* the third argument is the flags of packet_send() */
};

static void arrive(struct state *at, struct state s)
{
	if (at->loaded == UNREACHED)
		*at = s;
	else if (at->loaded != s.loaded || at->number != s.number)
		*at = (struct state){ .loaded = ANYTHING };
}

static struct state load(const struct walk *w, uint32_t from)
{
	if (from == offsetof(struct seccomp_data, nr))
		return (struct state){ NUMBER, w->nr };
	if (from == offsetof(struct seccomp_data, arch))
		return (struct state){ NUMBER, NATIVE };
	if (w->by_packet_send && from == AT_FLAGS)
		return (struct state){ NUMBER, MSG_NOSIGNAL };
	return (struct state){ .loaded = w->not_local && from == AT_DOMAIN ? NOT_LOCAL : ANYTHING };
}

static bool holds(const struct sock_filter *i, uint32_t a)
{
	switch (BPF_OP(i->code)) {
	case BPF_JEQ:
		return a == i->k;
	case BPF_JGT:
		return a > i->k;
	case BPF_JGE:
		return a >= i->k;
	default:
		return a & i->k;
	}
}

static void branch(const struct sock_filter *i, struct state s, struct state *next)
{
	bool never_equal = s.loaded == NOT_LOCAL && BPF_OP(i->code) == BPF_JEQ && i->k == AF_UNIX;

	if (s.loaded == NUMBER ? holds(i, s.number) : !never_equal)
		arrive(&next[i->jt], s);
	if (s.loaded == NUMBER ? !holds(i, s.number) : true)
		arrive(&next[i->jf], s);
}

/* Jumps only go forward, so all paths to an instruction are known when the loop gets to it. */
static void walk(struct walk *w, const struct sock_filter *insn, size_t n)
{
	w->at[0] = (struct state){ .loaded = ANYTHING };
	for (size_t i = 1; i < n; i++)
		w->at[i] = (struct state){ .loaded = UNREACHED };
	for (size_t i = 0; i < n; i++) {
		struct state s = w->at[i], *next = &w->at[i + 1];

		if (s.loaded == UNREACHED || BPF_CLASS(insn[i].code) == BPF_RET)
			continue;
		if (BPF_CLASS(insn[i].code) == BPF_LD)
			arrive(next, load(w, insn[i].k));
		else if (BPF_CLASS(insn[i].code) == BPF_ALU)
			arrive(next, s.loaded == NUMBER ? (struct state){ NUMBER, s.number & insn[i].k } : (struct state){ .loaded = ANYTHING });
		else if (BPF_OP(insn[i].code) == BPF_JA)
			arrive(&next[insn[i].k], s);
		else
			branch(&insn[i], s, next);
	}
}

/* --- the answers at the ends of the paths --- */

static uint32_t action(const struct sock_filter *i)
{
	return i->k & SECCOMP_RET_ACTION_FULL;
}

/* The call is made, or may be: SECCOMP_RET_ALLOW, but also LOG, TRACE and USER_NOTIF. */
static bool lets_through(const struct sock_filter *i)
{
	return BPF_CLASS(i->code) == BPF_RET && action(i) != SECCOMP_RET_ERRNO && action(i) != SECCOMP_RET_TRAP &&
	       action(i) != SECCOMP_RET_KILL_THREAD && action(i) != SECCOMP_RET_KILL_PROCESS;
}

static bool may_allow(const struct sock_filter *insn, size_t n, uint32_t nr)
{
	struct walk w = { .nr = nr };

	walk(&w, insn, n);
	for (size_t i = 0; i < n; i++)
		if (w.at[i].loaded != UNREACHED && lets_through(&insn[i]))
			return true;
	return false;
}

/* The process that installs the filter sends the listener with packet_send(): the filter must allow that without a notice. */
static bool allows_packet_send(const struct sock_filter *insn, size_t n)
{
	struct walk w = { .nr = SYS_sendmsg, .by_packet_send = true };

	walk(&w, insn, n);
	for (size_t i = 0; i < n; i++)
		if (w.at[i].loaded != UNREACHED && BPF_CLASS(insn[i].code) == BPF_RET && action(&insn[i]) != SECCOMP_RET_ALLOW)
			return false;
	return true;
}

/* Returns how many answers let a call through that creates a socket other than AF_UNIX. change: makes these answers notify. */
static size_t answers(struct sock_filter *insn, size_t n, uint32_t nr, bool change)
{
	struct walk w     = { .nr = nr, .not_local = true };
	size_t      found = 0;

	walk(&w, insn, n);
	for (size_t i = 0; i < n; i++)
		if (w.at[i].loaded != UNREACHED && lets_through(&insn[i])) {
			found++;
			if (change)
				insn[i].k = SECCOMP_RET_USER_NOTIF;
		}
	return found;
}

enum network_notice network_notice_add(struct sock_filter *insn, size_t n)
{
	if (may_allow(insn, n, SYS_io_uring_setup)) /* io_uring creates sockets without a system call, so without a notice */
		return NETWORK_NOTICE_IMPOSSIBLE;
	if (answers(insn, n, SYS_socket, false) + answers(insn, n, SYS_socketpair, false) == 0)
		return NETWORK_NOTICE_NEEDLESS;
	if (!allows_packet_send(insn, n))
		return NETWORK_NOTICE_IMPOSSIBLE;
	answers(insn, n, SYS_socket, true);
	answers(insn, n, SYS_socketpair, true);
	return NETWORK_NOTICE_ADDED;
}

static bool refuses_aloud(const struct sock_filter *i)
{
	uint32_t errnum = i->k & SECCOMP_RET_DATA;

	return BPF_CLASS(i->code) == BPF_RET && action(i) == SECCOMP_RET_ERRNO && errnum != 0 && errnum != ENOSYS;
}

bool refusal_notice_add(struct sock_filter *insn, size_t n)
{
	if (!allows_packet_send(insn, n))
		return false;
	for (size_t i = 0; i < n; i++)
		if (refuses_aloud(&insn[i]))
			insn[i].k = SECCOMP_RET_USER_NOTIF;
	return true;
}

bool filter_notice_is_in(const struct sock_filter *insn, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (insn[i].code == (BPF_RET | BPF_K) && insn[i].k == SECCOMP_RET_USER_NOTIF)
			return true;
	return false;
}
