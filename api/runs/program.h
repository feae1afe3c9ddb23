/*
 * program.h - one run as a client asked for it, whatever the interface called its fields.
 *
 * program_fields has a row for each field and a column for each interface: program_read() reads any of them by it. What
 * an interface has besides, its own file reads.
 */
#pragma once
#include "interface.h"
#include "language.h"

#include <jansson.h>

struct program {
	const struct language  *language;
	char                   *code, *input;      /* owned; input NULL: none */
	size_t                  code_len, input_len;
	json_t                 *args;             /* a list of texts, or NULL */
	json_t                 *files, *fetch;    /* {PATH: true}, files to put; a list of paths to get; or NULL */
	char                   *puts;             /* the entries of files (transfer.h), without the end of the list */
	size_t                  puts_len;
	bool                    has_modules;      /* of the files: brig run would not import them */
	uint64_t                wall_ms, cpu_ms, memory_bytes, pids; /* 0: as the profile says */
};
void program_done(struct program *p);
#define scoped_program scoped(program_done) struct program

/* What the rows do not have an interface may still know: keys that change nothing here. All other keys are ignored. */
must_use int program_read(struct program *ret, enum interface by, const json_t *body, struct err *e);

/* Sets the text of the program, or of its input. bytes are copied. */
must_use int program_set_code(struct program *p, const char *bytes, size_t len, struct err *e);
must_use int program_set_input(struct program *p, const char *bytes, size_t len, struct err *e);
/* A file to put, by a path below /workspace. what: of the request, for *e. */
must_use int program_add_file(struct program *p, const char *what, const char *path, const char *bytes, size_t len,
			      struct err *e);
/* Is it a file that an interpreter executes, and not a run of brig's? Alone, not in a session. */
bool         program_is_exec(const struct program *p);
/* The entries to send: those to put, then the paths to get; malloc'ed. NULL: memory is short. */
char        *program_make_transfer(struct program *p, bool in_session, size_t *len);

/* A limit that is given as a number of some unit: null, and 0 or less, mean the profile's. */
must_use int program_read_number(const json_t *value, const char *key, double unit, uint64_t *ret, struct err *e);
