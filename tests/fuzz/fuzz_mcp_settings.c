/*
 * fuzz_mcp_settings.c - words of a command line, NUL between them, then after an empty word any bytes as mcp.json: what is accepted keeps its
 * bounds and makes sense, and options go before the file
 */
#include "fuzz_settings.h"

enum { WORDS_MAX = 32 };

/* Every setting has its line; a token can only have been named, for neither of the two can say it. */
static void must_print_all(const struct settings *s)
{
	char  *text = NULL;
	size_t len;
	FILE  *out = open_memstream(&text, &len);

	must(out);
	settings_print(s, out);
	fclose(out);
	for (int id = 0; id < SETTING_COUNT; id++)
		must_about(text, strstr(text, setting_rows[id].field.name));
	must(!*s->token);
	free(text);
}

/* What an option has said, no file changes. */
static void must_be_covered(const struct settings *before, const struct settings *after)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		if (before->origin[id] == ORIGIN_OPTION)
			must(after->origin[id] == ORIGIN_OPTION && after->where[id] == before->where[id]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char     program[]        = "brig-mcp";
	char           *words[WORDS_MAX] = { program };
	int             n                = 1;
	scoped_settings s;
	struct settings before;
	struct err      e = { 0 };

	while (size && n < WORDS_MAX && *data)
		words[n++] = take_text(&data, &size);
	if (size)
		data++, size--;
	settings_init(&s);
	if (settings_parse_options(&s, n, words, &e) < 0) {
		must_say_why(&e);
	} else {
		before = s;
		if (size && settings_parse_json(&s, "mcp.json", (const char *)data, size, &e) < 0)
			must_say_why(&e);
		else if (settings_judge(&s, &e) < 0)
			must_say_why(&e);
		else
			must_make_sense(&s);
		must_be_covered(&before, &s);
		must_print_all(&s);
	}
	for (int i = 1; i < n; i++)
		free(words[i]);
	return 0;
}
