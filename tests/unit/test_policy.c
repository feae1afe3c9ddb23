#include "policy_file.h"
#include "policy_texts.h"
#include "tap.h"

#include <jansson.h>
#include <seccomp.h>

#define LONG_WORD "abcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcdefghijabcd"
#define TEN(x)    x x x x x x x x x x

/* clang-format off */
static const struct {
	const char *name, *text, *extend; /* extend: a JSON list */
	const char *says;                 /* the beginning of the error; "" when it is accepted */
} rows[] = {
	{ "nothing is a policy: everything gets the default", "", NULL, "" },
	{ "a comment is a policy", "# nobody\n", NULL, "" },
	{ "a call may be allowed", "allow read\n", NULL, "" },
	{ "the last line needs no newline", "allow read", NULL, "" },
	{ "an indented line continues", "allow read\n\twrite # and\n\n  close\n", NULL, "" },
	{ "an indented line needs one before it", "  read\n", NULL, "p.policy:1: continues a line" },
	{ "a number is a call", "allow 462\n", NULL, "" },
	{ "a number beyond the table is refused", "allow 471\n", NULL, "p.policy:1: 471 is not the number of a system call; they go from 0 to 470" },
	{ "an x32 number is refused", "allow 1073741863\n", NULL, "p.policy:1: 1073741863 is not the number" },
	{ "a number with a tail is refused", "allow 12x\n", NULL, "p.policy:1: 12x is not the number" },
	{ "an unknown call is refused", "allow read\nallow raed\n", NULL, "p.policy:2: \"raed\" is not a known system call; write its number, or ?raed" },
	{ "the line of an error is that of the word", "allow read\n\traed\n", NULL, "p.policy:2: \"raed\"" },
	{ "an unknown call with a question mark is skipped", "allow read ?raed\n", NULL, "" },
	{ "a call of another machine is skipped", "allow read socketcall\n", NULL, "" },
	{ "a call that libseccomp lacks has its name", "errno ENOSYS statmount mseal\n", NULL, "" },
	{ "an unknown word is refused", "permit read\n", NULL, "p.policy:1: \"permit\": expected allow, deny, errno, skip, kill, default, group or include" },
	{ "allow needs calls", "allow\n", NULL, "p.policy:1: expected names of system calls" },
	{ "allow if needs calls", "allow if arg0 in 1\n", NULL, "p.policy:1: expected names of system calls" },
	{ "a NUL is refused", "allow\x01 read\n", NULL, "p.policy:1: byte 0x01 has no place here" },
	{ "UTF-8 outside comments is refused", "allow r\xc3\xa9" "ad\n", NULL, "p.policy:1: byte 0xc3 has no place here" },
	{ "UTF-8 in comments is fine", "# \xc3\xa9\n", NULL, "" },
	{ "a word of 64 bytes is too long", "allow " LONG_WORD "\n", NULL, "p.policy:1: a word of 64 bytes" },
	{ "a statement of 500 words is too long", "allow " TEN(TEN("read read read read read ")) "\n", NULL, "p.policy:1: a statement of more than 400 words" },

	{ "a group stands for its calls", "group io: read write\nallow @io\n", NULL, "" },
	{ "a group may hold a group", "group a: read\ngroup b: @a write\nallow @b\n", NULL, "" },
	{ "a group must come first", "allow @io\ngroup io: read\n", NULL, "p.policy:1: @io: no such group so far; \"group io: ...\" makes one" },
	{ "a group has a colon", "group io read\n", NULL, "p.policy:1: expected \"group NAME: calls\"" },
	{ "a group has a name", "group : read\n", NULL, "p.policy:1: expected \"group NAME: calls\"" },
	{ "a group's name is plain", "group I/O: read\n", NULL, "p.policy:1: \"I/O\" is not a valid group name" },
	{ "a group has calls", "group io:\n", NULL, "p.policy:1: expected names of system calls" },

	{ "the default is an errno", "default errno EACCES\n", NULL, "" },
	{ "the default cannot be allow", "default allow\n", NULL, "p.policy:1: expected \"default errno NAME\"" },
	{ "there is one default", "default errno EPERM\ndefault errno ENOSYS\n", NULL, "p.policy:2: the default was set before" },
	{ "an errno must exist", "errno ENOWAY read\n", NULL, "p.policy:1: expected an errno, like EPERM or ENOSYS" },
	{ "ENOTSUP is an errno", "errno ENOTSUP setxattr\n", NULL, "" },
	{ "an errno is not a number", "errno 38 read\n", NULL, "p.policy:1: expected an errno" },
	{ "kill takes calls", "kill ptrace\n", NULL, "" },
	{ "skip takes calls", "skip fsync sync\n", NULL, "" },
	{ "skip takes no condition", "skip fsync if arg0 in 1\n", NULL, "p.policy:1: \"if\" is left over" },
	{ "what the floor forbids is not skipped", "skip mount\n", NULL, "p.policy:1: mount cannot be skipped: the floor forbids it" },
	{ "kill takes no condition", "kill read if arg0 in 1\n", NULL, "p.policy:1: \"if\" is left over" },

	{ "values have names", "allow ioctl if arg1 in TCGETS FIONBIO else errno ENOTTY\n", NULL, "" },
	{ "values may be numbers", "allow ioctl if arg1 in 0x5401 21537\n", NULL, "" },
	{ "an unknown value is refused", "allow ioctl if arg1 in TCGETZ\n", NULL, "p.policy:1: \"TCGETZ\" is not a known value" },
	{ "a value of 33 bits is refused", "allow ioctl if arg1 in 0x100005401\n", NULL, "p.policy:1: \"0x100005401\" is not a known value" },
	{ "arguments go from 0 to 5", "allow read if arg6 in 1\n", NULL, "p.policy:1: expected arg0 to arg5" },
	{ "a condition needs in", "allow read if arg0 1\n", NULL, "p.policy:1: expected argN [of BITS | without FLAGS] in VALUES" },
	{ "a condition needs values", "allow read if arg0 in else errno EPERM\n", NULL, "p.policy:1: expected values" },
	{ "has needs no", "allow read if arg0 has 1\n", NULL, "p.policy:1: expected \"has no FLAGS\"" },
	{ "a value outside its mask is refused", "allow read if arg0 of 0xf in 0x10\n", NULL, "p.policy:1: 0x10 can never match" },
	{ "four tests are too many", "allow read if arg0 in 1 and arg1 in 1 and arg2 in 1 and arg3 in 1\n", NULL, "p.policy:1: more than 3 tests" },
	{ "41 values are too many", "allow read if arg0 in " "10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50\n", NULL, "p.policy:1: more than 40 values" },
	{ "else needs if", "allow read else errno EPERM\n", NULL, "p.policy:1: \"else\" without \"if\"" },
	{ "else needs errno", "allow read if arg0 in 1 else kill\n", NULL, "p.policy:1: expected \"else errno NAME\"" },
	{ "nothing may follow", "allow read if arg0 in 1 else errno EPERM write\n", NULL, "p.policy:1: \"write\" is left over" },
	{ "what is allowed wholly is not narrowed by accident", "allow read\nallow read if arg0 in 1\n", NULL, "p.policy:2: read is allowed already, with all arguments; \"deny read\" first" },
	{ "what is denied can be allowed by value", "allow read\ndeny read\nallow read if arg0 in 1\n", NULL, "" },
	{ "values are taken back from lists only", "allow read\ndeny read if arg0 in 1\n", NULL, "p.policy:2: read is allowed with all arguments" },
	{ "values are taken back by the same mask", "allow read if arg0 of 0xf in 1\ndeny read if arg0 in 1\n", NULL, "p.policy:2: read is allowed by a condition on other bits" },

	{ "a missing include is refused", "include nowhere\n", NULL, "p.policy:1: no policy nowhere.policy" },
	{ "an include is a plain name", "include ../x\n", NULL, "p.policy:1: \"../x\" is not a valid policy name" },
	{ "an include is one file", "include base other\n", NULL, "p.policy:1: \"other\" is left over" },
	{ "a file may not include itself", "allow read\ninclude p\n", NULL, "p.policy:2: p.policy is being read already" },
	{ "two files may not include each other", "include loop\n", NULL, "loop.policy:1: p.policy is being read already" },
	{ "an error in an include names that file", "include bad\n", NULL, "bad.policy:2: \"raed\"" },
	{ "a file included twice is read once", "include base\ndeny write\ninclude base\n", NULL, "" },

	{ "the floor forbids unshare", "allow unshare\n", NULL, "p.policy:1: unshare cannot be allowed, at least not with all arguments: the floor forbids it (new namespaces" },
	{ "the floor forbids by number too", "allow 425\n", NULL, "p.policy:1: io_uring_setup cannot be allowed" },
	{ "the floor forbids in groups", "group g: read ptrace\nallow @g\n", NULL, "p.policy:2: ptrace cannot be allowed" },
	{ "the floor forbids conditions on what is forbidden", "allow bpf if arg0 in 1\n", NULL, "p.policy:1: bpf cannot be allowed so: the floor forbids it" },
	{ "the floor forbids clone3", "allow clone3\n", NULL, "p.policy:1: clone3 cannot be allowed" },
	{ "the floor forbids clone with any flags", "allow clone\n", NULL, "p.policy:1: clone cannot be allowed" },
	{ "clone needs every CLONE_NEW excluded", "allow clone if arg0 has no CLONE_NEWUSER CLONE_NEWNS\n", NULL, "p.policy:1: clone cannot be allowed so" },
	{ "a condition on another argument does not satisfy the floor", "allow clone if arg1 has no CLONE_NEW*\n", NULL, "p.policy:1: clone cannot be allowed so" },
	{ "clone without namespaces is fine", "allow clone if arg0 has no CLONE_NEW*\n", NULL, "" },
	{ "clone with exact flags is fine", "allow clone if arg0 in 17\n", NULL, "" },
	{ "the floor forbids ioctl with any command", "allow ioctl\n", NULL, "p.policy:1: ioctl cannot be allowed" },
	{ "the floor forbids TIOCSTI", "allow ioctl if arg1 in TCGETS TIOCSTI\n", NULL, "p.policy:1: ioctl cannot be allowed so: the floor forbids it (it types" },
	{ "the floor sees through a mask", "allow ioctl if arg1 of 0xff00 in 0x5400\n", NULL, "p.policy:1: ioctl cannot be allowed so" },
	{ "the floor forbids AF_ALG", "allow socket if arg0 in AF_ALG and arg1 of 0xf in 1 and arg2 in 0\n", NULL, "p.policy:1: socket cannot be allowed so: the floor forbids it (other families are rarely used" },
	{ "the floor forbids netlink", "allow socket if arg0 in AF_NETLINK and arg1 of 0xf in 1 and arg2 in 0\n", NULL, "p.policy:1: socket cannot be allowed so" },
	{ "the floor forbids raw sockets", "allow socket if arg0 in AF_INET and arg1 of 0xf in SOCK_RAW and arg2 in 0\n", NULL, "p.policy:1: socket cannot be allowed so: the floor forbids it (raw" },
	{ "the floor forbids MPTCP", "allow socket if arg0 in AF_INET and arg1 of 0xf in SOCK_STREAM and arg2 in IPPROTO_MPTCP\n", NULL, "p.policy:1: socket cannot be allowed so: the floor forbids it (MPTCP" },
	{ "the floor forbids SCTP without its name", "allow socket if arg0 in AF_INET6 and arg1 of 0xf in SOCK_SEQPACKET and arg2 in 0\n", NULL, "p.policy:1: socket cannot be allowed so: the floor forbids it (outside of AF_UNIX" },
	{ "and where AF_UNIX is one of two", "allow socket if arg0 in AF_UNIX AF_INET and arg1 of 0xf in SOCK_SEQPACKET and arg2 in 0\n", NULL, "p.policy:1: socket cannot be allowed so: the floor forbids it (outside of AF_UNIX" },
	{ "and any type that it may be", "allow socket if arg0 in AF_INET and arg1 of 1 in 1 and arg2 in 0\n", NULL, "p.policy:1: socket cannot be allowed so" },
	{ "a local socket of packets is fine", "allow socket if arg0 in AF_UNIX and arg1 of 0xf in SOCK_SEQPACKET and arg2 in 0\n", NULL, "" },
	{ "a socket needs type and protocol said", "allow socket if arg0 in AF_INET\n", NULL, "p.policy:1: socket cannot be allowed so" },
	{ "the floor forbids device nodes", "allow mknodat if arg2 of S_IFMT in S_IFIFO S_IFCHR\n", NULL, "p.policy:1: mknodat cannot be allowed so: the floor forbids it (a device" },
	{ "the floor forbids setting a personality", "allow personality if arg0 in 0\n", NULL, "p.policy:1: personality cannot be allowed so" },
	{ "asking for the personality is fine", "allow personality if arg0 in 0xffffffff\n", NULL, "" },
	{ "a forbidden call may have another errno", "errno EPERM clone3\n", NULL, "" },
	{ "a forbidden call may kill", "kill bpf\n", NULL, "" },

	{ "a profile may extend", "allow read\n", "[\"allow write\",\"allow close # too\"]", "" },
	{ "a profile may tighten", "allow read write\n", "[\"deny write\"]", "" },
	{ "a profile may not choose another default", "allow read\n", "[\"default errno ENOSYS\"]", "policy_extend:1: \"default\" is for policy files" },
	{ "a profile may not include", "allow read\n", "[\"include base\"]", "policy_extend:1: \"include\" is for policy files" },
	{ "an error in an extension names its line", "allow read\n", "[\"allow write\",\"allow raed\"]", "policy_extend:2: \"raed\"" },
	{ "an extension cannot undo the floor", "allow read\n", "[\"allow setns\"]", "policy_extend:1: setns cannot be allowed" },
	{ "an extension is one line", "allow read\n", "[\"allow write\\nallow close\"]", "policy_extend:1: expected one line" },
	{ "an extension is not blank", "allow read\n", "[\"\"]", "policy_extend:1: expected one line" },
	{ "an extension is text", "allow read\n", "[1]", "policy_extend:1: expected one line" },
	{ "an extension may use the file's groups", "group io: read write\n", "[\"allow @io\"]", "" },
};
/* clang-format on */

static int parse(const char *text, const char *extend, struct policy *ret, struct err *e)
{
	struct policy_text texts[] = {
		{ "p", text }, { "base", "allow read write\n" }, { "loop", "include p\n" }, { "bad", "\nallow raed\n" },
		{ "other", "" }, { 0 },
	};
	json_t              *lines  = extend ? json_loads(extend, 0, NULL) : NULL;
	scoped_policy_bundle bundle = { 0 };
	int                  answer = policy_bundle_build(&bundle, "p", lines, policy_text_read, texts, e);

	if (answer == 0)
		answer = policy_parse(ret, &bundle, call_number, e);
	json_decref(lines);
	return answer;
}

static char *print(const struct policy *p, int (*how)(const struct policy *, FILE *))
{
	char  *text = NULL;
	size_t len;
	FILE  *out = open_memstream(&text, &len);

	how(p, out);
	fclose(out);
	return text;
}

static void check_rows(struct policy *p)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err e  = { 0 };
		bool       ok = (parse(rows[i].text, rows[i].extend, p, &e) == 0) == !*rows[i].says;

		if (!tap_ok(ok && strncmp(e.text, rows[i].says, strlen(rows[i].says)) == 0, "%s", rows[i].name))
			printf("#   %s\n", e.text);
	}
}

/* --- the floor, row by row: once more by hand, since its own table would agree with itself --- */

static const char forbidden[] =
	"unshare setns clone3 mount umount2 umount pivot_root chroot fsopen fsconfig fsmount fspick open_tree open_tree_attr move_mount "
	"mount_setattr statmount listmount listns ptrace lsm_set_self_attr process_vm_readv process_vm_writev process_madvise process_mrelease kcmp pidfd_getfd "
	"move_pages migrate_pages bpf perf_event_open userfaultfd io_uring_setup io_uring_enter io_uring_register seccomp keyctl add_key "
	"request_key open_by_handle_at name_to_handle_at fanotify_init fanotify_mark memfd_secret lookup_dcookie quotactl quotactl_fd acct swapon "
	"swapoff reboot syslog vhangup sethostname setdomainname settimeofday clock_settime clock_adjtime adjtimex stime init_module finit_module "
	"delete_module create_module query_module get_kernel_syms kexec_load kexec_file_load iopl ioperm modify_ldt nfsservctl uselib _sysctl "
	"sysfs ustat vserver";

/* clang-format off */
static const char *const forbidden_so[] = {
	"ioctl if arg1 in TCGETS TIOCSTI", "ioctl if arg1 in TIOCLINUX", "ioctl if arg1 in TIOCSETD", "ioctl if arg1 in TIOCCONS",
	"prctl if arg0 in PR_SET_SECCOMP", "prctl if arg0 in PR_SET_SECUREBITS", "prctl if arg0 in PR_CAP_AMBIENT", "prctl if arg0 in PR_SET_PTRACER",
	"prctl if arg0 in PR_SET_MM", "prctl if arg0 in 59", "personality if arg0 in 0", "socketpair if arg0 in AF_INET",
	"socket if arg0 in AF_NETLINK and arg1 in SOCK_STREAM and arg2 in 0", "socket if arg0 in AF_INET and arg1 in SOCK_RAW and arg2 in 0",
	"socket if arg0 in AF_INET and arg1 in SOCK_STREAM and arg2 in IPPROTO_MPTCP", "socket if arg0 in AF_INET and arg1 in SOCK_SEQPACKET and arg2 in 0",
#ifdef __x86_64__
	"mknod if arg1 of S_IFMT in S_IFCHR", "mknod if arg1 of S_IFMT in S_IFBLK",
#endif
	"mknodat if arg2 of S_IFMT in S_IFCHR", "mknodat if arg2 of S_IFMT in S_IFBLK",
};
static const char *const namespaces[] = {
	"CLONE_NEWNS", "CLONE_NEWCGROUP", "CLONE_NEWUTS", "CLONE_NEWIPC", "CLONE_NEWUSER", "CLONE_NEWPID", "CLONE_NEWNET",
};
/* clang-format on */

static void check_forbidden(struct policy *p, const char *call, const char *name)
{
	struct err e;
	char       text[256], says[64];

	snprintf(text, sizeof text, "allow %s\n", call);
	snprintf(says, sizeof says, "p.policy:1: %.*s cannot be allowed", (int)strcspn(call, " "), call);
	e.text[0] = 0;
	if (!tap_ok(parse(text, NULL, p, &e) < 0 && strncmp(e.text, says, strlen(says)) == 0, "no policy allows %s", name))
		printf("#   %s\n", e.text);
}

static void check_floor(struct policy *p)
{
	char names[sizeof forbidden], call[256];

	strcpy(names, forbidden);
	for (char *at, *name = strtok_r(names, " ", &at); name; name = strtok_r(NULL, " ", &at))
		if (call_number(name) >= 0)
			check_forbidden(p, name, name);
	for (size_t i = 0; i < ARRAY_LEN(forbidden_so); i++)
		check_forbidden(p, forbidden_so[i], forbidden_so[i]);
	for (size_t i = 0; i < ARRAY_LEN(namespaces); i++) {
		strcpy(call, "clone if arg0 has no");
		for (size_t k = 0; k < ARRAY_LEN(namespaces); k++)
			if (k != i)
				strcat(strcat(call, " "), namespaces[k]);
		snprintf(names, sizeof names, "clone where %s may be set", namespaces[i]);
		check_forbidden(p, call, names);
	}
}

static bool verdict_is(const struct policy *p, const char *call, enum policy_verdict verdict)
{
	return p->call[call_number(call)].verdict == verdict;
}

static void check_meaning(struct policy *p)
{
	struct err e = { 0 };

	tap_ok(parse("allow read\n", "[\"allow write\"]", p, &e) == 0 && verdict_is(p, "read", POLICY_ALLOW) &&
		       verdict_is(p, "write", POLICY_ALLOW) && verdict_is(p, "close", POLICY_UNSET),
	       "extending adds and keeps the rest");
	tap_ok(parse("errno ENOSYS mbind\n", "[\"allow mbind\"]", p, &e) == 0 && verdict_is(p, "mbind", POLICY_ALLOW),
	       "extending allows what the file refused");
	tap_ok(parse("include base\ndeny write\ninclude base\n", NULL, p, &e) == 0 && verdict_is(p, "write", POLICY_REFUSE),
	       "a second include does not undo what was denied");
	tap_ok(parse("", NULL, p, &e) == 0 && verdict_is(p, "clone3", POLICY_REFUSE) && p->call[call_number("clone3")].errnum == 38,
	       "an empty policy refuses clone3 with ENOSYS, so that threads work");
	tap_ok(parse("allow fcntl if arg1 in F_GETFD F_OFD_SETLK\ndeny fcntl if arg1 in F_OFD_SETLK\n", NULL, p, &e) == 0 &&
		       p->clauses == 1 && p->clause[0].test[0].n == 1,
	       "deny with a condition takes values from the list");
}

static void check_round_trip(struct policy *p)
{
	struct err e    = { 0 };
	const char *say = "default errno EACCES\nallow read\nkill bpf\nallow ioctl if arg1 in TCGETS 0x99 else errno ENOTTY\n"
			  "allow clone if arg0 has no CLONE_NEW*\nallow mknod if arg1 of S_IFMT in 0 S_IFIFO else errno EPERM\n"
			  "allow socket if arg0 in AF_UNIX and arg1 without SOCK_CLOEXEC SOCK_NONBLOCK in SOCK_DGRAM and arg2 in 0\n";

	tap_ok(parse(say, NULL, p, &e) == 0, "a policy of every kind of line is accepted");
	char *once = print(p, policy_print);
	tap_ok(parse(once, NULL, p, &e) == 0, "a printed policy is a policy");
	char *twice = print(p, policy_print);
	tap_is(twice, once, "a printed policy means the same");
	tap_ok(strstr(once, "\nallow ioctl if arg1 in TCGETS 0x99 else errno ENOTTY\n"), "values are printed by name");
	char *layers = print(p, policy_explain);
	tap_ok(strncmp(layers, "floor,", 6) == 0 && strstr(layers, "p.policy") && strstr(layers, "  kill bpf\n"),
	       "explain shows the floor, then the file");
	free(once);
	free(twice);
	free(layers);
}

static void check_key(void)
{
	struct policy_text   a[] = { { "p", "allow read\n" }, { 0 } }, b[] = { { "p", "allow read \n" }, { 0 } };
	json_t              *more = json_pack("[s]", "allow write");
	scoped_policy_bundle x = { 0 }, y = { 0 }, z = { 0 };
	struct err           e;

	tap_ok(policy_bundle_build(&x, "p", NULL, policy_text_read, a, &e) == 0 &&
		       policy_bundle_build(&y, "p", NULL, policy_text_read, b, &e) == 0 &&
		       policy_bundle_build(&z, "p", more, policy_text_read, a, &e) == 0,
	       "bundles are built");
	tap_ok(strcmp(x.key, y.key) != 0, "another byte is another key");
	tap_ok(strcmp(x.key, z.key) != 0, "another extension is another key");
	json_decref(more);
}

/* Newer calls have the same number everywhere; older ones are libseccomp's business. */
static int arm64_number(const char *name)
{
	int here = call_number(name), there = seccomp_syscall_resolve_name_arch(SCMP_ARCH_AARCH64, name);

	if (there == __NR_SCMP_ERROR)
		return here >= 424 ? here : POLICY_CALL_UNKNOWN;
	return there < 0 ? POLICY_CALL_NOWHERE : there;
}

static void check_arm64(struct policy *p)
{
	const char *const    dirs[] = { TEST_SOURCE "/profiles", NULL };
	scoped_policy_bundle b      = { 0 };
	struct err           e      = { 0 };
	size_t               n      = 0;

	if (!tap_ok(policy_bundle_build(&b, "python-strict", NULL, policy_file_read, (void *)dirs, &e) == 0 &&
			    policy_parse(p, &b, arm64_number, &e) == 0,
		    "python-strict is a policy on arm64 too"))
		printf("# %s\n", e.text);
	for (size_t i = 0; i < POLICY_CALLS; i++)
		n += p->call[i].verdict == POLICY_ALLOW;
	tap_ok(n > 100 && p->call[arm64_number("openat")].verdict == POLICY_ALLOW &&
		       p->call[arm64_number("clone")].verdict == POLICY_WHEN,
	       "and allows there what it allows here, but for older names");
}

int main(void)
{
	struct policy *p = malloc(sizeof *p);

	check_rows(p);
	check_floor(p);
	check_meaning(p);
	check_round_trip(p);
	check_key();
	check_arm64(p);
	free(p);
	return tap_done();
}
