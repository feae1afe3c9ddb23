/*
 * fuzz_audit_line.c - any entry becomes one line that no log can be hurt with and that says the same when it is read;
 * any bytes are such a line, or refused.
 *
 * The bytes are tried as a line; then texts are taken from them for an entry, NUL between them, and figures from what is left.
 */
#include "audit_filter.h"
#include "fuzz.h"

static bool is_printable(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return false;
	return true;
}

static void must_be_harmless(const json_t *json, char line[AUDIT_LINE_MAX + 1])
{
	char   words[AUDIT_LINE_MAX + 1];
	size_t len = audit_json_to_line(json, line), n = audit_json_to_words(json, words);

	must(len > 2 && len <= AUDIT_LINE_MAX && line[len - 1] == '\n');
	must_about(line, is_printable(line, len - 1));
	must_about(words, n > 0 && is_printable(words, n));
}

static bool is_kept_as_it_is(const struct audit_row *row, const char *text)
{
	return strlen(text) <= row->max && text_is_utf8(text, strlen(text));
}

static void must_be_equal(const struct audit_row *row, const void *was, const void *is)
{
	const struct audit_limits *a = was, *b = is;
	const char                *text, *back;
	int64_t                    number;

	switch (row->how) {
	case AUDIT_TEXT:
		text = *(const char *const *)was;
		back = *(const char *const *)is;
		must((text && *text) == (back != NULL));
		must(!back || !is_kept_as_it_is(row, text) || strcmp(text, back) == 0);
		return;
	case AUDIT_REASON:
	case AUDIT_SIGNAL:
	case AUDIT_STATUS:
		must(*(const int *)was == *(const int *)is);
		return;
	case AUDIT_TIME:
	case AUDIT_COUNT:
		number = *(const int64_t *)was;
		must(*(const int64_t *)is == (number < 0 ? AUDIT_NONE : number));
		return;
	case AUDIT_MS:
		must(*(const double *)is >= 0 || !(*(const double *)was >= 0 && *(const double *)was <= 1e12));
		return;
	case AUDIT_LIMITS:
		must(a->given == b->given);
		for (size_t i = 0; i < LIMIT_COUNT; i++)
			must(!(a->given & (1ull << i)) ||
			     limits_value(&a->value, &limits_fields[i]) == limits_value(&b->value, &limits_fields[i]));
		return;
	}
}

/* Written, read and written again. */
static void must_come_back(const struct audit_entry *entry)
{
	json_t            *json = audit_entry_to_json(entry);
	char               line[AUDIT_LINE_MAX + 1], twice[AUDIT_LINE_MAX + 1];
	struct audit_entry again;
	struct err         e = { 0 };

	must_be_harmless(json, line);
	json_decref(json);
	json = audit_entry_parse(line, strlen(line) - 1, &again, &e);
	must_about(e.text, json);
	for (const struct audit_row *row = audit_rows; row->name; row++)
		must_be_equal(row, (const char *)entry + row->offset, (const char *)&again + row->offset);
	json_t *second = audit_entry_to_json(&again);
	must_be_harmless(second, twice);
	must_about(twice, strcmp(line, twice) == 0);
	json_decref(second);
	json_decref(json);
}

static void try_line(const uint8_t *data, size_t size)
{
	struct audit_entry entry;
	struct err         e    = { 0 };
	json_t            *json = audit_entry_parse((const char *)data, size, &entry, &e);

	if (json)
		must_come_back(&entry);
	else
		must_say_why(&e);
	json_decref(json);
}

static uint64_t take_number(const uint8_t **data, size_t *size)
{
	uint64_t number = 0;
	size_t   n      = *size < sizeof number ? *size : sizeof number;

	memcpy(&number, *data, n);
	*data += n;
	*size -= n;
	return number;
}

/* What a parser before us let through: in the row's range of the thing itself, whatever the bytes. */
static void fill(const struct audit_row *row, void *at, uint64_t number)
{
	struct audit_limits *limits = at;

	switch (row->how) {
	case AUDIT_TEXT:
		return;
	case AUDIT_REASON:
		*(int *)at = (int)(number % EXIT_REASONS);
		return;
	case AUDIT_SIGNAL:
		*(int *)at = (int)(number % 65);
		return;
	case AUDIT_STATUS:
		*(int *)at = (int)(number % 257) - 1;
		return;
	case AUDIT_TIME:
		*(int64_t *)at = (int64_t)(number % 253402300800000000ull);
		return;
	case AUDIT_COUNT:
		*(int64_t *)at = (int64_t)number;
		return;
	case AUDIT_MS:
		memcpy(at, &number, sizeof(double));
		return;
	case AUDIT_LIMITS:
		limits->given = number & AUDIT_LIMITS_ALL;
		for (const struct field *f = limits_fields; f->name; f++)
			*(uint64_t *)((char *)&limits->value + f->offset) = f->min + number % (f->max - f->min + 1);
		return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct audit_entry entry;
	char              *texts[32] = { NULL };
	size_t             n         = 0;

	try_line(data, size);
	audit_entry_init(&entry);
	for (const struct audit_row *row = audit_rows; row->name; row++)
		if (row->how == AUDIT_TEXT) {
			texts[n] = take_text(&data, &size);

			*(const char **)((char *)&entry + row->offset) = texts[n++];
		}
	for (const struct audit_row *row = audit_rows; row->name; row++)
		fill(row, (char *)&entry + row->offset, take_number(&data, &size));
	must_come_back(&entry);
	while (n)
		free(texts[--n]);
	return 0;
}
