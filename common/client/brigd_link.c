#define _GNU_SOURCE
#include "brigd_link.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

/*
 * brigd queues a bounded number of answers for a client; beyond it brigd closes the connection, and every run is
 * lost. So no more questions are open than have room in the socket for the longest answer, that to explain.
 */
enum { QUESTIONS_AT_ONCE = 16 };

/* A request whose answer is ignored, until it is sent. */
struct outgoing {
	json_t            *message;
	TAILQ_ENTRY(outgoing) link;
};

/* A private brigd whose connection has ended, until it has exited. */
struct leaving {
	struct loop_source  source; /* a pidfd */
	struct brigd_link  *brigd_link;
	pid_t               pid;
	TAILQ_ENTRY(leaving) link;
};

TAILQ_HEAD(question_list, question);

struct brigd_link {
	struct loop         *loop;
	enum brigd_want      want;
	struct brigd         server;
	struct loop_source   source;
	struct question_list open;
	TAILQ_HEAD(, outgoing) outgoing_list;
	TAILQ_HEAD(, leaving) gone;
	uint64_t             tag;
	json_t              *kept;    /* answers that are kept for this connection */
	size_t               unanswered;
	bool                 blocked; /* the socket is full */
	struct err           last_error; /* why brigd ends, if it has sent that; else of kind NONE */
	struct err           closed;    /* why the last attempt to connect failed */
	int64_t              closed_ms;
};

struct brigd_link *brigd_link_create(struct loop *loop, enum brigd_want want)
{
	struct brigd_link *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->loop   = loop;
	l->want   = want;
	l->server = BRIGD_NONE;
	l->kept   = json_object();
	TAILQ_INIT(&l->open);
	TAILQ_INIT(&l->outgoing_list);
	TAILQ_INIT(&l->gone);
	return l;
}

struct loop *brigd_link_loop(const struct brigd_link *l)
{
	return l->loop;
}

json_t *brigd_link_cache(struct brigd_link *l)
{
	return l->kept;
}

const char *brigd_link_server(const struct brigd_link *l, bool *is_private)
{
	*is_private = l->server.pid > 0;
	return l->server.sock >= 0 ? l->server.name : NULL;
}

/* --- the end of a connection --- */

static void reap_brigd(void *owner)
{
	struct leaving    *g = owner;
	struct brigd_link *l = g->brigd_link;

	TAILQ_REMOVE(&l->gone, g, link);
	if (g->source.fd >= 0)
		loop_remove(l->loop, &g->source);
	fd_closep(&g->source.fd);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(g);
}

/* A private brigd cleans up after its runs before it exits, which may take a while; the loop goes on meanwhile. */
static void reap_brigd_later(struct brigd_link *l, pid_t pid)
{
	struct leaving *g = calloc(1, sizeof *g);
	struct err      ignored;

	if (!g)
		return; /* it stays a zombie until this process exits */
	*g = (struct leaving){ .brigd_link = l, .pid = pid };
	g->source = (struct loop_source){ .fd = pidfd_open(pid, 0), .ready = reap_brigd, .owner = g };
	TAILQ_INSERT_TAIL(&l->gone, g, link);
	if (g->source.fd >= 0 && loop_add(l->loop, &g->source, &ignored) < 0)
		fd_closep(&g->source.fd);
}

static void outgoing_message_free(struct brigd_link *l, struct outgoing *w)
{
	TAILQ_REMOVE(&l->outgoing_list, w, link);
	json_decref(w->message);
	free(w);
}

static void link_close(struct brigd_link *l)
{
	struct question *q;

	TAILQ_FOREACH(q, &l->open, link)
		if (q->state == QUESTION_SENT)
			q->state = QUESTION_QUEUED;
	if (l->server.sock < 0)
		return;
	loop_remove(l->loop, &l->source);
	fd_closep(&l->server.sock);
	if (l->server.pid > 0)
		reap_brigd_later(l, l->server.pid);
	l->server     = BRIGD_NONE;
	l->blocked    = false;
	l->unanswered = 0;
	json_object_clear(l->kept);
	while (!TAILQ_EMPTY(&l->outgoing_list))
		outgoing_message_free(l, TAILQ_FIRST(&l->outgoing_list));
}

/*
 * A callback may ask again at once, and forget any other question, so each search begins at the first one; new
 * questions have higher tags.
 */
static void link_close_and_repeat_or_lose(struct brigd_link *l, const struct err *why)
{
	uint64_t         last = l->tag;
	struct question *q;

	link_close(l);
	while ((q = TAILQ_FIRST(&l->open)) && q->tag <= last) {
		bool       repeat = q->state != QUESTION_ANSWERED && !q->repeated && l->last_error.kind == ERR_NONE;
		struct err e      = *why;

		brigd_link_detach(l, q);
		q->repeated = true;
		if (!repeat || brigd_link_ask(l, q, &e) < 0)
			q->lost(q->owner, &e);
	}
}

static void link_on_closed(struct brigd_link *l)
{
	struct err why;

	if (l->last_error.kind != ERR_NONE)
		why = l->last_error;
	else
		err_set(&why, ERR_SETUP,
			"brigd was killed, or could not report how the run ended: %.200s; call again, it is started "
			"anew",
			l->server.name);
	link_close_and_repeat_or_lose(l, &why);
}

/* --- messages of brigd --- */

static void question_set_answered(struct brigd_link *l, struct question *q)
{
	l->unanswered -= q->state == QUESTION_SENT;
	q->state = QUESTION_ANSWERED;
}

/* If the question was forgotten, the descriptors are closed with the datagram. */
static void link_on_datagram(struct brigd_link *l, struct datagram *d)
{
	const json_t    *tag  = json_object_get(d->answer.source, "tag");
	const char *text = json_string_value(json_object_get(json_object_get(d->answer.source, "error"), "message"));
	struct question *q;

	TAILQ_FOREACH(q, &l->open, link)
		if (json_is_integer(tag) && q->tag == (uint64_t)json_integer_value(tag))
			break;
	if (q) {
		question_set_answered(l, q);
		q->answered(q->owner, d);
	} else if (!tag && d->answer.kind == ANSWER_ERROR && text) {
		/* an error without a tag is about no question: brigd sends it before it exits, when it cannot serve */
		err_set(&l->last_error, ERR_MISSING, "%s", text);
	}
}

static void send_questions(struct brigd_link *l);
static void send_queued(struct brigd_link *l);

static void link_on_ready(void *owner)
{
	struct brigd_link *l = owner;
	scoped_datagram  d = DATAGRAM_NONE;
	struct err       e = { 0 };

	if (l->blocked)
		send_queued(l);
	if (l->server.sock < 0)
		return;
	switch (datagram_receive(l->server.sock, &d, &e)) {
	case DATAGRAM_RECEIVED:
		link_on_datagram(l, &d);
		send_questions(l);
		return;
	case DATAGRAM_END:
		link_on_closed(l);
		return;
	case DATAGRAM_BROKEN:
		if (e.errnum == EAGAIN) /* nothing to read: the socket had become writable */
			return;
		l->last_error = e; /* questions are not repeated to a brigd whose messages are invalid */
		link_close_and_repeat_or_lose(l, &e);
		return;
	}
}

/* --- asking --- */

/* Connecting blocks the loop. */
enum { CONNECT_MS = 1000 };

/*
 * After a failed attempt no other one is made for CONNECT_MS: otherwise a hundred calls would each block the loop for
 * as long.
 */
static int link_connect_now(struct brigd_link *l, struct err *e)
{
	if (l->closed.kind == ERR_LIMIT && loop_now_ms() - l->closed_ms < CONNECT_MS) {
		*e = l->closed;
		return -1;
	}
	if (brigd_connect_within(&l->server, l->want, CONNECT_MS, e) == 0)
		return 0;
	l->closed    = *e;
	l->closed_ms = loop_now_ms();
	return -1;
}

static int link_connect_once(struct brigd_link *l, struct err *e)
{
	if (l->server.sock >= 0)
		return 0;
	l->last_error = (struct err){ 0 };
	if (link_connect_now(l, e) < 0)
		return -1;
	fcntl(l->server.sock, F_SETFL, O_NONBLOCK);
	l->source = (struct loop_source){ .fd = l->server.sock, .ready = link_on_ready, .owner = l };
	if (loop_add(l->loop, &l->source, e) == 0) {
		brigd_link_send(l, protocol_hello_request()); /* for reports with what was written */
		return 0;
	}
	(void)brigd_close(&l->server);
	l->server = BRIGD_NONE;
	return -1;
}

/* 1: sent; 0: not now; -1: never. */
static int link_try_send(struct brigd_link *l, const json_t *message, const int *fds, size_t n, struct err *e)
{
	if (datagram_send(l->server.sock, message, fds, n, e) == 0)
		return 1;
	if (e->errnum != EAGAIN)
		return -1;
	l->blocked = true;
	loop_set_events(l->loop, &l->source, EPOLLIN | EPOLLOUT);
	return 0;
}

static int send_question(struct brigd_link *l, struct question *q, struct err *e)
{
	json_t *tagged;
	int     r;

	if (l->unanswered >= QUESTIONS_AT_ONCE)
		return 0;
	tagged = json_copy((json_t *)q->message);
	json_object_set_new(tagged, "tag", json_integer((json_int_t)q->tag));
	r = link_try_send(l, tagged, q->fds, q->fds_len, e);
	json_decref(tagged);
	if (r > 0)
		q->state = QUESTION_SENT;
	l->unanswered += r > 0;
	return r;
}

static bool is_closed_error(const struct err *e)
{
	return e->errnum == EPIPE || e->errnum == ECONNRESET || e->errnum == ENOTCONN;
}

/* A question that cannot be sent, as one too large for a datagram, fails alone. */
static void send_questions(struct brigd_link *l)
{
	struct question *q, *next;
	struct err       e;

	for (q = TAILQ_FIRST(&l->open); q && !l->blocked && l->unanswered < QUESTIONS_AT_ONCE; q = next) {
		next = TAILQ_NEXT(q, link);
		if (q->state != QUESTION_QUEUED || send_question(l, q, &e) >= 0)
			continue;
		if (is_closed_error(&e)) /* its end is read next, and unanswered questions are asked again */
			return;
		brigd_link_detach(l, q);
		q->lost(q->owner, &e);
		next = TAILQ_FIRST(&l->open); /* lost() may have forgotten any other question */
	}
}

static void send_unanswered_requests(struct brigd_link *l)
{
	struct outgoing *w;
	struct err   ignored;

	while (!l->blocked && (w = TAILQ_FIRST(&l->outgoing_list))) {
		if (link_try_send(l, w->message, NULL, 0, &ignored) == 0)
			return;
		outgoing_message_free(l, w);
	}
}

/* Requests without an answer go first: most are cancels, which are short and make room. */
static void send_queued(struct brigd_link *l)
{
	l->blocked = false;
	send_unanswered_requests(l);
	if (!l->blocked)
		send_questions(l);
	if (!l->blocked && l->server.sock >= 0)
		loop_set_events(l->loop, &l->source, EPOLLIN);
}

int brigd_link_ask(struct brigd_link *l, struct question *q, struct err *e)
{
	int r;

	if (link_connect_once(l, e) < 0)
		return -1;
	q->tag   = ++l->tag;
	q->state = QUESTION_QUEUED;
	r        = l->blocked ? 0 : send_question(l, q, e);
	if (r < 0 && is_closed_error(e)) { /* brigd has closed the connection, and the loop has not read that yet */
		link_on_closed(l);
		r = link_connect_once(l, e) < 0 ? -1 : send_question(l, q, e);
	}
	if (r < 0) {
		q->tag = 0;
		return -1;
	}
	TAILQ_INSERT_TAIL(&l->open, q, link);
	return 0;
}

void brigd_link_detach(struct brigd_link *l, struct question *q)
{
	if (q->tag) {
		TAILQ_REMOVE(&l->open, q, link);
		question_set_answered(l, q);
	}
	q->tag = 0;
}

void brigd_link_send(struct brigd_link *l, json_t *message)
{
	struct outgoing *w = l->server.sock < 0 ? NULL : calloc(1, sizeof *w);

	if (!w) {
		json_decref(message);
		return;
	}
	/* so that the answer is ignored, even if it is an error */
	json_object_set_new(message, "tag", json_integer((json_int_t)++l->tag));
	w->message = message;
	TAILQ_INSERT_TAIL(&l->outgoing_list, w, link);
	send_unanswered_requests(l);
}

void brigd_link_destroy(struct brigd_link *l)
{
	struct leaving *g;

	if (!l)
		return;
	link_close(l);
	while ((g = TAILQ_FIRST(&l->gone)))
		reap_brigd(g);
	json_decref(l->kept);
	free(l);
}
