#include "excerpt.h"

#include "clean.h"

#include <string.h>

enum { SENTENCE_MAX = 160 };

static uint64_t characters(const char *text, size_t len)
{
	uint64_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

size_t excerpt_wants(const struct excerpt *x)
{
	return x->tail ? SIZE_MAX / 4 : x->head_len;
}

/* Counts characters if the whole text is here. Of output that was not kept only the number of bytes is known. */
static void print_sentence(FILE *out, const struct excerpt *x, uint64_t first, uint64_t last)
{
	const char *what  = x->tail ? "bytes" : "characters";
	uint64_t    total = x->tail ? x->bytes : characters(x->head, x->head_len);

	fprintf(out, "\n[... %llu %s in all; the first %llu and the last %llu characters are shown ...]\n", (unsigned long long)total, what,
		(unsigned long long)first, (unsigned long long)last);
}

void excerpt_print(FILE *out, const struct excerpt *x, size_t max)
{
	const char *end     = x->tail ? x->tail : x->head;
	size_t      end_len = x->tail ? x->tail_len : x->head_len, room = max - SENTENCE_MAX, first, from;

	if (excerpt_wants(x) <= max) {
		fwrite(x->head, 1, x->head_len, out);
		return;
	}
	first = clean_cut(x->head, x->head_len, room * 2 / 3);
	room -= first;
	from = clean_begin(end, end_len, end_len > room ? end_len - room : 0);
	fwrite(x->head, 1, first, out);
	print_sentence(out, x, characters(x->head, first), characters(end + from, end_len - from));
	fwrite(end + from, 1, end_len - from, out);
}
