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

/* Of a text that is not all here only the number of bytes is known. */
void excerpt_print(FILE *out, const struct excerpt *x, size_t max)
{
	const char *end  = x->tail ? x->tail : x->head, *what = x->tail ? "bytes" : "characters";
	size_t      room = max - SENTENCE_MAX - (x->file ? FILE_MAX : 0), head = 0,
	       from = x->tail ? x->tail_len : x->head_len, end_len = from;
	uint64_t    total = x->tail ? x->bytes : characters(x->head, x->head_len);

	if (excerpt_wants(x) <= max) {
		fwrite(x->head, 1, x->head_len, out);
		return;
	}
	for (size_t sum = 0; head < x->head_len && (sum += cost_of(x->head[head])) <= room * 2 / 3; head++)
		;
	head = clean_cut(x->head, x->head_len, head);
	room -= cost(x->head, head);
	for (size_t sum = 0; from && (sum += cost_of(end[from - 1])) <= room; from--)
		;
	from = clean_begin(end, end_len, from);
	fwrite(x->head, 1, head, out);
	fprintf(out, "\n[... %llu %s in all; the first %llu and the last %llu characters are shown%s%s ...]\n",
		(unsigned long long)total, what, (unsigned long long)characters(x->head, head),
		(unsigned long long)characters(end + from, end_len - from),
		x->file ? "; read_file has the rest in " : "", x->file ? x->file : "");
	fwrite(end + from, 1, end_len - from, out);
}
