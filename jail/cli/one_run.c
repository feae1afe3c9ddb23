#include "one_run.h"

#include "command.h"
#include "interrupt.h"
#include "privilege.h"

#include <stdio.h>
#include <stdlib.h>

/* Large, for it holds what waits to be written to stdin. */
static int carry_out(struct server *server, struct request *r, tell_fn *tell)
{
	struct session *s = calloc(1, sizeof *s);
	int             status;

	if (!s) {
		fputs("brig: out of memory\n", stderr);
		return STATUS_DENIED;
	}
	session_init(s, server, r);
	interrupt_catch();
	session_run(s);
	status = tell(s);
	session_done(s);
	free(s);
	return status;
}

int one_run_failure(const struct request *r, const struct err *why, tell_fn *tell)
{
	const struct session none = { .request = r, .lost = *why };

	return tell(&none);
}

/* What comes after the drop is hostile data, and brigd's own word. */
int one_run(struct request *r, tell_fn *tell)
{
	struct server server = SERVER_NONE;
	struct err    e;
	int           status;

	if (server_connect(&server, r->private ? SERVER_PRIVATE : SERVER_ANY, &e) < 0 || privilege_drop(&e) < 0)
		status = one_run_failure(r, &e, tell);
	else
		status = carry_out(&server, r, tell);
	(void)server_close(&server);
	return status;
}

int one_run_complain(const char *command, const struct err *e)
{
	fprintf(stderr, "brig %s: %s\n", command, e->text);
	return STATUS_USAGE;
}
