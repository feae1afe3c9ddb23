/* What a jail writes becomes a text: escapes and controls go, bytes that are none are replaced, cuts keep characters whole. */
#include "clean.h"
#include "tap.h"
#include "text.h"

/* clang-format off */
static const struct row {
	const char *name, *in;
	size_t      len; /* 0: strlen */
	bool        keep;
	const char *want;
} rows[] = {
	{ "plain-text-stays",               "a\tb\r\nc", 0, false, "a\tb\r\nc" },
	{ "colours-go",                     "\x1b[1;31mred\x1b[0m", 0, false, "red" },
	{ "cursor-moves-go",                "a\x1b[2Kb\x1b[10;5Hc", 0, false, "abc" },
	{ "a-title-goes",                   "\x1b]0;owned\x07x", 0, false, "x" },
	{ "a-link-goes-and-its-text-stays", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", 0, false, "text" },
	{ "a-string-without-end-hides-nothing", "\x1b]0;owned\nmore", 0, false, "0;owned\nmore" },
	{ "a-sequence-that-is-cut-off-goes", "x\x1b[31", 0, false, "x" },
	{ "an-escape-at-the-end-goes",      "x\x1b", 0, false, "x" },
	{ "two-byte-escapes-go",            "x\x1b" "cy\x1b(Bz", 0, false, "xyz" },
	{ "C1-goes",                        "x\xc2\x9b" "31my\xc2\x85z", 0, false, "xyz" },
	{ "bells-and-backspaces-go",        "a\x07" "b\x08" "c\x7f", 0, false, "abc" },
	{ "NUL-goes",                       "a\0b", 3, false, "ab" },
	{ "NUL-goes-though-escapes-stay",   "a\0\x1b[1mb", 7, true, "a\x1b[1mb" },
	{ "escapes-stay-when-asked",        "\x1b[31mred\x1b[0m", 0, true, "\x1b[31mred\x1b[0m" },
	{ "bytes-that-are-no-UTF-8-are-replaced", "a\xff\xfe" "b", 0, false, "a\xef\xbf\xbd\xef\xbf\xbd" "b" },
	{ "surrogates-are-replaced",        "\xed\xa0\x80", 0, false, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
	{ "an-escape-with-foreign-bytes-inside-hides-nothing", "\x1b[\xff" "m", 0, false, "\xef\xbf\xbdm" },
	{ "other-scripts-stay",             "\xd0\x9f\xf0\x9f\x98\x80", 0, false, "\xd0\x9f\xf0\x9f\x98\x80" },
};
/* clang-format on */

static void test_rows(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t len;
		char  *got = clean_text(rows[i].in, rows[i].len ? rows[i].len : strlen(rows[i].in), rows[i].keep, &len);

		tap_is(got, rows[i].want, rows[i].name);
		if (len != strlen(rows[i].want))
			tap_ok(false, "%s: its length is %zu", rows[i].name, len);
		free(got);
	}
}

/* --- manners, over random bytes --- */

static uint32_t dice(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

static size_t fill(char *buf, size_t max, uint32_t *state)
{
	static const char *const pieces[] = { "\x1b[", "31m", "\x1b]0;", "\x07", "\n", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xff", "\xc2", "abc", "\"\\", "\x01", "\xe2\x82" };
	size_t n = 0;

	for (size_t k = dice(state) % 40; k--;) {
		const char *piece = pieces[dice(state) % ARRAY_LEN(pieces)];

		if (n + strlen(piece) > max)
			break;
		memcpy(buf + n, piece, strlen(piece));
		n += strlen(piece);
	}
	return n;
}

static bool has_control_but(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if ((c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7f)
			return true;
	}
	return false;
}

static void test_manners(void)
{
	uint32_t state = 7;
	bool     utf8 = true, plain = true, cut = true, whole = true, fit = true, again = true;

	for (int round = 0; round < 20000; round++) {
		char   raw[256];
		size_t n = fill(raw, sizeof raw, &state), len, len2, at = dice(&state) % 300, w, f;
		char  *text = clean_text(raw, n, false, &len), *twice = clean_text(text, len, false, &len2);

		utf8 &= text_is_utf8(text, len);
		plain &= !has_control_but(text, len);
		again &= len2 == len && memcmp(text, twice, len) == 0;
		w = clean_cut_length(text, len, at);
		cut &= w <= at && w <= len && text_is_utf8(text, w) && (at >= len ? w == len : w + 3 >= at);
		w = clean_next_boundary(text, len, at);
		cut &= w <= len && (at <= len ? w >= at && w < at + 4 : w == len) && text_is_utf8(text + w, len - w);
		w = clean_whole_characters(text, at < len ? at : len);
		whole &= text_is_utf8(text, w) && w + 3 >= (at < len ? at : len);
		f = clean_fit_escaped(text, len, at);
		fit &= f <= at && text_is_utf8(text, f);
		free(text);
		free(twice);
	}
	tap_ok(utf8, "whatever comes, the text is UTF-8");
	tap_ok(plain, "whatever comes, no control character but newline, tab and carriage return is left");
	tap_ok(again, "what is clean is left alone");
	tap_ok(cut, "a cut is where it was asked for or at most three bytes beside it, and keeps characters whole");
	tap_ok(whole, "a character that was cut off at the end is left out, and nothing else");
	tap_ok(fit, "what fits is not longer than its bound, and whole");
}

static void test_fit(void)
{
	char newlines[100], quotes[100];

	memset(newlines, '\n', sizeof newlines);
	memset(quotes, '"', sizeof quotes);
	tap_ok(clean_fit_escaped(newlines, sizeof newlines, 300) == 100 && clean_fit_escaped(newlines, sizeof newlines, 299) == 99, "a newline in JSON in JSON takes three bytes");
	tap_ok(clean_fit_escaped(quotes, sizeof quotes, 399) == 99, "a quote takes four");
	tap_ok(clean_fit_escaped("abc", 3, 0) == 0, "nothing fits into nothing");
}

int main(void)
{
	test_rows();
	test_manners();
	test_fit();
	return tap_done();
}
