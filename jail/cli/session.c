/* session.c - the command line of brig session, and its connection to the service */
#include "session.h"

#include "privilege.h"

int session_parse(const struct option_row *rows, int argc, char **argv, void *into, const char **name, struct err *e)
{
	int before = options_parse(rows, argc, argv, into, e), behind;

	*name = before >= 0 && before + 1 < argc ? argv[before + 1] : NULL;
	if (!*name)
		return before;
	behind = options_parse(rows, argc - before - 1, argv + before + 1, into, e);
	return behind < 0 ? behind : before + 1 + behind;
}

int session_connect(struct server *ret, struct err *e)
{
	if (server_connect(ret, SERVER_SERVICE, e) == 0)
		return privilege_drop(e);
	return e->kind == ERR_MISSING ? err_wrap(e, "a session needs a service, like one of your own (systemctl --user enable --now brigd.socket)") : -1;
}
