/*
 * tool_server.h - one server: its process, started when it is first needed, its list of tools, its calls
 *
 * It is spoken to in the newest revision that it has. Its list of tools is kept up to date, and it is started again after it
 * has ended.
 *
 * Nothing is started before a program or a client asks for a tool: clients start brig-mcp twice, or only to list its tools. A
 * server that has ended or could not be started rests, for a time that doubles with each failure; calls in that time fail at
 * once.
 */
#pragma once
#include "catalog.h"
#include "revision.h"
#include "rpc_client.h"
#include "server_process.h"

struct tool_server;

enum tool_server_state {
	TOOL_SERVER_OFF,      /* not needed yet, or it has ended and may be started */
	TOOL_SERVER_STARTS,
	TOOL_SERVER_READY,
	TOOL_SERVER_RESTS,    /* until its back-off is over */
};

/* Waits for the server to be ready. over() is called once, and may free the struct. why: NULL when the server is ready, else a sentence. */
struct server_wait {
	void                    (*over)(void *owner, struct tool_server *s, const char *why);
	void                     *owner;
	struct tool_server       *server; /* NULL: it does not wait */
	TAILQ_ENTRY(server_wait)  link;
};

struct tool_server {
	const struct server_entry *entry;
	struct loop               *loop;
	void                     (*log)(void *owner, const char *line); /* one line without a newline */
	void                      *log_owner;
	enum tool_server_state     state;
	struct server_process      process;
	struct rpc_client          rpc;
	struct loop_source         exits, errors; /* its pidfd, its stderr */
	struct lines               error_lines;   /* stderr */
	bool                       exits_wait, errors_wait;
	unsigned                   lines_logged, noise_logged; /* lines that were logged since logged_since_ms; of them those of stdout that are not messages */
	int64_t                    logged_since_ms;
	enum revision              revision;
	bool                       no_probe;      /* it has exited when it was sent server/discover, so that is not sent again */
	bool                       probing, listens;
	struct rpc_ask             greeting, listing, subscription;
	struct loop_timer          state_timer;   /* the deadline of a start; the end of a rest; the time to exit after its output has ended */
	json_t                    *pages;         /* definitions of tools, from the pages fetched so far */
	size_t                     pages_size;    /* bytes of their JSON */
	unsigned                   page;
	bool                       stale;         /* the list has changed while it was fetched */
	int64_t                    listed_ms;
	struct loop_timer          relist;
	struct catalog             catalog;
	json_t                    *strict;        /* {name: destructive} of tools that were once not read-only; see remember_strict_hints() */
	unsigned                   failures;
	int64_t                    rests_until_ms;
	char                       why[300];      /* of the last failure */
	TAILQ_HEAD(, server_wait)  waits;
};

void tool_server_init(struct tool_server *s, const struct server_entry *entry, struct loop *loop, void (*log)(void *owner, const char *line),
		      void *log_owner);
/* w->over() is called before this returns if the server is ready or rests. */
void tool_server_await(struct tool_server *s, struct server_wait *w);
void server_wait_leave(struct server_wait *w); /* may be called on one that does not wait */

/* Sends a tools/call to a server that is ready; takes arguments over. false: the server does not read its input, and nothing is sent. */
must_use bool tool_server_call(struct tool_server *s, struct rpc_ask *a, const char *tool, json_t *arguments, uint64_t ms);
/* It has answered a call: the next rest is short again. */
void          tool_server_reset_failures(struct tool_server *s);

/* Ends all servers at once: closes their inputs, and kills those that have not exited soon. */
void tool_servers_close(struct tool_server *s, size_t n);
