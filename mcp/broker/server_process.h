/*
 * server_process.h - the process of one server: started by its entry, connected by pipes, ended with its process group.
 *
 * It has the rights of brig-mcp and is in no jail. From brig-mcp's environment it gets only what most programs need (PATH,
 * HOME, a locale, proxies), and then the variables of its entry; it inherits no other descriptors than its three pipes. It
 * leads a session of its own, so that signals of a terminal (Ctrl-C) do not reach it.
 *
 * A server at an address is a process, too: brig-mcp-remote, which gets the address and the headers in its first line. So they
 * are in no arguments and no environment that other processes can read, and the process that parses data from the network knows
 * the secrets of no other server.
 */
#pragma once
#include "server_entry.h"

#include <sys/types.h>

struct server_process {
	pid_t pid;           /* 0: none */
	int   pidfd;
	int   in, out, err;  /* pipes to its stdout, its stdin and its stderr, non-blocking; -1: taken by the caller */
};
#define SERVER_PROCESS_NONE ((struct server_process){ .pidfd = -1, .in = -1, .out = -1, .err = -1 })

must_use int server_process_start(struct server_process *ret, const struct server_entry *entry, struct err *e);
/* The first line that must be sent to it, without a newline, malloc'ed. NULL: none. */
char *server_process_greeting(const struct server_entry *entry);

/* Sends a signal to its process group; a descendant that has left the group does not get it. */
void server_process_signal(const struct server_process *p, int number);
/* Reaps it, and kills what is left of its group. Call it when pidfd is readable. how: "exit status 1", "SIGKILL". */
void server_process_kill_and_reap(struct server_process *p, char *how, size_t len);
