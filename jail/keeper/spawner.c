#define _GNU_SOURCE
#include "spawner_protocol.h"

#include "filter_notice.h"
#include "kept_zygote.h"
#include "net_pool.h"
#include "packet.h"
#include "say.h"
#include "sealed.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct spawner {
	struct spawner_setup setup;
	struct sock_fprog    filter, telling; /* as in run_order; one behind the other */
	struct kept_zygote   zygote;
	struct net_pool      nets;
	int                  report_fd;
	bool                 is_told; /* how its zygote is: nothing has happened since */
};

static _Noreturn void give_up(const char *what)
{
	say("brig spawner: %s: %m\n", what);
	_exit(EXIT_FAILURE);
}

/* The end of file is the keeper's end, and ours. */
static ssize_t receive(const struct spawner *s, void *word, size_t len, int *fds, size_t max, size_t *n)
{
	ssize_t got = packet_receive(SPAWNER_FD, word, len, fds, max, n);

	if (got == 0) {
		kept_zygote_end(&s->zygote);
		_exit(EXIT_SUCCESS);
	}
	if (got < 0)
		give_up("the keeper cannot be heard");
	return got;
}

static _Noreturn void refuse(const struct err *e)
{
	say("brig spawner: %s\n", e->text);
	_exit(EXIT_FAILURE);
}

/* A file of our own, for a zygote reads it too: sealed, for every launcher is a fork of us and holds it. */
static int seal_filters(const struct spawner *s)
{
	struct err e;
	int        fd = sealed_open("filter", s->filter.filter, 2 * s->filter.len * sizeof *s->filter.filter, &e);

	if (fd < 0)
		refuse(&e);
	return fd;
}

/* A profile that never starts warm has nothing that another run has had. */
static void keep_networks(struct spawner *s)
{
	struct err e;

	s->nets = NET_POOL_NONE;
	if (s->setup.warm && net_pool_open(&s->nets, &s->telling, &e) < 0)
		refuse(&e);
}

static void take_filter(struct spawner *s, int fd)
{
	off_t               len  = lseek(fd, 0, SEEK_END);
	size_t              n    = (size_t)len / sizeof *s->filter.filter;
	struct sock_filter *both = len > 0 && n <= KEEPER_FILTER_MAX ? malloc(2 * (size_t)len) : NULL;

	if (!both || pread(fd, both, (size_t)len, 0) != len)
		give_up("no filter");
	if (bpf_check(both, n))
		give_up("a filter that is no program");
	memcpy(both + n, both, (size_t)len);
	s->filter  = (struct sock_fprog){ .len = (unsigned short)n, .filter = both };
	s->telling = (struct sock_fprog){ .len = (unsigned short)n, .filter = both + n };
	close(fd);
}

static void take_setup(struct spawner *s)
{
	int    fds[2];
	size_t n;

	if (receive(s, &s->setup, sizeof s->setup, fds, ARRAY_LEN(fds), &n) != sizeof s->setup || n != ARRAY_LEN(fds))
		give_up("garbled setup");
	s->report_fd = fds[1];
	take_filter(s, fds[0]);
	keep_networks(s);
	(void)!refusal_notice_add(s->telling.filter, s->telling.len);
	kept_zygote_init(&s->zygote, &s->setup, seal_filters(s));
}

/* --- one launcher --- */

struct launch_memory {
	struct launcher_post post;
	struct limits        limits;
	struct mount_plan    mounts;
	char                 shown[MOUNT_SHOWN_MAX][SHOWN_NAME_MAX + 16];
	const char          *shown_to[MOUNT_SHOWN_MAX];
};

static const int *take_leaves(struct group *g, const struct spawner_cell *cell, const int *fds)
{
	*g = (struct group){ .n = cell->leaves, .lent = true, .layers = cell->layers, .missing = cell->missing };
	memcpy(g->why, cell->group_why, sizeof g->why);
	for (uint32_t i = 0; i < cell->leaves; i++)
		g->leaf[i] = (struct group_leaf){ .base_fd = -1, .fd = *fds++, .v2 = cell->leaf[i].v2, .controllers = cell->leaf[i].controllers };
	return fds;
}

static int plan_mounts(struct launch_memory *m, const struct spawner *s, const struct spawner_cell *cell, struct err *e)
{
	struct mount_wishes wishes = mount_wishes_of(&m->limits, s->setup.workspace_exec);

	for (uint32_t i = 0; i < cell->shown_len; i++) {
		snprintf(m->shown[i], sizeof m->shown[i], "workspace/%s", cell->shown[i]);
		m->shown_to[i] = m->shown[i];
	}
	wishes.shown     = m->shown_to;
	wishes.shown_len = cell->shown_len;
	return mount_plan_build(&m->mounts, &wishes, e);
}

static void fill_order(struct launch_memory *m, const struct spawner *s, const struct spawner_cell *cell, const int *shown_fd)
{
	m->post.order = (struct run_order){
		.limits         = &m->limits,
		.code_fd        = -1,
		.mounts         = &m->mounts,
		.shown_fd       = shown_fd,
		.shown_len      = cell->shown_len,
		.workspace_exec = s->setup.workspace_exec,
		.require_all    = s->setup.require_all,
		.rootfs         = s->setup.rootfs,
		.filter         = &s->filter,
		.telling        = &s->telling,
	};
}

static _Noreturn void become_launcher(const struct spawner *s, const struct spawner_cell *cell, const int *fds)
{
	static struct launch_memory m;
	struct err e;

	close(SPAWNER_FD);
	close(s->report_fd);
	kept_zygote_leave(&s->zygote, cell->warm);
	net_pool_forget(&s->nets);
	m.limits       = cell->limits;
	m.post.control = fds[0];
	m.post.awaited = cell->awaited;
	m.post.zygote  = m.post.zygote_pidfd = m.post.zygote_up_fd = -1;
	m.post.net     = net_pool_place(&s->nets);
	m.post.wall_ms_max = s->setup.wall_ms_max;
	if (cell->warm)
		kept_zygote_fill(&s->zygote, &m.post);
	m.post.outer   = (struct outer){ .kind = s->setup.outer_kind };
	m.post.slot    = (struct slot){ .fd = fds[1], .number = cell->number, .init_id = cell->init_id, .program_id = cell->program_id };
	memcpy(m.post.outer.why, s->setup.outer_why, sizeof m.post.outer.why);
	m.post.rootfs = (struct store_tree){ .tree_fd = fds[2], .lock_fd = -1 };
	memcpy(m.post.rootfs.digest, cell->digest, sizeof m.post.rootfs.digest);
	fill_order(&m, s, cell, take_leaves(&m.post.group, cell, fds + 3));
	if (plan_mounts(&m, s, cell, &e) < 0) {
		say("brig spawner: %s\n", e.text);
		_exit(EXIT_FAILURE);
	}
	launcher_serve(&m.post);
}

static bool is_sound(const struct spawner_cell *cell, size_t fds)
{
	return cell->leaves <= GROUP_TREES_MAX && cell->shown_len <= MOUNT_SHOWN_MAX && fds == 3 + cell->leaves + cell->shown_len;
}

static void serve_one(struct spawner *s)
{
	struct spawner_cell cell;
	int                 fds[PACKET_FDS_MAX];
	size_t              n;

	if (receive(s, &cell, sizeof cell, fds, ARRAY_LEN(fds), &n) != sizeof cell || !is_sound(&cell, n))
		give_up("garbled word");
	if (cell.warm)
		kept_zygote_want(&s->zygote, fds[2], cell.digest);
	if (fork() == 0) /* one that fails is seen by the keeper: the control socket closes */
		become_launcher(s, &cell, fds);
	net_pool_taken(&s->nets);
	while (n)
		close(fds[--n]);
}

/* Figures are told at once; memory is looked at when it has been quiet for a while, for that takes some tenths of a millisecond. */
static void attend(struct spawner *s)
{
	enum { QUIET_MS = 500 };
	struct pollfd fds[2 + KEPT_ZYGOTE_FDS] = { { SPAWNER_FD, POLLIN, 0 }, { net_pool_fd(&s->nets), POLLIN, 0 } };
	int           n;

	kept_zygote_watch(&s->zygote, fds + 2);
	n = poll(fds, ARRAY_LEN(fds), s->is_told || !s->setup.warm ? -1 : QUIET_MS);
	if (n < 0)
		return;
	kept_zygote_hear(&s->zygote, fds + 2);
	if (fds[1].revents)
		net_pool_hear(&s->nets);
	if (fds[0].revents)
		serve_one(s);
	s->is_told = n == 0;
	if (s->setup.warm)
		kept_zygote_tell(&s->zygote, s->report_fd, n == 0);
}

/* Launchers, and what a launcher leaves when it is killed, are reaped by the kernel: nobody asks for their status. */
_Noreturn void spawner_main(void)
{
	static struct spawner s;

	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_NAME, "brig-spawner");
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		give_up("prctl");
	take_setup(&s);
	for (;;)
		attend(&s);
}
