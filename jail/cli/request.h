/*
 * request.h - what a command of brig that starts something was asked, and the message made of it.
 *
 * request_init(), options_parse(), request_take_program(), _command() or _open(), then
 * message and fd are ready to be sent; request_done() frees everything. Only
 * what the message cannot carry is refused here: the rest is for brigd to
 * judge, whose answer request_name_field() puts into the words of the caller.
 */
#pragma once
#include "client_protocol.h"
#include "limits.h"
#include "option.h"

enum { FILES_ASKED_MAX = 63 }; /* fewer than the protocol's, for --out is one more */

/* The commands, as bits: each has some of the options. */
enum request_by {
	BY_RUN     = 1,  /* brig run */
	BY_EXEC    = 2,  /* brig exec */
	BY_CHECK   = 4,  /* brig check */
	BY_OPEN    = 8,  /* brig session open */
	BY_CALL    = 16, /* brig session run */
	BY_COMMAND = 32, /* brig session exec */
	BY_PUT     = 64, /* brig session put, get, files */
	BY_GET     = 128,
	BY_FILES   = 256,
	BY_SHELL   = 512, /* brig shell */
	BY_ANY     = 1023,
	IN_SESSION = BY_OPEN | BY_CALL | BY_COMMAND | BY_PUT | BY_GET | BY_FILES,
};

struct request {
	/* asked */
	enum request_by by;
	const char   *session;                    /* of a call: its id or name; NULL: the run has a cell of its own */
	const char   *name;                       /* of a session that is opened; NULL: it has none */
	const char   *context;                    /* NULL: the session's preset */
	const char   *artifacts;                  /* where pictures go; NULL: nowhere */
	const char   *profile;                    /* NULL: that of the session */
	struct limits limits;                     /* FIELD_UNSAID: the profile's default */
	const char   *env[PROTOCOL_ENV_MAX + 1];  /* these three end with NULL */
	const char   *shown[PROTOCOL_RO_MAX + 1]; /* --ro */
	const char   *put[FILES_ASKED_MAX + 1], *get[FILES_ASKED_MAX + 1], *out; /* --put, --get, --out */
	const char   *allow_missing[3];
	const char   *network[PROTOCOL_NETWORK_MAX + 1]; /* --net */
	const char   *code, *module; /* -c and -m */
	const char   *program;    /* the file or directory, "stdin", the command, or how else it was asked for */
	char         *in_shown;   /* owned: where the program lies below /workspace, "proj/main.py"; NULL: it is main.py there */
	const char   *workdir;    /* NULL: /workspace */
	const char   *stdin_path; /* NULL: empty; "-": ours */
	const char   *record_to;  /* a file or the number of a descriptor; NULL: the record is not kept */
	int           record_fd;
	uint64_t      wait_ms;    /* for a place */
	uint64_t      max_bytes;  /* of what is got out of a session */
	bool          json, verbose, quiet, cold, private, why, detach, terminal;
	enum run_mode mode;       /* of a program: who executes it */

	/* made of it */
	json_t *message;
	int     fd[PROTOCOL_FDS_MAX];
	size_t  fds;
	int     stdin_fd;
	int     files_sock;   /* our end; -1 */
	bool    has_files_fd; /* the last of fd is the other end */
};

/* The options of a command; of several, those of any of them. */
enum { REQUEST_OPTIONS_MAX = 64 };
void request_options(unsigned by, struct option_row ret[REQUEST_OPTIONS_MAX]);

void         request_init(struct request *r, enum request_by by);
void         request_done(struct request *r);
/* The program of a run or call, or what is to be checked: a file, "-" for stdin, or NULL for what -c or -m named. words: the program's arguments. */
must_use int request_take_program(struct request *r, const char *path, char **words, int n, struct err *e);
/* The command of brig exec and brig session exec. */
must_use int request_take_command(struct request *r, char **words, int n, struct err *e);
/* A session: of brig session open, which outlives the connection, or of brig shell, with terminals. */
must_use int request_take_open(struct request *r, struct err *e);
/* A command at a terminal of so many rows and columns, in a session. In the place of the message that is there, with its descriptors. */
must_use int request_take_terminal(struct request *r, const char *session, char *const *words, int n, uint64_t rows, uint64_t columns, struct err *e);
/* For a program: brig's own standard input, where nothing else was said and it is one that is meant for it. */
void         request_take_stdin(struct request *r);

/* A key of the message as the caller wrote it: "limits.pids" -> "--pids", "ro[0]" -> "--ro DIR"; "" when it has no name of his. */
char *request_name_field(const struct request *r, const char *field, char *buf, size_t len);
