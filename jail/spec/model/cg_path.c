#define _GNU_SOURCE
#include "cg_path.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* Whether `word` is one of the words of the list that ends at `end`. An empty list has the word "". */
static bool list_has_word(const char *list, const char *end, const char *word)
{
	static const char between[] = " ,\n";
	size_t            len       = strlen(word);

	if (len == 0)
		return list == end;
	for (list += strspn(list, between); list < end; list += strspn(list, between)) {
		size_t n = strcspn(list, between), left = (size_t)(end - list);

		n = n < left ? n : left;
		if (n == len && memcmp(list, word, n) == 0)
			return true;
		list += n;
	}
	return false;
}

int cg_path_find(const char *text, const char *controller, char *ret, size_t len)
{
	while (*text) {
		size_t      line  = strcspn(text, "\n");
		const char *first = memchr(text, ':', line);
		const char *path  = first ? memchr(first + 1, ':', line - (size_t)(first + 1 - text)) : NULL;

		if (path && list_has_word(first + 1, path, controller)) {
			size_t n = line - (size_t)(++path - text);

			if (n == 0 || path[0] != '/' || path[n] != '\n') /* a line that was cut names another group */
				return -1;
			while (n && path[n - 1] == '/')
				n--;
			if (n >= len || (n >= 3 && memmem(path, n, "/..", 3)))
				return -1;
			memcpy(ret, path, n);
			ret[n] = 0;
			return 0;
		}
		text += line + (text[line] == '\n');
	}
	return -1;
}

/* -1 for a negative number; no counter is. Text without a number gives 0. */
static int64_t parse_counter(const char *text)
{
	int64_t value = strtoll(text, NULL, 10);

	return value < 0 ? -1 : value;
}

bool cg_list_has(const char *list, const char *word)
{
	return list_has_word(list, list + strlen(list), word);
}

int64_t cg_find_key_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	while (*text) {
		if (begins_with(text, key) && text[len] == ' ')
			return parse_counter(text + len + 1);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	return -1;
}

int64_t cg_device_sum(const char *text, const char *key)
{
	int64_t sum = 0;

	for (const char *at = strstr(text, key); at; at = strstr(at + 1, key)) {
		int64_t value = parse_counter(at + strlen(key));

		if (value < 0 || __builtin_add_overflow(sum, value, &sum))
			return -1;
	}
	return sum;
}
