/*
 * metrics_page.h - the page of a service's figures, for Prometheus.
 *
 * Asks the service as any client does, over a connection of its own: stats, then metrics for each profile that this user
 * may use. It starts no brigd.
 */
#pragma once
#include "err.h"

#include <stdio.h>

/* Prints nothing unless every request got its reply. Waits at most ms to connect, and at most ms for the replies. */
must_use int metrics_page_print(FILE *out, unsigned ms, struct err *e);
