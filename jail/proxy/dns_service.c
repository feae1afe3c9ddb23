#define _GNU_SOURCE
#include "dns_service.h"

#include "dns_message.h"
#include "proxy.h"

#include <netinet/in.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { TURNS = 8, TTL_S = 300, LENGTH = 2 }; /* LENGTH: bytes of the length before each message over TCP */

struct dns_talk {
	LIST_ENTRY(dns_talk) link;
	struct run     *run;
	struct side     side;
	struct deadline deadline;
	size_t          have;
	uint8_t         asked[LENGTH + DNS_QUESTION_MAX];
};

/* --- one question --- */

static size_t dns_refuse(struct run *run, const struct dns_question *q, enum net_reason reason,
			 uint8_t ret[DNS_ANSWER_MAX])
{
	report_refusal(run->report, q->shown, 0, reason);
	return dns_answer_write(q, DNS_NXDOMAIN, 0, 0, ret);
}

/* 0: no answer. */
static size_t dns_answer(struct run *run, const uint8_t *asked, size_t len, uint8_t ret[DNS_ANSWER_MAX])
{
	struct dns_question q;
	uint32_t            address;

	switch (dns_question_parse(asked, len, &q)) {
	case DNS_IGNORE:
		return 0;
	case DNS_WRONG:
		return dns_answer_write(&q, q.wrong, 0, 0, ret);
	case DNS_ASKED:
		break;
	}
	if (!q.name[0])
		return dns_refuse(run, &q, NET_REASON_BAD_NAME, ret);
	if (!permission_knows_host(&run->policy, q.name))
		return dns_refuse(run, &q, NET_REASON_NOT_ALLOWED, ret);
	if (q.type != DNS_TYPE_A)
		return dns_answer_write(&q, DNS_NOERROR, 0, 0, ret);
	if (run->bytes + len > run->bytes_max)
		return dns_refuse(run, &q, NET_REASON_TOO_MUCH, ret);
	run_spend_bytes(run, len); /* below a wildcard, the name itself carries data */
	address = name_table_address_of_name(&run->names, q.name);
	return dns_answer_write(&q, address ? DNS_NOERROR : DNS_SERVFAIL, address, TTL_S, ret);
}

/* --- UDP --- */

void dns_service_answer_datagrams(struct run *run, int udp)
{
	uint8_t            asked[DNS_QUESTION_MAX + 1], message[DNS_ANSWER_MAX];
	struct sockaddr_in from;

	for (int turn = 0; turn < TURNS; turn++) {
		socklen_t size = sizeof from;
		ssize_t   n    = recvfrom(udp, asked, sizeof asked, MSG_DONTWAIT, (struct sockaddr *)&from, &size);
		size_t    len  = n > 0 ? dns_answer(run, asked, (size_t)n, message) : 0;

		if (n < 0)
			return;
		if (len)
			(void)sendto(udp, message, len, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&from, size);
	}
}

/* --- TCP: one question after the other --- */

static void dns_talk_free(void *talk)
{
	struct dns_talk *t = talk;

	deadline_clear(&t->run->proxy->deadlines, &t->deadline);
	side_close(&t->run->loop, &t->side, false);
	LIST_REMOVE(t, link);
	t->run->dns.n--;
	free(t);
}

/* False: end the connection. */
static bool answer_received_questions(struct dns_talk *t)
{
	uint8_t message[LENGTH + DNS_ANSWER_MAX];
	size_t  moved = 0, n;

	while (t->have >= LENGTH) {
		size_t len = (size_t)t->asked[0] << 8 | t->asked[1];

		if (len > DNS_QUESTION_MAX)
			return false;
		if (t->have < LENGTH + len)
			return true;
		n          = dns_answer(t->run, t->asked + LENGTH, len, message + LENGTH);
		message[0] = (uint8_t)(n >> 8);
		message[1] = (uint8_t)n;
		/* No answer is buffered: when the socket has no room for it, because the program does not read, the
		 * connection ends. */
		if (!n || side_write(&t->side, message, LENGTH + n, &moved) != TLS_MOVED || moved != LENGTH + n)
			return false;
		t->have -= LENGTH + len;
		memmove(t->asked, t->asked + LENGTH + len, t->have);
		deadline_set(&t->run->proxy->deadlines, &t->deadline, DEADLINE_REQUEST);
	}
	return true;
}

static void on_talk_readable(void *owner)
{
	struct dns_talk *t      = owner;
	size_t           moved  = 0;
	enum tls_outcome result = side_read(&t->side, t->asked + t->have, sizeof t->asked - t->have, &moved);

	if (result == TLS_WANT_READ)
		return;
	t->have += moved;
	if (result != TLS_MOVED || !answer_received_questions(t))
		dns_talk_free(t);
}

void dns_service_add_tcp(struct run *run, int fd)
{
	struct dns_talk *t = run->dns.n < DNS_TALKS_MAX ? calloc(1, sizeof *t) : NULL;

	if (!t) {
		close(fd);
		return;
	}
	t->run      = run;
	t->deadline = (struct deadline){ .due = dns_talk_free, .owner = t };
	side_open(&t->side, fd, on_talk_readable, t);
	side_watch_events(&run->loop, &t->side, EPOLLIN);
	deadline_set(&run->proxy->deadlines, &t->deadline, DEADLINE_REQUEST);
	LIST_INSERT_HEAD(&run->dns.talks, t, link);
	run->dns.n++;
}

void dns_service_done(struct run *run)
{
	while (!LIST_EMPTY(&run->dns.talks))
		dns_talk_free(LIST_FIRST(&run->dns.talks));
}
