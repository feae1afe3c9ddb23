#include "reply_head.h"

#include <string.h>
#include <strings.h>

struct parse {
	struct reply_head *head;
	unsigned           codings, lengths;
	bool               is_chunked;
};

/* "HTTP/1.1 200", and a text behind a blank */
static bool parse_status_line(struct span line, struct reply_head *h)
{
	if (line.len < 12 || memcmp(line.at, "HTTP/1.", 7) != 0 || (line.at[7] != '0' && line.at[7] != '1') ||
	    line.at[8] != ' ' || (line.len > 12 && line.at[12] != ' ') || !http_is_value(line))
		return false;
	h->minor = (unsigned)(line.at[7] - '0');
	for (size_t i = 9; i < 12; i++) {
		if (line.at[i] < '0' || line.at[i] > '9')
			return false;
		h->status = 10 * h->status + (unsigned)(line.at[i] - '0');
	}
	h->closes  = h->minor == 0;
	h->is_part = h->status == 206;
	return h->status >= 100;
}

/* A list of what keeps ASCII as it is: a list of what does not would never be complete. */
static bool charset_keeps_ascii(struct span charset)
{
	static const char *const known[] = { "utf-8", "utf8", "us-ascii",  "ascii", "iso-8859-", "windows-125",
					     "koi8-", "euc-", "shift_jis", "big5",  "gb" };

	if (charset.len > 1 && *charset.at == '"')
		charset = (struct span){ charset.at + 1, charset.len - 2 };
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (span_begins_with(charset, known[i]))
			return true;
	return false;
}

static void parse_content_type(struct span value, struct reply_head *h)
{
	struct span part;

	h->is_part |= span_begins_with(value, "multipart/byteranges");
	while (span_cut(&value, ';', &part)) {
		struct span next = span_trim(value), name;

		if (span_begins_with(next, "charset") && span_cut(&next, '=', &name)) {
			struct span charset = span_trim(next), first;

			h->is_other_form |=
				!charset_keeps_ascii(span_cut(&charset, ';', &first) ? span_trim(first) : charset);
		}
	}
}

static bool parse_reply_header(struct span line, struct parse *p)
{
	struct reply_head *h = p->head;
	struct span        name, value;

	if (http_parse_header(line, &name, &value))
		return false;
	if (span_equals(name, "transfer-encoding")) {
		p->codings++;
		p->is_chunked = span_equals(value, "chunked");
	} else if (span_equals(name, "content-length")) {
		p->lengths++;
		return http_parse_content_length(value, &h->body_len);
	} else if (span_equals(name, "connection")) {
		h->closes |= http_list_has_token(value, "close");
	} else if (span_equals(name, "content-type")) {
		parse_content_type(value, h);
	} else if (span_equals(name, "content-encoding")) {
		h->is_other_form |= !span_equals(value, "identity");
	} else if (span_equals(name, "im")) {
		h->is_other_form = true;
	}
	return true;
}

static const char *parse_reply_line(void *parse, struct span line, bool is_first)
{
	struct parse *p = parse;

	return (is_first ? parse_status_line(line, p->head) : parse_reply_header(line, p)) ? NULL : "malformed";
}

/* RFC 9112, 6.3, but what a client may repair is refused. */
enum http_outcome reply_head_parse(const char *bytes, size_t len, struct reply_head *ret)
{
	struct parse      p = { .head = ret };
	const char       *why;
	enum http_outcome outcome;

	*ret    = (struct reply_head){ 0 };
	outcome = http_read_head((struct span){ bytes, len }, parse_reply_line, &p, &ret->len, &why);
	if (outcome != HTTP_DONE)
		return outcome;
	if (p.codings > 1 || p.lengths > 1 || (p.codings && (p.lengths || !p.is_chunked || ret->minor == 0)))
		return HTTP_BAD;
	ret->framing = p.codings ? REPLY_CHUNKED : p.lengths ? REPLY_LENGTH : REPLY_TO_END;
	return HTTP_DONE;
}
