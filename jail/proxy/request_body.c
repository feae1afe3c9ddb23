#include "request_body.h"
#include "http_line.h"

#include <stdio.h>
#include <string.h>

enum { FRAME_MAX = 24 }; /* "ffff...\r\n" and "\r\n" around the bytes of one chunk */

void request_body_init(struct request_body *b, const struct request_head *h)
{
	*b = (struct request_body){ .framing = h->framing, .left = h->framing == REQUEST_LENGTH ? h->body_len : 0 };
	b->is_done = h->framing == REQUEST_NO_BODY;
}

struct step {
	struct span in;
	char       *out;
	size_t      room, taken, made;
};

static void emit_bytes(struct step *s, const char *bytes, size_t n)
{
	memcpy(s->out + s->made, bytes, n);
	s->made += n;
	s->room -= n;
}

static void skip_bytes(struct step *s, size_t n)
{
	s->taken += n;
	s->in.at += n;
	s->in.len -= n;
}

/* The part of a chunk that is there, and fits, becomes a chunk of its own. */
static bool copy_chunk_part(struct request_body *b, struct step *s)
{
	size_t n;
	char   size[FRAME_MAX];

	if (s->room <= FRAME_MAX || !s->in.len)
		return false;
	n = http_least(b->chunk.left, http_least(s->in.len, s->room - FRAME_MAX));
	emit_bytes(s, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", n));
	emit_bytes(s, s->in.at, n);
	emit_bytes(s, "\r\n", 2);
	skip_bytes(s, n);
	chunk_reader_skip_data(&b->chunk, n);
	return true;
}

static bool read_chunk_framing(struct request_body *b, struct step *s)
{
	if (!s->in.len || s->room < FRAME_MAX)
		return false;
	b->has_failed = !chunk_reader_read_byte(&b->chunk, *s->in.at);
	if (b->has_failed)
		return false;
	skip_bytes(s, 1);
	b->is_done = b->chunk.state == CHUNK_OVER;
	if (b->is_done)
		emit_bytes(s, "0\r\n\r\n", 5);
	return true;
}

bool request_body_copy_step(struct request_body *b, struct span in, char *out, size_t out_size, size_t *taken,
			    size_t *made)
{
	struct step s = { in, out, out_size, 0, 0 };
	size_t      n = http_least(b->left, http_least(in.len, out_size));

	if (b->framing == REQUEST_LENGTH) {
		if (n)
			emit_bytes(&s, in.at, n);
		skip_bytes(&s, n);
		b->left -= n;
		b->is_done = b->left == 0;
	} else {
		while (!b->is_done && !b->has_failed &&
		       (b->chunk.state == CHUNK_DATA ? copy_chunk_part(b, &s) : read_chunk_framing(b, &s)))
			;
	}
	*taken = s.taken;
	*made  = s.made;
	return !b->has_failed;
}
