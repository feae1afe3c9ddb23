/*
 * reader.h - the process that reads configuration and profiles, at the start and whenever it is told to
 *
 * The door talks to strangers, so it can read no file once it does, and nobody
 * believes it about profiles. The reader is forked before: it hears no client,
 * keeps what it takes to read the files, and is the only one that the keeper takes
 * profiles from (KEEPER_RULES_FD). Of the door it hears two words without any
 * content. Each reading is done by a fork of it, so that none leaves anything to
 * the next, whatever was in the files.
 *
 *   door -> READ      files are loaded; the keeper opens the profiles beside those that serve
 *        <- RULES     with them in a sealed memory file (rules.h), or
 *        <- REFUSED   with the reason
 *        -> TAKEN     the door goes by them: the keeper retires the others; or
 *        -> NOT_TAKEN the keeper drops them: all is as it was
 *
 * Each reading has a number, and words of another one are passed over: where the
 * fork was killed, RULES and REFUSED may both come, and the door's word decides.
 */
#pragma once
#include "rules.h"

#include <sys/types.h>

struct reader {
	int   sock; /* -1: it is gone */
	pid_t pid;
};
#define READER_NONE ((struct reader){ .sock = -1 })

enum reader_kind { READER_READ, READER_RULES, READER_REFUSED, READER_TAKEN, READER_NOT_TAKEN };

struct reader_word {
	uint32_t   kind;
	uint32_t   is_config; /* REFUSED: the configuration cannot be used */
	uint64_t   reading;
	struct err err;       /* REFUSED */
};

/* --- the door's side --- */

/* As fork(): 0 in the reader, whose end is *theirs. */
must_use pid_t reader_fork(struct reader *ret, int *theirs, struct err *e);
/* False when it is gone. */
must_use bool  reader_tell(struct reader *r, enum reader_kind kind, uint64_t reading);
/* Waits for its word. RULES come with a descriptor, which is the caller's; else *fd is -1. False when it is gone. */
must_use bool  reader_hear(struct reader *r, struct reader_word *ret, int *fd);
/* Waits until it is gone. */
void           reader_end(struct reader *r);

/* --- its own --- */

struct reader_post {
	struct places       places;
	struct reader_files files;
	int                 door, keeper; /* sockets */
	enum keeper_mode    mode;
	struct id_range     ids;
	bool                had_config; /* at the start: that it is gone is no wish for presets, which let in more */
	bool                copies; /* we are root: files are copied first (view.h), and parsed as this account */
	unsigned            door_uid, door_gid;
};

_Noreturn void reader_main(const struct reader_post *post);
