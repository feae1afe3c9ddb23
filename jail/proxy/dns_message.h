/*
 * dns_message.h - one question of a program, and what the stub resolver answers
 *
 * Pure: bytes in, struct out. RFC 1035, EDNS of RFC 6891. A question has exactly one name,
 * without compression, and nothing but an OPT record behind it; bytes that are left over are refused.
 */
#pragma once
#include "net_rule.h"

enum {
	DNS_QUESTION_MAX = 1232, /* a longer one is answered with FORMERR */
	DNS_ANSWER_MAX   = 512,  /* no answer is longer: one address at most */
	DNS_TYPE_A       = 1,
	DNS_TYPE_AAAA    = 28,
};

enum dns_rcode {
	DNS_NOERROR  = 0,
	DNS_FORMERR  = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP   = 4,
	DNS_REFUSED  = 5,
	DNS_BADVERS  = 16
};

enum dns_outcome {
	DNS_ASKED,  /* a question: look at name and type, and answer */
	DNS_WRONG,  /* answer with the code in wrong */
	/* shorter than a header, or itself an answer: send nothing (two resolvers could answer each other for ever) */
	DNS_IGNORE,
};

struct dns_question {
	uint16_t       id, flags, type;
	bool           has_edns;
	enum dns_rcode wrong;
	/* canonical; "": not the name of a host, or an address: NXDOMAIN is the answer */
	char           name[NET_HOST_MAX];
	/* as asked, with "?" for other bytes than those of host names, for the report */
	char           shown[NET_HOST_MAX];
	uint16_t       asked_len;
	uint8_t        asked[256 + 4]; /* name, type and class as they came: the answer keeps the case of letters */
};

enum dns_outcome dns_question_parse(const uint8_t *bytes, size_t len, struct dns_question *ret);

/* address: in host order, for an A record that lives for ttl seconds; 0: no record. Returns the length. */
size_t dns_answer_write(const struct dns_question *q, enum dns_rcode rcode, uint32_t address, uint32_t ttl,
			uint8_t ret[DNS_ANSWER_MAX]);
