/*
 * separate.h - one process becomes three: a door without any right, a keeper with two, and a reader
 *
 * What the caller is decides what they become:
 *
 *   root           keeper and door get the accounts _brig-keeper and _brig-door,
 *                  or, where there are none, the last two of its host ids; the
 *                  keeper keeps CAP_SETUID and CAP_SETGID. Control groups are
 *                  made and given away first. No process stays root.
 *   another id with those two capabilities (a unit of systemd with User= and
 *   AmbientCapabilities=): the keeper stays what we are, the door becomes
 *                  _brig-door, and so does the reader.
 *   any other user all stay that user: there is no privilege to drop. The
 *                  keeper makes a user namespace, as brig run would.
 *
 * To be called when listening sockets are open, and before anything that was
 * written by a stranger is read: nothing is parsed here.
 */
#pragma once
#include "id_range.h"
#include "keeper_protocol.h"
#include "place.h"
#include "reader.h"

#include <sys/types.h>

struct separation {
	pid_t           keeper_pid;
	int             keeper;      /* socket: keeper_protocol.h; its end of file is the keeper's end */
	struct reader   reader;
	enum keeper_mode mode;
	unsigned        keeper_uid, door_uid;
	struct id_range ids;         /* of a service: a block that nobody else uses; the last slots are not for cells */
	int             ids_held;    /* the lock on them, to be kept open; else -1 */
	char            note[160];   /* for the log: what is not as it would be under systemd; "" */
};

/* places may name other stores afterwards: those that the others can read. */
must_use int separate(struct separation *ret, struct places *places, const struct reader_files *files, struct err *e);
