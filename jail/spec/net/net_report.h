/*
 * net_report.h - what a run did with its network
 *
 * A memory file for each run. The server makes it, and brig-proxy writes it through a
 * mapping. The server may read it at any time: it copies it and then checks the copy,
 * since brig-proxy handles untrusted data and may be compromised.
 *
 * When the program has ended, a connection that it opened may still wait in a
 * listening socket. So the server sets `over` and then reads the report; brig-proxy
 * adds a row and then reads `over`. A connection is either in the report, or refused.
 */
#pragma once
#include "net_rule.h"

enum { NET_REPORT_MAX = 64 }; /* connections with a row; others are only counted */

enum net_verdict { NET_VERDICT_OPEN, NET_VERDICT_DONE, NET_VERDICT_REFUSED, NET_VERDICT_FAILED };

enum net_reason {
#define REASON(id, word, sentence) NET_REASON_##id,
#include "net_reason.def"
#undef REASON
	NET_REASONS,
};

struct net_connection {
	char     name[NET_HOST_MAX]; /* as the program asked for it, in canonical form; as plain text when it has none */
	uint16_t port;               /* 0: a refused DNS query; one row for each name */
	uint8_t  family;             /* AF_INET, AF_INET6; 0: no address was chosen */
	uint8_t  has_secret;         /* brig-proxy put a secret into a request */
	uint8_t  address[16];        /* 4 or 16 bytes, by family; network order */
	uint32_t verdict, reason;    /* enum net_verdict, enum net_reason */
	uint64_t bytes_in, bytes_out; /* received and sent by the program, without what the proxy sends itself */
	double   began_ms, ended_ms; /* CLOCK_MONOTONIC; ended_ms is 0 while OPEN */
	double   again_ms;           /* when the last refusal with the same name, port and reason came, which gets no row of its own; 0: none */
};

struct net_report {
	uint32_t n, left_out; /* n: used rows; left_out: connections without a row */
	uint64_t connections, refused, failed, bytes_in, bytes_out; /* totals, with left_out */
	uint32_t over; /* the server sets it to 1 at the end of the run: brig-proxy refuses a connection whose row comes later */
	struct net_connection connection[NET_REPORT_MAX];
};

const char *net_reason_name(enum net_reason reason);
/* The sentence of net_reason.def with the name in it; text has room for size bytes. */
void        net_reason_print(enum net_reason reason, const char *name, char *text, size_t size);
const char *net_verdict_name(enum net_verdict verdict);
/* Repairs a copy of a report, which is untrusted: texts end and are plain, enums are in range, n is not above NET_REPORT_MAX. */
void        net_report_sanitize(struct net_report *report);

/* A count comes from brig-proxy, which is not trusted: it may be too large for JSON. */
static inline int64_t net_report_count(uint64_t count)
{
	return count < INT64_MAX ? (int64_t)count : INT64_MAX;
}
