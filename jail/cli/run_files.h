/*
 * run_files.h - --put, --get and --out: files into /workspace before the program starts, and out of it when it has ended
 *
 * A process of its own moves them, so that neither side waits for the other: brigd's end of the socket goes with the request
 * (file_stream.h). What comes out is written below the directory that was asked for, or as the file that was named, and over
 * no file that was not. brig session put, get and files do the same over a socket that brigd opens.
 */
#pragma once
#include "request.h"

/* What is put must be there, and the socket is added to the request as its last descriptor. */
must_use int run_files_open(struct request *r, struct err *e);
bool         run_files_are_wanted(const struct request *r);
/* The first half of that, where no socket is to be made. */
must_use int run_files_check(const struct request *r, struct err *e);

struct run_files {
	pid_t pid;  /* of that process; 0: none */
	int   rows; /* its report */
};
#define RUN_FILES_NONE ((struct run_files){ .rows = -1 })

/* Before the request is sent. */
must_use int run_files_start(struct run_files *f, struct request *r, struct err *e);
/* After it was sent, or could not be: brigd alone has its end. */
void         run_files_sent(struct request *r);
/* The run has ended: rows for "files" of the record, or NULL. A new reference. */
json_t      *run_files_finish(struct run_files *f);

/*
 * In a session: puts and gets what the request says, and asks for what matches `list` (NULL: for nothing), whose rows have no
 * saved. Returns when all came; a new reference. -1 in *sent: not all was put, which is told.
 */
json_t      *run_files_exchange(const struct request *r, const char *list, int sock, int *sent);

/* For people: what is not "saved", or "put". True when something that was asked for is not there now. */
bool         run_files_tell(const json_t *rows, const char *done, bool is_quiet);
