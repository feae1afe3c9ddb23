/* test_exposition.c - Prometheus' text format: lines that no value can end */
#include "exposition.h"
#include "tap.h"

/* What printing gave; good until the next one. */
static const char *sample(const char *value, double number)
{
	static char                   text[512];
	const struct exposition_label labels[] = { { "profile", value }, { "reason", "oom" }, { NULL, NULL } };
	FILE                         *out      = fmemopen(text, sizeof text, "w");

	exposition_print_number(out, "m", value ? labels : NULL, number);
	fclose(out);
	return text;
}

static void check_labels(void)
{
	static const struct {
		const char *name, *value, *line;
	} rows[] = {
		{ "labels stand between braces, with commas", "basic", "m{profile=\"basic\",reason=\"oom\"} 1\n" },
		{ "a quote is escaped", "a\"b", "m{profile=\"a\\\"b\",reason=\"oom\"} 1\n" },
		{ "so is a backslash", "a\\", "m{profile=\"a\\\\\",reason=\"oom\"} 1\n" },
		{ "and a newline: it cannot begin another sample", "a\nb 1", "m{profile=\"a\\nb 1\",reason=\"oom\"} 1\n" },
		{ "other control characters and bytes that may be half a letter are not passed on", "a\r\x1b\xc3", "m{profile=\"a???\",reason=\"oom\"} 1\n" },
		{ "an empty value is one", "", "m{profile=\"\",reason=\"oom\"} 1\n" },
		{ "without labels there are no braces", NULL, "m 1\n" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		tap_is(sample(rows[i].value, 1), rows[i].line, rows[i].name);
}

static void check_numbers(void)
{
	static char text[512];
	FILE       *out = fmemopen(text, sizeof text, "w");

	exposition_print_head(out, "m_total", "counter", "What is counted.");
	exposition_print_count(out, "m_total", NULL, UINT64_MAX);
	fclose(out);
	tap_is(text, "# HELP m_total What is counted.\n# TYPE m_total counter\nm_total 18446744073709551615\n", "a count is whole");
	tap_is(sample(NULL, 0.00025), "m 0.00025\n", "a number is as short as it can be");
	tap_is(sample(NULL, 1795420000.125), "m 1795420000.125\n", "a time of day keeps its milliseconds");
}

int main(void)
{
	check_labels();
	check_numbers();
	return tap_done();
}
