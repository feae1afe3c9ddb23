/*
 * reader.h - the process that reads configuration and profiles, at the start and at each reload
 *
 * The server talks to untrusted clients, so it can read no file once it does, and
 * the monitor takes no profile from it. The reader is forked before: it receives
 * nothing from a client, keeps the privilege to read the files, and is the only
 * process that the monitor takes profiles from (MONITOR_RULES_FD). The server sends it
 * messages that have a kind and a number and nothing else. Each reading is done in
 * a fork of the reader, so that no file leaves state behind for the next reading.
 *
 *   server -> READ      files are loaded; the monitor opens the profiles beside those that serve
 *        <- RULES     with them in a sealed memory file (rules.h), or
 *        <- REFUSED   with the reason
 *        -> TAKEN     the server uses them: the monitor retires the others; or
 *        -> NOT_TAKEN the monitor drops them: all is as it was
 *
 * Each reading has a number, and messages with another number are ignored: where
 * the fork was killed, RULES and REFUSED may both come, and the server decides.
 */
#pragma once
#include "credentials.h"
#include "rules.h"

#include <sys/types.h>

struct reader {
	int   sock; /* -1: it is gone */
	pid_t pid;
};
#define READER_NONE ((struct reader){ .sock = -1 })

enum reader_kind { READER_READ, READER_RULES, READER_REFUSED, READER_TAKEN, READER_NOT_TAKEN };

struct reader_message {
	uint32_t   kind;
	uint32_t   is_config; /* REFUSED: the configuration cannot be used */
	uint64_t   reading;
	struct err err;       /* REFUSED */
};

/* --- the server's side --- */

/* As fork(): 0 in the reader, whose end is *theirs. */
must_use pid_t reader_fork(struct reader *ret, int *theirs, struct err *e);
/* False when it is gone. */
must_use bool  reader_send(struct reader *r, enum reader_kind kind, uint64_t reading);
/* Waits for its next message. RULES come with a descriptor, which is the caller's; else *fd is -1. False when it is gone. */
must_use bool reader_receive(struct reader *r, struct reader_message *ret, int *fd);
/* Waits until it is gone. */
void           reader_close_and_wait(struct reader *r);

/* --- the reader's side --- */

struct reader_setup {
	struct brig_paths   places;
	struct credentials  credentials; /* places.credentials of the reader points to them */
	struct reader_files files;
	int                 server, monitor; /* sockets */
	enum monitor_mode   mode;
	struct id_range     ids;
	bool                had_config; /* at the start: a file that is gone later is an error, since presets would let in more users */
	bool                copies; /* the reader is root: it copies the files first (view.h), and parses them as the account below */
	unsigned            server_uid, server_gid;
};

/* With the rights of the unit: closes all descriptors but the two sockets and the standard streams, and opens the credentials. */
must_use int   reader_open(struct reader_setup *setup, struct err *e);
_Noreturn void reader_main(const struct reader_setup *setup);
