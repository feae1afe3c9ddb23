/*
 * confine.h - takes from the server every right that it does not need.
 *
 * Called when everything that the server needs is open. An attacker who takes it over can
 * then use the sockets that it has, accept clients, make memory files and pairs of
 * sockets, send datagrams to named Unix sockets that its user may write to, read below /proc,
 * and write the audit into its folder. No other file, no program, no network.
 */
#pragma once
#include "err.h"

/*
 * folder: where the audit may write; borrowed; -1: nowhere. *names: the steps that are in force, for stats; NULL at the
 * end.
 */
must_use int confine_server(int folder, const char *const **names, struct err *e);
