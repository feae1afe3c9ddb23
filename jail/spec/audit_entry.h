/*
 * audit_entry.h - one attempt to run something, as the audit tells it.
 *
 * Pure: an entry becomes a line, a line becomes an entry. Texts are borrowed
 * and hostile (a peer chose its own comm and the profile it asked for). A line
 * is printable ASCII whatever they hold, and at most AUDIT_LINE_MAX bytes with
 * its newline; a text longer than its row allows is cut and ends in "...".
 *
 * Arguments, environment and the code itself are never part of an entry.
 */
#pragma once
#include "limits.h"
#include "record.h"

#define AUDIT_NONE     (-1)
#define AUDIT_LINE_MAX 10496

enum { AUDIT_HOSTS_MAX = 488, AUDIT_CALLS_MAX = 248 };

/* Limits that were said: bit n for row n of limits_fields. */
struct audit_limits {
	uint64_t      said;
	struct limits value;
};
#define AUDIT_LIMITS_ALL ((1ull << LIMIT_COUNT) - 1)

/* Texts that are NULL or empty, and figures below 0, are null in the line. Begin with audit_entry_init(). */
struct audit_entry {
	int64_t             time_us;           /* of the attempt, since 1970 */
	const char         *run_id;            /* NULL: refused before it had one */
	const char         *session;           /* of a call in one: its id */
	const char         *op;                /* "run", "exec", "open"; "connect" for a peer that was turned away; "tool" for a call that a program made */
	const char         *tool;              /* of that call; with error and code_sha256 as its client told them */
	const char         *mode;              /* as asked; NULL: a command, or not asked */
	const char         *profile;           /* as asked */
	int                 reason;            /* enum exit_reason; EXIT_denied or EXIT_busy for what was refused */
	int                 exit_code, signal; /* AUDIT_NONE, 0: none */
	const char         *error, *field;     /* of the refusal, as the client got them */
	const char         *why;               /* of setup_failed; not the sentence of a refusal, which may hold what was asked */
	int64_t             peer_uid, peer_pid;
	const char         *peer_comm;
	const char         *code_sha256; /* NULL: a command, or refused before the code was looked at. Of a call: of its arguments */
	int64_t             code_bytes;
	struct audit_limits asked, granted;
	double              wall_ms, cpu_ms, setup_ms;
	int64_t             memory_peak_bytes, pids_peak, io_read_bytes, io_write_bytes;
	const char         *refused;           /* NULL: no system call was. audit_entry_take_record() makes it, in calls */
	char                calls[AUDIT_CALLS_MAX];
	const char         *network;           /* NULL: none. audit_entry_take_record() makes it, in hosts */
	int64_t             network_connections, network_refused, network_bytes_in, network_bytes_out;
	char                hosts[AUDIT_HOSTS_MAX];
	int64_t             suppressed; /* audit_write() fills it in */
};
void audit_entry_init(struct audit_entry *entry);
/* How it ended and what it cost. Texts stay the record's. */
void audit_entry_take_record(struct audit_entry *entry, const struct record *record);

enum audit_how {
	AUDIT_TIME,   /* int64_t microseconds; RFC 3339, UTC */
	AUDIT_TEXT,   /* const char *, cut at max bytes */
	AUDIT_REASON, /* int; a name of exit.def */
	AUDIT_SIGNAL, /* int; "SIGSEGV" */
	AUDIT_STATUS, /* int */
	AUDIT_COUNT,  /* int64_t */
	AUDIT_MS,     /* double, to the microsecond */
	AUDIT_LIMITS, /* struct audit_limits; an object of those that were said, as in a profile */
};

struct audit_row {
	const char    *name; /* key of the line; the journal's field is BRIG_NAME */
	enum audit_how how;
	size_t         offset, max;
	const char    *label; /* before the value in the line for people; "": none; NULL: it is not in that line */
	const char    *doc;
};
extern const struct audit_row audit_rows[]; /* ends with a NULL name */

/* Every row in its order, texts cut and valid UTF-8. New reference; NULL when memory is short. */
json_t *audit_entry_json(const struct audit_entry *entry);
/* The line with its newline, from what audit_entry_json() made. Its length, or 0 when memory is short. */
size_t audit_json_line(const json_t *json, char line[AUDIT_LINE_MAX + 1]);
/* The same for people and terminals, without newline. */
size_t audit_json_words(const json_t *json, char words[AUDIT_LINE_MAX + 1]);
/* One value as plain text, for a field of the journal; 0: it is null. UTF-8, may hold control characters. */
size_t audit_value_text(const json_t *value, char text[AUDIT_LINE_MAX + 1]);

/* A line, without its newline, as an entry. What keeps its texts, a new reference, or NULL: this is no line of ours. */
must_use json_t *audit_entry_parse(const char *line, size_t len, struct audit_entry *ret, struct err *e);
