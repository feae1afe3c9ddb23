/*
 * separate.h - splits brigd into three processes: a server without rights, a monitor with two capabilities, and a
 * reader
 *
 * The caller's account decides what they become:
 *
 *   root           monitor and server get the accounts _brig-keeper and _brig-door,
 *                  or, where there are none, the last two of its host ids; the
 *                  monitor keeps CAP_SETUID and CAP_SETGID. Control groups are
 *                  made and given away first. The reader keeps uid 0 and, besides
 *                  those two, CAP_DAC_READ_SEARCH; it parses in forks that have
 *                  the server's account and no capability.
 *   another id with those two capabilities (a unit of systemd with User= and
 *   AmbientCapabilities=): the monitor keeps that id, the server becomes
 *                  _brig-door, and so does the reader.
 *   any other user all stay that user: there is no privilege to drop. The
 *                  monitor makes a user namespace, as brig run would.
 *
 * Called when the listening socket is open, and before any input is read: nothing is
 * parsed here. The sweeper is handed the groups that were made.
 */
#pragma once
#include "id_range.h"
#include "monitor_protocol.h"
#include "paths.h"
#include "reader.h"
#include "sweeper.h"

#include <sys/types.h>

struct separation {
	pid_t           monitor_pid;
	int             monitor;      /* socket: monitor_protocol.h; end of file means that the monitor has ended */
	struct reader   reader;
	enum monitor_mode mode;
	unsigned        monitor_uid, server_uid;
	/* of a service: a block that no other process uses; the last slots are not for cells */
	struct id_range ids;
	int             ids_held;    /* the lock on them, which must stay open; else -1 */
	char            note[160];   /* for the log: how this differs from a start under systemd; "": it does not */
};

/* May replace the stores in places by paths that server and monitor can read (view.h). */
must_use int separate_processes(struct separation *ret, struct brig_paths *places, const struct reader_files *files,
		      const struct sweeper *sweeper, struct err *e);
