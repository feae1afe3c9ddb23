/*
 * failure.h - reports to clients why a service that systemd started did not come up
 *
 * Clients that wait get an answer; those that come later read a file (brigd_connection.h). A service that starts
 * empties the file.
 */
#pragma once
#include "listener.h"
#include "paths.h"

/*
 * Empties the file. The caller owns the descriptor; -1: it cannot be written. Called with the rights that brigd was
 * started with.
 */
int  failure_open_file(const struct brig_paths *p, bool is_host);
/*
 * e must not name paths that only brigd sees (brig_paths_unmap_view()). l: NULL when waiting clients are not to be
 * told.
 */
void failure_report(int file, const struct listener *l, const struct err *e);
