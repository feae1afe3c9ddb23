#define _GNU_SOURCE
#include "probe_kit.h"

#include "fd.h"
#include "file.h"
#include "cg.h"
#include "cg_path.h"
#include "cg_dir.h"
#include "mountinfo.h"
#include "surroundings.h"
#include "sys.h"
#include "text.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

enum { PATH_BYTES = 1024 };

/* clang-format off */
static const struct controller {
	const char *v1, *v2;
} controllers[] = {
	{ "memory", "memory" }, { "pids", "pids" }, { "cpu", "cpu" }, { "cpuacct", "cpu" }, { "blkio", "io" },
};
/* clang-format on */
enum { C_MEMORY, C_PIDS, C_CPU, C_CPUACCT, C_IO };

/* The group that we are in, in the hierarchy of one controller. */
struct group_place {
	char top[PATH_BYTES]; /* where the hierarchy is mounted */
	char own[PATH_BYTES]; /* our group below it: "" or "/a/b" */
	bool v2;
};

/* c == NULL: any v2 hierarchy */
static bool mount_has_controller(const struct mountinfo *m, const struct controller *c)
{
	char path[sizeof m->at + 32], list[256];

	if (strcmp(m->type, "cgroup2") != 0)
		return c && strcmp(m->type, "cgroup") == 0 && cg_list_has(m->options, c->v1);
	snprintf(path, sizeof path, "%s/cgroup.controllers", m->at);
	return !c || (read_first_line(path, list, sizeof list) && cg_list_has(list, c->v2));
}

enum found { FOUND, FOUND_NONE, FOUND_HIDDEN, FOUND_ELSEWHERE, FOUND_BLIND };

/* Finds the first visible mount that carries c, as libcgroup does. Of several mounts at one path the last is the visible one. */
static enum found find_cgroup_mount(const struct controller *c, struct mountinfo *ret)
{
	scoped_bytes     text = { 0 };
	struct mountinfo m;
	struct err       ignored;
	struct statfs    s;
	size_t           at    = 0;
	enum found       found = FOUND_NONE;

	if (file_read(AT_FDCWD, "/proc/self/mountinfo", MIB, &text, &ignored) < 0)
		return FOUND_BLIND;
	while (mountinfo_next(text.data, text.len, &at, &m)) {
		if (!begins_with(m.type, "cgroup") || (found == FOUND && strcmp(m.at, ret->at) != 0))
			continue;
		if (statfs(m.at, &s) < 0 || (s.f_type != CGROUP_SUPER_MAGIC && s.f_type != CGROUP2_SUPER_MAGIC)) {
			found = FOUND_HIDDEN;
		} else if (mount_has_controller(&m, c)) {
			found = FOUND;
			*ret  = m;
		}
	}
	return found;
}

static enum found find_own_group(const struct controller *c, struct group_place *ret)
{
	scoped_bytes     text = { 0 };
	struct mountinfo m;
	struct group_place     h;
	struct err       ignored;
	enum found       found = find_cgroup_mount(c, &m);

	if (found != FOUND)
		return found;
	h = (struct group_place){ .v2 = strcmp(m.type, "cgroup2") == 0 };
	snprintf(h.top, sizeof h.top, "%s", m.at);
	if (file_read(AT_FDCWD, "/proc/self/cgroup", MIB, &text, &ignored) < 0)
		return FOUND_BLIND;
	if (cg_path_find(text.data, h.v2 || !c ? "" : c->v1, h.own, sizeof h.own) < 0 || !mountinfo_strip_root(m.root, h.own))
		return FOUND_ELSEWHERE;
	*ret = h;
	return FOUND;
}

/* "memory 4 12 1" in /proc/cgroups: a zero at the end is cgroup_disable= at boot. */
static bool is_controller_disabled(const char *v1)
{
	FILE    *f = fopen("/proc/cgroups", "re");
	char     line[128], name[64];
	unsigned on;
	bool     off = false;

	while (f && fgets(line, sizeof line, f))
		if (sscanf(line, "%63s %*u %*u %u", name, &on) == 2 && strcmp(name, v1) == 0)
			off = on == 0;
	if (f)
		fclose(f);
	return off;
}

static bool report_missing_hierarchy(struct probe *p, const struct controller *c, enum found found)
{
	char cause[200], fix[200];

	if (c && found == FOUND_NONE && is_controller_disabled(c->v1)) {
		snprintf(cause, sizeof cause, "the controller %s was disabled when this kernel booted", c->v1);
		snprintf(fix, sizeof fix, "boot with cgroup_enable=%s and without cgroup_disable=%s", c->v1, c->v1);
		return report_missing(p, cause, fix);
	}
	if (found == FOUND_BLIND)
		return report_missing(p, "cannot read /proc/self: no way to find the cgroup tree", "mount -t proc proc /proc");
	if (found == FOUND_HIDDEN)
		return report_missing(p, "layer: mounts, the cgroup tree is hidden below another mount",
				      "umount /sys/fs/cgroup (what lies over it), or start brig where the tree can be seen");
	if (found == FOUND_ELSEWHERE)
		return report_missing(p, "the cgroup tree that is mounted does not contain our own group",
				      "mount the tree of our own cgroup namespace, or start brig where /proc/self/cgroup names a group "
				      "below the mount");
	snprintf(cause, sizeof cause, "no cgroup file system with %s is mounted", c ? c->v2 : "version 2");
	if (c && p->at->where == WHERE_PLAIN)
		snprintf(fix, sizeof fix, "mount -t cgroup2 cgroup2 /sys/fs/cgroup (v1: mount -t cgroup -o %s cgroup DIR)", c->v1);
	else
		snprintf(fix, sizeof fix, "%s", c ? where_writable_advice(p->at->where) :
			 "boot with systemd.unified_cgroup_hierarchy=1");
	return report_missing(p, cause, fix);
}

/* A child group, which is removed at the end of the variable's scope. */
struct leaf {
	char path[2 * PATH_BYTES]; /* "" when there is none */
	int  above, fd;           /* the group above, and the child group */
	bool v2;
	char enabled[16];         /* "-memory" when we switched it on in the group above: written there to switch it off again */
	char name[32];
};
#define LEAF_NONE { .above = -1, .fd = -1 }

/* A group becomes empty a moment after its last process has ended. */
static void remove_emptied_group(int above, const char *name)
{
	const struct timespec moment = { .tv_nsec = 2000000 };

	for (int i = 0; i < 100 && unlinkat(above, name, AT_REMOVEDIR) < 0 && errno == EBUSY; i++)
		nanosleep(&moment, NULL);
}

static void leaf_closep(struct leaf *l)
{
	fd_closep(&l->fd);
	if (l->path[0])
		remove_emptied_group(l->above, l->name);
	if (l->enabled[0])
		(void)!file_write_existing(l->above, "cgroup.subtree_control", l->enabled);
	if (l->above >= 0 && l->v2)
		cg_dir_step_back(l->above);
	fd_closep(&l->above); /* releases the lock of enable_controller() */
}
#define scoped_leaf scoped(leaf_closep) struct leaf

/* The lock: without it, one brig doctor could switch off a controller that another has just found switched on. */
static bool enable_controller(struct leaf *l, const char *name)
{
	char list[256];

	if (flock(l->above, LOCK_EX) < 0)
		return false;
	if (cg_read_file(l->above, "cgroup.subtree_control", list, sizeof list) && cg_list_has(list, name))
		return true;
	snprintf(list, sizeof list, "+%s", name);
	if (file_write_existing(l->above, "cgroup.subtree_control", list) < 0)
		return false;
	snprintf(l->enabled, sizeof l->enabled, "-%s", name);
	return true;
}

static bool report_leaf_refused(struct probe *p, const struct leaf *l, int errnum, const char *what, const char *where)
{
	const char *fix = where_writable_advice(p->at->where);

	if ((errnum == EACCES || errnum == EPERM) && !p->at->is_root)
		fix = !l->v2 ? "plain users get no control groups with cgroup v1: boot with systemd.unified_cgroup_hierarchy=1, "
		               "or run brig as root (the service: brigd(8), HOSTS WITH CGROUP V1)" :
		      p->at->where == WHERE_SERVICE ? fix : "systemd-run --user --scope -p Delegate=yes brig ...";
	report_refused(p, (struct refusal){ .errnum = errnum, .on_file = true }, "%s %s", what, where);
	return p->finding.by != REFUSER_FILTER && report_better_fix(p, fix);
}

/*
 * In a container our group is the topmost one that we see, and it cannot hand
 * out controllers while it has processes: they must be moved into a group
 * below it.
 */
static const char *print_fix_for_busy_group(const struct probe *p, const char *where, char *buf, size_t len)
{
	if (p->at->uid != 0 && !p->at->is_monitor)
		return "systemd-run --user --scope -p Delegate=yes brig ...";
	if (p->at->where == WHERE_SERVICE)
		return "systemd-run --scope -p Delegate=yes brig ..., or in the unit: DelegateSubgroup=supervisor (systemd 254)";
	if (p->at->where == WHERE_PLAIN)
		return "systemd-run --scope -p Delegate=yes brig ...";
	snprintf(buf, len, "mkdir %.80s/init && xargs -rn1 < %.80s/cgroup.procs > %.80s/init/cgroup.procs", where, where, where);
	return buf;
}

/* A group can only hand out the controllers that the group above has switched on. */
static bool report_controller_refused(struct probe *p, int errnum, const char *name, const char *where)
{
	const char *unit = strrchr(where, '/') + 1, *dot = strrchr(unit, '.');
	char        fix[200];

	report_refused(p, (struct refusal){ .errnum = errnum, .on_file = true }, "switch on %s in %s/cgroup.subtree_control", name, where);
	if (!p->at->is_root && !p->at->is_monitor)
		return report_better_fix(p, "as root: in /etc/systemd/system/user@.service.d/delegate.conf write "
		                       "[Service] Delegate=cpu cpuset io memory pids");
	if (dot && strcmp(dot, ".slice") == 0 && strcmp(name, "io") == 0)
		snprintf(fix, sizeof fix, "systemctl set-property %.80s IOAccounting=yes", unit);
	else if (dot && strcmp(dot, ".service") == 0)
		snprintf(fix, sizeof fix, "in the unit: Delegate=cpu memory pids io");
	else
		snprintf(fix, sizeof fix, "echo +%s >DIR/cgroup.subtree_control, for each DIR above %.80s, from the top down", name, where);
	return report_better_fix(p, fix);
}

static bool leaf_make_below(struct probe *p, const char *above, const struct controller *c, struct leaf *l)
{
	l->above = open(above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->above < 0)
		return report_leaf_refused(p, l, errno, "open", above);
	if (l->v2 && c && !enable_controller(l, c->v2))
		return report_controller_refused(p, errno, c->v2, above);
	if (mkdirat(l->above, p->at->tag, 0755) < 0)
		return report_leaf_refused(p, l, errno, "mkdir in", above);
	snprintf(l->name, sizeof l->name, "%s", p->at->tag);
	snprintf(l->path, sizeof l->path, "%.*s/%s", (int)(sizeof l->path - sizeof l->name - 2), above, l->name);
	l->fd = openat(l->above, l->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return check_sys_result(p, l->fd, "open %s", l->path);
}

/*
 * The group in which a launcher would make the leaf: on v1 our own group, on v2
 * the one that cg_dir.h names. False, with our own group in ret and errno,
 * when there is none.
 */
static bool find_group_above_leaf(const struct group_place *h, char *ret, size_t len)
{
	struct cg_dir dir;

	snprintf(ret, len, "%s%s", h->top, h->own);
	if (!h->v2)
		return true;
	if (cg_dir_open(h->top, h->own, &dir) < 0)
		return false;
	snprintf(ret, len, "%s", dir.path);
	close(dir.fd);
	return true;
}

static bool leaf_open_for_controller(struct probe *p, const struct controller *c, struct leaf *l)
{
	struct group_place h;
	char        above[2 * PATH_BYTES], cause[PATH_BYTES + 80], fix[320];
	enum found  found = find_own_group(c, &h);

	if (found != FOUND)
		return report_missing_hierarchy(p, c, found);
	l->v2 = h.v2;
	if (find_group_above_leaf(&h, above, sizeof above))
		return leaf_make_below(p, above, c, l);
	if (errno != EBUSY) /* mostly leaf_make_below() fails and writes the reason */
		return leaf_make_below(p, above, NULL, l) && report_missing(p, "no group that may hold jails", "");
	snprintf(cause, sizeof cause,
	         "%.900s is delegated to this user, but has other processes, so it cannot enable controllers: EBUSY", above);
	p->finding.errnum = EBUSY;
	return report_missing(p, cause, print_fix_for_busy_group(p, above, fix, sizeof fix));
}

static bool report_missing_file(struct probe *p, const char *file)
{
	struct refusal r = { .config = p->row->config, .since = p->row->since };
	char           cause[96], fix[160];

	p->finding.errnum = ENOENT;
	p->finding.by     = REFUSER_KERNEL;
	snprintf(cause, sizeof cause, "a group of ours has no file %s: %s", file, refuser_text(REFUSER_KERNEL));
	return report_missing(p, cause, refusal_print_advice(&r, REFUSER_KERNEL, p->at, fix, sizeof fix));
}

static bool write_and_read_back(struct probe *p, const struct leaf *l, const char *file, const char *value)
{
	char back[64];

	if (value && file_write_existing(l->fd, file, value) < 0)
		return errno == ENOENT ? report_missing_file(p, file) : check_sys_result(p, -1, "write %s to %s", value, file);
	if (!cg_read_file(l->fd, file, back, sizeof back))
		return errno == ENOENT ? report_missing_file(p, file) : check_sys_result(p, -1, "read %s", file);
	return !value || strncmp(back, value, strlen(value)) == 0 ||
	       report_refused(p, (struct refusal){ .errnum = ERANGE }, "%s kept %.20s in place of %s", file, back, value);
}

/* clang-format off */
static const struct knob {
	const char *row;
	unsigned    controller;
	const char *v1, *v2;         /* the file */
	const char *v1_set, *v2_set; /* the value to write and read back; NULL: the file is only read */
} knobs[] = {
	{ "memory-limit", C_MEMORY,  "memory.limit_in_bytes",     "memory.max",  "16777216", "16777216" },
	{ "pids-limit",   C_PIDS,    "pids.max",                  "pids.max",    "16",       "16" },
	{ "cpu-limit",    C_CPU,     "cpu.cfs_quota_us",          "cpu.max",     "50000",    "50000 100000" },
	{ "cpu-time",     C_CPUACCT, "cpuacct.usage",             "cpu.stat",    NULL,       NULL },
	{ "memory-peak",  C_MEMORY,  "memory.max_usage_in_bytes", "memory.peak", NULL,       NULL },
	{ "pids-peak",    C_PIDS,    "pids.peak",                 "pids.peak",   NULL,       NULL },
};
/* clang-format on */

bool probe_cgroup_file(struct probe *p)
{
	const struct knob *k = knobs;
	scoped_leaf        l = LEAF_NONE;

	while (strcmp(k->row, p->row->name) != 0)
		k++;
	if (!leaf_open_for_controller(p, &controllers[k->controller], &l) ||
	    !write_and_read_back(p, &l, l.v2 ? k->v2 : k->v1, l.v2 ? k->v2_set : k->v1_set))
		return false;
	return report_detail(p, "%s, %s", l.v2 ? "v2" : "v1", l.v2 ? k->v2 : k->v1);
}

bool probe_io_figures(struct probe *p)
{
	scoped_leaf l = LEAF_NONE;

	if (!leaf_open_for_controller(p, &controllers[C_IO], &l))
		return false;
	if (!l.v2)
		return report_degraded(p, "blkio of cgroup v1 does not know whose a write-back is: the figures are null",
				       "boot with systemd.unified_cgroup_hierarchy=1");
	return write_and_read_back(p, &l, "io.stat", NULL) && report_detail(p, "v2, io.stat");
}

bool probe_swap_limit(struct probe *p)
{
	scoped_leaf l = LEAF_NONE;

	if (!leaf_open_for_controller(p, &controllers[C_MEMORY], &l))
		return false;
	if (faccessat(l.fd, l.v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes", F_OK, 0) < 0)
		return report_missing(p, "this kernel does not account for swap", "boot with swapaccount=1, or: swapoff -a");
	if (l.v2)
		return write_and_read_back(p, &l, "memory.swap.max", "0") && report_detail(p, "v2, memory.swap.max");
	return write_and_read_back(p, &l, "memory.limit_in_bytes", "16777216") && write_and_read_back(p, &l, "memory.memsw.limit_in_bytes", "16777216") &&
	       report_detail(p, "v1, memory.memsw.limit_in_bytes");
}

static pid_t clone_into_group(const struct leaf *l)
{
	struct clone_args args = { .flags = CLONE_INTO_CGROUP, .cgroup = (uint64_t)l->fd, .exit_signal = SIGCHLD };
	pid_t             child = clone3(&args, sizeof args);

	if (child == 0)
		wait_for_end_of_probe();
	return child;
}

static void kill_child(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

bool probe_clone_into_group(struct probe *p)
{
	scoped_leaf l = LEAF_NONE;
	char        members[32];
	pid_t       child;

	if (!leaf_open_for_controller(p, NULL, &l) || !check_sys_result(p, child = clone_into_group(&l), "clone3(CLONE_INTO_CGROUP)"))
		return false;
	cg_read_file(l.fd, "cgroup.procs", members, sizeof members);
	kill_child(child);
	return strtol(members, NULL, 10) == child || report_missing(p, "the new process is not in the group that was named", "");
}

/* For hosts where clone3 is refused. Returns when the child is in the group, or could not enter it. */
static pid_t fork_into_group(const struct leaf *l)
{
	int   joined[2];
	char  byte;
	pid_t child;

	if (pipe2(joined, O_CLOEXEC) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		if (file_write_existing(l->fd, "cgroup.procs", "0") == 0 && write(joined[1], "", 1) == 1)
			wait_for_end_of_probe();
		_exit(1);
	}
	close(joined[1]);
	if (child > 0)
		(void)!read(joined[0], &byte, 1);
	close(joined[0]);
	return child;
}

bool probe_group_kill(struct probe *p)
{
	scoped_leaf l = LEAF_NONE;
	int         status = 0;
	pid_t       child;

	if (!leaf_open_for_controller(p, NULL, &l))
		return false;
	child = clone_into_group(&l);
	if (child < 0)
		child = fork_into_group(&l);
	if (!check_sys_result(p, child, "start a process in the group"))
		return false;
	if (!check_sys_result(p, file_write_existing(l.fd, "cgroup.kill", "1"), "write 1 to cgroup.kill")) {
		kill_child(child);
		return false;
	}
	return check_sys_result(p, waitpid(child, &status, 0), "waitpid") &&
	       (WIFSIGNALED(status) || report_missing(p, "cgroup.kill was written and killed nothing", ""));
}

static void leave_group(const char *path)
{
	scoped_fd dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dir >= 0)
		cg_dir_step_back(dir);
}

bool probe_group_version(struct probe *p)
{
	char        above[2 * PATH_BYTES];
	unsigned    on[2] = { 0, 0 }; /* controllers by version */
	struct group_place h;

	for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
		if (find_own_group(&controllers[i], &h) == FOUND)
			on[h.v2]++;
	if (find_own_group(NULL, &h) != FOUND)
		return report_detail(p, on[0] ? "v1" : "no cgroup tree can be seen");
	if (on[0])
		return report_detail(p, "hybrid: of %u controllers that brig uses, %u are on v1", on[0] + on[1], on[0]);
	if (!find_group_above_leaf(&h, above, sizeof above))
		return report_detail(p, "v2, %u controllers; no group for jails from %s upwards", on[1], above + strlen(h.top));
	leave_group(above);
	return report_detail(p, "v2, %u controllers; jails are below %s/brig", on[1], above + strlen(h.top));
}

/* tcp_mem is one limit for the whole host: beyond it, TCP resets connections of other processes, too. */
bool probe_socket_memory(struct probe *p)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), ours = cg_socket_bytes_of_host();
	unsigned long long low, pressure, high;
	char               text[96], of_jails[32], of_host[32], cause[200], fix[120];
	struct group_place h;

	if (!read_first_line("/proc/sys/net/ipv4/tcp_mem", text, sizeof text) || sscanf(text, "%llu %llu %llu", &low, &pressure, &high) != 3)
		return report_detail(p, "unknown: /proc/sys/net/ipv4/tcp_mem cannot be read");
	text_from_size(pressure * page, of_host, sizeof of_host);
	if (find_own_group(&controllers[C_MEMORY], &h) != FOUND || h.v2)
		return report_detail(p, "TCP of this host slows down from %s; "
		                       "sockets of a jail count as its memory, if anything counts them", of_host);
	text_from_size(ours, of_jails, sizeof of_jails);
	report_detail(p, "at most %s, TCP of this host slows down from %s", of_jails, of_host);
	if (ours <= pressure * page)
		return true;
	snprintf(cause, sizeof cause, "sockets of all jails may hold %s, and all TCP of this host slows down from %s (net.ipv4.tcp_mem)",
	         of_jails, of_host);
	snprintf(fix, sizeof fix, "sysctl -w net.ipv4.tcp_mem='%llu %llu %llu'", (unsigned long long)(ours / page * 3 / 2),
	         (unsigned long long)(ours / page * 2), (unsigned long long)(ours / page * 3));
	return report_degraded(p, cause, fix);
}

static void remove_leftover_group(const struct controller *c, const char *tag)
{
	struct group_place h;
	char               above[2 * PATH_BYTES], path[2 * PATH_BYTES + 64];

	if (find_own_group(c, &h) != FOUND || !find_group_above_leaf(&h, above, sizeof above))
		return;
	snprintf(path, sizeof path, "%s/%s", above, tag);
	remove_emptied_group(AT_FDCWD, path);
	if (h.v2)
		leave_group(above);
}

void remove_leftover_groups(const struct surroundings *at)
{
	for (size_t i = 0; i < ARRAY_LEN(controllers); i++)
		remove_leftover_group(&controllers[i], at->tag);
	remove_leftover_group(NULL, at->tag);
}
