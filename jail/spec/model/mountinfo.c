#include "mountinfo.h"

#include <stdio.h>
#include <string.h>

enum { FIELD_DEVICE = 2, FIELD_ROOT = 3, FIELD_AT = 4, FIELDS_LEAST = 6, AFTER_DASH = 3 };

struct field {
	const char *text;
	size_t      len;
};

/* Takes the next word of a line and moves *at past it; length 0 at the end. */
static struct field next_field(const char **at, const char *end)
{
	struct field f;

	while (*at < end && **at == ' ')
		++*at;
	f.text = *at;
	while (*at < end && **at != ' ')
		++*at;
	f.len = (size_t)(*at - f.text);
	return f;
}

static bool field_copy(struct field f, char *ret, size_t size)
{
	if (!f.len || f.len >= size || memchr(f.text, 0, f.len))
		return false;
	memcpy(ret, f.text, f.len);
	ret[f.len] = 0;
	return true;
}

static bool is_octal_digit(char c)
{
	return c >= '0' && c <= '7';
}

/* The kernel writes blank, tab, newline and backslash as \ooo. */
static bool field_copy_unescaped(struct field f, char *ret, size_t size)
{
	char *to = ret;

	if (!field_copy(f, ret, size))
		return false;
	for (const char *from = ret; *from; to++) {
		if (from[0] == '\\' && is_octal_digit(from[1]) && is_octal_digit(from[2]) && is_octal_digit(from[3])) {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'));
			if (!*to)
				return false;
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = 0;
	return true;
}

static bool parse_line(const char *at, const char *end, struct mountinfo *ret)
{
	struct mountinfo m;
	struct field     f, after[AFTER_DASH];
	char             device[24]; /* "98:0" */
	size_t           n = 0;

	for (f = next_field(&at, end); f.len && !(n >= FIELDS_LEAST && f.len == 1 && *f.text == '-'); f = next_field(&at, end), n++) {
		if ((n == FIELD_DEVICE && (!field_copy(f, device, sizeof device) || sscanf(device, "%u:%u", &m.major, &m.minor) != 2)) ||
		    (n == FIELD_ROOT && !field_copy_unescaped(f, m.root, sizeof m.root)) ||
		    (n == FIELD_AT && !field_copy_unescaped(f, m.at, sizeof m.at)))
			return false;
	}
	if (!f.len)
		return false;
	for (size_t i = 0; i < AFTER_DASH; i++)
		after[i] = next_field(&at, end);
	if (!field_copy(after[0], m.type, sizeof m.type) || !field_copy(after[2], m.options, sizeof m.options))
		return false;
	*ret = m;
	return true;
}

bool mountinfo_next(const char *text, size_t len, size_t *at, struct mountinfo *ret)
{
	while (*at < len) {
		const char *line = text + *at, *end = memchr(line, '\n', len - *at);

		if (!end)
			end = text + len;
		*at = (size_t)(end - text) + (end < text + len);
		if (parse_line(line, end, ret))
			return true;
	}
	return false;
}

bool mountinfo_strip_root(const char *root, char *path)
{
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	if (strncmp(path, root, n) != 0 || (path[n] && path[n] != '/'))
		return false;
	memmove(path, path + n, strlen(path + n) + 1);
	if (strcmp(path, "/") == 0)
		path[0] = 0;
	return true;
}
