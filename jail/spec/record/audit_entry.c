#define _GNU_SOURCE
#include "audit_entry.h"

#include "ascii.h"
#include "moment.h"
#include "text.h"
#include "wire.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define AT(member) offsetof(struct audit_entry, member)
/*
 * One row per key of the line, in the order of the line. A row makes the key, the
 * journal's field, the word in the line for people and the entry in brigd(8);
 * audit_filter.c lists those by which brig audit filters. In the worst case every
 * byte of every text becomes six, which still fits AUDIT_LINE_MAX
 * (tests/unit/test_audit_entry.c).
 */
/* clang-format off */
const struct audit_row audit_rows[] = {
	{ "time",              AUDIT_TIME,   AT(time_us),           0,   "",                  "Time of the request, UTC" },
	{ "exit_reason",       AUDIT_REASON, AT(reason),            0,   "",                  "How the run ended, see brig(1); denied or busy for a refusal; exited or denied for a tool call" },
	{ "exit_code",         AUDIT_STATUS, AT(exit_code),         0,   "",                  "Exit status of the program" },
	{ "signal",            AUDIT_SIGNAL, AT(signal),            0,   "",                  "The signal that ended the program" },
	{ "error",             AUDIT_TEXT,   AT(error),             24,  "",                  "The code of the refusal, which the client got; for a tool call the kind of its error, or null" },
	{ "field",             AUDIT_TEXT,   AT(field),             64,  "field",             "The key of the request that was refused" },
	{ "op",                AUDIT_TEXT,   AT(op),                16,  "op",                "The request: run, exec, or open for a session; connect for a client that was not let in; tool for a tool call of a program" },
	{ "mode",              AUDIT_TEXT,   AT(mode),              8,   "mode",              "The mode of the request: script, report or check; null for a command" },
	{ "profile",           AUDIT_TEXT,   AT(profile),           64,  "profile",           "The profile of the request" },
	{ "run_id",            AUDIT_TEXT,   AT(run_id),            36,  "run",               "UUID of the run; null for a request that was refused before it had one" },
	{ "session",           AUDIT_TEXT,   AT(session),           36,  "session",           "UUID of the session in which it was a call" },
	{ "peer_uid",          AUDIT_COUNT,  AT(peer_uid),          0,   "uid",               "The client's user, from the kernel" },
	{ "peer_pid",          AUDIT_COUNT,  AT(peer_pid),          0,   "pid",               "The client's process" },
	{ "peer_comm",         AUDIT_TEXT,   AT(peer_comm),         16,  "comm",              "The name of that process, which it can choose" },
	{ "principal",         AUDIT_TEXT,   AT(principal),         64,  "for",               "For whom the client has asked, in its own words, as brig-api names its tokens; null for others" },
	{ "code_sha256",       AUDIT_TEXT,   AT(code_sha256),       64,  "code",              "SHA-256 of the program, or of the arguments of a tool call as JSON (keys sorted, no blanks); null for a command" },
	{ "code_bytes",        AUDIT_COUNT,  AT(code_bytes),        0,   "code_bytes",        "Size of the program" },
	{ "tool",              AUDIT_TEXT,   AT(tool),              64,  "tool",              "The tool that a program called; the client reports this, error and code_sha256 of a tool call" },
	{ "limits_asked",      AUDIT_LIMITS, AT(asked),             0,   NULL,                "The limits of the request, as in a profile" },
	{ "limits_granted",    AUDIT_LIMITS, AT(granted),           0,   NULL,                "All limits of the run; null for a refusal" },
#define FIGURE(key, type, unit, label, doc) { #key, AUDIT_##unit, AT(figures.key), 0, label, doc },
#include "run_figures.def"
#undef FIGURE
	{ "refused",           AUDIT_TEXT,   AT(refused),           240, "refused",           "System calls that the filter refused to the program, and how often, the first of them: CALL=TIMES, or CALL(ARGUMENTS)=TIMES where it was for these; null where there were none" },
	{ "network",           AUDIT_TEXT,   AT(network),           480, "network",           "What the program connected to through brig-proxy, the first of it: NAME:PORT, and the reason where it was refused or failed; null without a network" },
	{ "network_connections", AUDIT_COUNT, AT(network_connections), 0, NULL,              "How many connections these were, with those that were refused or failed" },
	{ "network_refused",   AUDIT_COUNT,  AT(network_refused),   0,   NULL,                "How many were refused" },
	{ "network_bytes_in",  AUDIT_COUNT,  AT(network_bytes_in),  0,   NULL,                "Bytes that the program received" },
	{ "network_bytes_out", AUDIT_COUNT,  AT(network_bytes_out), 0,   NULL,                "Bytes that it sent" },
	{ "why",               AUDIT_TEXT,   AT(why),               160, "why",               "Why the set-up failed" },
	{ "suppressed",        AUDIT_COUNT,  AT(suppressed),        0,   "suppressed",        "How many refusals, or calls of tools, of this user were left out before this one, because there were too many in a minute" },
	{ 0 },
};
/* clang-format on */

const struct audit_row *audit_row_find(const char *name)
{
	for (const struct audit_row *row = audit_rows; row->name; row++)
		if (strcmp(row->name, name) == 0)
			return row;
	return NULL;
}

char *audit_row_print_journal_name(const struct audit_row *row, char buf[AUDIT_FIELD_MAX])
{
	snprintf(buf, AUDIT_FIELD_MAX, "BRIG_%s", row->name);
	for (char *c = buf; *c; c++)
		if (*c >= 'a' && *c <= 'z')
			*c -= 'a' - 'A';
	return buf;
}

void audit_entry_init(struct audit_entry *entry)
{
	*entry = (struct audit_entry){
		.time_us           = AUDIT_NONE,
		.reason            = EXIT_denied,
		.exit_code         = AUDIT_NONE,
		.peer_uid          = AUDIT_NONE,
		.peer_pid          = AUDIT_NONE,
		.code_bytes        = AUDIT_NONE,
		.figures           = run_figures_none,
		.suppressed        = AUDIT_NONE,
		.network_connections = AUDIT_NONE,
		.network_refused     = AUDIT_NONE,
		.network_bytes_in    = AUDIT_NONE,
		.network_bytes_out   = AUDIT_NONE,
	};
}

/* Words separated by blanks. A word that does not fit is cut, and later ones are dropped. */
struct words {
	char  *to;
	size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void add_word(struct words *w, const char *format, ...)
{
	va_list args;
	int     n;

	if (w->len && w->len + 1 < w->size)
		w->to[w->len++] = ' ';
	va_start(args, format);
	n = vsnprintf(w->to + w->len, w->size - w->len, format, args);
	va_end(args);
	w->len += (size_t)n < w->size - w->len ? (size_t)n : w->size - w->len - 1;
}

static void add_connection_word(struct words *w, const struct net_connection *c)
{
	const char *reason = net_reason_name(c->reason);
	char        port[8] = "";

	if (c->port)
		snprintf(port, sizeof port, ":%u", c->port);
	add_word(w, "%s%s%s%s", *c->name ? c->name : "?", port, *reason ? "=" : "", reason);
}

static void set_network(struct audit_entry *entry, const struct net_report *report)
{
	struct words w = { entry->hosts, sizeof entry->hosts, 0 };

	for (uint32_t i = 0; i < report->n; i++)
		add_connection_word(&w, &report->connection[i]);
	entry->network             = entry->hosts;
	entry->network_connections = net_report_count(report->connections);
	entry->network_refused     = net_report_count(report->refused);
	entry->network_bytes_in    = net_report_count(report->bytes_in);
	entry->network_bytes_out   = net_report_count(report->bytes_out);
}

/* "socket(AF_PACKET,SOCK_RAW)=3": without blanks, since blanks separate the calls. */
static void add_refused_call_word(struct words *w, const struct record_refusal *r, uint32_t count)
{
	char  argument[REFUSED_TEXT_MAX];
	char *end = argument;

	for (const char *from = r->argument; *from; from++)
		if (*from != ' ')
			*end++ = *from;
	*end = 0;
	add_word(w, "%s%s%s%s=%u", r->call, *argument ? "(" : "", argument, *argument ? ")" : "", count);
}

static void set_refused_calls(struct audit_entry *entry, const struct record *record)
{
	struct words          w = { entry->calls, sizeof entry->calls, 0 };
	struct record_refusal refusal;

	for (uint32_t i = 0; i < record->result->refused.n; i++) {
		record_describe_refusal(record, i, &refusal);
		add_refused_call_word(&w, &refusal, record->result->refused.row[i].count);
	}
	entry->refused = w.len ? entry->calls : NULL;
}

void audit_entry_set_record(struct audit_entry *entry, const struct record *record)
{
	const struct run_result *result = record->result;

	entry->run_id    = record->run_id;
	entry->reason    = (int)result->reason;
	entry->exit_code = run_result_exit_code(result);
	entry->signal    = run_result_signal(result);
	entry->figures   = result->figures;
	set_refused_calls(entry, record);
	if (record->network)
		set_network(entry, record->network);
	if (result->reason == EXIT_setup_failed && result->why.kind != ERR_NONE) {
		entry->why        = result->why.text;
		entry->is_callers = result->why.kind == ERR_BAD_SPEC;
	}
}

/* --- an entry becomes JSON --- */

static json_t *time_to_json(const struct audit_row *row, const void *at)
{
	char text[MOMENT_TEXT];

	(void)row;
	return moment_print(*(const int64_t *)at, text) ? json_string(text) : json_null();
}

/* The start of the UTF-8 character that contains byte n. */
static size_t utf8_char_start(const char *text, size_t n)
{
	while (n && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* Reads at most 4 bytes beyond max, however long the text is: enough to know that it must be cut. */
static json_t *text_to_json(const struct audit_row *row, const void *at)
{
	const char *text = *(const char *const *)at;
	size_t      len  = text ? strnlen(text, row->max + 4) : 0;
	char       *copy = len ? text_as_utf8(text, len, &len) : NULL;
	json_t     *json;

	if (!copy)
		return json_null();
	if (len > row->max)
		strcpy(copy + utf8_char_start(copy, row->max - 3), "...");
	json = json_string(copy);
	free(copy);
	return json;
}

static json_t *reason_to_json(const struct audit_row *row, const void *at)
{
	int reason = *(const int *)at;

	(void)row;
	return reason >= 0 && reason < EXIT_REASONS ? json_string(exit_reason_name((enum exit_reason)reason)) : json_null();
}

static json_t *signal_to_json(const struct audit_row *row, const void *at)
{
	char name[16];
	int  signal = *(const int *)at;

	(void)row;
	return signal > 0 ? json_string(record_print_signal_name(signal, name, sizeof name)) : json_null();
}

static json_t *status_to_json(const struct audit_row *row, const void *at)
{
	int status = *(const int *)at;

	(void)row;
	return status < 0 ? json_null() : json_integer(status);
}

static json_t *count_to_json(const struct audit_row *row, const void *at)
{
	int64_t count = *(const int64_t *)at;

	(void)row;
	return count < 0 ? json_null() : json_integer(count);
}

#define MS_MAX 1e12 /* thirty years; three decimals stay exact */

static json_t *ms_to_json(const struct audit_row *row, const void *at)
{
	double ms = *(const double *)at;

	(void)row;
	return ms >= 0 && ms <= MS_MAX ? json_real((double)(int64_t)(ms * 1000 + 0.5) / 1000) : json_null();
}

static json_t *limits_to_audit_json(const struct audit_row *row, const void *at)
{
	const struct audit_limits *limits = at;
	json_t                    *json   = json_object();

	(void)row;
	for (size_t i = 0; i < LIMIT_COUNT; i++) {
		const struct field *f = &limits_fields[i];

		if (limits->given & (1ull << i))
			json_object_set_new(json, f->name, field_number_to_json(f, limits_value(&limits->value, f) & INT64_MAX));
	}
	if (json_object_size(json))
		return json;
	json_decref(json);
	return json_null();
}

/* --- JSON becomes an entry --- */

static int set_row_type_error(const struct audit_row *row, const char *what, struct err *e)
{
	return err_set(e, ERR_BAD_SPEC, "%s: not %s", row->name, what);
}

static int time_from_json(const struct audit_row *row, const json_t *v, void *at, struct err *e)
{
	return json_is_string(v) && moment_parse(json_string_value(v), at) == 0 ? 0 : set_row_type_error(row, "a time", e);
}

static int text_from_json(const struct audit_row *row, const json_t *v, void *at, struct err *e)
{
	if (!json_is_string(v) || !json_string_length(v) || json_string_length(v) > row->max)
		return err_set(e, ERR_BAD_SPEC, "%s: not a text of 1 to %zu bytes", row->name, row->max);
	*(const char **)at = json_string_value(v);
	return 0;
}

static int reason_from_json(const struct audit_row *row, const json_t *v, void *at, struct err *e)
{
	enum exit_reason reason;

	if (!json_is_string(v) || !exit_reason_find(json_string_value(v), &reason))
		return set_row_type_error(row, "an exit reason", e);
	*(int *)at = (int)reason;
	return 0;
}

enum { SIGNALS = 64 };

static int signal_from_json(const struct audit_row *row, const json_t *v, void *at, struct err *e)
{
	char name[16];

	for (int i = 1; i <= SIGNALS && json_is_string(v); i++)
		if (strcmp(record_print_signal_name(i, name, sizeof name), json_string_value(v)) == 0) {
			*(int *)at = i;
			return 0;
		}
	return set_row_type_error(row, "a signal", e);
}

static int status_from_json(const struct audit_row *row, const json_t *v, void *at, struct err *e)
{
	json_int_t status = json_integer_value(v);

	if (!json_is_integer(v) || status < 0 || status > INT32_MAX)
		return set_row_type_error(row, "an exit status", e);
	*(int *)at = (int)status;
	return 0;
}

static int count_from_json(const struct audit_row *row, const json_t *v, void *at, struct err *e)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return set_row_type_error(row, "a whole number", e);
	*(int64_t *)at = json_integer_value(v);
	return 0;
}

static int ms_from_json(const struct audit_row *row, const json_t *v, void *at, struct err *e)
{
	double ms = json_number_value(v);

	if (!json_is_number(v) || !(ms >= 0 && ms <= MS_MAX))
		return set_row_type_error(row, "milliseconds", e);
	*(double *)at = ms;
	return 0;
}

static int limit_from_json(const struct audit_row *row, const struct field *f, const json_t *v, uint64_t *ret,
			   struct err *e)
{
	double milli = json_number_value(v) * 1000 + 0.5;

	if (f->type == FIELD_MILLI && json_is_number(v) && milli >= 0 && milli < 1e15) {
		*ret = (uint64_t)milli;
		return 0;
	}
	if (f->type == FIELD_MILLI || !json_is_integer(v) || json_integer_value(v) < 0)
		return set_row_type_error(row, "limits", e);
	*ret = (uint64_t)json_integer_value(v);
	return 0;
}

static int limits_from_json(const struct audit_row *row, const json_t *v, void *at, struct err *e)
{
	struct audit_limits *limits = at;
	const char          *key;
	json_t              *value;

	if (!json_is_object(v))
		return set_row_type_error(row, "limits", e);
	json_object_foreach((json_t *)v, key, value)
	{
		const struct field *f = field_find(limits_fields, key);

		if (!f)
			return set_row_type_error(row, "limits", e);
		if (limit_from_json(row, f, value, (uint64_t *)((char *)&limits->value + f->offset), e) < 0)
			return -1;
		limits->given |= 1ull << (f - limits_fields);
	}
	return 0;
}

/* --- both directions, as a table --- */

/* clang-format off */
static const struct {
	json_t *(*put)(const struct audit_row *, const void *at);
	int (*take)(const struct audit_row *, const json_t *, void *at, struct err *);
} hows[] = {
	[AUDIT_TIME]   = { time_to_json,   time_from_json },
	[AUDIT_TEXT]   = { text_to_json,   text_from_json },
	[AUDIT_REASON] = { reason_to_json, reason_from_json },
	[AUDIT_SIGNAL] = { signal_to_json, signal_from_json },
	[AUDIT_STATUS] = { status_to_json, status_from_json },
	[AUDIT_COUNT]  = { count_to_json,  count_from_json },
	[AUDIT_MS]     = { ms_to_json,     ms_from_json },
	[AUDIT_LIMITS] = { limits_to_audit_json, limits_from_json },
};
/* clang-format on */

json_t *audit_entry_to_json(const struct audit_entry *entry)
{
	json_t *json = json_object();

	for (const struct audit_row *row = audit_rows; row->name; row++)
		if (json_object_set_new(json, row->name, hows[row->how].put(row, (const char *)entry + row->offset)) < 0) {
			json_decref(json);
			return NULL;
		}
	return json;
}

static int entry_from_json(struct audit_entry *entry, const json_t *json, struct err *e)
{
	const char *key;
	json_t     *value;

	json_object_foreach((json_t *)json, key, value)
	{
		const struct audit_row *row = audit_row_find(key);

		if (!row)
			return err_set(e, ERR_BAD_SPEC, "a key that no line of the audit has");
		if (!json_is_null(value) && hows[row->how].take(row, value, (char *)entry + row->offset, e) < 0)
			return -1;
	}
	return entry->time_us < 0 || entry->reason < 0 ? err_set(e, ERR_BAD_SPEC, "no time, or no exit_reason") : 0;
}

json_t *audit_entry_parse(const char *line, size_t len, struct audit_entry *ret, struct err *e)
{
	json_t *json = wire_parse(line, len, AUDIT_LINE_MAX, e);

	if (!json)
		return NULL;
	audit_entry_init(ret);
	ret->reason = AUDIT_NONE;
	if (entry_from_json(ret, json, e) == 0)
		return json;
	json_decref(json);
	return NULL;
}

/* --- texts --- */

struct bounded_text {
	char  *to;
	size_t len, max;
	bool   full;
};

static void text_put(struct bounded_text *r, const char *bytes, size_t len)
{
	if (len > r->max - r->len)
		r->full = true;
	if (r->full)
		return;
	memcpy(r->to + r->len, bytes, len);
	r->len += len;
}

/* Terminates the text and returns its length; 0 when something did not fit. */
static size_t text_end(struct bounded_text *r)
{
	if (r->full)
		r->len = 0;
	r->to[r->len] = 0;
	return r->len;
}

static int text_put_json(const char *bytes, size_t len, void *into)
{
	text_put(into, bytes, len);
	return 0;
}

/* 15 digits: a number with three decimals prints as it was, not as 0.30000000000000004. */
#define DUMP (JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15))

size_t audit_json_to_line(const json_t *json, char line[AUDIT_LINE_MAX + 1])
{
	struct bounded_text r = { line, 0, AUDIT_LINE_MAX, false };

	if (json_dump_ascii(json, DUMP, text_put_json, &r) < 0)
		r.full = true;
	text_put(&r, "\n", 1);
	return text_end(&r);
}

size_t audit_value_to_text(const json_t *value, char text[AUDIT_LINE_MAX + 1])
{
	struct bounded_text r = { text, 0, AUDIT_LINE_MAX, false };

	if (json_is_string(value))
		text_put(&r, json_string_value(value), json_string_length(value));
	else if (!json_is_null(value) && json_dump_ascii(value, DUMP, text_put_json, &r) < 0)
		r.full = true;
	return text_end(&r);
}

/* False for a text that needs quotes in a line of words: it has a blank, a quote, a backslash, or a byte that is not printable ASCII. */
static bool word_needs_no_quotes(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text >= 0x7f || *text == '"' || *text == '\\')
			return false;
	return true;
}

/* A text that is not plain is put in quotes and escaped as in the JSON line. */
static void text_put_word(struct bounded_text *r, const char *text)
{
	json_t *json;

	if (word_needs_no_quotes(text)) {
		text_put(r, text, strlen(text));
		return;
	}
	json = json_string(text);
	if (!json || json_dump_ascii(json, DUMP, text_put_json, r) < 0)
		r->full = true;
	json_decref(json);
}

size_t audit_json_to_words(const json_t *json, char words[AUDIT_LINE_MAX + 1])
{
	struct bounded_text r = { words, 0, AUDIT_LINE_MAX, false };
	char        text[AUDIT_LINE_MAX + 1];

	for (const struct audit_row *row = audit_rows; row->name; row++) {
		if (!row->label || !audit_value_to_text(json_object_get(json, row->name), text))
			continue;
		if (r.len)
			text_put(&r, " ", 1);
		text_put(&r, row->label, strlen(row->label));
		if (*row->label)
			text_put(&r, " ", 1);
		text_put_word(&r, text);
	}
	return text_end(&r);
}
