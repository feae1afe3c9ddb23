/*
 * metrics_page.h - the page with the figures of a service, for Prometheus.
 *
 * Sends the requests of an ordinary client over a connection of its own: stats, then metrics for each profile that this user
 * may use. Does not start a private brigd.
 */
#pragma once
#include "err.h"

#include <stdio.h>

/*
 * Prints nothing unless every request is answered; a profile whose request is refused is left out. Waits at most ms to connect.
 * No request is sent later than ms after that, and each waits at most ms for its reply.
 */
must_use int metrics_page_print(FILE *out, unsigned ms, struct err *e);
