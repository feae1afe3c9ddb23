#include "excerpt.h"

#include "clean.h"

#include <string.h>

enum { SENTENCE_MAX = 160, FILE_MAX = 64, DIGIT_COST = 3 };

static uint64_t count_utf8_characters(const char *text, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

static size_t token_cost_of_char(char c)
{
	return c >= '0' && c <= '9' ? DIGIT_COST : 1;
}

static size_t token_cost_of_text(const char *text, size_t len)
{
	size_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += token_cost_of_char(text[i]);
	return sum;
}

size_t excerpt_full_cost(const struct excerpt *x)
{
	return x->tail ? SIZE_MAX / 4 : token_cost_of_text(x->head, x->head_len);
}

/* Of a text that is not all here only the number of bytes is known. */
void excerpt_print(FILE *out, const struct excerpt *x, size_t max)
{
	const char *end  = x->tail ? x->tail : x->head, *what = x->tail ? "bytes" : "characters";
	size_t      room = max - SENTENCE_MAX - (x->file ? FILE_MAX : 0), head = 0,
	       from = x->tail ? x->tail_len : x->head_len, end_len = from;
	uint64_t    total = x->tail ? x->bytes : count_utf8_characters(x->head, x->head_len);

	if (excerpt_full_cost(x) <= max) {
		fwrite(x->head, 1, x->head_len, out);
		return;
	}
	for (size_t sum = 0; head < x->head_len && (sum += token_cost_of_char(x->head[head])) <= room * 2 / 3; head++)
		;
	head = clean_cut_length(x->head, x->head_len, head);
	room -= token_cost_of_text(x->head, head);
	for (size_t sum = 0; from && (sum += token_cost_of_char(end[from - 1])) <= room; from--)
		;
	from = clean_next_boundary(end, end_len, from);
	fwrite(x->head, 1, head, out);
	fprintf(out, "\n[... %llu %s in all; the first %llu and the last %llu characters are shown%s%s ...]\n",
		(unsigned long long)total, what, (unsigned long long)count_utf8_characters(x->head, head),
		(unsigned long long)count_utf8_characters(end + from, end_len - from),
		x->file ? "; read_file has the rest in " : "", x->file ? x->file : "");
	fwrite(end + from, 1, end_len - from, out);
}
