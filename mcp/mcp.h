/*
 * mcp.h - what all parts of one brig-mcp share: the loop, the settings, who is being served.
 *
 * One thread. main() owns it; everybody else has a pointer.
 */
#pragma once
#include "loop.h"
#include "rate.h"
#include "revision.h"
#include "settings.h"

#include <jansson.h>

struct call;
struct tool;
struct ask;
struct method;
struct launcher;
struct executions;
struct metrics;

/* More tools and methods than the product has: --conformance (mcp/conformance). Lists end with NULL rows. */
struct extras {
	const struct tool   *const *tools;
	const struct method *methods;
	json_t            *(*capabilities)(int revision, json_t *ours); /* ours with more in it; may be NULL */
};

struct mcp {
	struct loop            loop;
	const struct settings *settings;
	const struct extras   *extras;     /* NULL: none */
	struct launcher       *launcher;   /* the connection to brigd; made at the first tool call */
	struct executions     *executions; /* runs that have a handle */
	struct metrics        *metrics;
	TAILQ_HEAD(call_list, call) calls;
	TAILQ_HEAD(ask_list, ask)   asks;  /* questions to clients, see call.c */
	uint64_t               asked;      /* questions so far: their ids */
	struct rates           rates;      /* tool calls by principal */
	json_t                *tool_list[REVISION_COUNT]; /* see tools.c */
	bool                   ends;       /* the loop is to be left */
};

/* The loop is open, nothing else is done yet. settings and extras are borrowed. */
must_use int mcp_open(struct mcp *ret, const struct settings *settings, const struct extras *extras, struct err *e);
void         mcp_close(struct mcp *m);
