/*
 * http_cells.h - how many cells of brigd stand ready, for the metrics.
 *
 * Asked when somebody wants metrics, told the next time: who scrapes does not
 * wait for brigd, and never starts one.
 */
#pragma once
#include "launcher.h"

struct cells {
	struct mcp     *mcp;
	struct question question;
	json_t         *message; /* NULL: nothing is asked */
};

void cells_ask(struct cells *c, struct mcp *m);
void cells_done(struct cells *c);
