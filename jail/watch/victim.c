/* victim.c - which process of a session is killed when there is no memory for all */
#define _GNU_SOURCE
#include "watch_parts.h"

#include "fd.h"
#include "file.h"
#include "group_path.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <unistd.h>

enum {
	MEMBERS_BYTES = MIB, /* room for the pids of as many processes as a limit may allow */
	OF_ONE        = 16,  /* if no process has this part of the limit, files have used up the memory */
};

/* In pages. */
struct figures {
	long anonymous, text;
};

/* From statm: a read of other files may wait for the process, which waits for memory, and so for this process. */
static struct figures figures_of(pid_t pid)
{
	char path[64];
	long resident, shared, text;
	FILE *f;
	bool  is_read;

	snprintf(path, sizeof path, "/proc/%d/statm", pid);
	f       = fopen(path, "re");
	is_read = f && fscanf(f, "%*d %ld %ld %ld", &resident, &shared, &text) == 3;
	if (f)
		fclose(f);
	return is_read ? (struct figures){ resident - shared, text } : (struct figures){ 0, 0 };
}

/* A fork of the session server also has the server's pages, which do not count for it. It is known by its text: it executes the same file. */
static long own_pages(pid_t pid, const struct figures *server)
{
	struct figures f = figures_of(pid);

	return f.text == server->text ? f.anonymous - server->anonymous : f.anonymous;
}

static pid_t next_pid(char **at)
{
	char *end;
	pid_t pid = (pid_t)strtol(*at, &end, 10);

	if (end == *at)
		return 0;
	*at = end + (*end == '\n');
	return pid;
}

/* PID 1 and the session server are never chosen: the session ends with either. */
static pid_t find_victim(const struct watch *w, char *members)
{
	const struct figures server  = figures_of(w->cell.warm.program);
	long                 most    = (long)(w->order.limits->memory_bytes / OF_ONE) / getpagesize(), own;
	pid_t                largest = 0, last = 0;

	for (pid_t pid; (pid = next_pid(&members)) > 0;) {
		if (pid == w->cell.pid || pid == w->cell.warm.program)
			continue;
		own  = own_pages(pid, &server);
		last = pid;
		if (own > most) {
			largest = pid;
			most    = own;
		}
	}
	return largest ? largest : last;
}

static bool is_member(char *members, pid_t pid)
{
	for (pid_t one; (one = next_pid(&members)) > 0;)
		if (one == pid)
			return true;
	return false;
}

static bool read_members(const struct watch *w, struct bytes *ret)
{
	const struct group_leaf *leaf = group_leaf_with(&w->cell.group, GROUP_MEMORY);
	struct err               ignored;

	return leaf && file_read(leaf->fd, "cgroup.procs", MEMBERS_BYTES, ret, &ignored) == 0;
}

/* The pid may be another process's by the time of pidfd_open(), so it is looked for in the group once more. */
bool watch_kill_victim(struct watch *w)
{
	scoped_bytes members = { 0 }, again = { 0 };
	pid_t        pid     = read_members(w, &members) ? find_victim(w, members.data) : 0;
	scoped_fd    process = pid > 0 ? pidfd_open(pid, 0) : -1;

	if (process < 0 || !read_members(w, &again) || !is_member(again.data, pid) || pidfd_send_signal(process, SIGKILL, NULL, 0) < 0)
		return false;
	w->victims++;
	return true;
}
