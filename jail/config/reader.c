#define _GNU_SOURCE
#include "reader.h"

#include "child_wait.h"
#include "clock.h"
#include "fd.h"
#include "packet.h"
#include "privilege.h"
#include "rules_offer.h"
#include "stderr_line.h"
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READING_MS_MAX = 60000 };

/* --- the server's side --- */

pid_t reader_fork(struct reader *ret, int *theirs, struct err *e)
{
	int   pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "the reader cannot be started: socketpair");
	pid = fork();
	if (pid == 0) {
		close(pair[0]);
		*theirs = pair[1];
		return 0;
	}
	close(pair[1]);
	*ret = (struct reader){ pair[0], pid };
	if (pid > 0)
		return pid;
	err_sys(e, "the reader cannot be started: fork");
	reader_close_and_wait(ret);
	return -1;
}

bool reader_send(struct reader *r, enum reader_kind kind, uint64_t reading)
{
	struct reader_message message = { .kind = kind, .reading = reading };

	return r->sock >= 0 && packet_send(r->sock, &message, sizeof message, NULL, 0) == 0;
}

bool reader_receive(struct reader *r, struct reader_message *ret, int *fd)
{
	size_t n;

	*fd = -1;
	if (r->sock >= 0 && packet_receive(r->sock, ret, sizeof *ret, fd, 1, &n) == sizeof *ret && n == (ret->kind == READER_RULES))
		return true;
	fd_closep(fd);
	return false;
}

void reader_close_and_wait(struct reader *r)
{
	fd_closep(&r->sock);
	if (r->pid > 0)
		child_wait(r->pid);
	r->pid = 0;
}

/* --- one reading, in a process of its own --- */

struct reading {
	const char        *folder; /* of profiles, by its name outside of the view */
	struct reader_setup setup;  /* a copy: places become those of the view */
	uint64_t           number;
	bool               is_first, is_config;
	struct err         left_out; /* the first profile that cannot be used; kind NONE: there is none */
};

static void send_reading_refusal(int server, uint64_t reading, bool is_config, const struct err *why)
{
	struct reader_message message = { .kind = READER_REFUSED, .reading = reading, .is_config = is_config, .err = *why };

	(void)packet_send(server, &message, sizeof message, NULL, 0);
}

/* At the start the other profiles are served all the same; at a reload, one bad profile refuses the reload. */
static void on_profile_left_out(void *context, const char *name, const struct err *why)
{
	struct reading *r = context;
	struct err      e = *why;

	brig_paths_unmap_view(e.text);
	if (r->is_first)
		stderr_print_line("brigd: profile %s is left out: %s\n", name, e.text);
	else if (r->left_out.kind == ERR_NONE && err_wrap(&e, "profile %s", name) < 0)
		r->left_out = e;
}

/* Files are copied as root, then parsed under the server's account. */
static int copy_files_and_drop_root(struct reading *r, struct err *e)
{
	const struct reader_setup *p = &r->setup;

	rules_skip_missing_config(&r->setup.files);
	if (p->had_config && !*r->setup.files.config)
		return err_set(e, ERR_MISSING, "%s is gone; a restart uses the defaults instead", p->files.name);
	if (!p->copies)
		return 0;
	if (view_copy_files(&r->setup.places, r->setup.files.config, e) < 0 ||
	    privilege_switch_to_account(p->server_uid, p->server_gid, PRIVILEGE_NO_CAPS, e) < 0)
		return -1;
	if (privilege_set_no_new_privs(PRIVILEGE_NO_CAPS, e) < 0 || privilege_make_undumpable(e) < 0)
		return -1;
	return prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ? err_sys(e, "prctl") : 0; /* the change of account has cleared it */
}

static int reading_load_rules(struct reading *r, struct rules *ret, struct err *e)
{
	const struct rules_source from = { &r->setup.places, &r->setup.files, r->setup.mode, r->setup.ids };

	if (copy_files_and_drop_root(r, e) < 0 || rules_load(ret, &from, on_profile_left_out, r, &r->is_config, e) < 0)
		return -1;
	if (r->left_out.kind != ERR_NONE) {
		*e = r->left_out;
		return -1;
	}
	/* At a reload, a folder that is gone does not mean "no profiles". */
	return r->is_first || ret->profiles.n ? 0 : err_set(e, ERR_MISSING, "there is no profile in %s", r->folder);
}

static int reading_offer_rules(const struct reading *r, const struct rules *rules, struct err *e)
{
	const enum monitor_mode mode = r->setup.mode;
	struct reader_message   message = { .kind = READER_RULES, .reading = r->number };
	uint32_t                numbers[MONITOR_PROFILES_MAX];
	scoped_fd               text = -1;

	if (rules_offer_to_monitor(r->setup.monitor, &r->setup.places, r->is_first ? &mode : NULL, r->number, rules,
				   numbers, e) < 0)
		return -1;
	text = rules_to_sealed_file(rules, numbers, e);
	if (text < 0)
		return -1;
	errno = -packet_send(r->setup.server, &message, sizeof message, &text, 1);
	return errno ? err_sys(e, "the server cannot be reached") : 0;
}

/* parent: if it ends, this process ends too, since no other process would read its status. */
static _Noreturn void run_reading_process(const struct reader_setup *setup, uint64_t number, bool is_first, pid_t parent)
{
	struct reading r = {
		.folder = setup->places.profiles[PROFILES_PRESET], .setup = *setup, .number = number, .is_first = is_first
	};
	struct rules   rules = { .ids = { 0 } };
	struct err     e;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	if (reading_load_rules(&r, &rules, &e) < 0 || reading_offer_rules(&r, &rules, &e) < 0)
		send_reading_refusal(setup->server, number, r.is_config, &e);
	_exit(EXIT_SUCCESS);
}

/* --- the process that stays --- */

/* A reading may block: names of users, and files, may come from a server. False: it took too long, or the server has gone. */
static bool wait_for_reading(pid_t pid, int server)
{
	scoped_fd     ended = pidfd_open(pid, 0);
	struct pollfd p[2]  = { { .fd = ended, .events = POLLIN }, { .fd = server } };
	double        end   = clock_ms(CLOCK_MONOTONIC) + READING_MS_MAX;

	for (double left = READING_MS_MAX; ended >= 0 && left > 0 && !p[0].revents && !p[1].revents;
	     left        = end - clock_ms(CLOCK_MONOTONIC))
		(void)poll(p, ARRAY_LEN(p), (int)left + 1);
	if (p[0].revents || ended < 0)
		return true;
	kill(pid, SIGKILL);
	return false;
}

static void run_reading(const struct reader_setup *setup, uint64_t number, bool is_first)
{
	pid_t      self   = getpid(), pid = fork();
	int        status;
	bool       in_time;
	struct err e;

	if (pid == 0)
		run_reading_process(setup, number, is_first, self);
	in_time = pid < 0 || wait_for_reading(pid, setup->server);
	status  = pid < 0 ? -1 : child_wait(pid);
	if (pid > 0 && status == 0)
		return;
	if (pid < 0)
		err_sys(&e, "the reader: fork");
	else if (!in_time)
		err_set(&e, ERR_BROKEN, "reading them took longer than %d s", READING_MS_MAX / 1000);
	else
		err_set(&e, ERR_BROKEN, "the process that read them died (wait status %d)", status);
	send_reading_refusal(setup->server, number, false, &e);
}

/* Waits without a limit: the monitor must do what the server decides, or the two would serve different profiles. */
static void forward_server_decision(const struct reader_setup *setup, uint64_t number)
{
	struct reader_message message;
	size_t                n;

	do
		if (packet_receive(setup->server, &message, sizeof message, NULL, 0, &n) != sizeof message)
			_exit(EXIT_SUCCESS);
	while (message.reading != number);
	rules_send_decision(setup->monitor, message.kind == READER_TAKEN);
}

/* The only descriptors of the reader beyond the standard ones and credentials. */
enum { SERVER = 3, MONITOR };

int reader_open(struct reader_setup *setup, struct err *e)
{
	int server  = fcntl(setup->server, F_DUPFD_CLOEXEC, MONITOR + 1);
	int monitor = fcntl(setup->monitor, F_DUPFD_CLOEXEC, MONITOR + 1);

	if (server < 0 || monitor < 0 || dup2(server, SERVER) < 0 || dup2(monitor, MONITOR) < 0 || close_range(MONITOR + 1, ~0u, 0) < 0)
		return err_sys(e, "its descriptors");
	setup->server  = SERVER;
	setup->monitor = MONITOR;
	credentials_open(&setup->credentials);
	return 0;
}

/* No signal but SIGKILL ends this process, and no process of the same account can trace it. */
_Noreturn void reader_main(const struct reader_setup *setup)
{
	struct reader_setup   p = *setup;
	struct reader_message message;
	struct err            e;
	sigset_t              all;
	size_t                n;

	p.places.credentials = &p.credentials;
	sigfillset(&all);
	setsid();
	prctl(PR_SET_NAME, "brig-reader");
	if (sigprocmask(SIG_BLOCK, &all, NULL) < 0 || privilege_make_undumpable(&e) < 0) {
		stderr_print_line("brigd: reader: %s\n", strerror(errno));
		_exit(EXIT_FAILURE);
	}
	p.had_config = *p.files.config && access(p.files.config, F_OK) == 0;
	for (bool is_first = true; packet_receive(p.server, &message, sizeof message, NULL, 0, &n) == sizeof message;
	     is_first      = false) {
		run_reading(&p, message.reading, is_first);
		forward_server_decision(&p, message.reading);
	}
	_exit(EXIT_SUCCESS);
}
