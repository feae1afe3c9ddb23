#include "refused_summary.h"

#include "text.h"

#include <stdio.h>
#include <string.h>

char *refused_call_print_summary(const json_t *row, char *buf, size_t len)
{
	const char *call     = json_string_value(json_object_get(row, "call")),
		   *argument = json_string_value(json_object_get(row, "argument"));

	if (!call)
		call = "?";
	snprintf(buf, len, argument ? "%s%.31s(%.200s)" : "%s%.31s", *call >= '0' && *call <= '9' ? "call " : "", call,
		 argument);
	text_make_plain(buf);
	return buf;
}

static void append_words(char buf[REFUSED_SUMMARY_MAX], const char *before, const char *words)
{
	size_t at = strlen(buf);

	snprintf(buf + at, REFUSED_SUMMARY_MAX - at, "%s%s", before, words);
}

char *refused_print_summary(const json_t *record, size_t most, char buf[REFUSED_SUMMARY_MAX])
{
	const json_t *list = json_object_get(record, "refused");
	size_t        n    = json_array_size(list), named = n < most ? n : most;
	char          one[120], times[40];

	*buf = 0;
	for (size_t i = 0; i < named; i++) {
		const json_t *row   = json_array_get(list, i);
		json_int_t    count = json_integer_value(json_object_get(row, "count"));

		append_words(buf,
			     i == 0       ? ""
			     : i + 1 == n ? " and "
					  : ", ",
			     refused_call_print_summary(row, one, sizeof one));
		snprintf(times, sizeof times, " (%" JSON_INTEGER_FORMAT " times)", count);
		append_words(buf, count > 1 ? times : "", "");
	}
	snprintf(times, sizeof times, " and %zu more", n - named);
	append_words(buf, named && named < n ? times : "", "");
	return buf;
}
