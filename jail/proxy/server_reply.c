#define _GNU_SOURCE
#include "server_reply.h"
#include "http_line.h"
#include "text.h"

#include <string.h>

enum {
	HEAD,
	LENGTH,     /* the bytes of the body */
	TO_END,     /* up to end of file */
	SIZE,       /* of a chunk */
	SIZE_REST,  /* an extension */
	SIZE_LF,
	DATA,
	DATA_CR,    /* behind the bytes of a chunk */
	DATA_LF,
	TRAILER,    /* the beginning of a line behind the last chunk */
	TRAILER_REST,
	TRAILER_LF,
	LAST_LF,
	FRAME,      /* the head of a WebSocket frame (RFC 6455, 5.2) */
	FRAME_DATA,
	OVER,
};

enum { DIGITS_MAX = 15, TRAILER_MAX = 8192, CHUNK_HEAD = 10, CHUNK_FRAME = CHUNK_HEAD + 2 }; /* "0000ffff\r\n" and "\r\n" */
enum { FRAME_HEAD = 10, FRAME_LAST = 0x80, FRAME_RESERVED = 0x70, FRAME_OPCODE = 0x0f, FRAME_CONTROL = 0x08, FRAME_MASKED = 0x80, CONTROL_MAX = 125 };

void reply_begin(struct reply *r, const struct proxy_config *config, const char *host, uint16_t port, bool is_of_head, bool upgrades)
{
	static const struct proxy_config none;

	memset((char *)r + sizeof r->mask, 0, sizeof *r - sizeof r->mask);
	secret_mask_begin(&r->mask, config ? config : &none, host, port);
	r->state      = HEAD;
	r->is_of_head = is_of_head;
	r->upgrades   = upgrades;
}

bool reply_is_opaque(const struct reply *r, uint64_t *left)
{
	if (r->mask.secrets || (r->state != LENGTH && r->state != TO_END))
		return false;
	*left = r->state == LENGTH ? r->left : UINT64_MAX;
	return true;
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

static void finish(struct reply *r)
{
	r->state   = OVER;
	r->is_done = true;
}

/* --- bytes that come out, in the frame of the state --- */

static bool is_in_chunks(const struct reply *r)
{
	return r->state >= SIZE && r->state <= LAST_LF;
}

static bool is_in_frames(const struct reply *r)
{
	return r->state == FRAME || r->state == FRAME_DATA;
}

static char *place(const struct step *s)
{
	return s->out + s->made + (is_in_chunks(s->r) ? CHUNK_HEAD : is_in_frames(s->r) ? FRAME_HEAD : 0);
}

/* 0: nothing, as a chunk without bytes would be the last one. */
static void emit_chunk(struct step *s, size_t n)
{
	static const char digits[] = "0123456789abcdef";
	char             *head     = s->out + s->made;

	if (n == 0)
		return;
	for (int i = 0; i < CHUNK_HEAD - 2; i++)
		head[i] = digits[n >> (4 * (CHUNK_HEAD - 3 - i)) & 15];
	memcpy(head + CHUNK_HEAD - 2, "\r\n", 2);
	memcpy(head + CHUNK_HEAD + n, "\r\n", 2);
	s->made += CHUNK_FRAME + n;
}

static size_t put_length(uint8_t *at, size_t n)
{
	if (n <= CONTROL_MAX) {
		at[0] = (uint8_t)n;
		return 1;
	}
	at[0] = 126;
	at[1] = (uint8_t)(n >> 8);
	at[2] = (uint8_t)n;
	if (n <= UINT16_MAX)
		return 3;
	at[0] = 127;
	for (int i = 0; i < 8; i++)
		at[1 + i] = (uint8_t)((uint64_t)n >> (56 - 8 * i));
	return 9;
}

/* A part of the message; the first one has its opcode. */
static void emit_frame(struct step *s, size_t n, bool is_last)
{
	uint8_t head[FRAME_HEAD];
	size_t  len;

	if (n == 0 && !is_last)
		return;
	head[0] = (uint8_t)((is_last ? FRAME_LAST : 0) | (s->r->has_begun ? 0 : s->r->opcode));
	len     = 1 + put_length(head + 1, n);
	memmove(s->out + s->made + len, s->out + s->made + FRAME_HEAD, n);
	memcpy(s->out + s->made, head, len);
	s->made += len + n;
	s->r->has_begun = !is_last;
}

static void emit(struct step *s, size_t n)
{
	if (is_in_chunks(s->r))
		emit_chunk(s, n);
	else if (is_in_frames(s->r))
		emit_frame(s, n, false);
	else
		s->made += n;
}

static size_t room_for_bytes(const struct step *s)
{
	size_t used = s->made + NET_SECRET_VALUE_MAX + 2 * CHUNK_FRAME; /* room for the held bytes and the last chunk */

	return s->room > used ? s->room - used : 0;
}

/* Takes bytes of the body. Returns how many were written behind place(). */
static size_t mask_some(struct step *s, uint64_t most)
{
	size_t n    = http_least(most, http_least(s->in.len, room_for_bytes(s)));
	size_t made = n ? secret_mask_step(&s->r->mask, s->in.at, n, place(s)) : 0;

	take(s, n);
	return made;
}

static void take_data(struct step *s, unsigned next)
{
	size_t before = s->in.len;

	emit(s, mask_some(s, s->r->left));
	s->r->left -= before - s->in.len;
	if (s->r->left == 0)
		s->r->state = next;
}

static void take_length(struct step *s)
{
	take_data(s, OVER);
	if (s->r->state != OVER)
		return;
	s->made += secret_mask_end(&s->r->mask, s->out + s->made);
	finish(s->r);
}

/* --- the head --- */

static bool has_no_body(const struct reply *r, const struct reply_head *h)
{
	return r->is_of_head || h->status == 204 || h->status == 304 || (h->framing == REPLY_LENGTH && h->body_len == 0);
}

/* After "HTTP/1.1 100 Continue" another head follows; after 101, another protocol. False: refused. */
static bool go_on_behind(struct reply *r, const struct reply_head *h)
{
	bool is_early = h->status < 200;

	if (h->status == 101) {
		if (!r->upgrades)
			return false;
		r->has_switched = true;
		r->state        = r->mask.secrets ? FRAME : TO_END;
		return true;
	}
	if (r->mask.secrets && (h->is_part || (h->is_other_form && !has_no_body(r, h))))
		return false;
	r->closes |= !is_early && (h->closes || (h->framing == REPLY_TO_END && !has_no_body(r, h)));
	r->left  = h->body_len;
	r->state = is_early ? HEAD : h->framing == REPLY_CHUNKED ? SIZE : h->framing == REPLY_LENGTH ? LENGTH : TO_END;
	if (!is_early && has_no_body(r, h))
		finish(r);
	if (r->state == SIZE)
		r->left = 0;
	return true;
}

/* Not to be understood: without secrets it is the program's to judge. */
static bool pass_unread(struct reply *r)
{
	if (r->mask.secrets)
		return false;
	r->closes = true;
	r->state  = TO_END;
	return true;
}

/* A secret has no line end, and a head ends with one: none of its bytes is held back. */
static bool take_head(struct step *s, bool is_end)
{
	struct reply_head  head;
	enum reply_outcome outcome = reply_head_parse(s->in.at, s->in.len, &head);

	if (outcome == REPLY_MORE && !is_end)
		return true;
	if (outcome == REPLY_DONE && s->room - s->made < head.len + NET_SECRET_VALUE_MAX)
		return true;
	if (outcome != REPLY_DONE || !go_on_behind(s->r, &head))
		return pass_unread(s->r);
	s->made += secret_mask_step(&s->r->mask, s->in.at, head.len, s->out + s->made);
	s->made += secret_mask_end(&s->r->mask, s->out + s->made);
	take(s, head.len);
	return true;
}

/* --- chunks --- */

/* The line of a size has ended. Of the last one, the end goes to the program at once. */
static unsigned behind_size(struct step *s)
{
	s->r->digits = 0;
	if (s->r->left)
		return DATA;
	emit_chunk(s, secret_mask_end(&s->r->mask, place(s)));
	memcpy(s->out + s->made, "0\r\n\r\n", 5);
	s->made += 5;
	return TRAILER;
}

/* The state behind one byte of what is around the chunks; -1: malformed. */
static int take_frame_byte(struct step *s, char c)
{
	struct reply *r = s->r;

	switch (r->state) {
	case SIZE:
		if (text_hex_digit(c) >= 0) {
			r->left = r->left << 4 | (unsigned)text_hex_digit(c);
			return ++r->digits <= DIGITS_MAX ? SIZE : -1;
		}
		return !r->digits ? -1 : c == '\r' ? SIZE_LF : c == ';' || c == ' ' || c == '\t' ? SIZE_REST : -1;
	case SIZE_REST:
		return c == '\r' ? SIZE_LF : c == '\n' || ++r->trailer > TRAILER_MAX ? -1 : SIZE_REST;
	case SIZE_LF:
		return c == '\n' ? (int)behind_size(s) : -1;
	case DATA_CR:
		return c == '\r' ? DATA_LF : -1;
	case DATA_LF:
		return c == '\n' ? SIZE : -1;
	case TRAILER:
		return c == '\r' ? LAST_LF : c == '\n' ? -1 : TRAILER_REST;
	case TRAILER_REST:
		return c == '\r' ? TRAILER_LF : c == '\n' || ++r->trailer > TRAILER_MAX ? -1 : TRAILER_REST;
	case TRAILER_LF:
		return c == '\n' ? TRAILER : -1;
	default:
		return c == '\n' ? OVER : -1;
	}
}

static bool take_frame(struct step *s)
{
	int state = take_frame_byte(s, *s->in.at);

	take(s, 1);
	if (state < 0)
		return false;
	s->r->state = (unsigned)state;
	if (state == OVER)
		finish(s->r);
	return true;
}

/* --- frames of a WebSocket --- */

/* 0: its end is not there yet. */
static size_t frame_head_len(struct span in)
{
	size_t len = in.len < 2 ? 2 : ((uint8_t)in.at[1] & 0x7f) == 127 ? 10 : ((uint8_t)in.at[1] & 0x7f) == 126 ? 4 : 2;

	return in.len < len ? 0 : len;
}

static uint64_t frame_left(struct span in, size_t head)
{
	uint64_t x = 0;

	for (size_t i = 2; i < head; i++)
		x = x << 8 | (uint8_t)in.at[i];
	return head == 2 ? (uint8_t)in.at[1] & 0x7f : x;
}

/* A control frame may come between those of a message, so it is looked at alone. */
static bool take_control(struct step *s, size_t head, uint64_t len)
{
	if (len > CONTROL_MAX || !((uint8_t)*s->in.at & FRAME_LAST))
		return false;
	if (s->in.len < head + len)
		return true;
	memcpy(s->out + s->made, s->in.at, head + (size_t)len);
	secret_mask_whole(&s->r->mask, s->out + s->made + head, (size_t)len);
	s->made += head + (size_t)len;
	take(s, head + (size_t)len);
	return true;
}

static void end_message(struct step *s, size_t made)
{
	emit_frame(s, made + secret_mask_end(&s->r->mask, place(s) + made), true);
	s->r->opcode = 0;
}

static bool take_ws_head(struct step *s)
{
	struct reply *r     = s->r;
	size_t        len   = frame_head_len(s->in);
	uint8_t       first = (uint8_t)*s->in.at, opcode = first & FRAME_OPCODE;

	if (first & FRAME_RESERVED || (s->in.len > 1 && (uint8_t)s->in.at[1] & FRAME_MASKED))
		return false;
	if (len == 0)
		return true;
	r->left = frame_left(s->in, len);
	if (opcode & FRAME_CONTROL)
		return take_control(s, len, r->left);
	if ((opcode == 0) != (r->opcode != 0) || opcode > 2 || r->left > INT64_MAX)
		return false;
	take(s, len);
	r->opcode  = opcode ? opcode : r->opcode;
	r->is_last = first & FRAME_LAST;
	if (r->left)
		r->state = FRAME_DATA;
	else if (r->is_last)
		end_message(s, 0);
	return true;
}

static void take_ws_data(struct step *s)
{
	size_t before = s->in.len, made = mask_some(s, s->r->left);

	s->r->left -= before - s->in.len;
	if (s->r->left == 0 && s->r->is_last)
		end_message(s, made);
	else
		emit_frame(s, made, false);
	if (s->r->left == 0)
		s->r->state = FRAME;
}

/* --- */

/* False: malformed. */
static bool take_some(struct step *s, bool is_end)
{
	switch (s->r->state) {
	case HEAD:
		return take_head(s, is_end);
	case LENGTH:
		take_length(s);
		return true;
	case TO_END:
		emit(s, mask_some(s, UINT64_MAX));
		return true;
	case DATA:
		take_data(s, DATA_CR);
		return true;
	case FRAME:
		return take_ws_head(s);
	case FRAME_DATA:
		take_ws_data(s);
		return true;
	default:
		return take_frame(s);
	}
}

/* What is held back, at the end of file, or because the reply pauses. */
static void let_go(struct step *s, size_t (*held)(struct secret_mask *m, char *out))
{
	emit(s, held(&s->r->mask, place(s)));
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
	struct step s     = { r, in, out, room, 0 };
	bool        ok    = true;
	unsigned    state = OVER;

	for (size_t before = 0; ok && !r->is_done && s.in.len && (s.in.len != before || r->state != state) && room_for_bytes(&s);) {
		before = s.in.len;
		state  = r->state;
		ok     = take_some(&s, is_end);
	}
	if (ok && is_end && !s.in.len)
		let_go(&s, secret_mask_end);
	*taken = in.len - s.in.len;
	*made  = s.made;
	return ok;
}
