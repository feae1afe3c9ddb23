#include "tap.h"
#include "text.h"

typedef int reader(const char *, uint64_t *);

static const struct {
	const char *name;
	reader     *read;
	const char *text;
	int         says;
	uint64_t    value;
} rows[] = {
	/* sentence                                  reader               text                    answer, value */
	{ "a plain number is read",                  text_to_u64,         "64",                   0, 64 },
	{ "the largest number is read",              text_to_u64,         "18446744073709551615", 0, UINT64_MAX },
	{ "one more than the largest is refused",    text_to_u64,         "18446744073709551616", -1, 0 },
	{ "an empty number is refused",              text_to_u64,         "",                     -1, 0 },
	{ "a sign is refused",                       text_to_u64,         "+1",                   -1, 0 },
	{ "a negative number is refused",            text_to_u64,         "-1",                   -1, 0 },
	{ "a leading blank is refused",              text_to_u64,         " 1",                   -1, 0 },
	{ "trailing letters are refused",            text_to_u64,         "12x",                  -1, 0 },
	{ "hexadecimal is refused",                  text_to_u64,         "0x10",                 -1, 0 },
	{ "64M is 64 MiB",                           text_to_size,        "64M",                  0, 64 * MIB },
	{ "a small letter means the same",           text_to_size,        "64m",                  0, 64 * MIB },
	{ "1GiB is a size",                          text_to_size,        "1GiB",                 0, GIB },
	{ "512KB is a size",                         text_to_size,        "512KB",                0, 512 * KIB },
	{ "bytes may say so",                        text_to_size,        "10B",                  0, 10 },
	{ "a size without digits is refused",        text_to_size,        "M",                    -1, 0 },
	{ "a size with two units is refused",        text_to_size,        "1MM",                  -1, 0 },
	{ "a size that overflows is refused",        text_to_size,        "99999999999999T",      -1, 0 },
	{ "half a CPU is 500 thousandths",           text_to_milli,       "0.5",                  0, 500 },
	{ "three decimals are kept",                 text_to_milli,       "1.125",                0, 1125 },
	{ "four decimals are refused",               text_to_milli,       "1.1234",               -1, 0 },
	{ "a dot needs digits behind it",            text_to_milli,       "1.",                   -1, 0 },
	{ "seconds are the default",                 text_to_duration_ms, "30",                   0, 30000 },
	{ "half seconds work",                       text_to_duration_ms, "0.5",                  0, 500 },
	{ "milliseconds may say so",                 text_to_duration_ms, "250ms",                0, 250 },
	{ "minutes may say so",                      text_to_duration_ms, "2m",                   0, 120000 },
	{ "so may hours",                            text_to_duration_ms, "1.5h",                 0, 5400000 },
	{ "and days",                                text_to_duration_ms, "1d",                   0, 86400000 },
	{ "a duration that overflows is refused",    text_to_duration_ms, "9999999999999999d",    -1, 0 },
	{ "a unit of something else is refused",     text_to_duration_ms, "5M",                   -1, 0 },
	{ "a fraction of a millisecond is refused",  text_to_duration_ms, "0.5ms",                -1, 0 },
	{ "infinity is no duration",                 text_to_duration_ms, "inf",                  -1, 0 },
};

static const struct {
	const char *name, *text;
	bool        says;
} names[] = {
	{ "basic is a name",                  "basic",        true },
	{ "a dash may be inside",             "data-science", true },
	{ "a slash is no part of a name",     "a/b",          false },
	{ "two dots are no part of a name",   "a..b",         false },
	{ "a name does not begin with a dot", ".hidden",      false },
	{ "capitals are no part of a name",   "Basic",        false },
	{ "an empty text is no name",         "",             false },
};

static const struct {
	const char *name, *text;
	bool        says;
} modules[] = {
	{ "a word is a module",                "json",        true },
	{ "so is one of a package",            "os.path_9",   true },
	{ "so is one that is not shown",       "_thread",     true },
	{ "capitals are letters",              "PIL.Image",   true },
	{ "nothing is no module",              "",            false },
	{ "a digit does not begin one",        "9lives",      false },
	{ "nor the second part",               "a.9",         false },
	{ "a module does not end with a dot",  "os.",         false },
	{ "nor begin with one",                ".os",         false },
	{ "nor have two in a row",             "os..path",    false },
	{ "a comma is no part of a module",    "os,sys",      false },
	{ "nor is a star",                     "os.*",        false },
	{ "nor a blank",                       "os ",         false },
	{ "nor a hyphen",                      "my-module",   false },
	{ "a module is ASCII",                 "\xc3\xa4",    false },
};

static const struct {
	const char *name, *text;
	bool        says;
} utf8[] = {
	{ "ASCII is UTF-8",                   "print(1)",         true },
	{ "umlauts are UTF-8",                "\xc3\xa4",         true },
	{ "an emoji is UTF-8",                "\xf0\x9f\x98\x80", true },
	{ "a lone continuation is not",       "\x80",             false },
	{ "a cut sequence is not",            "\xe2\x82",         false },
	{ "an overlong slash is not",         "\xc0\xaf",         false },
	{ "a surrogate is not",               "\xed\xa0\x80",     false },
	{ "beyond U+10FFFF is not",           "\xf4\x90\x80\x80", false },
};

static const struct {
	const char *name, *text, *is;
} plain[] = {
	{ "plain text stays", "caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80" },
	{ "a control character becomes a question mark", "a\x1b[0m\n\x7f", "a?[0m??" },
	{ "a control character in two bytes becomes two", "a\xc2\x9b" "0m", "a??0m" },
	{ "a byte that is no UTF-8 becomes one", "a\xff\xc3", "a??" },
	{ "a change of direction becomes three", "a\xe2\x80\xae" "b", "a???b" },
	{ "an isolate becomes three", "\xe2\x81\xa6" "b\xe2\x81\xa9", "???b???" },
	{ "marks of direction become question marks", "\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "????????" },
	{ "separators of lines and paragraphs become question marks", "\xe2\x80\xa8" "a\xe2\x80\xa9", "???a???" },
	{ "letters that are read from right to left stay", "\xd7\x90\xd8\xa7", "\xd7\x90\xd8\xa7" },
	{ "a character that was cut becomes as many as are left", "a\xf0\x9f\x98", "a???" },
};

int main(void)
{
	char buf[32];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint64_t value = 0;
		int      r     = rows[i].read(rows[i].text, &value);

		tap_ok(r == rows[i].says && value == rows[i].value, "%s", rows[i].name);
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		tap_ok(text_is_name(names[i].text) == names[i].says, "%s", names[i].name);
	for (size_t i = 0; i < ARRAY_LEN(modules); i++)
		tap_ok(text_is_module(modules[i].text) == modules[i].says, "%s", modules[i].name);
	for (size_t i = 0; i < ARRAY_LEN(utf8); i++)
		tap_ok(text_is_utf8(utf8[i].text, strlen(utf8[i].text)) == utf8[i].says, "%s", utf8[i].name);
	tap_is(text_from_size(64 * MIB, buf, sizeof buf), "64M", "64 MiB is written 64M");
	tap_is(text_from_size(1000, buf, sizeof buf), "1000", "1000 bytes stay 1000");
	tap_is(text_from_milli(1500, buf, sizeof buf), "1.5", "1500 thousandths are written 1.5");
	tap_is(text_from_milli(2000, buf, sizeof buf), "2", "2000 thousandths are written 2");
	for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
		char text[32];

		snprintf(text, sizeof text, "%s", plain[i].text);
		text_make_plain(text);
		tap_is(text, plain[i].is, plain[i].name);
		tap_ok(text_is_plain(plain[i].text) == !strcmp(plain[i].text, plain[i].is) && text_is_plain(text), "%s, so it is %s", plain[i].name,
		       strcmp(plain[i].text, plain[i].is) ? "not plain" : "plain");
	}
	tap_ok(text_has_control("a\x1b[0m"), "an escape sequence has a control character");
	return tap_done();
}
