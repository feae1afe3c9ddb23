/*
 * conformance.h - what the official conformance suite wants a server to have: tools, resources, prompts, tasks.
 *
 * None of it is of use to anybody else; --conformance adds it. main() owns one
 * and gives &extras to mcp_open(); it is closed before the loop is.
 */
#pragma once
#include "mcp.h"

struct conformance {
	struct extras extras; /* first: mcp->extras is one of these */
	unsigned char key[32]; /* of what clients keep for us between two rounds */
	TAILQ_HEAD(conformance_tasks, task) tasks;
	size_t        n_tasks;
	struct mcp   *mcp;
};

must_use int conformance_open(struct conformance *ret, struct err *e);
void         conformance_close(struct conformance *c);
