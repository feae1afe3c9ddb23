#include "nearest.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 64 };

static char fold_letter(char c)
{
	return c == '_' ? '-' : (char)tolower((unsigned char)c);
}

static unsigned smaller_of(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* One slip in a short word, and one more for each three letters: with more, any word of that length is as near. The beginning of a word is near. */
static unsigned distance_if_near(const char *a, const char *b, size_t m, size_t n, unsigned distance)
{
	const size_t longer = m > n ? m : n, shorter = m > n ? n : m;
	size_t       same   = 0;

	while (same < shorter && fold_letter(a[same]) == fold_letter(b[same]))
		same++;
	if (shorter >= 3 && same == shorter)
		return smaller_of(distance, 2);
	return distance > 1 && distance > longer / 3 ? NEAREST_FAR : smaller_of(distance, NEAREST_FAR);
}

/* Keeps three rows of the table of edit distances: this letter of a, the one before, and, for swapped neighbours, the one before that. */
unsigned nearest_distance(const char *a, const char *b)
{
	size_t   m = strlen(a), n = strlen(b);
	unsigned rows[3][LONGEST + 1], *before = rows[0], *last = rows[1], *now = rows[2];

	if (m > LONGEST || n > LONGEST)
		return NEAREST_FAR;
	for (unsigned j = 0; j <= n; j++)
		last[j] = j;
	for (unsigned i = 1; i <= m; i++) {
		unsigned *free_row = before;

		now[0] = i;
		for (unsigned j = 1; j <= n; j++) {
			bool same = fold_letter(a[i - 1]) == fold_letter(b[j - 1]);

			now[j] = smaller_of(smaller_of(last[j] + 1, now[j - 1] + 1), last[j - 1] + !same);
			if (i > 1 && j > 1 && fold_letter(a[i - 1]) == fold_letter(b[j - 2]) && fold_letter(a[i - 2]) == fold_letter(b[j - 1]))
				now[j] = smaller_of(now[j], before[j - 2] + 1);
		}
		before = last;
		last   = now;
		now    = free_row;
	}
	return distance_if_near(a, b, m, n, last[n]);
}
