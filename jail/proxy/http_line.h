/* http_line.h - lines of the head of an HTTP/1 message, read strictly: what two parsers could read in two ways is
 * refused */
#pragma once
#include "net_rule.h"
#include "span.h"

bool http_is_token(struct span s);   /* RFC 9110, 5.6.2 */
bool http_is_value(struct span s);   /* RFC 9110, 5.5: a tab, what is visible, and bytes above ASCII */
bool http_list_has_token(struct span list, const char *word);

enum { HTTP_HEAD_MAX = 64 * 1024, HTTP_AUTHORITY_MAX = NET_HOST_MAX + 16 };

/* "host:port", "[::1]:port"; without the port if it is 0. */
void http_print_authority(const char *host, uint16_t port, char text[HTTP_AUTHORITY_MAX]);

enum http_outcome { HTTP_MORE, HTTP_BAD, HTTP_DONE };

/* Reads one line of a head, the first one or a header. NULL, or what is wrong with it. */
typedef const char *(*http_reader)(void *head, struct span line, bool is_first);
/*
 * Reads the lines of a head up to the empty one. DONE: *head_len counts all of them. BAD: *why is a sentence, which
 * fits behind "the head is malformed: ". Stateless: the caller passes all bytes since the head began, and calls again
 * when more have come.
 */
enum http_outcome http_read_head(struct span bytes, http_reader read, void *head, size_t *head_len, const char **why);
/* NULL, or what is wrong with the line of a header. */
const char *http_parse_header(struct span line, struct span *name, struct span *value);
/* Digits alone, and at most INT64_MAX. */
bool http_parse_content_length(struct span value, uint64_t *ret);

/* The smaller one: of the bytes that a message still has, and of those that there are, or have room. */
static inline size_t http_least(uint64_t a, size_t b)
{
	return a < b ? (size_t)a : b;
}
