/* chroot.h - runs a program of the tree with the tree as /, and nothing else */
#pragma once
#include "err.h"

/*
 * The program has no network, no /proc, no descriptor of the builder and a
 * minimal environment. Its output goes to the log. It can write to the tree.
 * stop: a signalfd; a signal kills the program.
 */
must_use int chroot_run(int root, const char *const *argv, int log, int stop, struct err *e);

/* The same, but with the machine's network, and the proxy variables of the builder's environment. */
must_use int chroot_run_online(int root, const char *const *argv, int log, int stop, struct err *e);
