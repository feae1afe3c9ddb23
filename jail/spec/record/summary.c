#include "summary.h"

#include "text.h"

#include <string.h>

bool summary_get_exit_reason(const json_t *record, enum exit_reason *ret)
{
	const char *name = json_string_value(json_object_get(record, "exit_reason"));

	return name && exit_reason_find(name, ret);
}

int summary_exit_status(const json_t *record)
{
	const json_t    *exit_code = json_object_get(record, "exit_code");
	json_int_t       code      = json_is_integer(exit_code) ? json_integer_value(exit_code) : -1;
	enum exit_reason reason;

	if (!summary_get_exit_reason(record, &reason))
		return exit_reason_status(EXIT_setup_failed);
	if (exit_reason_status(reason) >= 0)
		return exit_reason_status(reason);
	return code >= 0 && code <= 255 ? (int)code : exit_reason_status(EXIT_setup_failed);
}

static char *copy_plain_text(const json_t *text, char *buf, size_t len)
{
	snprintf(buf, len, "%s", json_is_string(text) ? json_string_value(text) : "");
	text_make_plain(buf);
	return buf;
}

char *summary_copy_error_text(const json_t *record, char *buf, size_t len)
{
	return copy_plain_text(json_object_get(json_object_get(record, "error"), "message"), buf, len);
}

static void print_outcome(const json_t *record, const char *limit, FILE *out)
{
	const json_t    *signal = json_object_get(record, "signal");
	enum exit_reason reason;
	char             text[32];

	fputs(copy_plain_text(json_object_get(record, "exit_reason"), text, sizeof text), out);
	if (json_is_string(signal))
		fprintf(out, " %s", copy_plain_text(signal, text, sizeof text));
	else if (summary_get_exit_reason(record, &reason) && reason == EXIT_exited)
		fprintf(out, " %d", summary_exit_status(record));
	else if (*limit)
		fprintf(out, " (%s)", limit);
}

static void print_ms(const json_t *record, const char *key, const char *words, FILE *out)
{
	const json_t *ms = json_object_get(record, key);

	if (json_is_number(ms))
		fprintf(out, ", %s %.1f ms", words, json_number_value(ms));
}

static void print_hits(const json_t *hits, FILE *out)
{
	char name[32];

	for (size_t i = 0; i < json_array_size(hits); i++) {
		const json_t *hit = json_array_get(hits, i);

		fprintf(out, "; limit hit: %s %" JSON_INTEGER_FORMAT,
			copy_plain_text(json_object_get(hit, "name"), name, sizeof name),
			json_integer_value(json_object_get(hit, "value")));
	}
}

void summary_print(const json_t *record, const char *limit, FILE *out)
{
	const json_t *memory = json_object_get(record, "memory_peak_bytes"), *pids = json_object_get(record, "pids_peak");
	char          error[sizeof((struct err){ 0 }.text)];

	print_outcome(record, limit, out);
	if (*summary_copy_error_text(record, error, sizeof error))
		fprintf(out, ": %s", error);
	print_ms(record, "wall_ms", "wall", out);
	print_ms(record, "cpu_ms", "cpu", out);
	if (json_is_integer(memory))
		fprintf(out, ", memory peak %.1f MiB", (double)json_integer_value(memory) / MIB);
	if (json_is_integer(pids))
		fprintf(out, ", pids peak %" JSON_INTEGER_FORMAT, json_integer_value(pids));
	print_ms(record, "setup_ms", "set-up", out);
	print_hits(json_object_get(record, "limits_hit"), out);
	if (json_is_true(json_object_get(record, "truncated")))
		fputs("; output truncated", out);
	fputc('\n', out);
}
