#include "lines.h"
#include "tap.h"

#include <stdlib.h>

static const struct {
	const char *name, *bytes, *want; /* what is given out: lines in <>, too long ones as !, their ends as . */
} cases[] = {
	{ "a line ends with a newline", "ab\ncd\n", "<ab><cd>" },
	{ "or with a carriage return before it", "ab\r\ncd\r\n", "<ab><cd>" },
	{ "one that stands alone is part of the line", "a\rb\n", "<a\rb>" },
	{ "empty lines are passed over", "\n\r\n  \n\nab\n\n", "<ab>" },
	{ "a byte order mark is passed over", "\xef\xbb\xbf" "ab\n", "<ab>" },
	{ "nothing but a byte order mark is nothing", "\xef\xbb\xbf\n", "" },
	{ "half a line at the end is one", "ab\ncd", "<ab><cd>" },
	{ "half an empty line is none", "ab\n \r", "<ab>" },
	{ "the longest line is given out", "12345678\n", "<12345678>" },
	{ "the longest line may have both, too", "\xef\xbb\xbf" "12345678\r\n", "<12345678>" },
	{ "a longer line is told, then its end, and what follows is read", "123456789\nab\n", "!.<ab>" },
	{ "much longer is told so as well", "1234567890123456789012345678901234567890\nab\n", "!.<ab>" },
	{ "a line that is too long up to the end is told", "1234567890123", "!." },
	{ "blanks can be too long, too", "                \nab\n", "!.<ab>" },
};

static void add(char *got, size_t len, enum lines_next kind, const char *line, size_t n)
{
	size_t at = strlen(got);

	if (kind == LINES_LINE)
		snprintf(got + at, len - at, "<%.*s>", (int)n, line);
	else if (kind == LINES_TOO_LONG)
		snprintf(got + at, len - at, "!");
	else if (kind == LINES_END_OF_TOO_LONG)
		snprintf(got + at, len - at, ".");
}

/* In pieces of `step` bytes. */
static void feed(const char *bytes, size_t step, char *got, size_t len)
{
	struct lines    l = { .max = 8 };
	const char     *line;
	size_t          n, left = strlen(bytes);
	enum lines_next kind;

	got[0] = 0;
	for (; left; left -= step < left ? step : left, bytes += step) {
		size_t take = step < left ? step : left;

		memcpy(lines_reserve(&l, take), bytes, take);
		lines_add_filled(&l, take);
		while ((kind = lines_next(&l, &line, &n)) != LINES_NONE)
			add(got, len, kind, line, n);
	}
	while ((kind = lines_take_rest(&l, &line, &n)) != LINES_NONE)
		add(got, len, kind, line, n);
	lines_done(&l);
}

static void check_case(size_t i)
{
	char got[200];

	for (size_t step = 1; step <= 64; step++) {
		feed(cases[i].bytes, step, got, sizeof got);
		if (strcmp(got, cases[i].want) != 0)
			break;
	}
	tap_is(got, cases[i].want, cases[i].name);
}

static void check_memory(void)
{
	struct lines l = { .max = MIB };
	const char  *line;
	size_t       n;

	memset(lines_reserve(&l, MIB), 'a', MIB);
	lines_add_filled(&l, MIB);
	tap_ok(lines_next(&l, &line, &n) == LINES_NONE, "half a long line is waited for");
	*lines_reserve(&l, 1) = '\n';
	lines_add_filled(&l, 1);
	tap_ok(lines_next(&l, &line, &n) == LINES_LINE && n == MIB, "it comes whole");
	tap_ok(lines_reserve(&l, 16) && l.cap < 1024, "and its memory is given back");
	lines_done(&l);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_case(i);
	check_memory();
	return tap_done();
}
