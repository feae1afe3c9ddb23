/*
 * process.h - another program, run to its end.
 *
 * Never through a shell. The program gets a pid and mount namespace of its own
 * and dies with us: when it ends, or we do, nothing that it started is left.
 * It changes files in one directory and nowhere else, whatever it is made to
 * read. Not root: it gets a user namespace in which it is root as well.
 *
 * A function of ours can run in its place: one that reads untrusted input.
 * It has descriptors 0, 1 and 2, and its own copy of our memory; it returns
 * results through memory that was shared before.
 */
#pragma once
#include "err.h"

struct process {
	const char *const *argv; /* argv[0]: looked up in our PATH; absolute when the program is jailed */
	int (*run)(void *context); /* NULL, or what is called in place of a program that argv names; its result is the exit status */
	void *context;
	const char *const *env;  /* the whole environment */
	int                place; /* the directory that it may change; its file system running full ends the program */
	bool               jailed; /* that is its / as well, and it has no capability: the program is as hostile as what it reads */
	bool               network; /* else: no network at all */
	int                in, out; /* stdin; stdout and stderr together */
	int                stop; /* a signalfd: what arrives there kills the program; -1: none */
};

/* Refuses everything but exit status 0. errnum is ECANCELED when `stop` spoke. */
must_use int process_run(const struct process *p, struct err *e);

/* Kind LIMIT, errnum ECANCELED and the signal's name if one waits on the signalfd. */
must_use int process_stopped(int stop, struct err *e);
