/*
 * fuzz_request_body.c - the body of a request, framed anew: the same bytes however it is cut, and nothing behind it
 *
 * The first byte: of a length (which it says) when it is odd, else of chunks. The second one says how it is cut.
 */
#include "fuzz.h"
#include "request_body.h"

enum { MADE_MAX = 1 << 20 };

struct made {
	char  *at;
	size_t len, taken;
	bool   is_good, is_done;
};

static struct request_head head_of(uint8_t kind)
{
	struct request_head h = { 0 };

	h.body_len = kind / 2;
	h.framing  = kind % 2 == 0 ? REQUEST_CHUNKED : h.body_len ? REQUEST_LENGTH : REQUEST_NO_BODY;
	return h;
}

static struct made make(const struct request_head *h, const char *bytes, size_t len, size_t in_max, size_t out_max)
{
	struct request_body b;
	struct made         m = { .at = malloc(MADE_MAX), .is_good = true };
	size_t              taken = 1, made = 1;

	must(m.at && out_max >= REQUEST_BODY_ROOM);
	request_body_init(&b, h);
	for (size_t have = 0; m.is_good && !b.is_done && (have < len || taken || made);) {
		struct span in;
		char       *out = malloc(out_max); /* a step too far is seen */

		must(out);
		have      = have + in_max < len ? have + in_max : len;
		in        = (struct span){ bytes + m.taken, have - m.taken };
		m.is_good = request_body_copy_step(&b, in, out, out_max, &taken, &made);
		must(taken <= in.len && made <= out_max);
		if (m.len + made <= MADE_MAX)
			memcpy(m.at + m.len, out, made);
		m.taken += taken;
		m.len += made;
		free(out);
	}
	must(m.len <= MADE_MAX);
	m.is_done = b.is_done;
	return m;
}

/* The bytes inside of chunks that we made, in place; all of it is exactly one body. */
static void unframe(struct made *m)
{
	size_t at = 0, len = 0;

	for (;;) {
		char  *end;
		size_t n = strtoul(m->at + at, &end, 16);

		must(*end == '\r' && end[1] == '\n');
		at = (size_t)(end + 2 - m->at);
		must(at + n + 2 <= m->len);
		memmove(m->at + len, m->at + at, n);
		len += n;
		at += n + 2;
		must(m->at[at - 2] == '\r' && m->at[at - 1] == '\n');
		if (n == 0)
			break;
	}
	must(at == m->len);
	m->len = len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct request_head h;
	struct made         whole, cut;

	if (size < 2 || size > MADE_MAX / 32)
		return 0;
	h     = head_of(data[0]);
	whole = make(&h, (const char *)data + 2, size - 2, size, MADE_MAX);
	cut   = make(&h, (const char *)data + 2, size - 2, 1u + data[1] % 16, REQUEST_BODY_ROOM + data[1] / 16);
	must(whole.is_good == cut.is_good && whole.is_done == cut.is_done && whole.taken <= size - 2);
	must(!whole.is_done || whole.taken == cut.taken);
	if (whole.is_done && h.framing == REQUEST_CHUNKED) {
		unframe(&whole);
		unframe(&cut);
	}
	if (whole.is_done)
		must(whole.len == cut.len && memcmp(whole.at, cut.at, whole.len) == 0);
	must(!whole.is_done || h.framing != REQUEST_LENGTH || (whole.len == h.body_len && memcmp(whole.at, data + 2, whole.len) == 0));
	free(whole.at);
	free(cut.at);
	return 0;
}
