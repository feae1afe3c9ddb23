/*
 * shell.h - a command at a terminal of a session: keys go to it, and what it writes to the caller's terminal, as it is
 *
 * The session is one that is open, or opened for this command and closed with it. What comes out of the jail is not looked at: it can
 * do with the terminal what any program's output can.
 */
#pragma once
#include "run_client.h"

struct shell {
	struct run_client c;           /* how it ends: ended, refused or lost; c.request: options, and the message that was sent last */
	char        *const *words;     /* the command; NULL: a shell that the rootfs has */
	int                 words_len;
	char                own[RUN_ID_LEN + 1]; /* the session that is closed at the end; "": one that was there */
	bool                is_own_over;
	size_t              next;      /* of the shells, the one to be tried */
	struct {
		size_t len;
		char   text[4096];
	} typed, shown;                /* on their way */
	unsigned            leaves;    /* how often the key that leaves was pressed, one after the other */
	double              left_ms;   /* when first */
	bool                is_leaving;
};

/* Takes the server over. words: stay the caller's. Without a session in the request, its message must be ready to open one. */
void shell_init(struct shell *s, struct server *server, struct request *request, char *const *words, int words_len);
/* Until it has ended; s->c then says how, as run_client_run() does. The terminal is as it was. */
void shell_run(struct shell *s);
void shell_done(struct shell *s);
