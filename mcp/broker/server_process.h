/*
 * server_process.h - the process of one server: started as its entry says, spoken to over pipes, ended with all that it has started.
 *
 * It has the caller's rights and is in no jail. Of the caller's environment it
 * gets what a program needs to find its way (PATH, HOME, a locale, proxies),
 * then what the entry says; of its descriptors none. It is the first of a
 * session of its own, so that the keys of a terminal do not reach it.
 *
 * A server at an address is a process as well: brig-mcp-remote, which is told
 * the address and the headers in its first line. Neither is in anybody's
 * arguments or environment, and what parses the network has no other server's
 * secrets.
 */
#pragma once
#include "server_entry.h"

#include <sys/types.h>

struct server_process {
	pid_t pid;           /* 0: none */
	int   pidfd;
	int   in, out, err;  /* what it writes, what it reads, its stderr; none waits; -1: taken */
};
#define SERVER_PROCESS_NONE ((struct server_process){ .pidfd = -1, .in = -1, .out = -1, .err = -1 })

must_use int server_process_start(struct server_process *ret, const struct server_entry *entry, struct err *e);
/* What it must be told before anything else: a line without its newline, malloc'ed. NULL: nothing. */
char *server_process_greeting(const struct server_entry *entry);

/* To the process and to all of its session that has not left its group. */
void server_process_signal(const struct server_process *p, int number);
/* When pidfd can be read. "exit status 1", "SIGKILL" */
void server_process_reap(struct server_process *p, char *how, size_t len);
