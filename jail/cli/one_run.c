#include "one_run.h"

#include "command.h"
#include "interrupt.h"
#include "privilege.h"

#include <stdio.h>

static int carry_out(struct server *server, struct request *r, tell_fn *tell)
{
	struct run_client c;
	int               status;

	run_client_init(&c, server, r);
	interrupt_catch();
	if (early_run.connected)
		run_client_take_up(&c, &early_run);
	run_client_run(&c);
	status = tell(&c);
	run_client_done(&c);
	return status;
}

/* A server, and no privilege: both were seen to before main(), or are now. */
static int reach(struct server *server, const struct request *r, struct err *e)
{
	if (early_run.connected) {
		server->sock = early_run.sock;
		snprintf(server->name, sizeof server->name, "%s", early_run.name);
		return 0;
	}
	return server_connect(server, r->private ? SERVER_PRIVATE : SERVER_ANY, e) < 0 ? -1 : privilege_drop(e);
}

int one_run_failure(struct request *r, const struct err *why, tell_fn *tell)
{
	const struct run_client none = { .request = r, .lost = *why };

	return tell(&none);
}

/* What comes after the drop is hostile data, and brigd's own word. */
int one_run(struct request *r, tell_fn *tell)
{
	struct server server = SERVER_NONE;
	struct err    e;
	int           status;

	if (reach(&server, r, &e) < 0)
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
