#define _GNU_SOURCE
#include "policy_floor.h"
#include "refused_call.h"
#include "refused_summary.h"
#include "shipped_filter.h"
#include "tap.h"

#include <errno.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static struct policy     policies[2]; /* python, python-strict */
static struct filter     filters[2];
static struct sock_fprog programs[2];

static int load(size_t i, const char *name)
{
	int r = shipped_filter(name, &policies[i], &filters[i]);

	programs[i] = (struct sock_fprog){ .len = filters[i].len, .filter = filters[i].insn };
	return r;
}

enum { PYTHON, STRICT };

/* --- what mattered, in words and back --- */

static const struct {
	int         nr, policy;
	const char *call;
	uint64_t    arg[4];
	const char *argument;
	bool        floor, python_allows;
	const char *name;
} rows[] = {
	{ SYS_ptrace, PYTHON, "ptrace", { 0 }, "", true, false, "a call of the floor has no argument that mattered" },
	{ SYS_socket, PYTHON, "socket", { AF_NETLINK, SOCK_RAW }, "AF_NETLINK", true, false, "of a socket its family, where that is refused" },
	{ SYS_socket, PYTHON, "socket", { AF_INET, SOCK_RAW | SOCK_CLOEXEC }, "AF_INET, SOCK_RAW", true, false, "else its kind, without flags" },
	{ SYS_socket, STRICT, "socket", { AF_INET, SOCK_STREAM }, "AF_INET", false, true, "a family that another policy allows" },
	{ SYS_socket, PYTHON, "socket", { 44 }, "0x2c", true, false, "a value without a name is a number" },
	{ SYS_fcntl, PYTHON, "fcntl", { 1, 1024 }, "_, F_SETLEASE", false, false, "a command behind an argument that was not compared" },
	{ SYS_fcntl, PYTHON, "fcntl", { 1, 11 }, "_, 0xb", false, false, "a command is no sum of others" },
	{ SYS_ioctl, PYTHON, "ioctl", { 0, 0x5412 }, "_, TIOCSTI", true, false, "a request" },
	{ SYS_setsockopt, PYTHON, "setsockopt", { 3, SOL_SOCKET, SO_LINGER }, "_, SOL_SOCKET, SO_LINGER", false, false, "an option means what its level says" },
	{ SYS_setsockopt, PYTHON, "setsockopt", { 3, IPPROTO_TCP, TCP_ULP }, "_, IPPROTO_TCP, TCP_ULP", false, false, "of TCP, too" },
	{ SYS_prlimit64, PYTHON, "prlimit64", { 0, RLIMIT_CORE }, "0, RLIMIT_CORE", false, false, "a resource" },
	{ SYS_clone, PYTHON, "clone", { CLONE_NEWUSER | CLONE_NEWNET | SIGCHLD }, "CLONE_NEWUSER|CLONE_NEWNET", true, false, "of flags those that are refused" },
	{ SYS_mprotect, STRICT, "mprotect", { 4096, 4096, PROT_READ | PROT_WRITE | PROT_EXEC }, "_, _, PROT_WRITE|PROT_EXEC", false, true, "flags of two conditions" },
	{ SYS_mknodat, PYTHON, "mknodat", { 0, 0, S_IFCHR | 0666 }, "_, _, S_IFCHR", true, false, "bits below a mask" },
	{ SYS_flock, STRICT, "flock", { 1, 2 }, "", false, true, "a call without conditions" },
};

static void check_row(size_t i)
{
	struct policy_floor  floor = policy_floor_init(call_number);
	struct seccomp_data  data  = { .nr = rows[i].nr, .arch = NATIVE, .args = { rows[i].arg[0], rows[i].arg[1], rows[i].arg[2], rows[i].arg[3] } };
	struct refused_calls r     = { 0 };
	struct bpf_look      back;
	char                 text[REFUSED_TEXT_MAX];
	uint32_t             answer = refused_calls_run_filter(&r, &programs[rows[i].policy], &data);

	tap_ok((answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO && r.n == 1 && r.row[0].count == 1, "%s: refused, and counted", rows[i].name);
	tap_is(refused_call_print(&r.row[0], rows[i].call, text, sizeof text), rows[i].argument, rows[i].name);
	tap_ok(refused_call_parse(text, &back) && back.seen == r.row[0].look.seen &&
	       memcmp(back.arg, r.row[0].look.arg, sizeof back.arg) == 0, "%s: and back", rows[i].name);
	tap_ok(!policy_floor_forbids_call(&floor, (unsigned)rows[i].nr, &back) != rows[i].floor, "%s: whether it is the floor", rows[i].name);
	tap_ok(policy_may_allow(&policies[PYTHON], (unsigned)rows[i].nr, &back) == rows[i].python_allows, "%s: whether python.policy would allow it", rows[i].name);
}

/* --- the list --- */

static void check_counts(void)
{
	struct seccomp_data  data = { .nr = SYS_ptrace, .arch = NATIVE };
	struct refused_calls r    = { 0 };

	for (int i = 0; i < 1000; i++)
		refused_calls_run_filter(&r, &programs[PYTHON], &data);
	tap_ok(r.n == 1 && r.row[0].count == 1000, "the same call is one row");
	r.row[0].count = UINT32_MAX;
	refused_calls_run_filter(&r, &programs[PYTHON], &data);
	tap_ok(r.row[0].count == UINT32_MAX, "a count does not wrap around");
	data.nr = SYS_getpid;
	tap_ok(refused_calls_run_filter(&r, &programs[PYTHON], &data) == SECCOMP_RET_ALLOW && r.n == 1,
	       "what is allowed is not counted");
	data.nr = SYS_ioctl;
	for (data.args[1] = 0xf000; data.args[1] < 0xf100; data.args[1]++)
		refused_calls_run_filter(&r, &programs[PYTHON], &data);
	tap_ok(r.n == 1 + REFUSED_ALIKE_MAX && r.row[0].call == SYS_ptrace && r.row[1].look.seen && r.row[1].count == 1, "of one call a few arguments are kept");
	tap_ok(!r.row[REFUSED_ALIKE_MAX].look.seen && r.row[REFUSED_ALIKE_MAX].count == 256 - (REFUSED_ALIKE_MAX - 1), "and the others are counted together");
	data.nr = 0xffff;
	tap_ok(refused_calls_run_filter(&r, &programs[PYTHON], &data) != SECCOMP_RET_ALLOW &&
	       r.n == 1 + REFUSED_ALIKE_MAX, "a number that no call has is no row");
	tap_ok(refused_calls_is_sound(&r), "the list is sound");
	r.n = REFUSED_MAX + 1;
	tap_ok(!refused_calls_is_sound(&r), "a list that is longer than itself is not");
	r.n             = 1;
	r.row[0].call   = POLICY_CALLS;
	tap_ok(!refused_calls_is_sound(&r), "nor is a number that no call has");
	r.row[0].call      = 0;
	r.row[0].look.seen = 0x40;
	tap_ok(!refused_calls_is_sound(&r), "nor a seventh argument");
}

static void check_texts(void)
{
	static const char *const bad[] = { "NO_SUCH", "AF_INET,", "AF_INET,_", "_, _, _, _, _, _, _", "|", "AF_INET|", ", ", "AF_INET AF_INET6", "\x1b[2J" };
	struct bpf_look          look;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		tap_ok(!refused_call_parse(bad[i], &look), "text %zu is no list of arguments", i);
	tap_ok(refused_call_parse("", &look) && look.seen == 0, "none is one");
}

/* --- in words --- */

static void check_words(void)
{
	char    buf[REFUSED_SUMMARY_MAX];
	json_t *j = json_pack("{s[{sssnsi}{sssssi}{sssnsi}]}", "refused", "call", "ptrace", "argument", "count", 2, "call", "socket", "argument", "AF_NETLINK",
			      "count", 1, "call", "400", "argument", "count", 1);

	tap_is(refused_print_summary(j, 3, buf), "ptrace (2 times), socket(AF_NETLINK) and call 400", "all of them");
	tap_is(refused_print_summary(j, 2, buf), "ptrace (2 times), socket(AF_NETLINK) and 1 more", "some of them");
	tap_is(refused_print_summary(j, 1, buf), "ptrace (2 times) and 2 more", "one of them");
	json_decref(j);
	j = json_pack("{s[]}", "refused");
	tap_is(refused_print_summary(j, 3, buf), "", "none");
	json_decref(j);
	j = json_pack("{s[{s[]si}i{ssss}]}", "refused", "call", "argument", 7, 5, "call", "a\x1b[2J\n", "argument", "b\x1b");
	tap_is(refused_print_summary(j, 3, buf), "?, ? and a?[2J?(b?)", "what is no record of ours does not reach the terminal");
	json_decref(j);
}

int main(void)
{
	if (!tap_ok(load(PYTHON, "python") == 0 && load(STRICT, "python-strict") == 0, "the policies compile"))
		return tap_done();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_row(i);
	check_counts();
	check_texts();
	check_words();
	return tap_done();
}
