/*
 * metrics_page.h - the page that Prometheus reads, of the brigd that runs here.
 *
 * Asks it as any client does, over a connection that is closed again: stats, then metrics for each profile that this user
 * may use. No brigd is started for it.
 */
#pragma once
#include "err.h"

#include <stdio.h>

/* Prints nothing unless every request got its reply. Waits at most ms to connect, and at most ms for the replies. */
must_use int metrics_page_print(FILE *out, unsigned ms, struct err *e);
