/*
 * http_cells.h - how many cells of brigd are ready, for the metrics.
 *
 * brigd is asked when the metrics are read; they have its answer when they are read again. So reading them neither
 * waits for brigd nor starts one.
 */
#pragma once
#include "brigd_link.h"
#include "mcp.h"

struct cells {
	struct mcp     *mcp;
	struct question question;
	json_t         *message; /* NULL: nothing is asked */
};

void cells_ask_stats(struct cells *c, struct mcp *m);
void cells_forget_question(struct cells *c);
