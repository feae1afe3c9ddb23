/*
 * request.h - what `brig run`, `brig exec` and `brig check` were asked, and the message made of it.
 *
 * request_init(), options_parse(), request_take_program() or _command(), then
 * message and fd are ready to be sent; request_done() frees everything. Only
 * what the message cannot carry is refused here: the rest is for brigd to
 * judge, whose answer request_name_field() puts into the words of the caller.
 */
#pragma once
#include "client_protocol.h"
#include "limits.h"
#include "option.h"

enum { FILES_ASKED_MAX = 63 }; /* fewer than the protocol's, for --out is one more */

struct request {
	/* asked */
	const char   *profile;
	struct limits limits;                     /* FIELD_UNSAID: the profile's default */
	const char   *env[PROTOCOL_ENV_MAX + 1];  /* these three end with NULL */
	const char   *shown[PROTOCOL_RO_MAX + 1]; /* --ro */
	const char   *put[FILES_ASKED_MAX + 1], *get[FILES_ASKED_MAX + 1], *out; /* --put, --get, --out */
	const char   *allow_missing[3];
	const char   *code, *module; /* -c and -m */
	const char   *program;    /* the file or directory, "stdin", the command, or how else it was asked for */
	char         *in_shown;   /* owned: where the program lies below /workspace, "proj/main.py"; NULL: it is main.py there */
	const char   *workdir;    /* NULL: /workspace */
	const char   *stdin_path; /* NULL: empty; "-": ours */
	const char   *record_to;  /* a file or the number of a descriptor; NULL: the record is not kept */
	int           record_fd;
	uint64_t      wait_ms;    /* for a place */
	bool          json, verbose, quiet, cold, private, why;
	enum run_mode mode;       /* of a program: who executes it */

	/* made of it */
	json_t *message;
	int     fd[PROTOCOL_FDS_MAX];
	size_t  fds;
	int     stdin_fd;
	int     files_sock;   /* our end; -1 */
	bool    has_files_fd; /* the last of fd is the other end */
};

extern const struct option_row request_options[], check_options[];
extern const struct option_row *const request_exec_options; /* those of request_options that make sense for a command */

void         request_init(struct request *r);
void         request_done(struct request *r);
/* The program of brig run and brig check: a file, "-" for stdin, or NULL for what -c or -m named. words: the program's arguments. */
must_use int request_take_program(struct request *r, const char *path, char **words, int n, struct err *e);
/* The command of brig exec. */
must_use int request_take_command(struct request *r, char **words, int n, struct err *e);

/* A key of the message as the caller wrote it: "limits.pids" -> "--pids", "ro[0]" -> "--ro DIR"; "" when it has no name of his. */
char *request_name_field(const struct request *r, const char *field, char *buf, size_t len);
