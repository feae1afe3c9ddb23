/*
 * metrics_page.h - the page that Prometheus reads, of the brigd that runs here.
 *
 * Asks it as any client does, over a connection that is closed again: stats, then metrics for each profile that this user
 * may use. No brigd is started for it.
 */
#pragma once
#include "err.h"

#include <stdio.h>

/* Prints nothing unless all could be asked. Waits for ms at most, twice over. */
must_use int metrics_page_print(FILE *out, unsigned ms, struct err *e);
