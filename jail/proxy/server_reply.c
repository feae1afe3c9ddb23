#define _GNU_SOURCE
#include "server_reply.h"
#include "http_line.h"
#include "text.h"

#include <string.h>

enum {
	HEAD,
	LENGTH,     /* the bytes of the body */
	TO_END,     /* up to end of file */
	CHUNKED,
	FRAME,      /* the head of a WebSocket frame (RFC 6455, 5.2) */
	FRAME_DATA,
	OVER,
};

enum { CHUNK_HEAD = 10, CHUNK_FRAME = CHUNK_HEAD + 2 }; /* "0000ffff\r\n" and "\r\n" */
enum {
	FRAME_HEAD     = 10,
	FRAME_LAST     = 0x80,
	FRAME_RESERVED = 0x70,
	FRAME_OPCODE   = 0x0f,
	FRAME_CONTROL  = 0x08,
	FRAME_MASKED   = 0x80,
	CONTROL_MAX    = 125
};

void reply_init(struct reply *r, const struct proxy_config *config, const char *host, uint16_t port, bool is_of_head,
		 bool upgrades)
{
	static const struct proxy_config none;

	memset((char *)r + sizeof r->mask, 0, sizeof *r - sizeof r->mask);
	secret_mask_init(&r->mask, config ? config : &none, host, port);
	r->state      = HEAD;
	r->is_of_head = is_of_head;
	r->upgrades   = upgrades;
}

bool reply_passes_unread(const struct reply *r, uint64_t *left)
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

static void skip_bytes(struct step *s, size_t n)
{
	s->in.at += n;
	s->in.len -= n;
}

static void reply_finish(struct reply *r)
{
	r->state   = OVER;
	r->is_done = true;
}

/* --- bytes that come out, in the frame of the state --- */

static bool is_websocket(const struct reply *r)
{
	return r->state == FRAME || r->state == FRAME_DATA;
}

static char *body_write_position(const struct step *s)
{
	return s->out + s->made + (s->r->state == CHUNKED ? CHUNK_HEAD : is_websocket(s->r) ? FRAME_HEAD : 0);
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

static size_t write_frame_length(uint8_t *at, size_t n)
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
	len     = 1 + write_frame_length(head + 1, n);
	memmove(s->out + s->made + len, s->out + s->made + FRAME_HEAD, n);
	memcpy(s->out + s->made, head, len);
	s->made += len + n;
	s->r->has_begun = !is_last;
}

static void emit_bytes(struct step *s, size_t n)
{
	if (s->r->state == CHUNKED)
		emit_chunk(s, n);
	else if (is_websocket(s->r))
		emit_frame(s, n, false);
	else
		s->made += n;
}

static size_t room_for_body_bytes(const struct step *s)
{
	size_t used = s->made + NET_SECRET_VALUE_MAX + 2 * CHUNK_FRAME; /* room for the held bytes and the last chunk */

	return s->room > used ? s->room - used : 0;
}

/* Takes bytes of the body. Returns how many were written behind body_write_position(). */
static size_t mask_body_bytes(struct step *s, uint64_t most)
{
	size_t n    = http_least(most, http_least(s->in.len, room_for_body_bytes(s)));
	size_t made = n ? secret_mask_step(&s->r->mask, s->in.at, n, body_write_position(s)) : 0;

	skip_bytes(s, n);
	return made;
}

static void pass_body_of_length(struct step *s)
{
	size_t before = s->in.len;

	emit_bytes(s, mask_body_bytes(s, s->r->left));
	s->r->left -= before - s->in.len;
	if (s->r->left)
		return;
	s->made += secret_mask_finish(&s->r->mask, s->out + s->made);
	reply_finish(s->r);
}

/* --- the head --- */

static bool reply_has_no_body(const struct reply *r, const struct reply_head *h)
{
	return r->is_of_head || h->status == 204 || h->status == 304 ||
	       (h->framing == REPLY_LENGTH && h->body_len == 0);
}

/* After "HTTP/1.1 100 Continue" another head follows; after 101, another protocol. False: refused. */
static bool set_state_after_head(struct reply *r, const struct reply_head *h)
{
	bool is_early = h->status < 200;

	if (h->status == 101) {
		if (!r->upgrades)
			return false;
		r->has_switched = true;
		r->state        = r->mask.secrets ? FRAME : TO_END;
		return true;
	}
	if (r->mask.secrets && (h->is_part || (h->is_other_form && !reply_has_no_body(r, h))))
		return false;
	r->closes |= !is_early && (h->closes || (h->framing == REPLY_TO_END && !reply_has_no_body(r, h)));
	r->left  = h->body_len;
	r->state = is_early                      ? HEAD
		   : h->framing == REPLY_CHUNKED ? CHUNKED
		   : h->framing == REPLY_LENGTH  ? LENGTH
						 : TO_END;
	if (!is_early && reply_has_no_body(r, h))
		reply_finish(r);
	r->chunk = (struct chunk_reader){ .may_extend = true };
	return true;
}

/* A secret has no line end, and a head ends with one: none of its bytes is held back. */
static bool pass_head(struct step *s, bool is_end)
{
	struct reply_head  head;
	enum http_outcome outcome = reply_head_parse(s->in.at, s->in.len, &head);

	if (outcome == HTTP_MORE && !is_end)
		return true;
	if (outcome == HTTP_DONE && s->room - s->made < head.len + NET_SECRET_VALUE_MAX)
		return true;
	if (outcome != HTTP_DONE || !set_state_after_head(s->r, &head)) {
		s->r->closes = true; /* without secrets it is the program's to judge */
		s->r->state  = TO_END;
		return !s->r->mask.secrets;
	}
	s->made += secret_mask_step(&s->r->mask, s->in.at, head.len, s->out + s->made);
	s->made += secret_mask_finish(&s->r->mask, s->out + s->made);
	skip_bytes(s, head.len);
	return true;
}

/* --- chunks --- */

/* False: malformed. */
static bool pass_chunks(struct step *s)
{
	struct chunk_reader *chunk  = &s->r->chunk;
	enum chunk_state     before = chunk->state;
	size_t               left   = s->in.len;

	if (chunk->state == CHUNK_DATA) {
		emit_bytes(s, mask_body_bytes(s, chunk->left));
		chunk_reader_skip_data(chunk, left - s->in.len);
		return true;
	}
	if (!chunk_reader_read_byte(chunk, *s->in.at))
		return false;
	skip_bytes(s, 1);
	/* the end goes to the program at once, before the trailers */
	if (before == CHUNK_SIZE_LF && chunk->state == CHUNK_TRAILER) {
		emit_chunk(s, secret_mask_finish(&s->r->mask, body_write_position(s)));
		memcpy(s->out + s->made, "0\r\n\r\n", 5);
		s->made += 5;
	}
	if (chunk->state == CHUNK_OVER)
		reply_finish(s->r);
	return true;
}

/* --- frames of a WebSocket --- */

/* A control frame may come between those of a message, so it is looked at alone. */
static bool pass_control_frame(struct step *s, size_t head, uint64_t len)
{
	if (len > CONTROL_MAX || !((uint8_t)*s->in.at & FRAME_LAST))
		return false;
	if (s->in.len < head + len)
		return true;
	memcpy(s->out + s->made, s->in.at, head + (size_t)len);
	secret_mask_whole(&s->r->mask, s->out + s->made + head, (size_t)len);
	s->made += head + (size_t)len;
	skip_bytes(s, head + (size_t)len);
	return true;
}

static void end_ws_message(struct step *s, size_t made)
{
	emit_frame(s, made + secret_mask_finish(&s->r->mask, body_write_position(s) + made), true);
	s->r->opcode = 0;
}

static bool read_frame_head(struct step *s)
{
	struct reply *r     = s->r;
	uint8_t       first = (uint8_t)*s->in.at, opcode = first & FRAME_OPCODE,
		second      = s->in.len > 1 ? (uint8_t)s->in.at[1] : 0;
	size_t        len   = second == 127 ? 10 : second == 126 ? 4 : 2;

	if (first & FRAME_RESERVED || second & FRAME_MASKED)
		return false;
	if (s->in.len < len) /* its end is not there yet */
		return true;
	r->left = len == 2 ? second : 0;
	for (size_t i = 2; i < len; i++)
		r->left = r->left << 8 | (uint8_t)s->in.at[i];
	if (opcode & FRAME_CONTROL)
		return pass_control_frame(s, len, r->left);
	if ((opcode == 0) != (r->opcode != 0) || opcode > 2 || r->left > INT64_MAX)
		return false;
	skip_bytes(s, len);
	r->opcode  = opcode ? opcode : r->opcode;
	r->is_last = first & FRAME_LAST;
	if (r->left)
		r->state = FRAME_DATA;
	else if (r->is_last)
		end_ws_message(s, 0);
	return true;
}

static void pass_frame_data(struct step *s)
{
	size_t before = s->in.len, made = mask_body_bytes(s, s->r->left);

	s->r->left -= before - s->in.len;
	if (s->r->left == 0 && s->r->is_last)
		end_ws_message(s, made);
	else
		emit_frame(s, made, false);
	if (s->r->left == 0)
		s->r->state = FRAME;
}

/* --- */

/* False: malformed. */
static bool reply_step_once(struct step *s, bool is_end)
{
	switch (s->r->state) {
	case HEAD:
		return pass_head(s, is_end);
	case LENGTH:
		pass_body_of_length(s);
		return true;
	case TO_END:
		emit_bytes(s, mask_body_bytes(s, UINT64_MAX));
		return true;
	case CHUNKED:
		return pass_chunks(s);
	case FRAME:
		return read_frame_head(s);
	case FRAME_DATA:
		pass_frame_data(s);
		return true;
	default:
		return false;
	}
}

bool reply_holds_bytes(const struct reply *r)
{
	return r->mask.held > r->mask.passed;
}

size_t reply_flush_held(struct reply *r, char *out)
{
	struct step s = { .r = r, .out = out };

	emit_bytes(&s, secret_mask_flush(&r->mask, body_write_position(&s)));
	return s.made;
}

bool reply_step(struct reply *r, struct span in, bool is_end, char *out, size_t room, size_t *taken, size_t *made)
{
	struct step s     = { r, in, out, room, 0 };
	bool        ok    = true;
	unsigned    state = OVER;

	for (size_t before = 0;
	     ok && !r->is_done && s.in.len && (s.in.len != before || r->state != state) && room_for_body_bytes(&s);) {
		before = s.in.len;
		state  = r->state;
		ok     = reply_step_once(&s, is_end);
	}
	if (ok && is_end && !s.in.len)
		emit_bytes(&s, secret_mask_finish(&r->mask, body_write_position(&s)));
	*taken = in.len - s.in.len;
	*made  = s.made;
	return ok;
}
