/*
 * early.c - a plain `brig run FILE` through a service, from brig's first instruction on and without a C library
 *
 * glibc's start executes CPUID some thirty times (6 µs each in a virtual machine) and touches forty pages: 0.6 ms of a run that
 * takes 1 ms. foreground_run.c and the files around it do the same work for all cases, and explain it. They take over (early.h) in any
 * case but the plain one: another option, no service, a signal, a limit, a refusal, output that cannot be written, an end that
 * needs a message.
 *
 * This file must call nothing outside itself; it can only jump to _start. There is no thread pointer yet, and nothing is relocated.
 * So this is the only client of brigd that uses nothing of common/client (brigd_connection.h, datagram.h, run_client.h): JSON, malloc() and
 * errno do not work yet.
 */
#include "../run/early.h"
#include "raw_call.h"
#include "stream_rest.h"

#include <asm/errno.h>
#include <asm/poll.h>
#include <asm/signal.h>
#include <asm/stat.h>
#include <linux/auxvec.h>
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/memfd.h>
#include <linux/prctl.h>
#include <linux/stat.h>
#include <linux/uio.h>
#include <linux/un.h>

enum {
	FILE_MAX = 64 * 1024, REQUEST_MAX = 16 * 1024,
	K_UNIX = 1, K_SEQPACKET = 5, K_RIGHTS = 1, K_SOCKET = 1,
	K_NOSIGNAL = 0x4000, K_CMSG_CLOEXEC = 0x40000000, K_CTRUNC = 8, K_TRUNC = 0x20,
	WRITE_MAX = 4096, /* PIPE_BUF: fits where poll() reports that something does */
	GOES_ON = -1, HAND_OVER = -2,
	ALL_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
};

#if defined(__x86_64__)
__asm__(".globl early_start\n.hidden early_start\nearly_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rbx\n\tmov %rdx, %r12\n\tmov %rsp, %rdi\n"
	"\tand $-16, %rsp\n\tcall early_main\n\tmov %r12, %rdx\n\tmov %rbx, %rsp\n\tjmp _start\n");
#elif defined(__aarch64__)
__asm__(".globl early_start\n.hidden early_start\nearly_start:\n\tmov x29, #0\n\tmov x30, #0\n\tmov x19, x0\n\tmov x0, sp\n"
	"\tbl early_main\n\tmov x0, x19\n\tmov x29, #0\n\tmov x30, #0\n\tb _start\n");
#endif

struct text {
	const char *at;
	size_t      len;
};
#define TO_TEXT_(number) #number
#define TO_TEXT(number) TO_TEXT_(number)
#define TEXT(literal) ((struct text){ literal, sizeof literal - 1 })

struct message_kernel {
	void             *name;
	int               name_len;
	struct iovec     *io;
	size_t            ios;
	void             *control;
	size_t            control_len;
	unsigned          flags;
};

struct control_kernel {
	size_t len;
	int    level, type;
	int    fd[EARLY_FDS_MAX];
};

/* The command line of a plain run. */
struct plain {
	const char *file, *profile, *socket;
	char      **words;
	int         signals; /* a signalfd for the signals that end the run; -1: none */
};

static char program[FILE_MAX]; /* later a buffer for its output */
static char request[REQUEST_MAX];

/* --- texts --- */

static size_t text_length(const char *text)
{
	size_t n = 0;

	while (text[n])
		n++;
	return n;
}

static bool begins_with(const char *text, size_t len, struct text with)
{
	if (len < with.len)
		return false;
	for (size_t i = 0; i < with.len; i++)
		if (text[i] != with.at[i])
			return false;
	return true;
}

static bool text_equals(const char *text, struct text other)
{
	return text_length(text) == other.len && begins_with(text, other.len, other);
}

static bool append_text(char *buf, size_t size, size_t *n, struct text text)
{
	if (text.len > size - *n)
		return false;
	for (size_t i = 0; i < text.len; i++)
		buf[(*n)++] = text.at[i];
	return true;
}

/* Needs no escapes in JSON. */
static bool needs_no_json_escape(const char *word)
{
	for (; *word; word++)
		if (*word < 0x20 || *word > 0x7e || *word == '"' || *word == '\\')
			return false;
	return true;
}

/* Narrower than text_is_name(). */
static bool is_profile_name(const char *name)
{
	size_t n = text_length(name);

	for (size_t i = 0; i < n; i++)
		if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9') || (i && name[i] == '-')))
			return false;
	return n > 0 && n < 64;
}

/* Reads at most 18 digits; returns how many. */
static size_t parse_digits(const char *text, size_t len, uint64_t *ret)
{
	size_t n = 0;

	for (*ret = 0; n < len && n < 18 && text[n] >= '0' && text[n] <= '9'; n++)
		*ret = *ret * 10 + (uint64_t)(text[n] - '0');
	return n;
}

/* --- the command line --- */

static bool is_secure_exec(const unsigned long *auxv)
{
	for (; auxv[0] != AT_NULL; auxv += 2)
		if (auxv[0] == AT_SECURE)
			return auxv[1] != 0;
	return true;
}

static const char *find_env(char **env, struct text name)
{
	for (; *env; env++)
		if (begins_with(*env, text_length(*env), name))
			return *env + name.len;
	return "";
}

/* A brig in a build tree does not use the host's service (paths.h). */
static bool is_installed_brig(void)
{
	static const char where[] = BRIG_BINDIR "/brig";
	char              path[sizeof where + 1];
	long              n = raw_call(__NR_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)path, sizeof path, 0);

	return n == sizeof where - 1 && begins_with(path, (size_t)n, TEXT(where));
}

static bool choose_socket(struct plain *p, char **env)
{
	const char *profiles = find_env(env, TEXT("BRIG_PROFILES=")), *presets = find_env(env, TEXT("BRIG_PRESETS=")),
		   *store = find_env(env, TEXT("BRIG_STORE="));

	if ((*profiles && *profiles != '/') || (*presets && *presets != '/') || (*store && *store != '/'))
		return false;
	p->socket = find_env(env, TEXT("BRIG_SOCKET="));
	if (*p->socket)
		return *p->socket == '/' && text_length(p->socket) < UNIX_PATH_MAX;
	return !*profiles && !*presets && !*store && is_installed_brig();
}

/* True if stdin is the program's input (run_cmd.c), which only foreground_run.c can pass on. */
static bool stdin_has_input(void)
{
	struct stat st;

	return raw_call(__NR_fstat, 0, (long)&st, 0, 0, 0) == 0 && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || (st.st_mode & S_IFMT) == S_IFSOCK);
}

static bool parse_plain_run(struct plain *p, char **argv)
{
	if (!argv[0] || !argv[1] || !text_equals(argv[1], TEXT("run")))
		return false;
	p->profile = "basic";
	argv += 2;
	if (argv[0] && argv[1] && (text_equals(argv[0], TEXT("-p")) || text_equals(argv[0], TEXT("--profile")))) {
		p->profile = argv[1];
		argv += 2;
	}
	p->file = argv[0];
	if (!p->file || !*p->file || *p->file == '-' || !is_profile_name(p->profile))
		return false;
	p->words = argv + 1;
	return !stdin_has_input();
}

/* --- the request --- */

static size_t build_request(const struct plain *p)
{
	size_t n  = 0;
	bool   ok = append_text(request, sizeof request, &n, TEXT("{\"op\":\"run\",\"args\":["));

	for (char **word = p->words; ok && *word; word++)
		ok = needs_no_json_escape(*word) && (word == p->words || append_text(request, sizeof request, &n, TEXT(","))) &&
		     append_text(request, sizeof request, &n, TEXT("\"")) && append_text(request, sizeof request, &n, (struct text){ *word, text_length(*word) }) &&
		     append_text(request, sizeof request, &n, TEXT("\""));
	ok = ok && append_text(request, sizeof request, &n, TEXT("],\"profile\":\"")) &&
	     append_text(request, sizeof request, &n, (struct text){ p->profile, text_length(p->profile) }) &&
	     append_text(request, sizeof request, &n, TEXT("\",\"limits\":{},\"env\":[],\"ro\":[],\"wait_ms\":" TO_TEXT(EARLY_WAIT_MS) "}"));
	return ok ? n : 0;
}

/* It may be something else than Python: main() knows (foreign.h). */
static bool is_not_python(size_t len)
{
	if (!begins_with(program, len, TEXT("#!")))
		return program[0] == 0x7f || program[0] == '{';
	for (size_t i = 2; i < len && program[i] != '\n'; i++)
		if (begins_with(program + i, len - i, TEXT("python")))
			return false;
	return true;
}

/* A sealed memory file of the program, or -1 if the file is not regular, not small or not readable: main() then reads it or reports it. */
static int seal_program(const char *path)
{
	struct stat st;
	long        fd = raw_call(__NR_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0, 0), n = -1, file = -1;

	if (fd < 0)
		return -1;
	if (raw_call(__NR_fstat, fd, (long)&st, 0, 0, 0) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size < FILE_MAX)
		n = raw_call(__NR_read, fd, (long)program, FILE_MAX, 0, 0);
	raw_call(__NR_close, fd, 0, 0, 0, 0);
	if (n != st.st_size || is_not_python((size_t)n))
		return -1;
	file = raw_call(__NR_memfd_create, (long)"main.py", MFD_CLOEXEC | MFD_ALLOW_SEALING | 8 /* MFD_NOEXEC_SEAL, 6.3 */, 0, 0, 0);
	if (file == -EINVAL)
		file = raw_call(__NR_memfd_create, (long)"main.py", MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0);
	if (file >= 0 && raw_call(__NR_write, file, (long)program, n, 0, 0) == n && raw_call(__NR_fcntl, file, F_ADD_SEALS, ALL_SEALS, 0, 0) == 0)
		return (int)file;
	if (file >= 0)
		raw_call(__NR_close, file, 0, 0, 0, 0);
	return -1;
}

/* --- the connection --- */

/* The socket, or a negative errno. */
static int connect_unix_socket(const char *path)
{
	struct sockaddr_un at = { .sun_family = K_UNIX };
	long               fd = raw_call(__NR_socket, K_UNIX, K_SEQPACKET | O_CLOEXEC, 0, 0, 0), r;

	if (fd < 0)
		return (int)fd;
	for (size_t i = 0; path[i]; i++)
		at.sun_path[i] = path[i];
	r = raw_call(__NR_connect, fd, (long)&at, sizeof at, 0, 0);
	if (r == 0)
		return (int)fd;
	raw_call(__NR_close, fd, 0, 0, 0, 0);
	return (int)r;
}

/* Tries the user's own service first. If its socket exists but refuses, the host's is not tried; brigd_connection.c reports that. */
static int connect_default_service(const char **name)
{
	static char own[] = "/run/user/0000000000/brig/brig.sock";
	char        digits[10];
	int         fd;
	size_t      n = 0, at = sizeof "/run/user/" - 1;
	long        uid = raw_call(__NR_geteuid, 0, 0, 0, 0, 0);

	do
		digits[n++] = (char)('0' + uid % 10);
	while ((uid /= 10) && n < sizeof digits);
	while (n)
		own[at++] = digits[--n];
	for (const char *rest = "/brig/brig.sock"; (own[at] = *rest); at++, rest++)
		;
	*name = own;
	fd    = connect_unix_socket(own);
	if (fd != -ENOENT)
		return fd;
	*name = "/run/brig/brig.sock";
	return connect_unix_socket(*name);
}

/* As privilege_keep_only_cap_kill(). */
static bool drop_privilege(void)
{
	struct __user_cap_header_struct head   = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct   set[2] = { { 0 } };

	if (raw_call(__NR_capget, (long)&head, (long)set, 0, 0, 0) < 0)
		return false;
	set[0].effective   = set[0].permitted & (1u << CAP_KILL);
	set[0].permitted   = set[0].effective;
	set[0].inheritable = 0;
	set[1]             = (struct __user_cap_data_struct){ 0 };
	return raw_call(__NR_capset, (long)&head, (long)set, 0, 0, 0) == 0 && raw_call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

static void ignore_signal(int number)
{
	struct sigaction action = { .sa_handler = SIG_IGN };

	raw_call(__NR_rt_sigaction, number, (long)&action, 0, sizeof action.sa_mask, 0);
}

/*
 * The signals stay blocked, so that they are still pending when main() takes over. The signalfd also reports a signal that brig's
 * caller ignores: it causes a needless handover, and is dropped when main() unblocks it.
 */
static bool block_ending_signals(struct plain *p)
{
	const uint64_t ending = 1ull << (SIGINT - 1) | 1ull << (SIGTERM - 1) | 1ull << (SIGHUP - 1);

	if (raw_call(__NR_rt_sigprocmask, SIG_BLOCK, (long)&ending, (long)&early_run.mask, sizeof ending, 0) < 0)
		return false;
	early_run.masked = true;
	p->signals   = (int)raw_call(__NR_signalfd4, -1, (long)&ending, sizeof ending, O_CLOEXEC, 0);
	return p->signals >= 0;
}

static bool send_request(size_t len, int file)
{
	struct iovec          io      = { request, len };
	struct control_kernel control = { .len = 16 + sizeof(int), .level = K_SOCKET, .type = K_RIGHTS, .fd = { file } };
	struct message_kernel message = { .io = &io, .ios = 1, .control = &control, .control_len = 24 };

	return raw_call(__NR_sendmsg, early_run.sock, (long)&message, K_NOSIGNAL, 0, 0) == (long)len;
}

/* --- output --- */

/*
 * False: foreground_run.c must go on. The signals are blocked, so brig must not wait in write(): the output may never be read, and a
 * signal is how a user ends such a run.
 */
static bool write_all(struct early_stream *s, int to, int signals, const char *bytes, size_t len)
{
	while (len) {
		struct pollfd fds[] = { { to, POLLOUT, 0 }, { signals, POLLIN, 0 } };
		long          n;

		if (raw_call(__NR_ppoll, (long)fds, 2, 0, 0, 0) < 0)
			continue;
		if (fds[1].revents) {
			s->rest     = bytes;
			s->rest_len = len;
			return false;
		}
		n = raw_call(__NR_write, to, (long)bytes, len < WRITE_MAX ? (long)len : WRITE_MAX, 0, 0);
		if (n >= 0) {
			bytes += n;
			len -= (size_t)n;
		} else if (n != -EAGAIN && n != -EINTR) {
			s->broken = (int)-n;
			return false;
		}
	}
	return true;
}

/*
 * Reads and writes once. False: foreground_run.c must go on; everything read was written, but for s->rest, unless s->broken has the
 * reason. *empty: nothing was read.
 */
static bool copy_output_once(struct early_stream *s, int to, int signals, bool *empty)
{
	uint64_t left = early_run.keep - s->seen;
	long     n;

	if (left == 0)
		return false;
	n      = raw_call(__NR_read, s->fd, (long)program, left < sizeof program ? (long)left : (long)sizeof program, 0, 0);
	*empty = n <= 0;
	s->little = stream_count_little(s->little, n);
	if (n == -EINTR || n == -EAGAIN)
		return true;
	if (n == 0) {
		raw_call(__NR_close, s->fd, 0, 0, 0, 0);
		s->fd = -1;
		return true;
	}
	if (n < 0) {
		s->broken = (int)-n;
		s->unread = true;
		return false;
	}
	s->seen += (uint64_t)n;
	stream_last_put(&s->end, program, (size_t)n);
	return write_all(s, to, signals, program, (size_t)n);
}

/* copy_output_once(), then a rest after many small reads (stream_rest.h). It may sleep: besides output only the end and signals can come. */
static bool copy_output_paced(struct early_stream *s, int to, int signals)
{
	long rest[] = { 0, STREAM_REST_MS * 1000000 }; /* a timespec */
	bool empty;

	if (!copy_output_once(s, to, signals, &empty))
		return false;
	if (stream_rests(s->little))
		raw_call(__NR_nanosleep, (long)rest, 0, 0, 0, 0);
	return true;
}

/* Passes on what is in the pipe, without waiting for more. */
static bool drain_output(struct early_stream *s, int to, int signals)
{
	for (bool empty = false; s->fd >= 0 && !empty;)
		if (!copy_output_once(s, to, signals, &empty))
			return false;
	return true;
}

/* --- messages of brigd --- */

/* Receives a datagram into `early_run`. False: none came, or not all of it. */
static bool receive_event(void)
{
	struct control_kernel control;
	struct iovec          io      = { .iov_len = sizeof early_run.text };
	struct message_kernel message = { .io = &io, .ios = 1, .control = &control, .control_len = sizeof control };
	long                  n;

	io.iov_base = early_run.text; /* in the initialiser it could become a constant that needs a relocation */
	n           = raw_call(__NR_recvmsg, early_run.sock, (long)&message, K_CMSG_CLOEXEC, 0, 0);
	if (n < 0) {
		early_run.lost = n == -EINTR || n == -ECONNRESET ? 0 : (int)-n;
		return false;
	}
	early_run.fds = message.control_len >= 16 && control.level == K_SOCKET && control.type == K_RIGHTS ? (control.len - 16) / sizeof(int) : 0;
	for (size_t i = 0; i < early_run.fds; i++)
		early_run.fd[i] = control.fd[i];
	early_run.len = (size_t)n;
	if (message.flags & (K_CTRUNC | K_TRUNC) || (early_run.fds && !early_run.len)) {
		while (early_run.fds)
			raw_call(__NR_close, early_run.fd[--early_run.fds], 0, 0, 0, 0);
		early_run.len  = 0;
		early_run.lost = EMSGSIZE;
	}
	return early_run.len > 0;
}

static bool parse_started_event(void)
{
	const struct text before = TEXT("{\"event\":\"started\",\"run\":\""),
			  after  = TEXT("\",\"streams\":[\"stdout\",\"stderr\"],\"output_bytes\":");
	size_t   at = before.len + EARLY_ID_LEN + after.len, n;
	uint64_t keep;

	if (early_run.started || early_run.fds != 2 || early_run.len < at || !begins_with(early_run.text, early_run.len, before) || !begins_with(early_run.text + before.len + EARLY_ID_LEN, after.len, after))
		return false;
	for (size_t i = 0; i < EARLY_ID_LEN; i++) {
		char c = early_run.text[before.len + i];

		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || c == '-'))
			return false;
		early_run.run[i] = c;
	}
	n = parse_digits(early_run.text + at, early_run.len - at, &keep);
	if (n == 0 || at + n + 1 != early_run.len || early_run.text[at + n] != '}')
		return false;
	early_run.keep    = keep;
	early_run.out     = (struct early_stream){ .fd = early_run.fd[0] };
	early_run.err     = (struct early_stream){ .fd = early_run.fd[1] };
	early_run.started = true;
	early_run.len = early_run.fds = 0;
	raw_call(__NR_fcntl, early_run.out.fd, F_SETFL, O_NONBLOCK, 0, 0); /* the program can open the pipes again and read from them (foreground_run.c) */
	raw_call(__NR_fcntl, early_run.err.fd, F_SETFL, O_NONBLOCK, 0, 0);
	return true;
}

/* False only if the record, from `at` on, has an empty list of refused calls. */
static bool has_refused_calls(size_t at)
{
	const struct text none = TEXT(",\"refused\":[],");

	while (at < early_run.len && !begins_with(early_run.text + at, early_run.len - at, none))
		at++;
	return at == early_run.len;
}

/*
 * The program's exit status if it exited by itself and brig has nothing to print; otherwise -1. The texts searched for cannot occur
 * inside a JSON string, where each quote has a backslash before it.
 */
static int parse_plain_ended_event(void)
{
	const struct text before = TEXT("{\"event\":\"ended\",\"run\":\""), after = TEXT("\",\"record\":{"),
			  end  = TEXT(",\"exec_error\":null,\"lost\":[],\"left\":null}"),
			  how  = TEXT(",\"exit_reason\":\"exited\",\"exit_code\":"), then = TEXT(",\"signal\":null,");
	size_t   at = before.len + EARLY_ID_LEN + after.len;
	uint64_t code;

	if (!early_run.started || early_run.fds || early_run.len < at + end.len || !begins_with(early_run.text, early_run.len, before) ||
	    !begins_with(early_run.text + before.len, EARLY_ID_LEN, (struct text){ early_run.run, EARLY_ID_LEN }) ||
	    !begins_with(early_run.text + before.len + EARLY_ID_LEN, after.len, after) || !begins_with(early_run.text + early_run.len - end.len, end.len, end))
		return -1;
	while (at < early_run.len && !begins_with(early_run.text + at, early_run.len - at, how))
		at++;
	if (at == early_run.len)
		return -1;
	at += how.len;
	at += parse_digits(early_run.text + at, early_run.len - at, &code);
	if (!begins_with(early_run.text + at, early_run.len - at, then) || code > 255)
		return -1;
	return code && has_refused_calls(at) ? -1 : (int)code;
}

/* --- the run --- */

/* Handles one event. Returns brig's exit status, GOES_ON or HAND_OVER. */
static int handle_one_event(const struct plain *p)
{
	struct pollfd fds[] = { { early_run.sock, POLLIN, 0 }, { early_run.started ? early_run.out.fd : -1, POLLIN, 0 },
				{ early_run.started ? early_run.err.fd : -1, POLLIN, 0 }, { p->signals, POLLIN, 0 } };
	int           status;

	if (raw_call(__NR_ppoll, (long)fds, 4, 0, 0, 0) < 0)
		return GOES_ON;
	if (fds[3].revents || (fds[1].revents && !copy_output_paced(&early_run.out, 1, p->signals)) || (fds[2].revents && !copy_output_paced(&early_run.err, 2, p->signals)))
		return HAND_OVER;
	if (!fds[0].revents)
		return GOES_ON;
	if (!receive_event())
		return HAND_OVER;
	if (parse_started_event())
		return GOES_ON;
	status = parse_plain_ended_event();
	return status >= 0 && drain_output(&early_run.out, 1, p->signals) && drain_output(&early_run.err, 2, p->signals) ? status : HAND_OVER;
}

static void try_plain_run(struct plain *p)
{
	size_t len  = build_request(p);
	int    file = len ? seal_program(p->file) : -1, status = GOES_ON;

	if (file < 0)
		return;
	early_run.name = p->socket;
	early_run.sock = *p->socket ? connect_unix_socket(p->socket) : connect_default_service(&early_run.name);
	if (early_run.sock >= 0 && drop_privilege()) {
		early_run.connected = true;
		if (block_ending_signals(p)) {
			ignore_signal(SIGPIPE);
			early_run.sent = send_request(len, file);
			while (early_run.sent && status == GOES_ON)
				status = handle_one_event(p);
			if (status >= 0)
				raw_call(__NR_exit_group, status, 0, 0, 0, 0);
			raw_call(__NR_close, p->signals, 0, 0, 0, 0);
		}
	} else if (early_run.sock >= 0) {
		raw_call(__NR_close, early_run.sock, 0, 0, 0, 0);
	}
	raw_call(__NR_close, file, 0, 0, 0, 0);
}

/* Returns when the C library and main() must do the run, or the rest of it. */
__attribute__((used, visibility("hidden"))) void early_main(unsigned long *stack);
void early_main(unsigned long *stack)
{
	char         **argv = (char **)(stack + 1), **env = argv + stack[0] + 1, **end = env;
	struct plain   p    = { .signals = -1 };

	while (*end)
		end++;
	if (stack[0] < 3 || !parse_plain_run(&p, argv) || is_secure_exec((unsigned long *)(end + 1)) || !choose_socket(&p, env))
		return;
	for (int fd = 0; fd <= 2; fd++)
		if (raw_call(__NR_fcntl, fd, F_GETFD, 0, 0, 0) < 0)
			return;
	ignore_signal(SIGXFSZ);
	try_plain_run(&p);
}
