#define _GNU_SOURCE
#include "request_head.h"

#include "text.h"

#include <string.h>
#include <strings.h>

/* --- host and port --- */

struct authority {
	char     host[NET_HOST_MAX];
	uint16_t port; /* 0: not given */
	bool     is_address;
};

static bool parse_port(struct span s, uint16_t *port)
{
	char     digits[6] = { 0 };
	uint64_t x         = 0;

	if (s.len == 0 || s.len >= sizeof digits)
		return false;
	memcpy(digits, s.at, s.len);
	if (text_to_u64(digits, &x) < 0 || x == 0 || x > UINT16_MAX)
		return false;
	*port = (uint16_t)x;
	return true;
}

/* "host", "host:port", "[IPv6]", "[IPv6]:port". User and password are refused. */
static bool parse_authority(struct span s, struct authority *a)
{
	bool        bracket = s.len && *s.at == '[';
	const char *close   = bracket ? memchr(s.at, ']', s.len) : NULL;
	struct span host    = s, rest = { 0 };

	if (bracket) {
		if (!close)
			return false;
		host = (struct span){ s.at + 1, (size_t)(close - s.at) - 1 };
		rest = (struct span){ close + 1, s.len - host.len - 2 };
	} else {
		const char *colon = s.len ? memchr(s.at, ':', s.len) : NULL;

		host.len = colon ? (size_t)(colon - s.at) : s.len;
		rest     = (struct span){ s.at + host.len, s.len - host.len };
	}
	a->port = 0;
	if (rest.len && (*rest.at != ':' || !parse_port((struct span){ rest.at + 1, rest.len - 1 }, &a->port)))
		return false;
	return net_host_canonicalize(host.at, host.len, a->host, &a->is_address) &&
	       bracket == (strchr(a->host, ':') != NULL);
}

/* --- the first line --- */

static void set_authority(struct request_head *h, const struct authority *a)
{
	memcpy(h->host, a->host, sizeof h->host);
	h->port       = a->port;
	h->is_address = a->is_address;
}

static const char *parse_absolute_target(struct span target, struct request_head *h)
{
	bool             https  = target.len > 8 && strncasecmp(target.at, "https://", 8) == 0;
	size_t           scheme = https ? 8 : 7, n;
	struct authority a;

	h->form   = REQUEST_ABSOLUTE;
	h->scheme = https ? NET_SCHEME_HTTPS : NET_SCHEME_HTTP;
	target.at += scheme;
	target.len -= scheme;
	for (n = 0; n < target.len && target.at[n] != '/' && target.at[n] != '?'; n++)
		;
	if (!parse_authority((struct span){ target.at, n }, &a))
		return "the target has an invalid host or port";
	set_authority(h, &a);
	h->path = (struct span){ target.at + n, target.len - n };
	if (!h->path.len)
		h->path = (struct span){ "/", 1 };
	return *h->path.at == '/' ? NULL : "its target has a query without a path";
}

/* Bytes above ASCII pass: programs send UTF-8. */
static bool target_is_visible(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.at[i] <= ' ' || s.at[i] == 0x7f || s.at[i] == '#')
			return false;
	return s.len > 0;
}

static const char *parse_target(struct span target, struct request_head *h)
{
	struct authority a;
	const char      *why = NULL;

	if (!target_is_visible(target))
		return "the target has a blank, a control character or a \"#\"";
	if (span_equals(h->method_text, "CONNECT")) {
		h->form = REQUEST_AUTHORITY;
		if (!parse_authority(target, &a) || !a.port)
			return "CONNECT needs host:port";
		set_authority(h, &a);
		return NULL;
	}
	h->path = target;
	if (*target.at == '/')
		h->form = REQUEST_ORIGIN;
	else if (target.len > 7 &&
		 (strncasecmp(target.at, "http://", 7) == 0 || strncasecmp(target.at, "https://", 8) == 0))
		why = parse_absolute_target(target, h);
	else if (span_equals(target, "*") && h->method == NET_METHOD_OPTIONS)
		h->form = REQUEST_ASTERISK;
	else
		return "the target is neither a path nor an http or https URL";
	return why;
}

/* RFC 9112, 3: exactly one blank between the three. */
static const char *parse_request_line(struct span line, struct request_head *h)
{
	struct span target;
	const char *why;

	if (!span_cut(&line, ' ', &h->method_text) || !http_is_token(h->method_text))
		return "invalid method";
	h->method = net_method_parse(h->method_text.at, h->method_text.len);
	if (!span_cut(&line, ' ', &target))
		return "the first line does not have three parts";
	why = parse_target(target, h);
	if (why)
		return why;
	if (line.len != 8 || memcmp(line.at, "HTTP/1.", 7) != 0 || (line.at[7] != '0' && line.at[7] != '1'))
		return "not HTTP/1.0 or HTTP/1.1";
	h->minor = (unsigned)(line.at[7] - '0');
	return NULL;
}

/* --- headers --- */

static const char *parse_header(struct span line, struct request_head *h)
{
	struct request_header header;
	const char           *why = http_parse_header(line, &header.name, &header.value);

	if (why)
		return why;
	if (h->headers == REQUEST_HEADERS_MAX)
		return "too many headers";
	h->header[h->headers++] = header;
	return NULL;
}

/* Returns how many headers have the name; value gets the last one. */
static unsigned count_headers(const struct request_head *h, const char *name, struct span *value)
{
	unsigned n = 0;

	for (unsigned i = 0; i < h->headers; i++)
		if (span_equals(h->header[i].name, name)) {
			*value = h->header[i].value;
			n++;
		}
	return n;
}

static bool headers_list_word(const struct request_head *h, const char *name, const char *word)
{
	for (unsigned i = 0; i < h->headers; i++)
		if (span_equals(h->header[i].name, name) && http_list_has_token(h->header[i].value, word))
			return true;
	return false;
}

/* --- what the headers mean together --- */

static bool is_default_port(const struct request_head *h, uint16_t port)
{
	return port == (h->scheme == NET_SCHEME_HTTPS ? 443 : 80);
}

static bool is_same_authority(const struct request_head *h, const struct authority *a)
{
	if (strcmp(h->host, a->host) != 0)
		return false;
	if (h->form == REQUEST_AUTHORITY) /* some programs leave the port out of the Host of a CONNECT */
		return !a->port || a->port == h->port;
	return a->port == h->port || (!a->port && is_default_port(h, h->port)) ||
	       (!h->port && is_default_port(h, a->port));
}

static const char *check_host(struct request_head *h)
{
	struct authority a;
	struct span      value = { 0 };
	unsigned         n     = count_headers(h, "host", &value);

	if (n > 1)
		return "more than one Host";
	if (n == 0)
		return *h->host && (h->minor == 0 || h->form == REQUEST_AUTHORITY) ? NULL : "it has no Host";
	if (!parse_authority(value, &a))
		return "Host is not a host and port";
	if (!*h->host)
		set_authority(h, &a);
	else if (!is_same_authority(h, &a))
		return "Host does not match the target";
	return NULL;
}

/* RFC 9112, 6.1 to 6.3, but what a server may repair is refused. */
static const char *check_framing(struct request_head *h)
{
	struct span coding = { 0 }, length = { 0 };
	unsigned    codings = count_headers(h, "transfer-encoding", &coding),
		 lengths    = count_headers(h, "content-length", &length);

	if (codings && lengths)
		return "both Content-Length and Transfer-Encoding";
	if (codings > 1 || lengths > 1)
		return "the length of the body is given more than once";
	if (codings && (h->minor == 0 || !span_equals(coding, "chunked")))
		return "Transfer-Encoding is not chunked alone";
	if (codings)
		h->framing = REQUEST_CHUNKED;
	if (lengths && !http_parse_content_length(length, &h->body_len))
		return "Content-Length is not a number";
	if (lengths)
		h->framing = h->body_len ? REQUEST_LENGTH : REQUEST_NO_BODY;
	h->has_length = lengths;
	return NULL;
}

static const char *check_request(struct request_head *h)
{
	struct span value = { 0 };
	const char *why   = check_host(h);

	why = why ? why : check_framing(h);
	if (!why && h->form == REQUEST_AUTHORITY && h->framing != REQUEST_NO_BODY)
		why = "CONNECT has no body";
	h->upgrades = !why && h->method == NET_METHOD_GET && h->framing == REQUEST_NO_BODY && h->minor == 1 &&
		      count_headers(h, "upgrade", &value) == 1 && span_equals(value, "websocket") &&
		      headers_list_word(h, "connection", "upgrade");
	h->keeps = h->minor == 1 && !headers_list_word(h, "connection", "close") &&
		   !headers_list_word(h, "proxy-connection", "close");
	return why;
}

static const char *parse_head_line(void *head, struct span line, bool is_first)
{
	return is_first ? parse_request_line(line, head) : parse_header(line, head);
}

enum http_outcome request_head_parse(const char *bytes, size_t len, struct request_head *ret, const char **why)
{
	enum http_outcome outcome;

	memset(ret, 0, offsetof(struct request_head, header));
	outcome = http_read_head((struct span){ bytes, len }, parse_head_line, ret, &ret->len, why);
	if (outcome == HTTP_DONE)
		*why = check_request(ret);
	return outcome == HTTP_DONE && *why ? HTTP_BAD : outcome;
}
