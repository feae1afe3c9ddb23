#define _GNU_SOURCE
#include "separate.h"

#include "fd.h"
#include "cg_give.h"
#include "libexec.h"
#include "privilege.h"
#include "proxy_protocol.h"
#include "slot.h"
#include "sub_ids.h"
#include "view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct account {
	unsigned uid, gid;
};

/* Everything that is decided before anything changes. */
struct parting {
	struct account monitor, server;
	bool           is_root, has_two_caps;
	int            monitor_file, supervisor_file, proxy_file;
	/* [1]: the monitor's ends; pair[0]: the server's; rules[0]: the reader's, no other process keeps it */
	int            pair[2], rules[2];
};

/* --- which account each process gets --- */

static bool find_account(const char *name, struct account *ret)
{
	const struct passwd *pw = getpwnam(name);

	if (!pw || pw->pw_uid == 0 || pw->pw_gid == 0)
		return false;
	*ret = (struct account){ pw->pw_uid, pw->pw_gid };
	return true;
}

/*
 * Decides whose ids each process gets. The lock on host ids is held until the server, the monitor and every cell have
 * ended.
 */
static int choose_process_accounts(struct parting *p, const struct brig_paths *places, struct separation *s,
				   struct err *e)
{
	struct id_range all;
	uint32_t        last;

	p->monitor = p->server = (struct account){ geteuid(), getegid() };
	if (!p->is_root && !p->has_two_caps)
		return 0;
	if (sub_ids_choose_for_root(&all, e) < 0)
		return -1;
	s->ids_held = slot_take_block(places->runtime, &all, &s->ids, e);
	if (s->ids_held < 0)
		return -1;
	if (!p->is_root)
		return find_account("_brig-door", &p->server) ? 0 :
			err_set(e, ERR_MISSING, "there is no account _brig-door for the process that talks to clients; "
						"systemd-sysusers creates it");
	if (find_account("_brig-keeper", &p->monitor) && find_account("_brig-door", &p->server))
		return 0;
	last       = s->ids.base + s->ids.count - IDS_PER_CELL;
	p->monitor = (struct account){ last, last };
	p->server  = (struct account){ last + 1, last + 1 };
	snprintf(s->note, sizeof s->note,
		 "there are no accounts _brig-keeper and _brig-door: host ids %u and %u are used instead", last,
		 last + 1);
	return 0;
}

/*
 * The account of the unit has no places of its own: root's are used. A store of that account would be searched first,
 * and could only come from another user.
 */
static void use_paths_of_host(const struct parting *p, struct brig_paths *places)
{
	if (p->is_root || !p->has_two_caps)
		return;
	strcpy(places->runtime, "/run/brig");
	places->profiles[PROFILES_OWN][0] = 0;
	if (places->store[1][0])
		strcpy(places->store[0], places->store[1]);
	places->store[1][0] = 0;
}

/* --- what root prepares for the other processes --- */

/* The sweeper waits for the groups, also if there are none. */
static int prepare_groups_and_view(const struct parting *p, struct brig_paths *places, const struct sweeper *sweeper,
			struct err *e)
{
	struct cg_given groups = CG_GIVEN_NONE;
	int             r      = 0;

	/* Clients must reach the service's socket in this folder, and the monitor its files. */
	if (p->is_root && chmod(places->runtime, 0755) < 0)
		return err_sys(e, "%s", places->runtime);
	if (p->is_root && (view_enter(places, e) < 0 || cg_give_to_monitor(p->monitor.uid, p->monitor.gid, &groups,
									   e) < 0))
		r = -1;
	if (r == 0)
		r = sweeper_send_groups(sweeper, &groups, e);
	cg_given_close(&groups);
	return r;
}

/* --- the monitor --- */

/* Moves all of them to high numbers first, so that dup2() to the monitor's fixed numbers overwrites none. */
static int place_monitor_descriptors(const struct parting *p, int lock, int *file)
{
	enum { CLEAR_OF_LOW = 16 };
	int sock       = fcntl(p->pair[1], F_DUPFD_CLOEXEC, CLEAR_OF_LOW),
	    rules      = fcntl(p->rules[1], F_DUPFD_CLOEXEC, CLEAR_OF_LOW);
	int supervisor = fcntl(p->supervisor_file, F_DUPFD_CLOEXEC, CLEAR_OF_LOW),
	    proxy      = fcntl(p->proxy_file, F_DUPFD_CLOEXEC, CLEAR_OF_LOW);

	*file = fcntl(p->monitor_file, F_DUPFD_CLOEXEC, CLEAR_OF_LOW);
	lock  = lock < 0 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : fcntl(lock, F_DUPFD_CLOEXEC, CLEAR_OF_LOW);
	if (sock < 0 || rules < 0 || supervisor < 0 || proxy < 0 || *file < 0 || lock < 0 ||
	    dup2(sock, MONITOR_FD) < 0 || dup2(lock, MONITOR_LOCK_FD) < 0 || dup2(rules, MONITOR_RULES_FD) < 0 ||
	    dup2(supervisor, MONITOR_SUPERVISOR_FD) < 0 || dup2(proxy, MONITOR_PROXY_FD) < 0)
		return -1;
	return close_range(MONITOR_FDS_END, ~0u, CLOSE_RANGE_CLOEXEC);
}

static _Noreturn void exec_monitor(const struct parting *p, int lock)
{
	char *const argv[] = { (char *)"brig-monitor", NULL }, *const none[] = { NULL };
	struct err  e;
	int         file;

	signal(SIGPIPE, SIG_DFL);
	/* A plain user's monitor is not locked: no_new_privs would take the privilege from newuidmap. */
	if ((p->is_root && privilege_switch_to_account(p->monitor.uid, p->monitor.gid, PRIVILEGE_ID_CAPS, &e) < 0) ||
	    ((p->is_root || p->has_two_caps) && privilege_set_no_new_privs(PRIVILEGE_ID_CAPS, &e) < 0)) {
		fprintf(stderr, "brigd: monitor: %s\n", e.text);
		_exit(EXIT_FAILURE);
	}
	if (place_monitor_descriptors(p, lock, &file) == 0)
		execveat(file, "", argv, none, AT_EMPTY_PATH);
	fprintf(stderr, "brigd: the monitor cannot be executed: %m\n");
	_exit(EXIT_FAILURE);
}

/* --- the server --- */

static int drop_to_server_account(const struct parting *p, struct err *e)
{
	if ((p->is_root || p->has_two_caps) && privilege_switch_to_account(p->server.uid, p->server.gid,
									PRIVILEGE_NO_CAPS, e) < 0)
		return -1;
	return privilege_set_no_new_privs(PRIVILEGE_NO_CAPS, e);
}

/* --- the reader --- */

/* A service that root starts by hand may have files that only root can read. */
static int drop_to_reader_account(const struct parting *p, struct err *e)
{
	if (p->is_root)
		return privilege_switch_to_account(0, 0, PRIVILEGE_READ_CAPS, e) < 0
			? -1 : privilege_set_no_new_privs(PRIVILEGE_READ_CAPS, e);
	return drop_to_server_account(p, e);
}

static int fork_reader(const struct parting *p, struct separation *s, const struct brig_paths *places,
			    const struct reader_files *files, struct err *e)
{
	struct reader_setup reader = {
		.files      = *files,
		.monitor    = p->rules[0],
		.mode       = s->mode,
		.ids        = s->ids,
		.copies     = p->is_root,
		.server_uid = p->server.uid,
		.server_gid = p->server.gid,
	};
	pid_t               pid    = reader_fork(&s->reader, &reader.server, e);

	if (pid != 0)
		return pid < 0 ? -1 : 0;
	reader.places = *places;
	if (reader_open(&reader, e) == 0 && drop_to_reader_account(p, e) == 0)
		reader_main(&reader);
	fprintf(stderr, "brigd: reader: %s\n", e->text);
	_exit(EXIT_FAILURE);
}

/* --- one after the other --- */

static int fork_monitor_and_reader(const struct parting *p, struct separation *s, const struct brig_paths *places,
		const struct reader_files *files, struct err *e)
{
	pid_t pid = fork();

	if (pid == 0)
		exec_monitor(p, s->ids_held);
	if (pid < 0)
		return err_sys(e, "the monitor cannot be started: fork");
	s->monitor_pid = pid;
	return fork_reader(p, s, places, files, e) < 0 ? -1 : drop_to_server_account(p, e);
}

int separate_processes(struct separation *ret, struct brig_paths *places, const struct reader_files *files,
	     const struct sweeper *sweeper, struct err *e)
{
	struct separation s = { .monitor = -1, .reader = READER_NONE, .ids_held = -1 };
	struct parting    p = { .monitor_file    = -1,
				.supervisor_file = -1,
				.is_root         = geteuid() == 0,
				.has_two_caps    = privilege_has_id_caps() };
	int               r;

	use_paths_of_host(&p, places); /* first: the lock on ids is taken in places->runtime */
	if (choose_process_accounts(&p, places, &s, e) < 0)
		return -1;
	p.monitor_file    = libexec_open(places, "monitor", e);
	p.supervisor_file = p.monitor_file < 0 ? -1 : libexec_open(places, "supervisor", e);
	p.proxy_file      = p.supervisor_file < 0 ? -1 : libexec_open(places, PROXY_PROGRAM, e);
	if (p.proxy_file < 0)
		return -1;
	if (prepare_groups_and_view(&p, places, sweeper, e) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p.pair) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, p.rules) < 0)
		return err_sys(e, "the monitor cannot be started: socketpair");
	s.mode = p.is_root || p.has_two_caps ? MONITOR_SERVICE : MONITOR_USER;
	r      = fork_monitor_and_reader(&p, &s, places, files, e);
	close(p.pair[1]);
	close(p.rules[0]);
	close(p.rules[1]);
	close(p.monitor_file);
	close(p.supervisor_file);
	close(p.proxy_file);
	if (r < 0) {
		close(p.pair[0]);
		return -1;
	}
	s.monitor     = p.pair[0];
	s.monitor_uid = p.monitor.uid;
	s.server_uid  = p.server.uid;
	*ret          = s;
	return 0;
}
