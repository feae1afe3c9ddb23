/*
 * net_report.h - what a run did with its network
 *
 * A memory file: the door makes it, brig-proxy writes it (its own run's, from its
 * own mapping), the door reads it whenever it likes, once into memory of its own,
 * and checks it then: the proxy reads what programs and strangers send. What a
 * program has sent before its end may lie in a socket still: the door sets `over`
 * and then reads, the proxy adds a row and then looks at `over`, so that a
 * connection is told of or is none.
 */
#pragma once
#include "net_rule.h"

enum { NET_REPORT_MAX = 64 }; /* connections that are told of; the others are counted */

enum net_verdict { NET_VERDICT_OPEN, NET_VERDICT_DONE, NET_VERDICT_REFUSED, NET_VERDICT_FAILED };

enum net_reason {
#define REASON(id, word, sentence) NET_REASON_##id,
#include "net_reason.def"
#undef REASON
	NET_REASONS,
};

struct net_connection {
	char     name[NET_HOST_MAX]; /* as asked for, in canonical form; what is none is made plain text */
	uint16_t port;               /* 0: a question to the resolver that was refused; told once for each name */
	uint8_t  family;             /* AF_INET, AF_INET6; 0: it did not come so far */
	uint8_t  has_secret;         /* a header was set */
	uint8_t  address[16];        /* of the family, network order */
	uint32_t verdict, reason;    /* enum net_verdict, enum net_reason */
	uint64_t bytes_in, bytes_out; /* of the program: received, sent; without the proxy's own */
	double   began_ms, ended_ms; /* CLOCK_MONOTONIC; ended 0: OPEN */
	double   again_ms;           /* when the last refusal came that says what this one says, and has no row of its own; 0: none */
};

struct net_report {
	uint32_t n, left_out; /* connections below; beyond them */
	uint64_t connections, refused, failed, bytes_in, bytes_out; /* all, with those that were left out */
	uint32_t over; /* the door's, at the end of the run: a connection that has no row by now reaches nothing. Else 0 */
	struct net_connection connection[NET_REPORT_MAX];
};

const char *net_reason_word(enum net_reason reason);
/* With the name in it; text holds size. */
void        net_reason_print(enum net_reason reason, const char *name, char *text, size_t size);
const char *net_verdict_word(enum net_verdict verdict);
/* A copy of what the proxy wrote becomes data that can be shown: texts end and are plain, enums are in range, n is not above the maximum. */
void        net_report_make_sound(struct net_report *report);
