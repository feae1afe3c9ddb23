/*
 * request.h - the options of a brig command that starts something, and the message to brigd made from them.
 *
 * After request_init(), options_parse(), and request_set_program(), _command()
 * or _open(), message and fd are ready to be sent; request_done() frees
 * everything. Only what the message cannot carry is refused here. brigd judges
 * the rest; request_field_to_option() turns a key in its refusal into the option that
 * the user wrote.
 */
#pragma once
#include "client_protocol.h"
#include "limits.h"
#include "option.h"
#include "paths.h"
#include "store.h"

enum { WITH_MAX = 64 };
enum { FILES_ASKED_MAX = 63 }; /* one less than FILE_GETS_MAX, because --out is one more */

/* The commands, as bits: an option names those to which it belongs. */
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
	BY_STAT    = 1024, /* brig session stat, mkdir, mv, rm */
	BY_MKDIR   = 2048,
	BY_MOVE    = 4096,
	BY_REMOVE  = 8192,
	BY_PACKAGES = 16384, /* brig packages */
	BY_ANY     = 32767,
	ON_PATHS   = BY_STAT | BY_MKDIR | BY_MOVE | BY_REMOVE,
	IN_SESSION = BY_OPEN | BY_CALL | BY_COMMAND | BY_PUT | BY_GET | BY_FILES | ON_PATHS,
};

struct request {
	/* from the command line */
	enum request_by by;
	const char   *session;                    /* id or name of the session that is called; NULL: the run has a cell of its own */
	const char   *name;                       /* of the session to open; NULL: it has none */
	const char   *context;                    /* NULL: the default, main */
	const char   *artifacts;                  /* the directory for pictures; NULL: none are saved */
	const char   *profile;                    /* NULL: that of the session */
	struct limits limits;                     /* FIELD_UNSET: the profile's default */
	const char   *env[PROTOCOL_ENV_MAX + 1];  /* every array of texts here ends with NULL */
	const char   *shown[PROTOCOL_RO_MAX + 1]; /* --ro */
	const char   *put[FILES_ASKED_MAX + 1], *get[FILES_ASKED_MAX + 1], *out; /* --put, --get, --out */
	const char   *list;       /* a pattern of files to list; NULL: none are listed */
	const char   *path[FILES_ASKED_MAX + 1]; /* of ON_PATHS, as they were written */
	const char   *allow_missing[3];
	const char   *network[PROTOCOL_NETWORK_MAX + 1]; /* --net */
	const char   *requirements, *index, *find_links; /* packages: see packages.h */
	const char   *with[WITH_MAX + 1];
	char         *profiles_wheels, *profiles_index; /* owned: what the profile says of packages, for their key */
	bool          script, upgrade;
	const char   *code, *module; /* -c and -m */
	const char   *program;    /* for messages: the file or directory, "stdin", the command, "--code", "--module", or the session */
	char         *in_shown;   /* owned: the program's path below /workspace where a --ro directory has it, "proj/main.py"; NULL: main.py */
	const char   *workdir;    /* NULL: /workspace */
	const char   *stdin_path; /* NULL: empty; "-": brig's own stdin */
	const char   *record_to;  /* a file or the number of a descriptor; NULL: the record is not written */
	int           record_fd;  /* owned; -1: none */
	uint64_t      wait_ms;    /* how long to wait when a quota is used up */
	uint64_t      max_bytes;  /* the most that brig session get copies */
	bool          stdin_unnamed; /* stdin_path is there without an option */
	bool          half_read;     /* and is a file that was read up to its middle: most often by a loop, `while read -r name; do brig run ...; done <list` */
	bool          json, verbose, quiet, cold, private, why, detach, terminal, start, hidden, recursive;
	enum run_mode mode;       /* of a program */

	/* made from it */
	json_t *message;
	json_t *cells; /* of a notebook that is checked: foreign.h; else NULL */
	struct store_tree layer; /* owned: the packages, with the lock of their tree; its tree_fd is -1 if there are none */
	int     fd[PROTOCOL_FDS_MAX]; /* owned: the descriptors of the message */
	size_t  fds;
	int     stdin_fd;
	int     files_sock;   /* the client's end of the socket for files; -1: none */
	bool    has_files_fd; /* the last of fd is brigd's end */
};

/*
 * The request that resolves the packages of r: its get names the file for the archive. q: request_init(); program: a
 * file, or -1; file: memory for texts that q borrows.
 */
enum { RESOLVE_FILES = 3 };
must_use int request_set_resolve(struct request *q, char file[RESOLVE_FILES][PATH_SIZE], const struct request *r,
				 int program, struct err *e);

/* The options of a command, or of all commands whose bits are in `by`. */
enum { REQUEST_OPTIONS_MAX = 64 };
void request_options(unsigned by, struct option_row ret[REQUEST_OPTIONS_MAX]);

void         request_init(struct request *r, enum request_by by);
void         request_done(struct request *r);
/* The program to run, to call or to check: a file, "-" for stdin, or NULL when -c or -m gave it. words: the program's arguments. */
must_use int request_set_program(struct request *r, const char *path, char **words, int n, struct err *e);
/* The command of brig exec and brig session exec. */
must_use int request_set_command(struct request *r, char **words, int n, struct err *e);
/* The session of brig session open, which outlives the connection, or of brig shell, which has terminals and ends with it. */
must_use int request_set_open(struct request *r, struct err *e);
/* A command at a terminal of this size, in a session. Replaces the message that is there, and closes its descriptors. */
must_use int request_set_terminal_command(struct request *r, const char *session, char *const *words, int n, uint64_t rows, uint64_t columns, struct err *e);
/* Gives the program brig's own standard input if there is no --stdin, and it is a pipe, a socket or a file. */
void         request_use_inherited_stdin(struct request *r);

/* A key of the message as the user wrote it: "limits.pids" -> "--pids", "ro[0]" -> "--ro DIR"; "" if the command line has no name for it. */
char *request_field_to_option(const struct request *r, const char *field, char *buf, size_t len);
