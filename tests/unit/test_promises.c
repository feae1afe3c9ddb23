#define _GNU_SOURCE /* syscall */
#include "filter.h"
#include "policy_file.h"
#include "policy_texts.h"
#include "tap.h"

#include <fcntl.h>
#include <errno.h>
#include <jansson.h>
#include <linux/audit.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define NATIVE  AUDIT_ARCH_X86_64
#define FOREIGN AUDIT_ARCH_I386
#else
#define NATIVE  AUDIT_ARCH_AARCH64
#define FOREIGN AUDIT_ARCH_ARM
#endif

enum { python, strict, BOTH };
#define ALLOW 0
#define SKIP  (-1) /* answered with success, and not done */
#define ARGS(...) { __VA_ARGS__ }
#define PROMISE(policy, id, sentence, call, args, answer) { policy, #id, sentence, call, args, answer },
static const struct {
	int         policy;
	const char *id, *sentence, *call;
	uint64_t    args[6];
	int         answer; /* an errno, ALLOW or SKIP */
} promises[] = {
#include "../jail/promises.def"
};
#undef PROMISE

static const char *const policies[] = { [python] = "python", [strict] = "python-strict" };

/* Measured, and refused on purpose: each has a fallback that is tested with real Python. */
static const char *const needed_but_refused[] = { "clone3", "sendfile", "mbind" };

static uint32_t ask(const struct filter *f, uint32_t arch, int nr, const uint64_t *args)
{
	struct seccomp_data data = { .nr = nr, .arch = arch };

	if (args)
		memcpy(data.args, args, sizeof data.args);
	return filter_evaluate(f, &data);
}

static uint32_t answer_of(int errnum)
{
	if (errnum == SKIP)
		return SECCOMP_RET_ERRNO;
	return errnum == ALLOW ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | (unsigned)errnum;
}

static void check_rows(const struct filter *f, int which)
{
	for (size_t i = 0; i < ARRAY_LEN(promises); i++) {
		int nr = call_number(promises[i].call);

		if ((promises[i].policy != which && promises[i].policy != BOTH) || nr == POLICY_CALL_NOWHERE)
			continue;
		uint32_t is = ask(f, NATIVE, nr, promises[i].args);
		if (!tap_ok(is == answer_of(promises[i].answer), "%s: %s: %s", policies[which], promises[i].id,
			    promises[i].sentence))
			printf("#   %s: 0x%x\n", promises[i].call, is);
	}
}

static void check_abis(const struct filter *f, const char *name)
{
	bool killed = true, x32 = true, newer = true;

	for (int nr = 0; nr < 600; nr++) {
		killed &= ask(f, FOREIGN, nr, NULL) == SECCOMP_RET_KILL_PROCESS;
		x32 &= ask(f, NATIVE, 0x40000000 + nr, NULL) == SECCOMP_RET_KILL_PROCESS;
	}
	for (int nr = POLICY_NEWEST_CALL + 1; nr < 4096; nr++)
		newer &= ask(f, NATIVE, nr, NULL) == (SECCOMP_RET_ERRNO | ENOSYS);
	newer &= ask(f, NATIVE, 0x3fffffff, NULL) == (SECCOMP_RET_ERRNO | ENOSYS);
	tap_ok(killed, "%s: A1: every call by another architecture kills", name);
#if defined(__x86_64__)
	tap_ok(x32, "%s: A2: every x32 call kills", name);
#endif
	tap_ok(newer, "%s: A21: what is newer than the table is not there", name);
	tap_ok(ask(f, NATIVE, -1, NULL) == (SECCOMP_RET_ERRNO | ENOSYS),
	       "%s: call -1, which a tracer puts in the place of another, is no call", name);
}

static void check_namespaces(const struct filter *f, const char *name)
{
	static const uint64_t bits[] = { 0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000,
					0x40000000 };

	for (size_t i = 0; i < ARRAY_LEN(bits); i++) {
		uint64_t alone[6] = { bits[i] }, fork[6] = { bits[i] | 17 }, high[6] = { bits[i] | 17 | 0x100000000 };
		int      nr       = call_number("clone");

		tap_ok(ask(f, NATIVE, nr, alone) == answer_of(EPERM) && ask(f, NATIVE, nr, fork) == answer_of(EPERM) &&
			       ask(f, NATIVE, nr, high) == answer_of(EPERM),
		       "%s: A5: clone with 0x%llx is refused, alone and with SIGCHLD", name,
		       (unsigned long long)bits[i]);
	}
}

static void check_families(const struct filter *f, int which)
{
	bool only_ours = true, no_high_bits = true;

	for (uint64_t family = 0; family <= 50; family++) {
		bool     wanted  = family == 1 || (which == python && (family == 2 || family == 10));
		uint64_t args[6] = { family, 1, 0 }, high[6] = { family | 1ull << 32, 1, 0 };

		only_ours &= (ask(f, NATIVE, call_number("socket"), args) == SECCOMP_RET_ALLOW) == wanted;
		no_high_bits &= (ask(f, NATIVE, call_number("socket"), high) == SECCOMP_RET_ALLOW) == wanted;
	}
	tap_ok(only_ours, "%s: A9: of the families 0 to 50 only ours open", policies[which]);
	tap_ok(no_high_bits, "%s: A9: high bits change nothing", policies[which]);
}

/* The filter against the policy it came from, number by number: the prefix and the blocks moved no jump. */
static void check_every_call(const struct filter *f, const struct policy *p, const char *name)
{
	bool same = true, new_ones = true;

	for (int nr = 0; nr < POLICY_CALLS; nr++) {
		const struct policy_call *call = &p->call[nr];
		uint64_t                  odd[6] = { ~0u, ~0u, ~0u, ~0u, ~0u, ~0u }; /* no condition lets these pass */
		uint32_t                  want = SECCOMP_RET_ERRNO | (unsigned)policy_call_errnum(p, call),
			is = ask(f, NATIVE, nr, odd);

		if (nr > POLICY_NEWEST_CALL)
			want = answer_of(ENOSYS);
		else if (call->verdict == POLICY_ALLOW)
			want = SECCOMP_RET_ALLOW;
		else if (call->verdict == POLICY_SKIP)
			want = answer_of(SKIP);
		same &= is == want;
		if (nr >= 440 && call->verdict == POLICY_UNSET)
			new_ones &= is == answer_of(EPERM) || is == answer_of(ENOSYS);
	}
	tap_ok(same, "%s: the program answers every number as the policy says", name);
	tap_ok(new_ones, "%s: A21: numbers from 440 that the policy does not name are EPERM or ENOSYS", name);
}

static bool is_allowed_somehow(const struct policy *p, const char *name)
{
	int nr = call_number(name);

	return nr >= 0 && (p->call[nr].verdict == POLICY_ALLOW || p->call[nr].verdict == POLICY_SKIP ||
			   p->call[nr].verdict == POLICY_WHEN);
}

static bool is_listed(const char *const *list, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

static void check_need(const struct policy *p, const char *name)
{
	static const char *const strictly_refused[] = { "fchown" };
	FILE                    *in                 = fopen(TEST_SOURCE "/tests/jail/measured-need.txt", "r");
	char                     call[64];
	int                      n = 0;

	while (in && fscanf(in, "%63s", call) == 1) {
		n++;
		if (call_number(call) == POLICY_CALL_NOWHERE) /* on this machine programs have another one for it */
			continue;
		if (is_listed(needed_but_refused, ARRAY_LEN(needed_but_refused), call) ||
		    (strcmp(name, "python-strict") == 0 && is_listed(strictly_refused, ARRAY_LEN(strictly_refused),
								     call)))
			continue;
		if (!is_allowed_somehow(p, call))
			tap_ok(false, "%s: %s, which measured programs need, is allowed", name, call);
	}
	tap_ok(n == 99, "%s: all 99 calls that measured programs need were looked at", name);
	if (in)
		fclose(in);
}

/* Exit status of a child under the filter: 0 when the kernel agrees with the simulator. */
static int live(const struct filter *f)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_install(f) < 0)
		return 2;
	if (syscall(SYS_unshare, 0) != -1 || errno != EPERM)
		return 3;
	if (syscall(SYS_clone3, 0, 0) != -1 || errno != ENOSYS)
		return 4;
	if (syscall(SYS_ioctl, -1, 0x12300005412, 0) != -1 || errno != ENOTTY)
		return 5;
	if (syscall(SYS_ioctl, -1, 0x5401, 0) != -1 || errno != EBADF)
		return 6;
	if (syscall(SYS_socket, 38, 5, 0) != -1 || errno != EAFNOSUPPORT)
		return 7;
	if (syscall(600) != -1 || errno != ENOSYS)
		return 8;
	return syscall(SYS_getppid) > 0 ? 0 : 9;
}

static void check_live(const struct filter *f, const char *name)
{
	int   status = -1;
	pid_t pid    = fork();

	if (pid == 0)
		_exit(live(f));
	waitpid(pid, &status, 0);
	if (!tap_ok(status == 0, "%s: the kernel answers as the simulator does", name))
		printf("# status 0x%x\n", status);
#if defined(__x86_64__)
	pid = fork();
	if (pid == 0) {
		if (live(f) == 0)
			syscall(0x40000000 + SYS_getpid);
		_exit(1);
	}
	waitpid(pid, &status, 0);
	tap_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%s: an x32 call really kills", name);
#endif
}

static void check_policy(int which, struct policy *p)
{
	const char *const    dirs[] = { TEST_SOURCE "/profiles", NULL };
	scoped_policy_bundle bundle = { 0 };
	scoped_filter        f      = { 0 };
	struct err           e      = { 0 };

	bool ok = policy_bundle_build(&bundle, policies[which], NULL, policy_file_read, (void *)dirs, &e) == 0 &&
		  policy_parse(p, &bundle, call_number, &e) == 0 && filter_compile(p, &f, &e) == 0;
	printf("# %s: %u instructions %s\n", policies[which], f.len, e.text);
	if (!tap_ok(ok, "%s: compiles", policies[which]))
		return;
	tap_ok(f.len < 1024, "%s: is shorter than 1024 instructions", policies[which]);
	check_rows(&f, which);
	check_abis(&f, policies[which]);
	check_namespaces(&f, policies[which]);
	check_families(&f, which);
	check_every_call(&f, p, policies[which]);
	check_need(p, policies[which]);
	check_live(&f, policies[which]);
}

/* A filter once held such a test for true, and allowed every family. */
static void check_emptied(struct policy *p)
{
	const char *const    dirs[] = { TEST_SOURCE "/profiles", NULL };
	scoped_policy_bundle bundle = { 0 };
	scoped_filter        f      = { 0 };
	struct err           e      = { 0 };
	json_t              *lines  = json_pack("[s]", "deny socket if arg0 in AF_UNIX");
	bool                 none   = policy_bundle_build(&bundle, "python", lines, policy_file_read, (void *)dirs,
							  &e) == 0 &&
		    policy_parse(p, &bundle, call_number, &e) == 0 && filter_compile(p, &f, &e) == 0;

	for (uint64_t family = 0; none && family < 64; family++) {
		bool allowed = ask(&f, NATIVE, SYS_socket, (uint64_t[6]){ family, SOCK_STREAM,
									 0 }) == SECCOMP_RET_ALLOW;
		none         = allowed == (family == AF_INET || family == AF_INET6);
	}
	tap_ok(none, "a test whose last value a \"deny\" took away matches nothing");
	json_decref(lines);
}

int main(void)
{
	struct policy *p = malloc(sizeof *p);

	setvbuf(stdout, NULL, _IOLBF, 0); /* children must not print our lines again */
	check_policy(python, p);
	check_policy(strict, p);
	check_emptied(p);
	free(p);
	return tap_done();
}
