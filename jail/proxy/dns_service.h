/*
 * dns_service.h - the resolver of one run: an address for each name that it may reach, and for no other
 *
 * Nothing is asked upstream: a question tells the world nothing. Over UDP, and over TCP for programs that insist.
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

/* The socket can be read: answers what is there, but not so much that others wait long. */
void dns_service_read(struct run *run, int udp);
/* A connection over TCP, owned. */
void dns_service_talk(struct run *run, int fd);
void dns_service_done(struct run *run);
