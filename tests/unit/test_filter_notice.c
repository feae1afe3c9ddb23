#define _GNU_SOURCE
#include "filter_notice.h"
#include "shipped_filter.h"
#include "tap.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static uint32_t ask(const struct sock_filter *insn, size_t n, int nr, uint64_t first, uint64_t second, uint64_t third)
{
	struct seccomp_data call = { .nr = nr, .arch = NATIVE, .args = { first, second, third } };

	return bpf_run(insn, n, &call);
}

static int compile(const char *name, struct filter *ret)
{
	struct policy *p = malloc(sizeof *p);
	int            r = shipped_filter(name, p, ret);

	free(p);
	return r;
}

/* Every family, kind and protocol that there is, with high bits that the kernel does not read, too. */
static void check_sockets(const struct filter *was, const struct filter *is, const char *name)
{
	bool others_told = true, local_quiet = true, refused_still = true;

	for (uint64_t domain = 0; domain < 64; domain++)
		for (uint64_t kind = 0; kind < 16; kind++)
			for (uint64_t protocol = 0; protocol < 300; protocol++)
				for (uint64_t high = 0; high < 2; high++) {
					uint64_t first  = domain | high << 32;
					uint32_t before = ask(was->insn, was->len, SYS_socket, first, kind, protocol);
					uint32_t after  = ask(is->insn, is->len, SYS_socket, first, kind, protocol);

					refused_still &= before == SECCOMP_RET_ALLOW || after == before;
					local_quiet &= domain != AF_UNIX || after == before;
					others_told &= domain == AF_UNIX || after != SECCOMP_RET_ALLOW;
				}
	tap_ok(refused_still, "%s: what was refused is refused", name);
	tap_ok(local_quiet, "%s: a local socket is made as before", name);
	tap_ok(others_told, "%s: no other socket is made without a notice", name);
}

static void check_others(const struct filter *was, const struct filter *is, const char *name)
{
	bool same = true;

	for (int nr = 0; nr < 600; nr++)
		for (uint64_t arg = 0; arg < 64; arg++)
			same &= nr == SYS_socket || ask(was->insn, was->len, nr, arg, arg, arg) == ask(is->insn, is->len, nr, arg, arg, arg);
	tap_ok(same, "%s: every other call is answered as before", name);
}

static void check_policy(const char *name, enum network_notice want)
{
	scoped_filter was = { 0 }, is = { 0 };

	if (!tap_ok(compile(name, &was) == 0 && compile(name, &is) == 0, "%s: it compiles", name))
		return;
	tap_ok(network_notice_add(is.insn, is.len) == want, "%s: whether it can make sockets of a network is found out", name);
	tap_ok(filter_has_notice(is.insn, is.len) == (want == NETWORK_NOTICE_ADDED),
	       "%s: whether there is a notice is seen", name);
	tap_ok(!bpf_check(is.insn, is.len), "%s: it is a sound program still", name);
	check_sockets(&was, &is, name);
	check_others(&was, &is, name);
}

/* --- refused calls --- */

/* Every call with many an argument: what the compiled program refuses with an errno notifies the listener, and all else is answered as before. */
static void check_refusals(const char *name)
{
	scoped_filter was = { 0 }, is = { 0 };
	bool          told = true, same = true;

	if (!tap_ok(compile(name, &was) == 0 && compile(name, &is) == 0 && refusal_notice_add(is.insn, is.len), "%s: refused calls can have a notice", name))
		return;
	for (int nr = -1; nr < 600; nr++)
		for (uint64_t arg = 0; arg < 64; arg++) {
			uint32_t before = ask(was.insn, was.len, nr, arg, arg, arg), after = ask(is.insn, is.len, nr, arg, arg, arg);
			uint32_t errnum = before & SECCOMP_RET_DATA;

			if ((before & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && errnum && errnum != ENOSYS)
				told &= after == SECCOMP_RET_USER_NOTIF;
			else
				same &= after == before;
		}
	tap_ok(told, "%s: every refusal but ENOSYS notifies the listener", name);
	tap_ok(same, "%s: what is allowed, skipped, ENOSYS or killed is so without a notice", name);
	tap_ok(!bpf_check(is.insn, is.len), "%s: with the notices it is a sound program still", name);
}

/* --- programs that our compiler does not write --- */

#define LOAD(what)        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, what)
#define NR                offsetof(struct seccomp_data, nr)
#define ARG(i)            (offsetof(struct seccomp_data, args) + (i) * sizeof(uint64_t))
#define IF_NOT(value, to) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, to)
#define AND(mask)         BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask)
#define RETURN(what)      BPF_STMT(BPF_RET | BPF_K, what)
#define REFUSE            RETURN(SECCOMP_RET_ERRNO | 1)
#define ALLOW             RETURN(SECCOMP_RET_ALLOW)
#define NO_RING           LOAD(NR), IF_NOT(SYS_io_uring_setup, 1), REFUSE

static const struct {
	const char        *name;
	enum network_notice want;
	size_t             n;
	struct sock_filter insn[16];
} rows[] = {
	{ "everything is allowed, io_uring too", NETWORK_NOTICE_IMPOSSIBLE, 1, { ALLOW } },
	{ "nothing is allowed", NETWORK_NOTICE_NEEDLESS, 1, { REFUSE } },
	{ "everything but io_uring is allowed", NETWORK_NOTICE_ADDED, 4, { NO_RING, ALLOW } },
	{ "local sockets alone are allowed", NETWORK_NOTICE_NEEDLESS, 10,
	  { NO_RING, IF_NOT(SYS_socket, 3), LOAD(ARG(0)), IF_NOT(AF_UNIX, 2), ALLOW, IF_NOT(SYS_socketpair, 1), REFUSE, ALLOW } },
	{ "a domain that was changed before it was compared is any domain", NETWORK_NOTICE_ADDED, 9,
	  { NO_RING, IF_NOT(SYS_socket, 4), LOAD(ARG(0)), AND(0xf), IF_NOT(AF_UNIX, 1), ALLOW, ALLOW } },
	{ "the upper half of a domain is no domain", NETWORK_NOTICE_ADDED, 8,
	  { NO_RING, IF_NOT(SYS_socket, 3), LOAD(ARG(0) + 4), IF_NOT(AF_UNIX, 1), ALLOW, ALLOW } },
	{ "another argument is no domain", NETWORK_NOTICE_ADDED, 8,
	  { NO_RING, IF_NOT(SYS_socket, 3), LOAD(ARG(1)), IF_NOT(AF_UNIX, 1), ALLOW, ALLOW } },
	{ "sendmsg that is refused makes a notice impossible", NETWORK_NOTICE_IMPOSSIBLE, 6, { NO_RING, IF_NOT(SYS_sendmsg, 1), REFUSE, ALLOW } },
	{ "sendmsg that is allowed with other flags makes a notice impossible", NETWORK_NOTICE_IMPOSSIBLE, 9,
	  { NO_RING, IF_NOT(SYS_sendmsg, 4), LOAD(ARG(2)), IF_NOT(0, 1), ALLOW, REFUSE, ALLOW } },
	{ "a filter that allows the flags of packet_send() can have a notice", NETWORK_NOTICE_ADDED, 9,
	  { NO_RING, IF_NOT(SYS_sendmsg, 4), LOAD(ARG(2)), IF_NOT(MSG_NOSIGNAL, 1), ALLOW, REFUSE, ALLOW } },
	{ "a call that is logged is allowed", NETWORK_NOTICE_ADDED, 6,
	  { NO_RING, IF_NOT(SYS_socket, 1), RETURN(SECCOMP_RET_LOG), ALLOW } },
};

static void check_row(size_t i)
{
	struct sock_filter insn[16];
	const char        *wrong = bpf_check(rows[i].insn, rows[i].n);
	bool               told  = true;

	memcpy(insn, rows[i].insn, sizeof insn);
	tap_ok(!wrong && network_notice_add(insn, rows[i].n) == rows[i].want, "%s", rows[i].name);
	for (uint64_t domain = 2; domain < 64; domain++)
		told &= ask(insn, rows[i].n, SYS_socket, domain, 1, 0) != SECCOMP_RET_ALLOW;
	tap_ok(told || rows[i].want == NETWORK_NOTICE_IMPOSSIBLE, "%s: and no socket is made without a notice", rows[i].name);
}

static void check_refusal_row(size_t i)
{
	struct sock_filter insn[16];
	bool               can = strncmp(rows[i].name, "sendmsg ", 8) != 0 && strcmp(rows[i].name, "nothing is allowed") != 0;

	memcpy(insn, rows[i].insn, sizeof insn);
	tap_ok(refusal_notice_add(insn, rows[i].n) == can, "%s: whether refused calls can have a notice", rows[i].name);
	tap_ok(can || memcmp(insn, rows[i].insn, sizeof insn) == 0, "%s: if not, nothing was changed", rows[i].name);
}

int main(void)
{
	check_policy("python", NETWORK_NOTICE_ADDED);
	check_policy("python-strict", NETWORK_NOTICE_NEEDLESS);
	check_refusals("python");
	check_refusals("python-strict");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		check_row(i);
		check_refusal_row(i);
	}
	return tap_done();
}
