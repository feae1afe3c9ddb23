/* fuzz_dns_question.c - a datagram to the stub resolver: a name is canonical, an answer fits, and is no question again */
#include "dns_message.h"
#include "fuzz.h"

static void must_answer(const struct dns_question *q, enum dns_rcode rcode, uint32_t address)
{
	uint8_t             answer[DNS_ANSWER_MAX];
	struct dns_question again;
	size_t              len = dns_answer_write(q, rcode, address, 60, answer);

	must(len >= 12 && len <= sizeof answer);
	must(answer[0] == q->id >> 8 && answer[1] == (q->id & 0xff) && (answer[2] & 0x80) && (answer[3] & 0xf) == (rcode & 0xf));
	must(memcmp(answer + 12, q->asked, q->asked_len) == 0);
	must(dns_question_parse(answer, len, &again) == DNS_IGNORE);
}

static void must_be_canonical(const char *name)
{
	char canonical[NET_HOST_MAX];
	bool is_address;

	must_about(name, net_host_canonicalize(name, strlen(name), canonical, &is_address) && !is_address &&
		   strcmp(name, canonical) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dns_question q = { 0 };
	enum dns_outcome    o = dns_question_parse(data, size, &q);

	if (o == DNS_IGNORE)
		return 0;
	must(size >= 12 && q.asked_len <= sizeof q.asked && q.asked_len <= size);
	must((o == DNS_WRONG) == (q.wrong != DNS_NOERROR));
	must_about(q.shown, text_is_plain(q.shown) && strlen(q.shown) < sizeof q.shown);
	if (*q.name)
		must_be_canonical(q.name);
	must(o != DNS_ASKED || (size <= DNS_QUESTION_MAX && q.asked_len >= 5));
	must_answer(&q, o == DNS_WRONG ? q.wrong : DNS_NXDOMAIN, 0);
	if (o == DNS_ASKED)
		must_answer(&q, DNS_NOERROR, 0xc6120101);
	return 0;
}
