/*
 * tool_bridge.h - brig-mcp's end of the socket of a run to its tools: requests of the program in, answers out.
 *
 * The program is hostile: an invalid line closes the bridge and ends all of its calls. At most BRIDGE_UNDER_WAY calls are under
 * way; the others are held, as text, until they can begin. The calls that begin in a second, and the calls and bytes of a
 * run, are limited. While a program does not read its answers, its requests are not read.
 */
#pragma once
#include "tool_call.h"

enum { BRIDGE_UNDER_WAY = 64, BRIDGE_LOOKUPS = 10000, BRIDGE_NAMES_KEPT = 50, BRIDGE_LISTED = 200 };
#define BRIDGE_BYTES (64 * MIB)

struct bridge_item;

/* An open question to a person. */
struct consent {
	uint64_t    number;
	const char *text; /* valid until the question is answered or has expired */
};

struct tool_bridge_events {
	void (*asks)(void *owner);            /* a question to a person was opened or closed */
	void (*busy)(void *owner, bool busy); /* true: a first call is under way; false: none is any more */
	void (*ended)(void *owner, const struct tool_call *c, const char *outcome);
};

struct tool_bridge {
	struct loop                         *loop;
	const struct tool_bridge_events     *events;
	struct tool_calls                    calls;
	struct loop_source                   reads, writes;
	struct lines                         lines;
	struct output                        out;
	bool                                 open, writes_wait, rests; /* rests: requests are not read until the program has read its answers */
	bool                                 goes_on;      /* start_held_calls() is running */
	TAILQ_HEAD(bridge_items, bridge_item) items;  /* every id without an answer, and answered ones until they are freed */
	size_t                               under_way, weight;
	double                               due;          /* calls that the rate limit lets begin now; grows with time */
	int64_t                              due_us;       /* when due was computed */
	struct loop_timer                    pace;         /* runs out when the rate limit lets the next call begin */
	size_t                               lookups;
	uint64_t                             bytes_in, bytes_out;
	size_t                               n, failed, denied;
	int64_t                              busy_since_us;
	int64_t                              wait_us;     /* time during which at least one call was under way */
	json_t                              *names;      /* {name: number of calls} */
	json_t                              *listed;     /* the first BRIDGE_LISTED calls, as in the record */
	char                                 broken[200]; /* the error that closed it; "": none */
	void                                *owner;
};

/* Takes fd over. run is borrowed. b must not move. */
must_use int tool_bridge_open(struct tool_bridge *b, struct broker *broker, int fd, const char *run, const struct tool_bridge_events *events,
			      void *owner, struct err *e);
/* For the end of the run: closes the socket and drops its calls. Its counters stay. May be called twice. */
void         tool_bridge_close(struct tool_bridge *b);
void         tool_bridge_done(struct tool_bridge *b);

/* Puts the open questions into ret, oldest first, and returns their number. */
size_t tool_bridge_list_consents(const struct tool_bridge *b, struct consent *ret, size_t max);
/*
 * Answers the question of that number; does nothing if it is not open any more. CONSENT_RUN and CONSENT_NO also answer the open
 * questions about the same tool.
 */
void   tool_bridge_set_consent(struct tool_bridge *b, uint64_t number, enum consent_answer answer, const char *why);
/* An answer that is none, as an approval without a choice. The second one to a question is a no: a client would be asked for ever. */
void   tool_bridge_deny_at_second_unclear_consent(struct tool_bridge *b, uint64_t number);

/* {"n", "failed", "denied", "names": {name: n}, "wait_ms", "bytes", "calls": [{"name", "ms", "verdict"}]}; a new reference. */
json_t *tool_bridge_summary(const struct tool_bridge *b);
