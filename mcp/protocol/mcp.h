/*
 * mcp.h - what all parts of a brig-mcp share: the loop, the settings, the calls under way.
 *
 * There is one thread. main() owns the struct; all others have a pointer.
 */
#pragma once
#include "loop.h"
#include "rate_limit.h"
#include "revision.h"
#include "settings.h"
#include "ro_folders.h"

#include <jansson.h>

struct call;
struct brigd_link;
struct executions;
struct named_sessions;
struct artifacts;
struct metrics;
struct roots;
struct broker;

struct mcp {
	struct loop            loop;
	const struct settings *settings;
	struct brigd_link     *brigd_link; /* the connection to brigd; made at the first tool call */
	struct executions     *executions; /* all runs */
	struct named_sessions *sessions;   /* sessions of clients, by name */
	struct artifacts      *artifacts;  /* a directory for what replies cannot have; NULL: none */
	struct ro_folders           shown;      /* files of the host that programs can read */
	/* what persons have answered about hosts, see ask_hosts.c; owned; NULL: nothing yet */
	json_t                *hosts;
	struct roots          *roots;      /* asks the client for its folders; NULL: it is not asked */
	struct metrics        *metrics;
	struct broker         *broker;     /* the tools that programs can call; NULL: none */
	TAILQ_HEAD(client_request_list, client_request) client_requests; /* that clients have not answered */
	TAILQ_HEAD(call_list, call) calls;
	struct rates           rates;      /* tool calls by principal */
	json_t                *tool_list[REVISION_COUNT]; /* see tool_list.c */
	bool                   ends;       /* the loop must be left */
};

/* Opens the loop, and what the settings want of broker and artifacts; brigd is not asked yet. settings are borrowed. */
must_use int mcp_open(struct mcp *ret, const struct settings *settings, struct err *e);
void         mcp_close(struct mcp *m);
