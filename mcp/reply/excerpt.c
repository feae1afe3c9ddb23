#include "excerpt.h"

#include "clean.h"

#include <string.h>

enum { SENTENCE_MAX = 160, FILE_MAX = 64, DIGIT_COST = 3 };

static uint64_t characters(const char *text, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

static size_t cost_of(char c)
{
	return c >= '0' && c <= '9' ? DIGIT_COST : 1;
}

static size_t cost(const char *text, size_t len)
{
	size_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += cost_of(text[i]);
	return sum;
}

size_t excerpt_wants(const struct excerpt *x)
{
	return x->tail ? SIZE_MAX / 4 : cost(x->head, x->head_len);
}

/* Where the longest beginning that costs at most max ends. */
static size_t first_within(const char *text, size_t len, size_t max)
{
	size_t n = 0;

	for (size_t sum = 0; n < len && (sum += cost_of(text[n])) <= max; n++)
		;
	return clean_cut(text, len, n);
}

/* Where the longest end that costs at most max begins. */
static size_t last_within(const char *text, size_t len, size_t max)
{
	size_t n = len;

	for (size_t sum = 0; n && (sum += cost_of(text[n - 1])) <= max; n--)
		;
	return clean_begin(text, len, n);
}

/* Counts characters if the whole text is here. Of output that was not kept only the number of bytes is known. */
static void print_sentence(FILE *out, const struct excerpt *x, uint64_t first, uint64_t last)
{
	const char *what  = x->tail ? "bytes" : "characters";
	uint64_t    total = x->tail ? x->bytes : characters(x->head, x->head_len);

	fprintf(out, "\n[... %llu %s in all; the first %llu and the last %llu characters are shown%s%s ...]\n", (unsigned long long)total, what,
		(unsigned long long)first, (unsigned long long)last, x->file ? "; read_file has the rest in " : "", x->file ? x->file : "");
}

void excerpt_print(FILE *out, const struct excerpt *x, size_t max)
{
	const char *end     = x->tail ? x->tail : x->head;
	size_t      end_len = x->tail ? x->tail_len : x->head_len, room = max - SENTENCE_MAX - (x->file ? FILE_MAX : 0), first, from;

	if (excerpt_wants(x) <= max) {
		fwrite(x->head, 1, x->head_len, out);
		return;
	}
	first = first_within(x->head, x->head_len, room * 2 / 3);
	room -= cost(x->head, first);
	from = last_within(end, end_len, room);
	fwrite(x->head, 1, first, out);
	print_sentence(out, x, characters(x->head, first), characters(end + from, end_len - from));
	fwrite(end + from, 1, end_len - from, out);
}
