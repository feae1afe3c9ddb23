/*
 * reply_head.h - the head of an HTTP/1 reply: how its body ends, and whether a secret can be searched for in it
 *
 * As strict as request_head.h: a server that brig-proxy and the program understand differently could show one of them a
 * secret that the other does not see. Pure and stateless.
 */
#pragma once
#include "http_line.h"

enum reply_framing { REPLY_TO_END, REPLY_LENGTH, REPLY_CHUNKED };

struct reply_head {
	size_t             len; /* with the empty line */
	unsigned           status, minor;
	enum reply_framing framing;
	uint64_t           body_len;
	bool               closes;        /* the server takes no further request */
	bool               is_part;       /* 206, or multipart/byteranges */
	bool               is_other_form; /* a coding, or a charset in which ASCII is not ASCII */
};

enum http_outcome reply_head_parse(const char *bytes, size_t len, struct reply_head *ret);
