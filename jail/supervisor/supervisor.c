/*
 * One process for all cells of a profile, root of the profile's namespace P and an unprivileged id on the host. One
 * loop: the monitor's messages, the zygote's life, each cell's turn. It waits in epoll_wait() and nowhere else.
 */
#define _GNU_SOURCE
#include "supervisor.h"

#include "clock.h"
#include "fd.h"
#include "filter_notice.h"
#include "zygote_process.h"
#include "layer.h"
#include "packet.h"
#include "privilege.h"
#include "reap.h"
#include "stderr_line.h"
#include "sealed.h"
#include "served_cell.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EVENTS_MAX = 64, QUIET_MS = 500, WAIT_MS_MAX = 60000, END_MS_MAX = 2000, LOOK_MS = 1000, LOOK_EACH_MS = 5 };

/* A cell, or none. The generation tells events of a cell that has gone from those of its successor. */
struct entry_of_cell {
	struct served_cell *cell;
	uint32_t            generation;
	bool                is_due;
	int                 armed[RUNNER_FDS]; /* of each source, while epoll waits for it; -1: none, or its event has come */
	int                 known[RUNNER_FDS]; /* the descriptor that epoll was given last */
	double              asked;            /* warm.asked then: later descriptors may have the same numbers */
};

struct supervisor {
	struct supervisor_setup setup;
	struct sock_fprog       filter, notifying; /* as in cell_spec; in memory, one follows the other */
	struct zygote_process   zygote;
	struct cell_kind        kind;
	int                     report_fd, epoll;
	double                  looks; /* CLOCK_MONOTONIC ms: until then all are polled each LOOK_EACH_MS: epoll cannot watch all */
	double                  ends; /* CLOCK_MONOTONIC ms: the monitor is gone, and this ends by then; 0: it is there */
	double                  reaped; /* CLOCK_MONOTONIC ms: when children that belong to no cell were last reaped */
	uint32_t                answered; /* cells for whose programs this process has just answered notices */
	bool                    is_reported; /* figures were written, and nothing has happened since */
	bool                    has_freed; /* memory of cells, which malloc has not given back to the kernel */
	struct entry_of_cell    entry[MONITOR_CELLS_MAX];
	size_t                  top; /* entries from here on are free */
};

static _Noreturn void log_errno_and_exit(const char *what)
{
	stderr_print_line("brig supervisor: %s: %m\n", what);
	_exit(EXIT_FAILURE);
}

static _Noreturn void log_err_and_exit(const struct err *e)
{
	stderr_print_line("brig supervisor: %s\n", e->text);
	_exit(EXIT_FAILURE);
}

/* --- the setup, which the monitor sends first --- */

static void load_seccomp_filter(struct supervisor *s, int fd)
{
	off_t               len  = lseek(fd, 0, SEEK_END);
	size_t              n    = (size_t)len / sizeof *s->filter.filter;
	struct sock_filter *both = len > 0 && n <= MONITOR_FILTER_MAX ? malloc(2 * (size_t)len) : NULL;

	if (!both || pread(fd, both, (size_t)len, 0) != len)
		log_errno_and_exit("no filter");
	if (bpf_check(both, n))
		log_errno_and_exit("a filter that is no program");
	memcpy(both + n, both, (size_t)len);
	s->filter  = (struct sock_fprog){ .len = (unsigned short)n, .filter = both };
	s->notifying = (struct sock_fprog){ .len = (unsigned short)n, .filter = both + n };
	close(fd);
}

static void receive_supervisor_setup(struct supervisor *s)
{
	struct err e;
	int        fds[3], both_filters;
	size_t     n;
	ssize_t    got = packet_receive(SUPERVISOR_FD, &s->setup, sizeof s->setup, fds, ARRAY_LEN(fds), &n);

	if (got < 0)
		log_errno_and_exit("no message of the monitor can be received");
	if (got != sizeof s->setup || n != 2u + !!s->setup.has_trust)
		log_errno_and_exit("garbled setup");
	s->report_fd = fds[1];
	load_seccomp_filter(s, fds[0]);
	/* In a profile that never starts warm, a run gets nothing that another run has used: no networks are kept. */
	if (net_pool_open(&s->kind.nets, s->setup.warm, &s->notifying, &e) < 0)
		log_err_and_exit(&e);
	(void)!refusal_notice_add(s->notifying.filter, s->notifying.len);
	if (cell_base_open(&s->kind.base, s->setup.rootless_kind, &s->kind.unfit) == 0) /* zygotes inherit it, too */
		s->kind.unfit.kind = ERR_NONE;
	s->kind.base.mounts.trust_fd = s->setup.has_trust ? fds[2] : -1;
	s->kind.setup     = &s->setup;
	s->kind.filter    = &s->filter;
	s->kind.notifying = &s->notifying;
	s->kind.forker    = (struct forker){ .requests = -1, .pidfd = -1, .filter = &s->filter, .notifying = &s->notifying };
	both_filters      = sealed_create("filter", s->filter.filter, 2 * s->filter.len * sizeof *s->filter.filter, &e);
	if (both_filters < 0)
		log_err_and_exit(&e);
	if (zygote_process_init(&s->zygote, &s->setup, &s->kind.base.mounts, both_filters, &e) < 0)
		log_err_and_exit(&e);
}

/* --- waiting --- */

/* Numbers of the supervisor's own sources; those of cells follow. */
enum { OWN_MONITOR, OWN_ZYGOTES, OWN_MAX = OWN_ZYGOTES + ZYGOTE_PROCESS_FDS };

/*
 * Each source causes one event, and is armed again after the turn for it. So a descriptor that is closed here, while
 * another process has the same file open, causes one turn at most. If a source cannot be watched, the supervisor
 * ends: a run that is not watched has no limits.
 */
static bool arm_epoll_source(struct supervisor *s, int fd, short events, uint64_t data, bool is_known)
{
	struct epoll_event e = { .events = (uint32_t)events | EPOLLONESHOT, .data.u64 = data };
	int first = is_known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, second = is_known ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;

	if (fd < 0 || epoll_ctl(s->epoll, first, fd, &e) == 0)
		return true;
	if ((errno == ENOENT || errno == EEXIST) && epoll_ctl(s->epoll, second, fd, &e) == 0) /* another file has the number by now, or still the same one */
		return true;
	if (errno != ENOSPC && errno != ENOMEM)
		log_errno_and_exit("epoll_ctl");
	s->looks = clock_ms(CLOCK_MONOTONIC) + LOOK_MS; /* fs.epoll.max_user_watches: a program that has this process's id may have used it up */
	return false;
}

/* After each event of the monitor or of a zygote, and when a zygote was started. */
static void arm_own_sources(struct supervisor *s)
{
	struct pollfd zygotes[ZYGOTE_PROCESS_FDS];

	if (!s->ends)
		(void)arm_epoll_source(s, SUPERVISOR_FD, POLLIN, OWN_MONITOR, true);
	zygote_process_fill_pollfds(&s->zygote, zygotes);
	for (size_t i = 0; i < ZYGOTE_PROCESS_FDS; i++)
		(void)arm_epoll_source(s, zygotes[i].fd, zygotes[i].events, OWN_ZYGOTES + i, true);
}

/* --- cells --- */

static void arm_cell_sources(struct supervisor *s, size_t i)
{
	struct entry_of_cell *entry    = &s->entry[i];
	const struct warm    *warm     = &entry->cell->watch.cell.warm;
	bool                  is_other = entry->asked != warm->asked;
	struct pollfd        fds[RUNNER_FDS];

	entry->asked = warm->asked;
	served_cell_fill_pollfds(entry->cell, fds);
	for (size_t n = 0; n < RUNNER_FDS; n++) {
		uint64_t data     = (uint64_t)entry->generation << 32 | (OWN_MAX + i * RUNNER_FDS + n);
		bool     is_armed = fds[n].fd == entry->armed[n] && !is_other;

		if (fds[n].fd < -1 && entry->armed[n] == ~fds[n].fd)
			(void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, ~fds[n].fd, NULL); /* its end would wake this process, and delay the program */
		if (!is_armed)
			is_armed = arm_epoll_source(s, fds[n].fd, fds[n].events, data, fds[n].fd == entry->known[n]);
		entry->known[n] = fds[n].fd;
		entry->armed[n] = is_armed ? fds[n].fd : -1; /* -1: the next turn tries again, and looks until then */
	}
}

static struct zygote_status ensure_zygote_started(struct supervisor *s, int tree_fd, const char *digest)
{
	if (zygote_process_ensure_started(&s->zygote, tree_fd, digest))
		arm_own_sources(s);
	return zygote_process_status(&s->zygote, digest);
}

/* For a cell that the monitor asks for, in this tree. */
static struct zygote_status zygote_for_message(struct supervisor *s, const struct supervisor_cell *message, int tree_fd)
{
	s->kind.forker.is_oom_target = s->zygote.is_oom_target = message->missing & LAYER_BIT(MEMORY);
	return message->warm ? ensure_zygote_started(s, tree_fd, message->digest) : ZYGOTE_STATUS_NONE;
}

/* epoll watches nothing of the previous cell in the place. */
static void forget_armed_sources(struct entry_of_cell *entry)
{
	entry->generation++;
	memset(entry->armed, 0xff, sizeof entry->armed); /* -1 */
}

/* Builds the next cell in the place. False: none; entry->cell is freed. */
static bool build_next_cell(struct supervisor *s, size_t i)
{
	struct entry_of_cell    *entry = &s->entry[i];
	const struct store_tree *tree  = &entry->cell->resources.rootfs;
	struct zygote_status     zygote;

	if (s->ends > 0 || strcmp(s->zygote.digest, tree->digest) != 0) { /* the monitor uses another rootfs by now */
		served_cell_free(entry->cell);
		return false;
	}
	zygote = ensure_zygote_started(s, tree->tree_fd, tree->digest);
	forget_armed_sources(entry);
	return served_cell_build_next(entry->cell, &s->kind, &zygote);
}

static bool is_cell_message_valid(const struct supervisor_cell *message, size_t own_fds, size_t fds)
{
	return message->leaves <= CG_TREES_MAX && message->shown_len <= MOUNT_SHOWN_MAX && message->files <= 1 &&
	       message->has_code <= 1 && message->terminals <= 1 && fds == own_fds + message->leaves + message->shown_len + message->files;
}

/* The same at the monitor's request, in a place that rests. False also when the monitor gives the place up. */
static bool build_requested_cell(struct supervisor *s, size_t i)
{
	struct entry_of_cell       *entry = &s->entry[i];
	const struct cell_resources *place = &entry->cell->resources;
	struct zygote_status        zygote;
	struct supervisor_cell      message;
	int                         fds[PACKET_FDS_MAX];
	size_t                      n;
	ssize_t                     got = packet_receive(place->control, &message, sizeof message, fds, ARRAY_LEN(fds), &n);

	if (got < 0 && errno == ENOMEM) /* the next turn tries again */
		return true;
	/* A spec may be left of a run that came too late; or no descriptors are free: the monitor sees the end of the socket. */
	if (got != sizeof message || !is_cell_message_valid(&message, 0, n) || s->ends > 0) {
		packet_close_fds(fds, got < 0 ? 0 : n);
		served_cell_free(entry->cell);
		return false;
	}
	zygote = zygote_for_message(s, &message, place->rootfs.tree_fd);
	forget_armed_sources(entry);
	served_cell_reuse(entry->cell, &s->kind, &message, fds, &zygote);
	return true;
}

/* Polls all sources of the cell again, to handle them in their own order, not in that in which events came. */
static void handle_cell_events(struct supervisor *s, size_t i)
{
	struct entry_of_cell *entry = &s->entry[i];
	struct cell          *cell  = &entry->cell->watch.cell;
	struct pollfd         fds[RUNNER_FDS];
	bool                  lives = false;

	entry->is_due                  = false;
	cell->notice.answered_programs = s->answered;
	cell->warm.zygote = cell->warm.is_wanted ? zygote_process_status(&s->zygote, cell->rootfs.digest) : ZYGOTE_STATUS_NONE;
	served_cell_fill_pollfds(entry->cell, fds);
	if (poll(fds, ARRAY_LEN(fds), 0) < 0 && errno != EINTR)
		log_errno_and_exit("poll");
	for (size_t n = 0; n < RUNNER_FDS; n++)
		if (fds[n].revents) /* the turn may close it, and its number may become another file's */
			entry->armed[n] = -1;
	switch (served_cell_handle_events(entry->cell, &s->kind, fds)) {
	case SERVED_CELL_MAY_FOLLOW:
		lives = build_next_cell(s, i);
		break;
	case SERVED_CELL_IS_WANTED:
		lives = build_requested_cell(s, i);
		break;
	case SERVED_CELL_LIVES:
		lives = true;
		break;
	case SERVED_CELL_IS_GONE:
		break;
	}
	if (lives) {
		arm_cell_sources(s, i);
		return;
	}
	entry->cell  = NULL;
	s->has_freed = true;
	entry->generation++;
	while (s->top && !s->entry[s->top - 1].cell)
		s->top--;
	if (s->top == 0 && s->kind.unfit.kind != ERR_NONE)
		_exit(EXIT_SUCCESS); /* each run has the reason; the monitor starts another supervisor, which may be able to build cells */
}

static void receive_cell_from_monitor(struct supervisor *s)
{
	struct supervisor_cell message;
	int                    fds[PACKET_FDS_MAX];
	size_t                 n, used, i = 0;
	ssize_t                got;
	struct zygote_status   zygote;
	struct cell_resources  resources;

	while (i < MONITOR_CELLS_MAX && s->entry[i].cell)
		i++;
	got = packet_receive(SUPERVISOR_FD, &message, sizeof message, fds, ARRAY_LEN(fds), &n);
	if (got < 0 && errno == EMSGSIZE)
		return; /* no descriptors are free: the monitor sees the end of the cell's control socket */
	if (got < 0)
		log_errno_and_exit("no message of the monitor can be received");
	if (got == 0) {
		s->ends = clock_ms(CLOCK_MONOTONIC) + END_MS_MAX;
		return;
	}
	if (got != sizeof message || !is_cell_message_valid(&message, 3, n))
		log_errno_and_exit("garbled message");
	if (i == MONITOR_CELLS_MAX) { /* the monitor has as many entries; cells that die slowly may hold theirs here for longer */
		packet_close_fds(fds, n);
		return;
	}
	zygote           = zygote_for_message(s, &message, fds[2]);
	used             = cell_resources_from_message(&resources, &message, fds);
	s->entry[i].cell = served_cell_open(&s->kind, &resources, &message, fds + used, &zygote);
	if (!s->entry[i].cell)
		return; /* the monitor sees the end of its control socket */
	if (i >= s->top)
		s->top = i + 1;
	s->entry[i].is_due = true;
	memset(s->entry[i].armed, 0xff, sizeof s->entry[i].armed); /* -1 */
}

/* --- processes --- */

/* True also if the child may belong to a cell: while the pid of a fork is not known yet, any child may be that fork. */
static bool may_child_belong_to_cell(const void *arg, pid_t pid)
{
	const struct supervisor *s = arg;

	for (size_t i = 0; i < s->top; i++) {
		const struct cell *c = s->entry[i].cell ? &s->entry[i].cell->watch.cell : NULL;

		if (c && (cell_has_child(c, pid) || s->entry[i].cell->helper == pid || warm_awaits_fork(&c->warm)))
			return true;
	}
	return false;
}

/*
 * A cell reaps its PID 1 and its program. Other children are fork servers, helpers, and forks whose server was killed
 * before it had reported them: the cell of such a fork cannot end before the fork is reaped.
 */
static void reap_children_outside_cells(struct supervisor *s)
{
	enum { REAP_MS = 500 };
	double now = clock_ms(CLOCK_MONOTONIC);

	if (now - s->reaped < REAP_MS)
		return;
	s->reaped = now;
	reap_unknown_children(may_child_belong_to_cell, s);
}

static void handle_zygote_events(struct supervisor *s)
{
	struct pollfd fds[ZYGOTE_PROCESS_FDS];
	bool          was_up = s->zygote.is_up;

	zygote_process_fill_pollfds(&s->zygote, fds);
	if (poll(fds, ARRAY_LEN(fds), 0) > 0)
		zygote_process_handle_events(&s->zygote, fds);
	for (size_t i = 0; !was_up && s->zygote.is_up && i < s->top; i++)
		if (s->entry[i].cell && s->entry[i].cell->state == CELL_LIVES) {
			s->entry[i].cell->watch.cell.warm.zygote = zygote_process_status(&s->zygote, s->entry[i].cell->watch.cell.rootfs.digest);
			runner_handle_zygote_up(&s->entry[i].cell->watch);
			s->entry[i].is_due = true;
		}
}

/* --- the loop --- */

static int ms_until_next_wakeup(const struct supervisor *s)
{
	double first = s->has_freed || (s->setup.warm && !s->is_reported) ? QUIET_MS : WAIT_MS_MAX, now = clock_ms(CLOCK_MONOTONIC);

	for (size_t i = 0; i < s->top; i++)
		if (s->entry[i].cell && s->entry[i].cell->wake - now < first)
			first = s->entry[i].cell->wake - now;
	if (s->looks > now && first > LOOK_EACH_MS)
		first = LOOK_EACH_MS;
	if (s->ends > 0 && s->ends - now < first)
		first = s->ends - now;
	return first < 0 ? 0 : (int)first + 1;
}

static void mark_cell_due(struct supervisor *s, uint64_t data)
{
	size_t i = ((uint32_t)data - OWN_MAX) / RUNNER_FDS, source = ((uint32_t)data - OWN_MAX) % RUNNER_FDS;

	if (i >= s->top || !s->entry[i].cell || s->entry[i].generation != data >> 32)
		return;
	s->entry[i].is_due        = true;
	s->entry[i].armed[source] = -1;
}

static void handle_due_cells(struct supervisor *s)
{
	enum { MOMENT_MS = 250 };
	double now = clock_ms(CLOCK_MONOTONIC);

	s->answered = 0;
	for (size_t i = 0; i < s->top; i++)
		s->answered += s->entry[i].cell && s->entry[i].cell->watch.cell.notice.answered > now - MOMENT_MS;
	for (size_t i = 0; i < s->top; i++)
		if (s->entry[i].cell && (s->entry[i].is_due || s->entry[i].cell->wake <= now || s->looks > now))
			handle_cell_events(s, i);
}

/* NULL: no run is under way. */
static const struct runner *newest_run(const struct supervisor *s)
{
	const struct runner *newest = NULL;

	for (size_t i = 0; i < s->top; i++) {
		const struct runner *run = s->entry[i].cell ? &s->entry[i].cell->watch : NULL;

		if (run && run->clock.started > (newest ? newest->clock.started : 0) && run->program_state == PROGRAM_NOT_ENDED &&
		    !runner_is_ending(run))
			newest = run;
	}
	return newest;
}

static void publish_run_activity(struct supervisor *s)
{
	const struct runner *run = newest_run(s);

	if (run)
		zygote_process_set_activity(&s->zygote, run->clock.started, run->head.result_pipe || run->session_ms);
	else
		zygote_process_set_no_activity(&s->zygote);
}

static struct waiting_forks collect_waiting_forks(const struct supervisor *s)
{
	struct waiting_forks waiting = { .pidfd = -1 };

	for (size_t i = 0; i < s->top; i++) {
		const struct warm *warm = s->entry[i].cell ? &s->entry[i].cell->watch.cell.warm : NULL;

		if (!warm || warm->program_fd < 0 || !warm->fork_is_confined || s->entry[i].cell->watch.spec_from)
			continue;
		waiting = (struct waiting_forks){ .n = waiting.n + 1, .pid = warm->program, .pidfd = warm->program_fd };
	}
	return waiting;
}

static void supervisor_poll_once(struct supervisor *s)
{
	struct epoll_event events[EVENTS_MAX];
	int                n = epoll_wait(s->epoll, events, EVENTS_MAX, ms_until_next_wakeup(s));
	bool               zygotes, monitor;

	if (n < 0 && errno != EINTR)
		log_errno_and_exit("epoll_wait");
	zygotes = s->looks > clock_ms(CLOCK_MONOTONIC); /* epoll does not watch everything: everything is polled */
	monitor = zygotes && !s->ends && packet_is_readable(SUPERVISOR_FD);
	for (int i = 0; i < n; i++)
		if (events[i].data.u64 >= OWN_MAX)
			mark_cell_due(s, events[i].data.u64);
		else if (events[i].data.u64 == OWN_MONITOR)
			monitor = true;
		else
			zygotes = true;
	if (zygotes)
		handle_zygote_events(s);
	if (monitor)
		receive_cell_from_monitor(s);
	if (zygotes || monitor)
		arm_own_sources(s);
	handle_due_cells(s);
	reap_children_outside_cells(s);
	s->is_reported = n == 0;
	if (n == 0 && s->has_freed) {
		malloc_trim(0); /* many cells may have gone */
		s->has_freed = false;
	}
	if (!s->setup.warm)
		return;
	publish_run_activity(s);
	/* Measuring memory takes some tenths of a millisecond. The other figures are written each time. */
	if (zygote_process_is_measurement_due(&s->zygote, n == 0)) {
		struct waiting_forks waiting = collect_waiting_forks(s);

		zygote_process_measure_memory(&s->zygote, &waiting);
	}
	zygote_process_write_report(&s->zygote, s->report_fd);
}

/* --- begin --- */

/* When the monitor is gone, each cell gets end of file on its control socket, and ends: that is waited for. */
static bool is_supervisor_finished(const struct supervisor *s)
{
	return s->ends > 0 && (s->top == 0 || clock_ms(CLOCK_MONOTONIC) >= s->ends);
}

_Noreturn void supervisor_main(void)
{
	static struct supervisor s;
	struct rlimit            files;
	struct err               e;

	signal(SIGCHLD, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a caller's file size limit is an error to report, not a death */
	setsid();
	umask(022); /* a cell inherits it: under 077 its program could not read main.py */
	prctl(PR_SET_NAME, "brig-supervisor");
	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) { /* each cell takes some fifty descriptors */
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	s.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || s.epoll < 0)
		log_errno_and_exit("it cannot begin");
	if (privilege_make_undumpable(&e) < 0)
		log_err_and_exit(&e);
	receive_supervisor_setup(&s);
	for (arm_own_sources(&s); !is_supervisor_finished(&s);)
		supervisor_poll_once(&s);
	_exit(EXIT_SUCCESS); /* PR_SET_PDEATHSIG: zygotes, and every PID 1 that is left, end with it */
}
