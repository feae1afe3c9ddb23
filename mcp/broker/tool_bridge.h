/*
 * tool_bridge.h - the outside end of one run's socket to its tools: lines of its program in, calls, answers out.
 *
 * The program is hostile: a line that is none ends the bridge, and with it
 * all of its calls. So many calls are under way, the others wait for their
 * turn, as text; so many begin in a second; so many calls and bytes a run has
 * in all. From a program that does not read answers, nothing more is read.
 */
#pragma once
#include "tool_call.h"

enum { BRIDGE_UNDER_WAY = 64, BRIDGE_LOOKUPS = 10000, BRIDGE_NAMES_KEPT = 50, BRIDGE_LISTED = 200 };
#define BRIDGE_BYTES (64 * MIB)

struct bridge_item;

/* One question to a person, as long as it is open. */
struct consent {
	uint64_t    number;
	const char *text; /* valid until the question is settled */
};

struct tool_bridge_events {
	void (*asks)(void *owner);            /* a question to a person was opened or settled */
	void (*busy)(void *owner, bool busy); /* the first call is under way; none is any more */
	void (*ended)(void *owner, const struct tool_call *c, const char *outcome);
};

struct tool_bridge {
	struct loop                         *loop;
	const struct tool_bridge_events     *events;
	struct tool_calls                    calls;
	struct loop_source                   reads, writes;
	struct lines                         lines;
	struct output                        out;
	bool                                 open, writes_wait, rests; /* rests: it is not read until it has read */
	bool                                 goes_on;      /* those that wait are having their turn */
	TAILQ_HEAD(bridge_items, bridge_item) items;  /* every id that has no answer yet */
	size_t                               under_way, weight;
	double                               due;          /* calls that may begin at once; grows with time */
	int64_t                              due_us;       /* as of then */
	struct loop_timer                    pace;         /* until one is due */
	size_t                               lookups;
	uint64_t                             bytes_in, bytes_out;
	size_t                               n, failed, denied;
	int64_t                              busy_since_us;
	int64_t                              wait_us;     /* that at least one was under way */
	json_t                              *names;      /* name: calls */
	json_t                              *listed;     /* the first BRIDGE_LISTED calls, as in the record */
	char                                 broken[200]; /* why it was ended; "": it was not */
	void                                *owner;
};

/* Takes fd over. run is borrowed. b must not move. */
must_use int tool_bridge_open(struct tool_bridge *b, struct broker *broker, int fd, const char *run, const struct tool_bridge_events *events,
			      void *owner, struct err *e);
/* The run has ended. What it has counted stays. May be called twice. */
void         tool_bridge_close(struct tool_bridge *b);
void         tool_bridge_done(struct tool_bridge *b);

/* The open questions, the oldest first: how many were put into ret. */
size_t tool_bridge_consents(const struct tool_bridge *b, struct consent *ret, size_t max);
/* To the question of that number; one that is not open any more changes nothing. After RUN and NO, those about the same tool are settled, too. */
void   tool_bridge_consent(struct tool_bridge *b, uint64_t number, enum consent_answer answer, const char *why);

/* {"n", "failed", "denied", "names": {name: n}, "wait_ms", "bytes", "calls": [{"name", "ms", "verdict"}]}; a new reference. */
json_t *tool_bridge_summary(const struct tool_bridge *b);
