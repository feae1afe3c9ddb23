/*
 * request_head.h - the head of an HTTP/1 request, read strictly and written anew
 *
 * A strict subset of RFC 9112: what two parsers could understand in two ways is
 * refused (request smuggling). What goes to the server is made of the parsed parts alone.
 * Pure and stateless: the caller passes all bytes since the request began, and calls again when more have come.
 */
#pragma once
#include "http_line.h"
#include "net_rule.h"

enum { REQUEST_HEADERS_MAX = 128 };

enum request_form {
	REQUEST_ORIGIN,    /* GET /path */
	REQUEST_ABSOLUTE,  /* GET http://host/path: to a proxy */
	REQUEST_AUTHORITY, /* CONNECT host:port */
	REQUEST_ASTERISK,  /* OPTIONS * */
};

enum request_framing { REQUEST_NO_BODY, REQUEST_LENGTH, REQUEST_CHUNKED };

struct request_header { /* in the caller's buffer */
	struct span name, value;
};

struct request_head {
	size_t                len; /* of the head, with the empty line: the body begins there */
	struct span           method_text;
	enum net_method       method; /* 0: TRACE, CONNECT */
	enum request_form     form;
	enum net_scheme       scheme;             /* of ABSOLUTE: HTTP or HTTPS; otherwise ANY */
	/* canonical; of the target, or of Host if it has none. If both are there, they are the same */
	char                  host[NET_HOST_MAX];
	uint16_t              port;               /* 0: not given */
	bool                  is_address;
	struct span           path; /* origin-form, with the query; "/" when an absolute target has none; "*" */
	unsigned              minor; /* HTTP/1.minor: 0 or 1 */
	enum request_framing  framing;
	bool                  has_length; /* Content-Length was there, maybe 0 */
	uint64_t              body_len;
	/* GET, Upgrade: websocket, Connection: upgrade, no body. Any other Upgrade is left out when written */
	bool                  upgrades;
	bool                  keeps;    /* another request may follow it */
	unsigned              headers;
	struct request_header header[REQUEST_HEADERS_MAX];
};

/* On BAD *why is a sentence, which fits behind "the request is malformed: ". ret is large: not for small stacks. */
enum http_outcome request_head_parse(const char *bytes, size_t len, struct request_head *ret, const char **why);

/* A header that brig sets instead of the program's own. */
struct request_set {
	const char *name, *value; /* name in lower case */
};

struct request_edit {
	const char               *authority; /* for Host: "name" or "name:port" (IPv6 in brackets) */
	const struct request_set *set;
	size_t                    sets;
	/* the reply will be searched: no header goes on that chooses a part, a form or an encoding of it */
	bool                      plain_reply;
	/* rules judge method or path: no header goes on that may name another one to the server */
	bool                      is_judged;
};

/*
 * Writes the head for the server itself (origin-form): without headers that concern one hop (RFC 9110, 7.6.1), without
 * the program's own header where edit sets one of that name (in any case of letters, and with "_" for "-", which CGI
 * does not distinguish), with "Connection: upgrade" when it upgrades, or "close" when no other request follows it. The
 * body must follow as request_body makes it. Returns the length; 0: no room.
 */
size_t request_head_write(const struct request_head *h, const struct request_edit *edit, char *ret, size_t size);
