#define _GNU_SOURCE
#include "masked_reply.h"

#include <stdio.h>
#include <string.h>

enum {
	HEAD,
	BYTES,    /* without chunks: up to end of file, whatever length the head gives */
	SIZE,     /* of a chunk */
	SIZE_REST, /* the rest of its line */
	DATA,
	DATA_END,
	OVER,
};

enum { DIGITS_MAX = 15, CHUNK_HEAD = 10, CHUNK_FRAME = CHUNK_HEAD + 2 }; /* "0000ffff\r\n" and "\r\n" */

void reply_begin(struct reply *r, const struct proxy_config *config, const char *host, uint16_t port)
{
	secret_mask_begin(&r->mask, config, host, port);
	r->state   = HEAD;
	r->left    = 0;
	r->digits  = 0;
	r->is_done = false;
}

void reply_is_tunnel(struct reply *r)
{
	r->state           = BYTES;
	r->mask.passes_all = true;
}

struct step {
	struct reply *r;
	struct span   in; /* not taken yet */
	char         *out;
	size_t        room, made;
};

static void take(struct step *s, size_t n)
{
	s->in.at += n;
	s->in.len -= n;
}

static size_t least(uint64_t a, size_t b)
{
	return a < b ? (size_t)a : b;
}

/* --- bytes --- */

static size_t room_for_bytes(const struct step *s)
{
	size_t used = s->made + NET_SECRET_VALUE_MAX + 2 * CHUNK_FRAME; /* room for the held bytes and the last chunk */

	return s->room > used ? s->room - used : 0;
}

static void take_bytes(struct step *s)
{
	size_t n = least(s->in.len, room_for_bytes(s));

	if (n)
		s->made += secret_mask_step(&s->r->mask, s->in.at, n, s->out + s->made);
	take(s, n);
}

/* --- the head --- */

static bool is_chunked(struct span head)
{
	bool        chunked = false;
	struct span line, name, item;

	while (span_cut(&head, '\n', &line))
		if (span_cut(&line, ':', &name) && span_is(span_trim(name), "transfer-encoding"))
			for (line = span_trim(line), line.len -= line.len && line.at[line.len - 1] == '\r'; span_next(&line, &item);)
				chunked = span_is(item, "chunked"); /* the last coding is the one that frames the body */
	return chunked;
}

/* After "HTTP/1.1 100 Continue" another head follows; after 101, another protocol. */
static unsigned state_behind(struct span head)
{
	bool is_early = head.len > 12 && head.at[8] == ' ' && head.at[9] == '1';

	if (is_early && memcmp(head.at + 9, "101", 3) != 0)
		return HEAD;
	return is_early || !is_chunked(head) ? BYTES : SIZE;
}

/* A secret has no line end, and a head ends with one: none of its bytes is held back. */
static bool take_head(struct step *s, bool is_end)
{
	const char *end  = s->in.len ? memmem(s->in.at, s->in.len, "\r\n\r\n", 4) : NULL;
	struct span head = { s->in.at, end ? (size_t)(end + 4 - s->in.at) : s->in.len };

	if (head.len > REPLY_HEAD_MAX || (!end && head.len == REPLY_HEAD_MAX))
		return false;
	if (!end && is_end) {
		s->r->state = BYTES;
		take_bytes(s);
	}
	if (!end || s->room - s->made < head.len + NET_SECRET_VALUE_MAX)
		return true;
	s->r->state = state_behind(head);
	s->made += secret_mask_step(&s->r->mask, head.at, head.len, s->out + s->made);
	s->made += secret_mask_end(&s->r->mask, s->out + s->made);
	take(s, head.len);
	return true;
}

/* --- the body --- */

/* Frames the n bytes that were written at out + made + CHUNK_HEAD. Nothing for 0 bytes: that would be the last chunk. */
static void frame(struct step *s, size_t n)
{
	char head[CHUNK_HEAD + 1];

	if (n == 0)
		return;
	(void)snprintf(head, sizeof head, "%08x\r\n", (unsigned)n);
	memcpy(s->out + s->made, head, CHUNK_HEAD);
	memcpy(s->out + s->made + CHUNK_HEAD + n, "\r\n", 2);
	s->made += CHUNK_FRAME + n;
}

static void take_data(struct step *s)
{
	size_t n = least(s->r->left, least(s->in.len, room_for_bytes(s)));

	if (n)
		frame(s, secret_mask_step(&s->r->mask, s->in.at, n, s->out + s->made + CHUNK_HEAD));
	take(s, n);
	s->r->left -= n;
	if (s->r->left == 0)
		s->r->state = DATA_END;
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The line with the size has ended. */
static void begin_chunk(struct step *s)
{
	s->r->digits = 0;
	s->r->state  = s->r->left ? DATA : OVER;
	if (s->r->left)
		return;
	frame(s, secret_mask_end(&s->r->mask, s->out + s->made + CHUNK_HEAD));
	memcpy(s->out + s->made, "0\r\n\r\n", 5);
	s->made += 5;
	s->r->is_done = true;
}

static bool take_size(struct step *s)
{
	char c = *s->in.at;

	take(s, 1);
	if (s->r->state == SIZE && hex(c) >= 0) {
		s->r->left = s->r->left << 4 | (unsigned)hex(c);
		return ++s->r->digits <= DIGITS_MAX;
	}
	s->r->state = SIZE_REST;
	if (c == '\n' && s->r->digits)
		begin_chunk(s);
	return s->r->digits || s->r->state != SIZE_REST;
}

static bool take_data_end(struct step *s)
{
	char c = *s->in.at;

	take(s, 1);
	if (c == '\n')
		s->r->state = SIZE;
	return c == '\n' || c == '\r';
}

/* False: malformed. */
static bool take_some(struct step *s, bool is_end)
{
	switch (s->r->state) {
	case HEAD:
		return take_head(s, is_end);
	case BYTES:
		take_bytes(s);
		return true;
	case SIZE:
	case SIZE_REST:
		return take_size(s);
	case DATA:
		take_data(s);
		return true;
	case DATA_END:
		return take_data_end(s);
	default:
		take(s, s->in.len);
		return true;
	}
}

static bool is_in_chunks(const struct reply *r)
{
	return r->state == DATA || r->state == DATA_END || r->state == SIZE || r->state == SIZE_REST;
}

/* What is held back, at the end of file, or because the reply pauses. */
static void let_go(struct step *s, size_t (*held)(struct secret_mask *m, char *out))
{
	if (is_in_chunks(s->r))
		frame(s, held(&s->r->mask, s->out + s->made + CHUNK_HEAD));
	else
		s->made += held(&s->r->mask, s->out + s->made);
}

bool reply_holds(const struct reply *r)
{
	return r->mask.held > r->mask.passed;
}

size_t reply_flush(struct reply *r, char *out)
{
	struct step s = { .r = r, .out = out };

	let_go(&s, secret_mask_flush);
	return s.made;
}

bool reply_step(struct reply *r, struct span in, bool is_end, char *out, size_t room, size_t *taken, size_t *made)
{
	struct step s  = { r, in, out, room, 0 };
	bool        ok = room >= REPLY_ROOM;

	for (size_t before = s.in.len + 1; ok && s.in.len && s.in.len < before && room_for_bytes(&s);) {
		before = s.in.len;
		ok     = take_some(&s, is_end);
	}
	if (ok && is_end && !s.in.len)
		let_go(&s, secret_mask_end);
	*taken = in.len - s.in.len;
	*made  = s.made;
	return ok;
}
