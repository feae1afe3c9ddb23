/*
 * shell.h - a command at a terminal of a session: passes keys to it, and its output unchanged to the caller's terminal
 *
 * The session is open already, or is opened for this command and closed after it. The output is not filtered: it can do to the
 * terminal what any program's output can.
 */
#pragma once
#include "foreground_run.h"

struct shell {
	struct foreground_run c;           /* first. Its ended, refused or lost is how the shell ends; c.request: options, and the last message sent */
	char        *const *words;     /* the command; NULL: the first shell that the rootfs has */
	int                 words_len;
	char                own[RUN_ID_LEN + 1]; /* the session that this command opened and closes; "": it was open before */
	bool                is_own_over;
	size_t              next;      /* index of the shell that is tried */
	struct {
		size_t len;
		char   text[4096];
	} typed, shown;                /* keys for the program; output for the terminal */
	unsigned            escapes;   /* how often Ctrl-] was pressed in a row */
	double              escape_ms; /* when it was pressed first, CLOCK_MONOTONIC */
	bool                is_escaping;
};

/* Takes over the server; words stay the caller's. Without a session in the request, its message must be one that opens a session. */
void shell_init(struct shell *s, struct brigd *server, struct request *request, char *const *words, int words_len);
/* Returns when the command has ended, with the terminal restored; s->c has how it ended, as after foreground_run_wait(). */
void shell_run(struct shell *s);
void shell_done(struct shell *s);
