#include "option.h"

#include <string.h>

static const struct option_row *find(const struct option_row *rows, const char *word, size_t len)
{
	for (; rows->name; rows++)
		if ((strlen(rows->name) == len && memcmp(rows->name, word, len) == 0))
			return rows;
	return NULL;
}

static const struct option_row *find_letter(const struct option_row *rows, char letter)
{
	for (; rows->name; rows++)
		if (rows->letter && rows->letter == letter)
			return rows;
	return NULL;
}

/* One option at argv[i]; how many words it took. */
static int take(const struct option_row *rows, int left, char **word, void *into, struct err *e)
{
	bool                     is_long = word[0][1] == '-';
	const char              *equals  = is_long ? strchr(word[0], '=') : NULL;
	size_t                   len     = equals ? (size_t)(equals - word[0]) : strlen(word[0]);
	const struct option_row *row     = is_long ? find(rows, word[0] + 2, len - 2) : find_letter(rows, word[0][1]);
	const char              *value   = equals ? equals + 1 : NULL;
	int                      taken   = 1;

	if (!row || (!is_long && !row->arg && word[0][2]))
		return err_set(e, ERR_BAD_SPEC, "%.60s: no such option; see --help", word[0]);
	if (!is_long && row->arg && word[0][2])
		value = word[0] + 2;
	if (!row->arg && value)
		return err_set(e, ERR_BAD_SPEC, "--%s takes no value", row->name);
	if (row->arg && !value) {
		if (left < 2)
			return err_set(e, ERR_BAD_SPEC, "--%s needs a value: %s", row->name, row->arg);
		value = word[1];
		taken = 2;
	}
	return row->set(into, row, value, e) < 0 ? -1 : taken;
}

int options_parse(const struct option_row *rows, int argc, char **argv, void *into, struct err *e)
{
	int i = 1;

	while (i < argc && argv[i][0] == '-' && argv[i][1]) {
		int n;

		if (strcmp(argv[i], "--") == 0)
			return i;
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return OPTIONS_HELP;
		n = take(rows, argc - i, argv + i, into, e);
		if (n < 0)
			return OPTIONS_FAILED;
		i += n;
	}
	return i - 1;
}

void options_print(const struct option_row *rows, FILE *out)
{
	for (; rows->name; rows++) {
		char left[64], letter[8] = "";

		if (rows->letter)
			snprintf(letter, sizeof letter, "-%c, ", rows->letter);
		snprintf(left, sizeof left, "%s--%s%s%s", letter, rows->name, rows->arg ? " " : "", rows->arg ? rows->arg : "");
		fprintf(out, "  %-24s %s\n", left, rows->doc);
	}
	fprintf(out, "  %-24s %s\n", "-h, --help", "This text");
}
