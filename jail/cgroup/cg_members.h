/* cg_members.h - the processes of one control group, as its cgroup.procs lists them */
#pragma once
#include "file.h"

#include <sys/types.h>

/*
 * The whole list: half a number at the end of a part of it would be another process's. False: it cannot be read. The
 * caller frees *ret with bytes_done().
 */
must_use bool cg_members_read(int dir, struct bytes *ret);
/* The next pid from *at on, which it moves; 0 at the end. Processes outside of our pid namespace are left out. */
pid_t cg_members_next_pid(const char **at);
/* SIGKILL, if the process is still a member when it can no longer be mistaken for another. Whether it was sent. */
bool cg_member_kill(int dir, pid_t pid);
