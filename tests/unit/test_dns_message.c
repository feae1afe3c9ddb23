#include "dns_message.h"
#include "tap.h"

#define HEAD(flags, questions, additional) "\x12\x34" flags "\0" questions "\0\0\0\0\0" additional
#define ASK                                HEAD("\x01\0", "\x01", "\0")
#define NAME                               "\x03wWw\x07" "example\x03org\0"
#define A_IN                               "\0\x01\0\x01"
#define OPT                                "\0\0\x29\x10\0\0\0\0\0\0\0"
#define L63                                "\x3f" "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffggg"
#define L61                                "\x3d" "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffg"

/* clang-format off */
static const struct {
	const char      *name, *bytes;
	size_t           len;
	enum dns_outcome outcome;
	enum dns_rcode   wrong;
	const char      *host;
} rows[] = {
#define ROW(name, bytes, outcome, wrong, host) { name, bytes, sizeof(bytes) - 1, outcome, wrong, host }
	ROW("a question for an address", ASK NAME A_IN, DNS_ASKED, 0, "www.example.org"),
	ROW("a question with EDNS", HEAD("\x01\0", "\x01", "\x01") NAME A_IN OPT, DNS_ASKED, 0, "www.example.org"),
	ROW("a cookie in EDNS is tolerated", HEAD("\x01\0", "\x01", "\x01") NAME A_IN "\0\0\x29\x10\0\0\0\0\0\0\x0c\0\x0a\0\x08" "12345678", DNS_ASKED, 0, "www.example.org"),
	ROW("another version of EDNS is told", HEAD("\x01\0", "\x01", "\x01") NAME A_IN "\0\0\x29\x10\0\0\x01\0\0\0\0", DNS_WRONG, DNS_BADVERS, "www.example.org"),
	ROW("a name of 253 bytes", ASK L63 L63 L63 L61 "\0" A_IN, DNS_ASKED, 0, NULL),
	ROW("a name of 254 bytes is malformed", ASK L63 L63 L63 L61 "\x01" "a\0" A_IN, DNS_WRONG, DNS_FORMERR, ""),
	ROW("the root is no host", ASK "\0" A_IN, DNS_ASKED, 0, ""),
	ROW("a dot inside of a label is no host", ASK "\x0b" "example.org\0" A_IN, DNS_ASKED, 0, ""),
	ROW("a zero inside of a label is no host", ASK "\x05" "exa\0e\x03org\0" A_IN, DNS_ASKED, 0, ""),
	ROW("bytes above ASCII are no host", ASK "\x04g\xd1\x96t\x03" "com\0" A_IN, DNS_ASKED, 0, ""),
	ROW("an address as a name is no host", ASK "\x03" "127\x01" "0\x01" "0\x01" "1\0" A_IN, DNS_ASKED, 0, ""),
	ROW("a number as a name is no host", ASK "\x0a" "2130706433\0" A_IN, DNS_ASKED, 0, ""),
	ROW("another class is refused", ASK NAME "\0\x01\0\x03", DNS_WRONG, DNS_REFUSED, "www.example.org"),
	ROW("a status question is not implemented", HEAD("\x10\0", "\x01", "\0") NAME A_IN, DNS_WRONG, DNS_NOTIMP, ""),
	ROW("an update is not implemented", HEAD("\x28\0", "\x01", "\0") NAME A_IN, DNS_WRONG, DNS_NOTIMP, ""),
	ROW("no question is malformed", HEAD("\x01\0", "\0", "\0"), DNS_WRONG, DNS_FORMERR, ""),
	ROW("two questions are malformed", HEAD("\x01\0", "\x02", "\0") NAME A_IN NAME A_IN, DNS_WRONG, DNS_FORMERR, ""),
	ROW("an answer in a question is malformed", "\x12\x34\x01\0\0\x01\0\x01\0\0\0\0" NAME A_IN NAME A_IN "\0\0\0\0\0\0", DNS_WRONG, DNS_FORMERR, ""),
	ROW("another additional record is malformed", HEAD("\x01\0", "\x01", "\x01") NAME A_IN NAME A_IN "\0\0\0\0\0\0", DNS_WRONG, DNS_FORMERR, ""),
	ROW("an OPT of a name is malformed", HEAD("\x01\0", "\x01", "\x01") NAME A_IN "\x01" "a\0\0\x29\x10\0\0\0\0\0\0\0", DNS_WRONG, DNS_FORMERR, ""),
	ROW("an OPT longer than the message is malformed", HEAD("\x01\0", "\x01", "\x01") NAME A_IN "\0\0\x29\x10\0\0\0\0\0\0\x01", DNS_WRONG, DNS_FORMERR, ""),
	ROW("bytes behind the question are malformed", ASK NAME A_IN "x", DNS_WRONG, DNS_FORMERR, ""),
	ROW("a compressed name is malformed", ASK "\xc0\x0c" A_IN, DNS_WRONG, DNS_FORMERR, ""),
	ROW("a label of another kind is malformed", ASK "\x41" "a\0" A_IN, DNS_WRONG, DNS_FORMERR, ""),
	ROW("a question cut off in its name is malformed", ASK "\x03www", DNS_WRONG, DNS_FORMERR, ""),
	ROW("a question cut off in its class is malformed", ASK NAME "\0\x01\0", DNS_WRONG, DNS_FORMERR, ""),
	ROW("an answer is ignored", HEAD("\x81\0", "\x01", "\0") NAME A_IN, DNS_IGNORE, 0, ""),
	ROW("less than a header is ignored", "\x12\x34\x01\0\0\x01\0\0\0\0\0", DNS_IGNORE, 0, ""),
	ROW("nothing is ignored", "", DNS_IGNORE, 0, ""),
#undef ROW
};
/* clang-format on */

static bool answer_is(const char *question, size_t len, enum dns_rcode rcode, uint32_t address, const char *want, size_t want_len)
{
	struct dns_question q;
	uint8_t             bytes[DNS_ANSWER_MAX];
	size_t              n;
	bool                ok;

	if (dns_question_parse((const uint8_t *)question, len, &q) == DNS_WRONG)
		rcode = q.wrong;
	n  = dns_answer_write(&q, rcode, address, 60, bytes);
	ok = n == want_len && memcmp(bytes, want, n) == 0;
	for (size_t i = 0; !ok && i < n; i++)
		printf("%s%02x%s", i ? " " : "#   ", bytes[i], i + 1 == n ? "\n" : "");
	return ok;
}

#define ANSWER_IS(question, rcode, address, want) answer_is(question, sizeof(question) - 1, rcode, address, want, sizeof(want) - 1)

static void test_answers(void)
{
	tap_ok(ANSWER_IS(ASK NAME A_IN, DNS_NOERROR, 0xc6120100, "\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0" NAME A_IN "\xc0\x0c" A_IN "\0\0\0\x3c\0\x04\xc6\x12\x01\0"),
	       "an address; the name comes back in its own letters");
	tap_ok(ANSWER_IS(ASK NAME A_IN, DNS_NOERROR, 0, "\x12\x34\x81\x80\0\x01\0\0\0\0\0\0" NAME A_IN), "an empty answer");
	tap_ok(ANSWER_IS(ASK NAME A_IN, DNS_NXDOMAIN, 0xc6120100, "\x12\x34\x81\x83\0\x01\0\0\0\0\0\0" NAME A_IN), "no such name, and no address");
	tap_ok(ANSWER_IS(HEAD("\x01\x10", "\x01", "\x01") NAME A_IN OPT, DNS_NXDOMAIN, 0,
			 "\x12\x34\x81\x93\0\x01\0\0\0\0\0\x01" NAME A_IN "\0\0\x29\x04\xd0\0\0\0\0\0\0"),
	       "EDNS is answered with EDNS, CD comes back");
	tap_ok(ANSWER_IS(HEAD("\x01\0", "\x01", "\x01") NAME A_IN "\0\0\x29\x10\0\0\x01\0\0\0\0", DNS_NOERROR, 0,
			 "\x12\x34\x81\x80\0\x01\0\0\0\0\0\x01" NAME A_IN "\0\0\x29\x04\xd0\x01\0\0\0\0\0"),
	       "BADVERS is in the OPT");
	tap_ok(ANSWER_IS(HEAD("\x28\0", "\x01", "\0") NAME A_IN, DNS_NOERROR, 0, "\x12\x34\xa8\x84\0\0\0\0\0\0\0\0"), "not implemented: the opcode comes back");
	tap_ok(ANSWER_IS(ASK "\xc0\x0c" A_IN, DNS_NOERROR, 0, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0"), "malformed: a header alone");
}

int main(void)
{
	struct dns_question q;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		enum dns_outcome got;

		memset(&q, 0, sizeof q);
		got = dns_question_parse((const uint8_t *)rows[i].bytes, rows[i].len, &q);
		if (!tap_ok(got == rows[i].outcome && q.wrong == rows[i].wrong && (rows[i].host ? !strcmp(q.name, rows[i].host) : strlen(q.name) == 253), "%s", rows[i].name))
			printf("#   outcome %d, wrong %d, \"%s\"\n", got, q.wrong, q.name);
	}
	dns_question_parse((const uint8_t *)ASK "\x05" "a\033b c\x03org\0" A_IN, sizeof(ASK "\x05" "a\033b c\x03org\0" A_IN) - 1, &q);
	tap_is(q.shown, "a?b?c.org", "a name that is none is shown as plain text");
	test_answers();
	return tap_done();
}
