/* reply_text.c - an outcome as a model reads it best */
#define _GNU_SOURCE
#include "reply.h"

#include "clean.h"
#include "exact.h"
#include "member.h"
#include "network_summary.h"
#include "refused_summary.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

enum { SECTIONS_MAX = 6, HEADER_MAX = 64 };

struct section {
	const char    *title;
	struct excerpt text;
	size_t         room;
	char          *owned;
};

/* --- the first line --- */

static void print_status(FILE *out, const struct outcome *o)
{
	const json_t *code = json_object_get(o->record, "exit_code");

	if (strcmp(o->exit_reason, "running") == 0)
		fputs(o->is_queued ? "waiting" : "running", out);
	else if (o->is_failure)
		fprintf(out, "Error (%s)", o->exit_reason);
	else if (strcmp(o->exit_reason, "exited") == 0 && json_is_integer(code))
		fprintf(out, "exit code %" JSON_INTEGER_FORMAT, json_integer_value(code));
	else
		fprintf(out, "%s (%s)",
			*o->session_state && strcmp(o->session_state, "lost") != 0 ? "interrupted" : "killed",
			o->exit_reason);
}

static void print_time_and_memory(FILE *out, const struct outcome *o)
{
	const json_t *wall = json_object_get(o->record, "wall_ms"),
		     *peak = json_object_get(o->record, "memory_peak_bytes");

	if (json_is_number(wall))
		fprintf(out, " · %.2f s", json_number_value(wall) / 1000);
	else if (o->seconds >= 0)
		fprintf(out, " · %.1f s", o->seconds);
	if (json_is_integer(peak))
		fprintf(out, " · %.1f MiB peak", json_number_value(peak) / (double)MIB);
}

static void print_tool_calls(FILE *out, const json_t *calls)
{
	enum { NAMED_MAX = 6 };
	const char *name;
	json_t     *n;
	int         shown = 0;

	if (json_integer_value(json_object_get(calls, "n")) == 0)
		return;
	fprintf(out, " · tools: %" JSON_INTEGER_FORMAT " calls", json_integer_value(json_object_get(calls, "n")));
	json_object_foreach(json_object_get(calls, "names"), name, n)
		if (shown++ < NAMED_MAX)
			fprintf(out, "%s%s ×%" JSON_INTEGER_FORMAT, shown > 1 ? ", " : " (", name,
				json_integer_value(n));
	if (shown)
		fputs(shown > NAMED_MAX ? ", ...)" : ")", out);
	if (json_integer_value(json_object_get(calls, "failed")))
		fprintf(out, ", %" JSON_INTEGER_FORMAT " failed", json_integer_value(json_object_get(calls, "failed")));
	if (json_integer_value(json_object_get(calls, "denied")))
		fprintf(out, ", %" JSON_INTEGER_FORMAT " denied", json_integer_value(json_object_get(calls, "denied")));
}

/*
 * The length of a character at p that reorders or hides others, or that some show as the end of a line; 0: it is
 * another one.
 */
static size_t misleading_character_length(const char *p)
{
	static const char *const odd[] = { "\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8",
					   "\xe2\x80\xa9", "\xe2\x80\xaa", "\xe2\x80\xab", "\xe2\x80\xac",
					   "\xe2\x80\xad", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa7",
					   "\xe2\x81\xa8", "\xe2\x81\xa9" };

	for (size_t i = 0; i < ARRAY_LEN(odd); i++)
		if (strncmp(p, odd[i], strlen(odd[i])) == 0)
			return strlen(odd[i]);
	return 0;
}

/* A text of a program in one line, cut after max bytes and without terminal escapes. */
static void print_as_one_line(FILE *out, const char *text, size_t max)
{
	size_t len, n, odd;
	char  *plain = clean_text(text, strlen(text), false, &len);

	n = plain ? clean_cut_length(plain, strlen(plain), max) : 0;
	for (size_t i = 0; i < n; i += odd ? odd : 1) {
		odd = misleading_character_length(plain + i);
		putc(plain[i] == '\n' || plain[i] == '\r' ? ' ' : odd ? '?' : plain[i], out);
	}
	if (plain && plain[n])
		fputs("...", out);
	free(plain);
}

static void print_first_line(FILE *out, const struct outcome *o)
{
	enum { NAMED_MAX = 3 };
	const json_t *hits = json_object_get(o->record, "limits_hit");
	char          calls[REFUSED_SUMMARY_MAX], hosts[NETWORK_SUMMARY_MAX];

	print_status(out, o);
	print_time_and_memory(out, o);
	for (size_t i = 0; i < json_array_size(hits); i++) {
		const json_t *hit = json_array_get(hits, i);

		fprintf(out, " · limit hit: %.30s %" JSON_INTEGER_FORMAT, member_text(hit, "name"),
			json_integer_value(json_object_get(hit, "value")));
	}
	if (*refused_print_summary(o->record, NAMED_MAX, calls))
		fprintf(out, " · refused: %s", calls);
	if (*network_print_summary(o->record, NAMED_MAX, hosts))
		fprintf(out, " · not reached: %s", hosts);
	print_tool_calls(out, json_object_get(o->record, "tool_calls"));
	if (*o->error) {
		fputs(" · ", out);
		print_as_one_line(out, o->error, 300);
	}
	putc('\n', out);
	if (*o->hint) {
		print_as_one_line(out, o->hint, sizeof o->hint);
		putc('\n', out);
	}
	if (*o->written)
		fprintf(out, "%s\n", o->written);
	if (*o->session_note) {
		print_as_one_line(out, o->session_note, sizeof o->session_note);
		putc('\n', out);
	}
}

/* --- sections --- */

/*
 * As Python writes it, so that 42 and '42', True and 1, a tuple and a list differ. JSON where images were taken out
 * of it; a text without quotes if its repr() was cut, or if it stands for an image.
 */
static char *result_to_text(const struct outcome *o)
{
	const char *repr = member_text(o->record, "result_repr");
	size_t      n = strlen(repr), len;

	if (!o->result || json_is_null(o->result))
		return NULL;
	if (!json_is_string(o->result) && *repr && json_equal(o->result, json_object_get(o->record, "result")))
		return strdup(repr);
	if (!json_is_string(o->result))
		return json_dump_exact(o->result, JSON_COMPACT | JSON_ENCODE_ANY, &len);
	return strdup(n > 1 && strchr("'\"", repr[0]) && repr[n - 1] == repr[0] && !json_array_size(o->gallery.content)
			      ? repr
			      : json_string_value(o->result));
}

/* In the order in which they came, a line or more each. */
static char *displays_to_text(const struct outcome *o)
{
	char  *text = NULL;
	size_t len;
	FILE  *out = json_array_size(o->displays) ? open_memstream(&text, &len) : NULL;

	for (size_t i = 0; out && i < json_array_size(o->displays); i++) {
		const json_t *one = json_array_get(o->displays, i);
		size_t        n   = json_string_length(one);

		fwrite(json_string_value(one), 1, n, out);
		if (!n || json_string_value(one)[n - 1] != '\n')
			putc('\n', out);
	}
	if (out)
		fclose(out);
	return text;
}

static char *findings_to_text(const struct outcome *o)
{
	const json_t *errors = json_object_get(o->findings, "errors");
	char         *text   = NULL;
	size_t        len;
	FILE         *out = json_array_size(errors) ? open_memstream(&text, &len) : NULL;

	for (size_t i = 0; out && i < json_array_size(errors); i++)
		fprintf(out, "%s\n", json_string_value(json_array_get(errors, i)));
	if (out)
		fclose(out);
	return text;
}

static void add_section(struct section *list, size_t *n, const char *title, struct excerpt text, char *owned)
{
	if (text.head_len || text.tail_len)
		list[(*n)++] = (struct section){ title, text, 0, owned };
	else
		free(owned);
}

/* Adds a clean copy, and frees text. */
static void add_clean_section(struct section *list, size_t *n, const char *title, char *text)
{
	size_t len   = 0;
	char  *plain = text ? clean_text(text, strlen(text), false, &len) : NULL;

	free(text);
	add_section(list, n, title, (struct excerpt){ .head = plain, .head_len = plain ? len : 0 }, plain);
}

static size_t collect_sections(const struct outcome *o, struct section list[SECTIONS_MAX])
{
	size_t n = 0;

	add_section(list, &n, o->is_rest ? "stdout since the last answer" : "stdout",
		    outcome_stream_excerpt(&o->out, o->out.len), NULL);
	add_section(list, &n, o->is_rest ? "stderr since the last answer" : "stderr",
		    outcome_stream_excerpt(&o->err, o->err.len - o->traceback_len), NULL);
	add_clean_section(list, &n, "displayed", displays_to_text(o));
	add_clean_section(list, &n, "traceback", o->traceback ? strdup(o->traceback) : NULL);
	add_clean_section(list, &n, "result", result_to_text(o));
	add_clean_section(list, &n, "not allowed", findings_to_text(o));
	return n;
}

/* Small sections get the room that they want; the others share the rest equally. */
static void share_bytes_among_sections(struct section *list, size_t n, size_t room)
{
	size_t open = n; /* those that have not got their room yet */

	for (size_t round = 0; round <= n && open; round++) {
		size_t share = room / open, before = open;

		for (size_t i = 0; i < n; i++) {
			size_t wants = excerpt_full_cost(&list[i].text);

			if (list[i].room || wants > share)
				continue;
			list[i].room = wants;
			room -= wants;
			open--;
		}
		if (open == before)
			break;
	}
	for (size_t i = 0; i < n; i++)
		if (!list[i].room)
			list[i].room = room / open;
}

/*
 * Text of a program: a line that looks like the title of a section gets a space before it, a carriage return ends a
 * line.
 */
static void print_section_body(FILE *out, const char *text)
{
	bool begins = true;

	while (*text) {
		size_t odd = misleading_character_length(text);

		if (begins && begins_with(text, "--- "))
			putc(' ', out);
		begins = *text == '\n' || *text == '\r';
		if (odd)
			fputs("\xef\xbf\xbd", out);
		else if (*text != '\r' || text[1] != '\n')
			putc(*text == '\r' ? '\n' : *text, out);
		text += odd ? odd : 1;
	}
}

static void print_section(FILE *out, const struct section *s)
{
	const char *end     = s->text.tail ? s->text.tail : s->text.head;
	size_t      end_len = s->text.tail ? s->text.tail_len : s->text.head_len, len;
	char       *body    = NULL;
	FILE       *to      = open_memstream(&body, &len);

	fprintf(out, "--- %s ---\n", s->title);
	if (!to)
		return;
	excerpt_print(to, &s->text, s->room > EXCERPT_LEAST ? s->room : EXCERPT_LEAST);
	fclose(to);
	print_section_body(out, body);
	free(body);
	if (!end_len || end[end_len - 1] != '\n')
		putc('\n', out);
}

/* --- notes --- */

static void print_prefixed_lines(FILE *out, const char *before, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list) && i < 3; i++) {
		fputs(before, out);
		print_as_one_line(out, json_string_value(json_array_get(list, i)), 200);
		putc('\n', out);
	}
}

char *reply_text(const struct outcome *o, size_t max)
{
	struct section list[SECTIONS_MAX];
	size_t         n    = collect_sections(o, list), len;
	char          *text = NULL, *clean;
	FILE          *out  = open_memstream(&text, &len);

	if (!out)
		return NULL;
	print_first_line(out, o);
	print_prefixed_lines(out, "warning: ", json_object_get(o->record, "security_warnings"));
	print_prefixed_lines(out, "note: ", o->warnings);
	fflush(out);
	share_bytes_among_sections(list, n, max > len + n * HEADER_MAX ? max - len - n * HEADER_MAX : 0);
	for (size_t i = 0; i < n; i++) {
		print_section(out, &list[i]);
		free(list[i].owned);
	}
	fclose(out);
	clean = clean_text(text, len, true, &len); /* a record's text may have a NUL; the rest is clean already */
	free(text);
	if (clean && len > max) /* max is so small that not even the least of each section fits */
		clean[clean_cut_length(clean, len, max)] = 0;
	return clean;
}
