/* oom_target.c - which process of a session is killed when there is no memory for all */
#define _GNU_SOURCE
#include "runner_parts.h"

#include "cg_members.h"

#include <stdio.h>
#include <unistd.h>

enum { OF_ONE = 16 }; /* if no process has this part of the limit, files have used up the memory */

/* In pages. */
struct memory {
	long anonymous, text;
};

/* From statm: a read of other files may wait for the process, which waits for memory, and so for this process. */
static struct memory read_process_memory(pid_t pid)
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
	return is_read ? (struct memory){ resident - shared, text } : (struct memory){ 0, 0 };
}

/*
 * PID 1 and the session server are never chosen: the session ends with either. A fork of the session server also has
 * the server's pages, which do not count for it. It is known by its text: it executes the same file.
 */
static pid_t find_oom_target(const struct runner *w, const char *members)
{
	const struct memory server  = read_process_memory(w->cell.warm.program);
	long                most    = (long)(w->spec.limits->memory_bytes / OF_ONE) / getpagesize(), own;
	pid_t               largest = 0, last = 0;

	for (pid_t pid; (pid = cg_members_next_pid(&members)) > 0;) {
		struct memory m;

		if (pid == w->cell.pid || pid == w->cell.warm.program)
			continue;
		m    = read_process_memory(pid);
		own  = m.text == server.text ? m.anonymous - server.anonymous : m.anonymous;
		last = pid;
		if (own > most) {
			largest = pid;
			most    = own;
		}
	}
	return largest ? largest : last;
}

bool runner_kill_oom_target(struct runner *w)
{
	const struct cg_leaf *leaf    = cg_leaf_with_controller(&w->cell.group, CG_MEMORY);
	scoped_bytes          members = { 0 };
	pid_t                 pid = leaf && cg_members_read(leaf->fd, &members) ? find_oom_target(w, members.data) : 0;

	if (pid <= 0 || !cg_member_kill(leaf->fd, pid))
		return false;
	w->victims++;
	return true;
}
