/*
 * audit_entry.h - one attempt to run something, as the audit log records it.
 *
 * Pure: an entry becomes a line, a line becomes an entry. Texts are borrowed
 * and untrusted (a client chooses its comm and the name of the profile). A line
 * is printable ASCII whatever they hold, and at most AUDIT_LINE_MAX bytes with
 * its newline; a text longer than its row allows is cut and ends in "...".
 *
 * Arguments, environment and the code itself are never part of an entry.
 */
#pragma once
#include "limits.h"
#include "record.h"

#define AUDIT_NONE     (-1)
#define AUDIT_LINE_MAX 10904

enum { AUDIT_HOSTS_MAX = 488, AUDIT_CALLS_MAX = 248 };

/* A subset of the limits. given: bit n is set when row n of limits_fields has a value. */
struct audit_limits {
	uint64_t      given;
	struct limits value;
};
#define AUDIT_LIMITS_ALL ((1ull << LIMIT_COUNT) - 1)

/* Texts that are NULL or empty, and figures below 0, are null in the line. Initialise with audit_entry_init(). */
struct audit_entry {
	int64_t             time_us;           /* of the attempt, since 1970 */
	const char         *run_id;            /* NULL: refused before it got one */
	const char         *session;           /* the id of the session of a call; NULL: not in a session */
	const char         *op;                /* "run", "exec", "open"; "connect": the client was not let in; "tool": a tool call of a program */
	const char         *tool;              /* for "tool": its name. The client reports this, error and code_sha256 */
	const char         *mode;              /* as in the request; NULL: a command, or not in the request */
	const char         *profile;           /* as in the request */
	int                 reason;            /* enum exit_reason; EXIT_denied or EXIT_busy for a refusal */
	int                 exit_code, signal; /* AUDIT_NONE, 0: none */
	const char         *error, *field;     /* of the refusal, as sent to the client */
	const char         *why;               /* only for setup_failed: the message of a refusal may quote the request */
	bool                is_callers;        /* setup_failed for a mistake in the request, and not for what the host lacks */
	int64_t             peer_uid, peer_pid;
	const char         *peer_comm;
	const char         *principal;         /* for whom the client says it asks; NULL: for nobody in particular */
	const char         *code_sha256; /* of the program; for "tool" of the arguments. NULL: a command, or refused before the code was read */
	int64_t             code_bytes;
	struct audit_limits asked, granted;
	struct run_figures  figures;
	const char         *refused;           /* NULL: no system call was refused. audit_entry_set_record() points it at calls */
	char                calls[AUDIT_CALLS_MAX];
	const char         *network;           /* NULL: no network. audit_entry_set_record() points it at hosts */
	int64_t             network_connections, network_refused, network_bytes_in, network_bytes_out;
	char                hosts[AUDIT_HOSTS_MAX];
	int64_t             suppressed; /* audit_write() sets it */
};
void audit_entry_init(struct audit_entry *entry);
/* Copies how the run ended and what it used. The texts stay owned by the record. */
void audit_entry_set_record(struct audit_entry *entry, const struct record *record);

enum audit_how {
	AUDIT_TIME,   /* int64_t microseconds; RFC 3339, UTC */
	AUDIT_TEXT,   /* const char *, cut at max bytes */
	AUDIT_REASON, /* int; a name of exit.def */
	AUDIT_SIGNAL, /* int; "SIGSEGV" */
	AUDIT_STATUS, /* int */
	AUDIT_COUNT,  /* int64_t */
	AUDIT_MS,     /* double, to the microsecond */
	AUDIT_LIMITS, /* struct audit_limits; an object of those that are set, as in a profile */
};

struct audit_row {
	const char    *name; /* key of the line; the journal's field is BRIG_NAME */
	enum audit_how how;
	size_t         offset, max;
	const char    *label; /* precedes the value in the line for people; "": no label; NULL: that line leaves the row out */
	const char    *doc;
};
extern const struct audit_row audit_rows[]; /* ends with a NULL name */

/* "peer_uid" -> "BRIG_PEER_UID", the journal's field. Returns buf. */
enum { AUDIT_FIELD_MAX = 64 };
char *audit_row_print_journal_name(const struct audit_row *row, char buf[AUDIT_FIELD_MAX]);
const struct audit_row *audit_row_find(const char *name); /* or NULL */

/* All rows in order, texts cut and valid UTF-8. New reference; NULL when out of memory. */
json_t *audit_entry_to_json(const struct audit_entry *entry);
/* The line with its newline, from the result of audit_entry_to_json(). Returns its length, or 0 when out of memory. */
size_t audit_json_to_line(const json_t *json, char line[AUDIT_LINE_MAX + 1]);
/* The same for people and terminals, without newline. */
size_t audit_json_to_words(const json_t *json, char words[AUDIT_LINE_MAX + 1]);
/* One value as plain text, for a field of the journal. Returns its length; 0: null. UTF-8, may hold control characters. */
size_t audit_value_to_text(const json_t *value, char text[AUDIT_LINE_MAX + 1]);

/*
 * Parses a line without its newline. Returns a new reference, which owns the texts of *ret; NULL when the line is not one
 * of the audit.
 */
must_use json_t *audit_entry_parse(const char *line, size_t len, struct audit_entry *ret, struct err *e);
