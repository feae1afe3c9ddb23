/*
 * run_files.h - --put, --get and --out: files into /workspace before the program starts, and out of it when it has ended
 *
 * A separate process moves them, so that neither side waits for the other; brigd gets its end of the socket with the request
 * (file_stream.h). Files that come out are written below the directory that was asked for, or to the file that was named; an
 * existing file is overwritten only if it was asked for by name. brig session put, get and files use a socket that brigd opens.
 */
#pragma once
#include "request.h"

/* Checks the options, and adds brigd's end of a new socket to the request as its last descriptor. */
must_use int run_files_open(struct request *r, struct err *e);
bool         run_files_are_wanted(const struct request *r);
/* Only the check: files to put must exist, names and patterns must be valid. */
must_use int run_files_check(const struct request *r, struct err *e);
/* option: "--get " or "", for the message. */
must_use int run_files_check_pattern(const char *pattern, const char *option, struct err *e);

struct run_files {
	pid_t pid;  /* of the process that moves files; 0: none */
	int   rows; /* owned: a memory file for its report */
};
#define RUN_FILES_NONE ((struct run_files){ .rows = -1 })

/* Starts the process. Call it before the request is sent. */
must_use int run_files_start(struct run_files *f, struct request *r, struct err *e);
/* Closes this process's copy of brigd's end. Call it after the request was sent, or could not be. */
void         run_files_close_peer(struct request *r);
/* After the end of the run: waits for the process. Rows for "files" of the record, a new reference, or NULL. */
json_t      *run_files_finish(struct run_files *f);

/*
 * In a session: puts, gets and lists what the request names; "saved" of listed rows is null.
 * Returns the rows, a new reference, when everything has come. *sent is -1 if not everything was put; the message is then printed.
 */
json_t      *run_files_exchange(const struct request *r, int sock, int *sent);

/* A name as the program wrote it, in which what is not UTF-8 is replaced. */
json_t      *run_files_name_to_json(const char *name);

/* Says on stderr which files were left out; done: "saved" or "put", for the message. True when one was. */
bool         run_files_print_left_out(const json_t *rows, const char *done, bool is_quiet);
