/* session_common.c - the command line of brig session, and its connection to the service */
#define _GNU_SOURCE
#include "session_common.h"

#include "ascii.h"
#include "ask.h"
#include "privilege.h"
#include "text.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

int session_parse_options(const struct option_row *rows, int argc, char **argv, void *into, const char **name,
			  struct err *e)
{
	int before = options_parse(rows, argc, argv, into, e), behind;

	*name = before >= 0 && before + 1 < argc ? argv[before + 1] : NULL;
	if (!*name)
		return before;
	behind = options_parse(rows, argc - before - 1, argv + before + 1, into, e);
	return behind < 0 ? behind : before + 1 + behind;
}

void session_print_file_name(const json_t *name)
{
	const char *text = json_string_value(name);

	if (text && text_is_plain(text) && *text != '"')
		fputs(text, stdout);
	else
		json_dump_ascii(name, JSON_ENCODE_ANY, ask_write_bytes, stdout);
}

void session_print_started(const struct brigd *s)
{
	if (s->stays)
		fprintf(stderr,
			"brig: no service was running: started one of your own, which stays until you type:  kill %d\n",
			(int)s->stays);
	if (s->unusual)
		fprintf(stderr, "brig: for the other commands, type:  export BRIG_SOCKET=%s\n", s->name);
}

void session_stop_started(const struct brigd *s)
{
	if (s->stays)
		(void)kill(s->stays, SIGTERM);
}

int session_connect(struct brigd *ret, bool start, struct err *e)
{
	const char *named = secure_getenv("BRIG_SOCKET");

	if (brigd_connect(ret, start ? BRIGD_STARTED : BRIGD_SERVICE, e) == 0)
		return privilege_keep_only_cap_kill(e);
	if (e->kind == ERR_MISSING && !start && !(named && *named))
		return err_set(e, ERR_MISSING,
			       "no brigd is running, and a session needs one: brig session open --start starts one of "
			       "your own, systemctl %senable --now brigd.socket keeps one",
			       geteuid() == 0 ? "" : "--user ");
	return -1;
}

