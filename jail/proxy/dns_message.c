#include "dns_message.h"
#include "bytes.h"
#include "text.h"

#include <string.h>

enum {
	HEADER     = 12,
	FLAG_QR    = 0x8000,
	FLAG_RD    = 0x0100,
	FLAG_RA    = 0x0080,
	FLAG_CD    = 0x0010,
	OPCODE     = 0x7800,
	CLASS_IN   = 1,
	TYPE_OPT   = 41,
	LABEL_MAX  = 63,
	NAME_MAX_WIRE = 255,
	OUR_PAYLOAD = 1232,
};

/* --- the question --- */

static bool is_host_byte(uint8_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

/* Bytes that no host name has become "?": a dot or a zero inside a label would make another name of the text. False:
 * there was one. */
static bool add_label(char *name, size_t *len, const uint8_t *label, size_t n)
{
	bool plain = true;

	if (*len)
		name[(*len)++] = '.';
	for (size_t i = 0; i < n; i++) {
		plain &= is_host_byte(label[i]);
		name[(*len)++] = is_host_byte(label[i]) ? (char)label[i] : '?';
	}
	return plain;
}

/* shown gets the name as text. False: malformed. */
static bool read_name(struct bytes_left *b, char shown[NAME_MAX_WIRE + 1], bool *is_plain)
{
	const uint8_t *from = b->at;
	size_t         len = 0, n;

	*is_plain = true;
	while ((n = take_number(b, 1)) != 0) {
		/* a longer one is compression, or another kind of label */
		const uint8_t *label = n <= LABEL_MAX ? take_bytes(b, n) : NULL;

		if (!label || b->at - from > NAME_MAX_WIRE - 1)
			return false;
		*is_plain &= add_label(shown, &len, label, n);
	}
	shown[len] = 0;
	return !b->has_failed;
}

static bool read_question(struct bytes_left *b, struct dns_question *q)
{
	const uint8_t *from = b->at;
	char           shown[NAME_MAX_WIRE + 1];
	bool           is_plain, is_address;
	unsigned       class;

	if (!read_name(b, shown, &is_plain))
		return false;
	q->type = (uint16_t)take_number(b, 2);
	class   = take_number(b, 2);
	if (b->has_failed)
		return false;
	q->asked_len = (uint16_t)(b->at - from);
	memcpy(q->asked, from, q->asked_len);
	strcpy(q->shown, shown); /* 255 bytes on the wire are 253 as text */
	if (!is_plain || !net_host_canonicalize(shown, strlen(shown), q->name, &is_address) || is_address)
		q->name[0] = 0;
	if (class != CLASS_IN)
		q->wrong = DNS_REFUSED;
	return true;
}

/* OPT is the only record that may follow the question. Its options (cookies, subnets) are ignored. */
static bool read_opt(struct bytes_left *b, struct dns_question *q)
{
	uint32_t version;

	if (take_number(b, 1) != 0 || take_number(b, 2) != TYPE_OPT)
		return false;
	take_number(b, 2);
	version = take_number(b, 4) >> 16 & 0xff;
	take_part(b, 2);
	if (b->has_failed)
		return false;
	q->has_edns = true;
	if (version != 0)
		q->wrong = DNS_BADVERS;
	return true;
}

enum dns_outcome dns_question_parse(const uint8_t *bytes, size_t len, struct dns_question *ret)
{
	struct bytes_left   b = { bytes, len, false };
	struct dns_question q = { 0 };
	unsigned            questions, answers, authorities, additional;

	q.id        = (uint16_t)take_number(&b, 2);
	q.flags     = (uint16_t)take_number(&b, 2);
	questions   = take_number(&b, 2);
	answers     = take_number(&b, 2);
	authorities = take_number(&b, 2);
	additional  = take_number(&b, 2);
	if (b.has_failed || (q.flags & FLAG_QR))
		return DNS_IGNORE;
	if (q.flags & OPCODE) {
		q.wrong = DNS_NOTIMP;
	} else if (len > DNS_QUESTION_MAX || questions != 1 || answers || authorities || additional > 1 ||
		   !read_question(&b, &q) || (additional && !read_opt(&b, &q)) || b.left) {
		q = (struct dns_question){ .id = q.id, .flags = q.flags, .wrong = DNS_FORMERR };
	}
	*ret = q;
	return q.wrong ? DNS_WRONG : DNS_ASKED;
}

/* --- the answer --- */

static uint8_t *put_number(uint8_t *at, uint32_t x, unsigned n)
{
	while (n-- > 0)
		*at++ = (uint8_t)(x >> 8 * n);
	return at;
}

size_t dns_answer_write(const struct dns_question *q, enum dns_rcode rcode, uint32_t address, uint32_t ttl,
			uint8_t ret[DNS_ANSWER_MAX])
{
	bool     has_address = address && rcode == DNS_NOERROR;
	unsigned keeps       = FLAG_RD | FLAG_CD | (rcode == DNS_NOTIMP ? OPCODE : 0);
	uint8_t *at          = ret;

	at = put_number(at, q->id, 2);
	at = put_number(at, FLAG_QR | FLAG_RA | (q->flags & keeps) | ((unsigned)rcode & 0xf), 2);
	at = put_number(at, q->asked_len != 0, 2);
	at = put_number(at, has_address, 2);
	at = put_number(at, 0, 2);
	at = put_number(at, q->has_edns, 2);
	memcpy(at, q->asked, q->asked_len);
	at += q->asked_len;
	if (has_address) {
		at = put_number(at, 0xc000 | HEADER, 2); /* a pointer to the question's name */
		at = put_number(at, DNS_TYPE_A, 2);
		at = put_number(at, CLASS_IN, 2);
		at = put_number(at, ttl, 4);
		at = put_number(at, 4, 2);
		at = put_number(at, address, 4);
	}
	if (q->has_edns) {
		at = put_number(at, 0, 1);
		at = put_number(at, TYPE_OPT, 2);
		at = put_number(at, OUR_PAYLOAD, 2);
		at = put_number(at, (uint32_t)rcode >> 4, 1);
		at = put_number(at, 0, 3);
		at = put_number(at, 0, 2);
	}
	return (size_t)(at - ret);
}
