/*
 * session_common.h - brig session: what its commands have in common.
 *
 * A session stays in the service after brig has ended. A private brigd would end with the command, so none is started.
 */
#pragma once
#include "option.h"
#include "brigd_connection.h"

#include <jansson.h>

/* Like options_parse(), but options may stand on both sides of the session's name, which is the first other word. NULL: there is no name. */
must_use int session_parse_options(const struct option_row *rows, int argc, char **argv, void *into, const char **name, struct err *e);

/*
 * Connects to the service, then drops privilege. Without a service, start decides: true starts one that keeps running after brig has ended;
 * false fails, and *e names the commands that start one.
 */
must_use int session_connect(struct brigd *ret, bool start, struct err *e);
/* Prints what the other commands, or the user, need of a service that session_connect() has started; or ends it, where nothing was opened in it. */
void         session_print_started(const struct brigd *s);
void         session_stop_started(const struct brigd *s);

/* Prints it unchanged, or in quotes with escapes if a terminal would not show it. */
void         session_print_file_name(const json_t *name);

extern const struct one_run_way session_open_way, session_run_way, session_exec_way, session_put_way, session_get_way,
	session_files_way, session_stat_way, session_mkdir_way, session_mv_way, session_rm_way;
