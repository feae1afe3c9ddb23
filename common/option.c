#include "option.h"

#include "nearest.h"
#include "text.h"

#include <string.h>

static const struct option_row *find_option(const struct option_row *rows, const char *word, size_t len)
{
	for (; rows->field.name; rows++)
		if (strlen(rows->field.name) == len && memcmp(rows->field.name, word, len) == 0)
			return rows;
	return NULL;
}

static const struct option_row *find_option_by_letter(const struct option_row *rows, char letter)
{
	for (; rows->field.name; rows++)
		if (rows->letter && rows->letter == letter)
			return rows;
	return NULL;
}

/* The closest option. A distance of strlen(word) counts for nothing: to replace every letter gives any word of that length. */
static const char *find_nearest_option(const struct option_row *rows, const char *word)
{
	unsigned    least = NEAREST_FAR, d;
	const char *found = NULL;

	for (; rows->field.name; rows++)
		if ((d = nearest_distance(rows->field.name, word)) < least && d < strlen(word)) {
			least = d;
			found = rows->field.name;
		}
	return found;
}

static int refuse_option(const struct option_row *rows, const char *word, size_t len, struct err *e)
{
	char        name[60];
	const char *near;

	snprintf(name, sizeof name, "%.*s", (int)(len < sizeof name ? len : sizeof name), word);
	near = begins_with(name, "--") ? find_nearest_option(rows, name + 2) : NULL;
	if (near)
		return err_set(e, ERR_BAD_SPEC, "%s: no such option; is it --%s? see --help", name, near);
	return err_set(e, ERR_BAD_SPEC, "%s: no such option; see --help", name);
}

static int set_option(const struct option_row *row, const char *value, void *into, struct err *e)
{
	if (row->set)
		return row->set(into, row, value, e);
	return field_from_text(&row->field, value, into, e) < 0 ? err_wrap(e, "--%s", row->field.name) : 0;
}

/* Reads the option at word[0]; left: how many words there are from there on. Returns how many it used. *ends: options end after it. */
static int parse_option(const struct option_row *rows, int left, char **word, void *into, bool *ends, struct err *e)
{
	bool                     is_long = word[0][1] == '-';
	const char              *equals  = is_long ? strchr(word[0], '=') : NULL;
	size_t                   len     = equals ? (size_t)(equals - word[0]) : strlen(word[0]);
	const struct option_row *row     = is_long ? find_option(rows, word[0] + 2, len - 2) : find_option_by_letter(rows, word[0][1]);
	const char              *value   = equals ? equals + 1 : NULL;
	bool                     is_bool = row && row->field.type == FIELD_BOOL;
	int                      taken   = 1;

	if (!row || (!is_long && is_bool && word[0][2]))
		return refuse_option(rows, word[0], len, e);
	if (!is_long && word[0][2])
		value = word[0] + 2;
	if (is_bool && value && !row->arg)
		return err_set(e, ERR_BAD_SPEC, "--%s takes no value", row->field.name);
	if (is_bool && !value)
		value = "true";
	if (!value) {
		if (left < 2)
			return err_set(e, ERR_BAD_SPEC, "--%s: needs a value: --%s %s", row->field.name, row->field.name, option_arg_placeholder(row));
		value = word[1];
		taken = 2;
	}
	*ends = row->ends;
	return set_option(row, value, into, e) < 0 ? -1 : taken;
}

int options_parse(const struct option_row *rows, int argc, char **argv, void *into, struct err *e)
{
	bool ends = false;
	int  i    = 1;

	while (!ends && i < argc && argv[i][0] == '-' && argv[i][1]) {
		int n;

		if (strcmp(argv[i], "--") == 0)
			return i;
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return OPTIONS_HELP;
		n = parse_option(rows, argc - i, argv + i, into, &ends, e);
		if (n < 0)
			return OPTIONS_FAILED;
		i += n;
	}
	return i - 1;
}

const char *option_arg_placeholder(const struct option_row *row)
{
	return row->arg && row->field.type != FIELD_BOOL ? row->arg : field_arg_placeholder(&row->field);
}

void option_print(const struct option_row *row, FILE *out)
{
	const char *arg = option_arg_placeholder(row);
	char        left[64], letter[8] = "";

	if (row->letter)
		snprintf(letter, sizeof letter, "-%c, ", row->letter);
	snprintf(left, sizeof left, "%s--%s%s%s", letter, row->field.name, *arg ? " " : "", arg);
	fprintf(out, "  %-24s %s", left, row->field.doc);
}

void options_print(const struct option_row *rows, FILE *out)
{
	for (; rows->field.name; rows++) {
		option_print(rows, out);
		fputc('\n', out);
	}
	fprintf(out, "  %-24s %s\n", "-h, --help", "This text");
}
