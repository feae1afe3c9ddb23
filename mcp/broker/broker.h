/*
 * broker.h - what all runs share: the servers, the policy, the audit.
 *
 * A brig-mcp that was given --servers has one. Only the thread of the loop uses it. Each run has a bridge to it
 * (tool_bridge.h), which must be closed first.
 */
#pragma once
#include "tool_audit.h"
#include "tool_policy.h"
#include "tool_server.h"

struct broker_settings {
	const char        *file;  /* --servers */
	const char        *audit; /* a path, or "" */
	bool               audit_arguments;
	uint64_t           call_ms, ask_ms; /* the most time of a call, and of a question to a person */
	uint64_t           calls_max;       /* of one run */
	uint64_t           calls_rate;      /* of one run in a second; 0: any number */
	struct tool_policy policy;
};

struct broker {
	struct loop           *loop;
	struct broker_settings settings; /* what it points to outlives the broker */
	struct server_entries  entries;
	struct tool_server    *server;   /* as many as entries */
	struct tool_audit      audit;
	int64_t                calls;    /* so far; a call's number in the audit comes from it */
	uint64_t               consents;
};

/* Reads the file, and starts nothing. NULL with *e. */
must_use struct broker *broker_create(struct loop *loop, const struct broker_settings *settings, struct err *e);
void                    broker_destroy(struct broker *b); /* waits a moment for servers to go; NULL is fine */

/* The server of "github.search_issues" or "github"; NULL: none. */
struct tool_server *broker_find_server(struct broker *b, const char *name);
/* The tool by either name, of a server that has been listed; NULL: none. */
const struct catalog_tool *broker_find_tool(struct broker *b, const char *name);

/* Waits until each server of `under` ("": all) is ready, or has failed. done() may be called before broker_gather_tools() returns. */
struct gathering {
	void              (*done)(void *owner);
	void               *owner;
	size_t              left, n;
	struct server_wait *wait;
};
void broker_gather_tools(struct broker *b, struct gathering *g, const char *under);
void gathering_leave(struct gathering *g); /* may be called on one that is zero or done */

/* Of every server that has been listed, also while it is not running. */
json_t *broker_search_tools(struct broker *b, const char *words, size_t max); /* the best first: catalog_tool_summary_json() */
json_t *broker_tool_names(struct broker *b, const char *under);            /* sorted */
json_t *broker_failed_servers(struct broker *b);                            /* "github: why it is not there" */
/* "github, fs", for a description; malloc'ed. */
char   *broker_servers_text(const struct broker *b, size_t max);
