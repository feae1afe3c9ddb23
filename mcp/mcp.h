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
struct launcher;
struct executions;
struct named_sessions;
struct artifacts;
struct metrics;
struct broker;

struct mcp {
	struct loop            loop;
	const struct settings *settings;
	struct launcher       *launcher;   /* the connection to brigd; made at the first tool call */
	struct executions     *executions; /* runs that have a handle */
	struct named_sessions       *sessions;   /* of clients, by their names */
	struct artifacts      *artifacts;  /* where what no reply can hold is written; NULL: nowhere */
	struct metrics        *metrics;
	struct broker         *broker;     /* the tools of programs; NULL: they have none */
	TAILQ_HEAD(elicitation_list, elicitation) elicitations; /* that clients were asked and have not answered; see asking.h */
	TAILQ_HEAD(call_list, call) calls;
	struct rates           rates;      /* tool calls by principal */
	json_t                *tool_list[REVISION_COUNT]; /* see tool_list.c */
	bool                   ends;       /* the loop is to be left */
};

/* The loop is open, nothing else is done yet. settings are borrowed. */
must_use int mcp_open(struct mcp *ret, const struct settings *settings, struct err *e);
void         mcp_close(struct mcp *m);
