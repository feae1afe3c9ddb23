/* The text cutter: bounded, exact about what it left out, never inside of a character. */
#define _GNU_SOURCE
#include "excerpt.h"
#include "tap.h"
#include "text.h"

__attribute__((noinline)) static char *print(const struct excerpt *x, size_t max, size_t *len)
{
	char *text = NULL;
	FILE *out  = open_memstream(&text, len);

	excerpt_print(out, x, max);
	fclose(out);
	return text;
}

static void test_short(void)
{
	struct excerpt x = { .head = "hello\n", .head_len = 6 };
	size_t         len;
	char          *text = print(&x, EXCERPT_LEAST, &len);

	tap_is(text, "hello\n", "what fits is shown as it is");
	tap_ok(excerpt_full_cost(&x) == 6, "and wants no more than that");
	free(text);
}

static void test_sentence(void)
{
	char           a[1000];
	struct excerpt x = { .head = a, .head_len = sizeof a };
	size_t         len;
	char          *text;

	memset(a, 'a', sizeof a);
	a[999] = 'z';
	text   = print(&x, 460, &len);
	tap_ok(strstr(text, "\n[... 1000 characters in all; the first 200 and the last 100 characters are shown ...]\n") != NULL, "the sentence is exact");
	tap_ok(text[len - 1] == 'z' && len <= 460, "the end is shown, and the bound holds");
	free(text);
	x    = (struct excerpt){ .head = "begin", .head_len = 5, .tail = "the end", .tail_len = 7, .bytes = 12345678 };
	text = print(&x, 460, &len);
	tap_is(text, "begin\n[... 12345678 bytes in all; the first 5 and the last 7 characters are shown ...]\nthe end", "of what was not kept the bytes are told");
	free(text);
}

/* --- rows of sizes and characters --- */

static size_t count(const char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* Everything that must be true of one excerpt of a text made of this character. */
static bool holds(const char *character, size_t times, size_t max)
{
	size_t             n = strlen(character), len, total;
	char              *whole = malloc(n * times + 1), *text, *sentence;
	unsigned long long all = 0, first = 0, last = 0;
	bool               ok;

	for (size_t i = 0; i < times; i++)
		memcpy(whole + i * n, character, n);
	total    = n * times;
	text     = print(&(struct excerpt){ .head = whole, .head_len = total }, max, &len);
	sentence = strstr(text, "\n[... ");
	ok       = len <= max && text_is_utf8(text, len);
	if (total <= max) {
		ok &= len == total && memcmp(text, whole, len) == 0;
	} else {
		ok &= sentence && sscanf(sentence, "\n[... %llu characters in all; the first %llu and the last %llu", &all, &first, &last) == 3;
		ok &= all == times && first == count(text, (size_t)(sentence - text));
		ok &= last == count(strstr(sentence, "...]\n") + 5, strlen(strstr(sentence, "...]\n") + 5));
		ok &= first + last < times && first >= last && last > 0;
	}
	free(text);
	free(whole);
	return ok;
}

static void test_properties(void)
{
	static const char *const characters[] = { "a", "\xd0\x9f", "\xe2\x82\xac", "\xf0\x9f\x98\x80" };

	for (size_t c = 0; c < ARRAY_LEN(characters); c++) {
		bool ok = true;

		for (size_t times = 0; times < 1200; times += 7)
			for (size_t max = EXCERPT_LEAST; max < 1500; max += 61)
				ok &= holds(characters[c], times, max);
		tap_ok(ok, "characters of %zu bytes: bounded, whole, first and last as the sentence says", strlen(characters[c]));
	}
}

int main(void)
{
	test_short();
	test_sentence();
	test_properties();
	return tap_done();
}
