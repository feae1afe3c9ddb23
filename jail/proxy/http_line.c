#include "http_line.h"

#include "text.h"

#include <stdio.h>
#include <string.h>

void http_print_authority(const char *host, uint16_t port, char text[HTTP_AUTHORITY_MAX])
{
	bool is_six = strchr(host, ':') != NULL;
	int  n      = snprintf(text, HTTP_AUTHORITY_MAX, "%s%s%s", is_six ? "[" : "", host, is_six ? "]" : "");

	if (port)
		(void)snprintf(text + n, (size_t)(HTTP_AUTHORITY_MAX - n), ":%u", port);
}

bool http_is_token(struct span s)
{
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < s.len; i++)
		if (!memchr(bytes, s.at[i], sizeof bytes - 1))
			return false;
	return s.len > 0;
}

bool http_is_value(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (((unsigned char)s.at[i] < ' ' && s.at[i] != '\t') || s.at[i] == 0x7f)
			return false;
	return true;
}

bool http_list_has_token(struct span list, const char *word)
{
	struct span item;

	while (span_next(&list, &item))
		if (span_equals(item, word))
			return true;
	return false;
}

/* Takes the line up to CR LF, and drops these. 1: a line; 0: its end is not there yet; -1: CR or LF alone, or a NUL. */
static int take_line(struct span *rest, struct span *line)
{
	for (size_t i = 0; i < rest->len; i++) {
		char c = rest->at[i];

		if (c == '\n' || c == 0)
			return -1;
		if (c != '\r')
			continue;
		if (i + 1 == rest->len)
			return 0;
		if (rest->at[i + 1] != '\n')
			return -1;
		*line = (struct span){ rest->at, i };
		rest->at += i + 2;
		rest->len -= i + 2;
		return 1;
	}
	return 0;
}

enum http_outcome http_read_head(struct span bytes, http_reader read, void *head, size_t *head_len, const char **why)
{
	struct span rest = { bytes.at, bytes.len < HTTP_HEAD_MAX ? bytes.len : HTTP_HEAD_MAX }, line;
	int         got;

	for (unsigned n = 0; (got = take_line(&rest, &line)) > 0; n++) {
		if (n > 0 && line.len == 0) {
			*head_len = (size_t)(rest.at - bytes.at);
			return HTTP_DONE;
		}
		*why = read(head, line, n == 0);
		if (*why)
			return HTTP_BAD;
	}
	*why = got < 0 ? "a line of it has a NUL, or a CR or an LF alone" : "it is longer than 64 KiB";
	return got < 0 || bytes.len >= HTTP_HEAD_MAX ? HTTP_BAD : HTTP_MORE;
}

const char *http_parse_header(struct span line, struct span *name, struct span *value)
{
	if (*line.at == ' ' || *line.at == '\t')
		return "a header continues in the next line";
	if (!span_cut(&line, ':', name) || !http_is_token(*name))
		return "invalid header name";
	*value = span_trim(line);
	return http_is_value(*value) ? NULL : "a header has a control character";
}

bool http_parse_content_length(struct span value, uint64_t *ret)
{
	char     digits[20] = { 0 };
	uint64_t x          = 0;

	if (value.len == 0 || value.len >= sizeof digits)
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.at[i] < '0' || value.at[i] > '9')
			return false;
	memcpy(digits, value.at, value.len);
	if (text_to_u64(digits, &x) < 0 || x > INT64_MAX)
		return false;
	*ret = x;
	return true;
}
