#include "request_body.h"
#include "http_line.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

/* States of a chunked body: where the next byte belongs. */
enum {
	SIZE,        /* digits of a size */
	SIZE_LF,     /* the LF behind it */
	DATA,
	DATA_CR,     /* behind the bytes of a chunk */
	DATA_LF,
	TRAILER,     /* the beginning of a line behind the last chunk */
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	LAST_LF,
};

enum { DIGITS_MAX = 15, TRAILER_MAX = 8192, FRAME_MAX = 24 }; /* "ffff...\r\n" and "\r\n" around the bytes of one chunk */

void request_body_begin(struct request_body *b, const struct request_head *h)
{
	*b = (struct request_body){ .framing = h->framing, .left = h->framing == REQUEST_LENGTH ? h->body_len : 0 };
	b->is_done = h->framing == REQUEST_NO_BODY;
}

/* --- chunks: one byte of their frames --- */

static int take_size(struct request_body *b, char c)
{
	int digit = text_hex_digit(c);

	if (c == '\r' && b->digits)
		return SIZE_LF;
	if (digit < 0 || ++b->digits > DIGITS_MAX) /* extensions are refused, too: two parsers might find their ends at different places */
		return -1;
	b->left = b->left << 4 | (unsigned)digit;
	return SIZE;
}

static bool is_name_byte(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static int take_trailer(struct request_body *b, char c)
{
	if (++b->trailer > TRAILER_MAX)
		return -1;
	if (b->state == TRAILER_VALUE)
		return c == '\r' ? TRAILER_LF : ((unsigned char)c < ' ' && c != '\t') || c == 0x7f ? -1 : TRAILER_VALUE;
	if (b->state == TRAILER && c == '\r')
		return LAST_LF;
	if (b->state == TRAILER_NAME && c == ':')
		return TRAILER_VALUE;
	return is_name_byte(c) ? TRAILER_NAME : -1;
}

/* Returns the state after the byte; -1: malformed. */
static int take_frame_byte(struct request_body *b, char c)
{
	switch (b->state) {
	case SIZE:
		return take_size(b, c);
	case SIZE_LF:
		b->digits = 0;
		return c != '\n' ? -1 : b->left ? DATA : TRAILER;
	case DATA_CR:
		return c == '\r' ? DATA_LF : -1;
	case DATA_LF:
		return c == '\n' ? SIZE : -1;
	case TRAILER_LF:
		return c == '\n' ? TRAILER : -1;
	case LAST_LF:
		b->is_done = c == '\n';
		return b->is_done ? LAST_LF : -1;
	default:
		return take_trailer(b, c);
	}
}

/* --- what goes on --- */

struct step {
	struct span in;
	char       *out;
	size_t      room, taken, made;
};

static void move(struct step *s, size_t n)
{
	memcpy(s->out + s->made, s->in.at + s->taken, n);
	s->made += n;
	s->room -= n;
	s->taken += n;
	s->in.len -= n;
}

static void put(struct step *s, const char *text, size_t n)
{
	memcpy(s->out + s->made, text, n);
	s->made += n;
	s->room -= n;
}

/* The part of a chunk that is there, and fits, becomes a chunk of its own. */
static bool move_chunk(struct request_body *b, struct step *s)
{
	size_t n;
	char   size[FRAME_MAX];

	if (s->room <= FRAME_MAX || !s->in.len)
		return false;
	n = http_least(b->left, http_least(s->in.len, s->room - FRAME_MAX));
	put(s, size, (size_t)snprintf(size, sizeof size, "%zx\r\n", n));
	move(s, n);
	put(s, "\r\n", 2);
	b->left -= n;
	b->state = b->left ? DATA : DATA_CR;
	return true;
}

static bool move_frame(struct request_body *b, struct step *s)
{
	int state;

	if (!s->in.len || s->room < FRAME_MAX)
		return false;
	state         = take_frame_byte(b, s->in.at[s->taken]);
	b->has_failed = state < 0;
	if (b->has_failed)
		return false;
	b->state = (unsigned)state;
	s->taken++;
	s->in.len--;
	if (b->is_done)
		put(s, "0\r\n\r\n", 5);
	return true;
}

static void move_plain(struct request_body *b, struct step *s)
{
	size_t n = http_least(b->left, http_least(s->in.len, s->room));

	if (n)
		move(s, n);
	b->left -= n;
	b->is_done = b->left == 0;
}

bool request_body_step(struct request_body *b, struct span in, char *out, size_t out_size, size_t *taken, size_t *made)
{
	struct step s = { in, out, out_size, 0, 0 };

	if (b->framing == REQUEST_LENGTH)
		move_plain(b, &s);
	else
		while (!b->is_done && !b->has_failed && (b->state == DATA ? move_chunk(b, &s) : move_frame(b, &s)))
			;
	*taken = s.taken;
	*made  = s.made;
	return !b->has_failed;
}
