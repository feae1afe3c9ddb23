/*
 * tool_server.h - one server: started when it is first needed, greeted in the newest revision that it has, its list of tools kept up to
 * date, started again when it has died.
 *
 * Nothing is started before a program or a client asks for a tool: clients
 * start brig-mcp twice, or only to list its tools. One that died, or could not
 * be started, is left alone for a moment, which doubles each time; who asks
 * meanwhile is told so at once.
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

/* Who waits for it. Called once; may free itself. why: NULL when it is ready, else a sentence. */
struct server_wait {
	void                    (*over)(void *owner, struct tool_server *s, const char *why);
	void                     *owner;
	struct tool_server       *server; /* NULL: waits for nothing */
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
	struct lines               said;          /* stderr */
	bool                       exits_wait, errors_wait;
	unsigned                   told, told_noise; /* lines of stderr, and on stdout what is no message, within a while */
	int64_t                    told_since_ms;
	enum revision              revision;
	bool                       no_probe;      /* it went away when it was asked what it is */
	bool                       probing, listens;
	struct rpc_ask             greeting, listing, subscription;
	struct loop_timer          patience;      /* of a start; of a rest; between two lists */
	json_t                    *pages;         /* definitions so far */
	unsigned                   page;
	bool                       stale;         /* the list has changed while it was fetched */
	int64_t                    listed_ms;
	struct loop_timer          relist;
	struct catalog             catalog;
	json_t                    *strict;        /* names of tools that have once said that they change something */
	unsigned                   failures;
	int64_t                    rests_until_ms;
	char                       why[300];      /* of the last failure */
	TAILQ_HEAD(, server_wait)  waits;
};

void tool_server_init(struct tool_server *s, const struct server_entry *entry, struct loop *loop, void (*log)(void *owner, const char *line),
		      void *log_owner);
/* Told at once when it is ready already, or rests. */
void tool_server_need(struct tool_server *s, struct server_wait *w);
void server_wait_leave(struct server_wait *w); /* may be called on one that waits for nothing */

/* A tools/call of a server that is ready; takes arguments over. Refused as lost when it does not read. */
must_use bool tool_server_call(struct tool_server *s, struct rpc_ask *a, const char *tool, json_t *arguments, uint64_t ms);
/* It has answered: what was wrong before is forgiven. */
void          tool_server_is_well(struct tool_server *s);

/* All of them at once: their input ends, and what has not gone soon is killed. */
void tool_servers_close(struct tool_server *s, size_t n);
