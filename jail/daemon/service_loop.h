/* service_loop.h - a service and its many clients, from the first until a signal asks for the end */
#pragma once
#include "server.h"

/* All are borrowed. */
struct service_loop_fds {
	int listener;
	int signals; /* a signalfd */
	int monitor; /* readable: backend.on_readable() is called */
	int notify;  /* see notify.h */
};

/*
 * Returns when a signal came and every run has ended, or ENDING_MS_MAX after the signal. Each run that was still
 * going is ended as cancelled; its client gets a record and the audit a line, also for a run that was not over by
 * then. Fails, after the same, when the monitor is gone.
 */
must_use int service_loop_run(struct server *d, const struct service_loop_fds *at, struct err *e);
