/* victim.c - which process of a session ends, when there is no memory for all */
#define _GNU_SOURCE
#include "watch_parts.h"

#include "fd.h"
#include "group_path.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum { MEMBERS_BYTES = 32 * 1024 };

static long pages_of(pid_t pid)
{
	char  path[64];
	long  pages = -1;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%d/statm", pid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*d %ld", &pages) != 1)
		pages = -1;
	if (f)
		fclose(f);
	return pages;
}

static bool read_members(const struct watch *w, char text[MEMBERS_BYTES])
{
	const struct group_leaf *leaf = group_leaf_with(&w->cell.group, GROUP_MEMORY);

	return leaf && group_read_file(leaf->fd, "cgroup.procs", text, MEMBERS_BYTES);
}

/* PID 1 and the session's first process hold all others together. */
static pid_t find_largest(const struct watch *w, const char *members)
{
	pid_t largest = 0;
	long  most    = 0;

	for (char *at = (char *)members, *end; *at; at = end + (*end == '\n')) {
		pid_t pid   = (pid_t)strtol(at, &end, 10);
		long  pages = end == at || pid <= 0 || pid == w->cell.pid || pid == w->cell.warm.program ? 0 : pages_of(pid);

		if (end == at)
			break;
		if (pages > most) {
			largest = pid;
			most    = pages;
		}
	}
	return largest;
}

static bool is_member(const char *members, pid_t pid)
{
	for (char *at = (char *)members, *end; *at; at = end + (*end == '\n')) {
		if ((pid_t)strtol(at, &end, 10) == pid)
			return true;
		if (end == at)
			break;
	}
	return false;
}

/* Its number may be another process's by the time it is opened: what is open is looked for again. */
bool watch_kill_largest(struct watch *w)
{
	char      members[MEMBERS_BYTES];
	pid_t     pid     = read_members(w, members) ? find_largest(w, members) : 0;
	scoped_fd process = pid > 0 ? pidfd_open(pid, 0) : -1;

	if (process < 0 || !read_members(w, members) || !is_member(members, pid) || pidfd_send_signal(process, SIGKILL, NULL, 0) < 0)
		return false;
	w->victims++;
	return true;
}
