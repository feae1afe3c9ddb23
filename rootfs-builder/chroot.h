/* chroot.h - runs a program of the tree with the tree as /, and nothing else */
#pragma once
#include "err.h"

/*
 * Unless it is online, with the proxy variables of the builder's environment, the
 * program has no network. It has no /proc, no descriptor of the builder and a
 * minimal environment. Its output goes to the log. It can write to the tree.
 * stop: a signalfd; a signal kills the program.
 */
must_use int chroot_run(int root, const char *const *argv, bool online, int log, int stop, struct err *e);
