#include "reply_head.h"

#include "http_line.h"

#include <string.h>
#include <strings.h>

struct seen {
	unsigned codings, lengths;
	bool     is_chunked;
};

/* "HTTP/1.1 200", and a text behind a blank */
static bool take_first_line(struct span line, struct reply_head *h)
{
	if (line.len < 12 || memcmp(line.at, "HTTP/1.", 7) != 0 || (line.at[7] != '0' && line.at[7] != '1') || line.at[8] != ' ' ||
	    (line.len > 12 && line.at[12] != ' ') || !http_is_value(line))
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

static bool begins(struct span s, const char *word)
{
	return s.len >= strlen(word) && strncasecmp(s.at, word, strlen(word)) == 0;
}

/* A list of what keeps ASCII as it is: a list of what does not would never be complete. */
static bool is_like_ascii(struct span charset)
{
	static const char *const known[] = { "utf-8", "utf8", "us-ascii", "ascii", "iso-8859-", "windows-125", "koi8-", "euc-", "shift_jis", "big5", "gb" };

	if (charset.len > 1 && *charset.at == '"')
		charset = (struct span){ charset.at + 1, charset.len - 2 };
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (begins(charset, known[i]))
			return true;
	return false;
}

static void look_at_type(struct span value, struct reply_head *h)
{
	struct span part;

	h->is_part |= begins(value, "multipart/byteranges");
	while (span_cut(&value, ';', &part)) {
		struct span next = span_trim(value), name;

		if (begins(next, "charset") && span_cut(&next, '=', &name)) {
			struct span charset = span_trim(next), first;

			h->is_other_form |= !is_like_ascii(span_cut(&charset, ';', &first) ? span_trim(first) : charset);
		}
	}
}

static bool take_header(struct span line, struct reply_head *h, struct seen *seen)
{
	struct span name, value;

	if (http_take_header(line, &name, &value))
		return false;
	if (span_is(name, "transfer-encoding")) {
		seen->codings++;
		seen->is_chunked = span_is(value, "chunked");
	} else if (span_is(name, "content-length")) {
		seen->lengths++;
		return http_take_length(value, &h->body_len);
	} else if (span_is(name, "connection")) {
		h->closes |= http_list_has(value, "close");
	} else if (span_is(name, "content-type")) {
		look_at_type(value, h);
	} else if (span_is(name, "content-encoding")) {
		h->is_other_form |= !span_is(value, "identity");
	} else if (span_is(name, "im")) {
		h->is_other_form = true;
	}
	return true;
}

/* RFC 9112, 6.3, but what a client may repair is refused. */
static bool set_framing(struct reply_head *h, const struct seen *seen)
{
	if (seen->codings > 1 || seen->lengths > 1 || (seen->codings && (seen->lengths || !seen->is_chunked || h->minor == 0)))
		return false;
	h->framing = seen->codings ? REPLY_CHUNKED : seen->lengths ? REPLY_LENGTH : REPLY_TO_END;
	return true;
}

enum reply_outcome reply_head_parse(const char *bytes, size_t len, struct reply_head *ret)
{
	struct span rest = { bytes, len < REPLY_HEAD_MAX ? len : REPLY_HEAD_MAX }, line;
	struct seen seen = { 0 };
	int         got;

	*ret = (struct reply_head){ 0 };
	for (unsigned n = 0; (got = http_take_line(&rest, &line)) > 0; n++) {
		if (n > 0 && line.len == 0) {
			ret->len = (size_t)(rest.at - bytes);
			return set_framing(ret, &seen) ? REPLY_DONE : REPLY_BAD;
		}
		if (!(n == 0 ? take_first_line(line, ret) : take_header(line, ret, &seen)))
			return REPLY_BAD;
	}
	return got < 0 || len >= REPLY_HEAD_MAX ? REPLY_BAD : REPLY_MORE;
}
