#include "field.h"

#include "text.h"

#include <inttypes.h>
#include <string.h>
#include <strings.h>

const struct field *field_find(const struct field *table, const char *name)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

bool field_is_number(const struct field *f)
{
	return f->type <= FIELD_MILLI;
}

bool field_has_preset(const struct field *f)
{
	return f->preset >= f->min && f->preset <= f->max;
}

void fields_set_presets(const struct field *table, void *into)
{
	for (const struct field *f = table; f->name; f++) {
		if (field_is_number(f))
			*(uint64_t *)field_at(f, into) = f->preset;
		else if (f->type == FIELD_BOOL)
			*(bool *)field_at(f, into) = f->preset;
		else if (f->type == FIELD_CHOICE)
			*(unsigned *)field_at(f, into) = (unsigned)f->preset;
		else if (f->type == FIELD_TABLE)
			fields_set_presets(f->table, field_at(f, into));
	}
}

/* --- from values to text --- */

static void print_field_number(const struct field *f, uint64_t value, bool is_text, char *buf, size_t len)
{
	if (f->type == FIELD_SIZE)
		text_from_size(value, buf, len);
	else if (f->type == FIELD_MILLI || (f->type == FIELD_MS && is_text))
		text_from_milli(value, buf, len);
	else
		snprintf(buf, len, "%" PRIu64, value);
}

void field_print_value(const struct field *f, uint64_t value, char *buf, size_t len)
{
	print_field_number(f, value, false, buf, len);
}

void field_print_text(const struct field *f, uint64_t value, char *buf, size_t len)
{
	print_field_number(f, value, true, buf, len);
}

void field_print(const struct field *f, const void *from, FILE *out)
{
	const void *value = (const char *)from + f->offset;
	char        buf[32];

	if (field_is_number(f)) {
		field_print_text(f, *(const uint64_t *)value, buf, sizeof buf);
		fputs(buf, out);
	} else if (f->type == FIELD_BOOL) {
		fputs(*(const bool *)value ? "true" : "false", out);
	} else if (f->type == FIELD_CHOICE) {
		fputs(f->choices[*(const unsigned *)value], out);
	} else if (f->type == FIELD_STR || f->type == FIELD_NAME) {
		fputs(*(const char *const *)value, out);
	}
}

/* --- from text to values --- */

static int refuse_unlike_text(const struct field *f, const char *text, struct err *e)
{
	return err_set(e, ERR_BAD_SPEC, "\"%.40s\" is not %s", text, field_expected_text(f));
}

int field_set_number(const struct field *f, uint64_t x, bool is_text, void *into, struct err *e)
{
	char is[32], least[32], most[32];

	if (x < f->min || x > f->max) {
		print_field_number(f, x, is_text, is, sizeof is);
		print_field_number(f, f->min, is_text, least, sizeof least);
		print_field_number(f, f->max, is_text, most, sizeof most);
		return err_set(e, ERR_BAD_SPEC, "%s is outside %s..%s", is, least, most);
	}
	*(uint64_t *)field_at(f, into) = x;
	return 0;
}

static int parse_number_field(const struct field *f, const char *text, void *into, struct err *e)
{
	static int (*const parse[])(const char *, uint64_t *) = {
		[FIELD_COUNT] = text_to_u64, [FIELD_SIZE] = text_to_size, [FIELD_MS] = text_to_duration_ms, [FIELD_MILLI] = text_to_milli,
	};
	uint64_t x;

	return parse[f->type](text, &x) < 0 ? refuse_unlike_text(f, text, e) : field_set_number(f, x, true, into, e);
}

static int parse_bool_field(const struct field *f, const char *text, void *into, struct err *e)
{
	static const char *const words[] = { "false", "true", "0", "1", "no", "yes", "off", "on" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasecmp(words[i], text) == 0) {
			*(bool *)field_at(f, into) = i % 2;
			return 0;
		}
	return refuse_unlike_text(f, text, e);
}

static int parse_str_field(const struct field *f, const char *text, void *into, struct err *e)
{
	if (strlen(text) > f->max)
		return err_set(e, ERR_BAD_SPEC, "expected text of at most %" PRIu64 " bytes, not %zu", f->max, strlen(text));
	*(const char **)field_at(f, into) = text;
	return 0;
}

static int parse_name_field(const struct field *f, const char *text, void *into, struct err *e)
{
	if (!text_is_name(text))
		return err_set(e, ERR_BAD_SPEC, "\"%.63s\" is no name; use a-z, 0-9, '-', '_', '.'", text);
	*(const char **)field_at(f, into) = text;
	return 0;
}

static int parse_choice_field(const struct field *f, const char *text, void *into, struct err *e)
{
	char   list[160] = "";
	size_t n         = 0;

	for (unsigned i = 0; f->choices[i]; i++) {
		if (strcmp(f->choices[i], text) == 0) {
			*(unsigned *)field_at(f, into) = i;
			return 0;
		}
		if (n < sizeof list)
			n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", f->choices[i]);
	}
	return err_set(e, ERR_BAD_SPEC, "\"%.40s\" is none of %s", text, list);
}

static int append_list_field(const struct field *f, const char *text, void *into, struct err *e)
{
	const char **list = field_at(f, into);
	uint64_t     n    = 0;

	while (list[n])
		n++;
	if (n == f->max)
		return err_set(e, ERR_BAD_SPEC, "given more than %" PRIu64 " times", f->max);
	list[n] = text;
	return 0;
}

/* clang-format off */
static const struct {
	const char *words, *like, *arg;
	int (*take)(const struct field *, const char *, void *, struct err *);
} types[] = {
	[FIELD_COUNT]  = { "integer",                   "a whole number, like 64",     "N",       parse_number_field },
	[FIELD_SIZE]   = { "bytes, or a size like 64M", "a size, like 64M or 1G",      "SIZE",    parse_number_field },
	[FIELD_MS]     = { "milliseconds, or a time like 5m", "a time, like 30, 0.5, 90s, 5m, 1h or 1d", "TIME", parse_number_field },
	[FIELD_MILLI]  = { "number",                    "a number, like 2 or 0.125",   "N",       parse_number_field },
	[FIELD_BOOL]   = { "true or false",             "true or false",               "",        parse_bool_field },
	[FIELD_STR]    = { "text",                      "text",                        "TEXT",    parse_str_field },
	[FIELD_NAME]   = { "name",                      "a name",                      "NAME",    parse_name_field },
	[FIELD_CHOICE] = { "one of a list",             "one of a list",               "CHOICE",  parse_choice_field },
	[FIELD_TEXTS]  = { "list of texts",             "text",                        "TEXT",    append_list_field },
	[FIELD_LIST]   = { "list of texts",             "a list of texts, none with a comma in it", "LIST", NULL },
	[FIELD_WORDS]  = { "list of texts",             "a list of texts",             "LIST",    NULL },
	[FIELD_MAP]    = { "object of texts",           "an object",                   "OBJECT",  NULL },
	[FIELD_OBJECT] = { "object",                    "an object",                   "OBJECT",  NULL },
	[FIELD_ROWS]   = { "list of objects",           "a list of objects",           "LIST",    NULL },
	[FIELD_MIXED]  = { "list of texts and objects", "a list of texts and objects", "LIST",    NULL },
	[FIELD_TABLE]  = { "object",                    "an object",                   "OBJECT",  NULL },
	[FIELD_NOTE]   = { "text, not used",            "text",                        "TEXT",    NULL },
};
/* clang-format on */

int field_from_text(const struct field *f, const char *text, void *into, struct err *e)
{
	if (!types[f->type].take)
		return err_set(e, ERR_BROKEN, "%s: cannot be set from text", f->name);
	return types[f->type].take(f, text, into, e);
}

/* --- types and bounds in words --- */

const char *field_type_text(const struct field *f)
{
	return types[f->type].words;
}

const char *field_expected_text(const struct field *f)
{
	return types[f->type].like;
}

const char *field_arg_placeholder(const struct field *f)
{
	return types[f->type].arg;
}

void field_print_bounds(const struct field *f, bool is_text, FILE *out)
{
	char least[32], most[32], preset[32];

	if (field_is_number(f)) {
		print_field_number(f, f->min, is_text, least, sizeof least);
		print_field_number(f, f->max, is_text, most, sizeof most);
		print_field_number(f, f->preset, is_text, preset, sizeof preset);
		fprintf(out, field_has_preset(f) ? "From %s to %s, default %s.\n" : "From %s to %s.\n", least, most, preset);
	} else if (f->type == FIELD_BOOL && field_has_preset(f)) {
		fprintf(out, "Default %s.\n", f->preset ? "true" : "false");
	} else if (f->type == FIELD_CHOICE) {
		for (unsigned i = 0; f->choices[i]; i++)
			fprintf(out, i ? ", %s" : "One of %s", f->choices[i]);
		fprintf(out, field_has_preset(f) ? "; default %s.\n" : ".\n", f->choices[field_has_preset(f) ? f->preset : 0]);
	} else if (f->type >= FIELD_LIST && f->type <= FIELD_MIXED && f->type != FIELD_OBJECT && f->max) {
		fprintf(out, "At most %" PRIu64 ".\n", f->max);
	}
}

void fields_print_mdoc(const struct field *table, FILE *out)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (const struct field *f = table; f->name; f++) {
		fprintf(out, ".It Ic %s Pq %s\n%s.\n", f->name, field_type_text(f), f->doc);
		field_print_bounds(f, false, out);
	}
	fputs(".El\n", out);
}
