/*
 * dns_service.h - the resolver of one run: an address for each name that it may reach, and for no other
 *
 * No question is forwarded, so names that a program asks for leave no trace outside. Answers over UDP and TCP.
 */
#pragma once
#include "buffer.h"
#include "deadline.h"
#include "side.h"

struct run;
struct dns_talk;
LIST_HEAD(dns_talks, dns_talk);

enum { DNS_TALKS_MAX = 16 };

struct dns_service {
	struct dns_talks talks; /* over TCP */
	unsigned         n;
};

/* Call it when the socket is readable. Answers what is there, up to a bound, so that other sources do not wait long. */
void dns_service_answer_datagrams(struct run *run, int udp);
/* Takes ownership of fd, an accepted TCP connection. */
void dns_service_add_tcp(struct run *run, int fd);
void dns_service_done(struct run *run);
