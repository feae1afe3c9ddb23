/* chroot.h - a program of the tree, run with the tree as / and nothing else */
#pragma once
#include "err.h"

/*
 * No network, no /proc, no descriptor of ours, the smallest environment. What
 * it prints goes to the log. The tree is written by it as root of the tree.
 */
must_use int chroot_run(int root, const char *const *argv, int log, int stop, struct err *e);

/* The same, but with the machine's network, and the proxies of our own environment. */
must_use int chroot_run_online(int root, const char *const *argv, int log, int stop, struct err *e);
