/*
 * conformance.h - a server that has what the official conformance suite wants: tools, resources, prompts, tasks.
 *
 * brig-mcp has none of it. Here are tables of tools and methods in the place of its own (mcp/tools/tools.c, mcp/protocol/methods.c); all else is
 * what the libraries offer.
 */
#pragma once
#include "mcp.h"

struct conformance {
	struct mcp    mcp;      /* first: mcp of a call is one of these */
	unsigned char key[32];  /* of what clients keep for us between two rounds */
	TAILQ_HEAD(conformance_tasks, task) tasks;
	size_t        n_tasks;
};

/* As mcp_open(). */
must_use int conformance_open(struct conformance *ret, const struct settings *settings, struct err *e);
void         conformance_close(struct conformance *c);
