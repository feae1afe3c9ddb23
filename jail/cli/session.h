/*
 * session.h - brig session: what its commands have in common.
 *
 * A session stays in a service when brig has ended; a private brigd would end with the command, so none is started.
 */
#pragma once
#include "option.h"
#include "server.h"

/* The first word that is no option is the session's name, NULL: there is none; options may stand on both sides of it. As options_parse(). */
must_use int session_words(const struct option_row *rows, int argc, char **argv, void *into, const char **name, struct err *e);

/* To the service, with an error that says how to have one; then gives up privilege. */
must_use int session_connect(struct server *ret, struct err *e);

/* argv[0] is "session run" and so on. */
int session_open_main(int argc, char **argv);
int session_run_main(int argc, char **argv);
int session_exec_main(int argc, char **argv);
int session_put_main(int argc, char **argv);
int session_get_main(int argc, char **argv);
int session_files_main(int argc, char **argv);
