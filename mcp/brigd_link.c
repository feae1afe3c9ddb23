#define _GNU_SOURCE
#include "launcher.h"

#include "fd.h"
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

/*
 * brigd queues a bounded number of answers for a client; beyond it brigd closes the connection, and every run is lost. So no
 * more questions are open than have room in the socket for the longest answer, that to explain.
 */
enum { QUESTIONS_AT_ONCE = 16 };

/* A request whose answer is ignored, until it is sent. */
struct word {
	json_t            *message;
	TAILQ_ENTRY(word)  link;
};

/* A private brigd whose connection has ended, until it has exited. */
struct leaving {
	struct loop_source  source; /* a pidfd */
	struct launcher    *launcher;
	pid_t               pid;
	TAILQ_ENTRY(leaving) link;
};

TAILQ_HEAD(question_list, question);

struct launcher {
	struct mcp          *mcp;
	struct server        server;
	struct loop_source   source;
	struct question_list open;
	TAILQ_HEAD(, word)   words;
	TAILQ_HEAD(, leaving) gone;
	uint64_t             tag;
	json_t              *learnt;  /* answers that are kept for this connection */
	size_t               unanswered;
	bool                 blocked; /* the socket is full */
	struct err           last_word; /* why brigd ends, if it has said so; else of kind NONE */
	struct err           closed;    /* why the last attempt to connect failed */
	int64_t              closed_ms;
};

struct launcher *launcher_create(struct mcp *m)
{
	struct launcher *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->mcp    = m;
	l->server = SERVER_NONE;
	l->learnt = json_object();
	TAILQ_INIT(&l->open);
	TAILQ_INIT(&l->words);
	TAILQ_INIT(&l->gone);
	return l;
}

json_t *launcher_learnt(struct launcher *l)
{
	return l->learnt;
}

const char *launcher_server(const struct launcher *l, bool *is_private)
{
	*is_private = l->server.pid > 0;
	return l->server.sock >= 0 ? l->server.name : NULL;
}

/* --- the end of a connection --- */

static void leaving_done(struct leaving *g)
{
	struct launcher *l = g->launcher;

	TAILQ_REMOVE(&l->gone, g, link);
	if (g->source.fd >= 0)
		loop_remove(&l->mcp->loop, &g->source);
	fd_closep(&g->source.fd);
	while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(g);
}

static void on_gone(void *owner)
{
	leaving_done(owner);
}

/* A private brigd cleans up after its runs before it exits, which may take a while; the loop goes on meanwhile. */
static void see_off(struct launcher *l, pid_t pid)
{
	struct leaving *g = calloc(1, sizeof *g);
	struct err      ignored;

	if (!g)
		return; /* it stays a zombie until brig-mcp exits */
	*g = (struct leaving){ .source = { .fd = pidfd_open(pid, 0), .ready = on_gone, .owner = g }, .launcher = l, .pid = pid };
	TAILQ_INSERT_TAIL(&l->gone, g, link);
	if (g->source.fd >= 0 && loop_add(&l->mcp->loop, &g->source, &ignored) < 0)
		fd_closep(&g->source.fd);
}

static void drop_words(struct launcher *l)
{
	struct word *w;

	while ((w = TAILQ_FIRST(&l->words))) {
		TAILQ_REMOVE(&l->words, w, link);
		json_decref(w->message);
		free(w);
	}
}

static void hang_up(struct launcher *l)
{
	struct question *q;

	TAILQ_FOREACH(q, &l->open, link)
		q->waits = false;
	if (l->server.sock < 0)
		return;
	loop_remove(&l->mcp->loop, &l->source);
	fd_closep(&l->server.sock);
	if (l->server.pid > 0)
		see_off(l, l->server.pid);
	l->server     = SERVER_NONE;
	l->blocked    = false;
	l->unanswered = 0;
	json_object_clear(l->learnt);
	drop_words(l);
}

static bool may_repeat(const struct launcher *l, const struct question *q)
{
	return !q->heard && !q->repeated && l->last_word.kind == ERR_NONE;
}

static void lose(struct launcher *l, struct question *q, const struct err *why)
{
	bool       repeat = may_repeat(l, q);
	struct err e      = *why;

	launcher_forget(l, q);
	q->repeated = true;
	if (!repeat || launcher_ask(l, q, &e) < 0)
		q->lost(q->owner, &e);
}

/* A callback may ask again at once, and forget any other question, so each search begins at the first one; new questions have higher tags. */
static void break_off(struct launcher *l, const struct err *why)
{
	uint64_t         last = l->tag;
	struct question *q;

	hang_up(l);
	while ((q = TAILQ_FIRST(&l->open)) && q->tag <= last)
		lose(l, q, why);
}

static void on_silence(struct launcher *l)
{
	struct err why;

	if (l->last_word.kind != ERR_NONE)
		why = l->last_word;
	else
		err_set(&why, ERR_SETUP, "brigd was killed, or could not tell how the run ended: %.200s; call again, it is started anew", l->server.name);
	break_off(l, &why);
}

/* --- what brigd says --- */

static void is_answered(struct launcher *l, struct question *q)
{
	l->unanswered -= q->waits;
	q->waits = false;
}

/* An error without a tag is about no question: it says why brigd cannot serve, before it exits. */
static void keep_last_word(struct launcher *l, const json_t *answer)
{
	const char *text = json_string_value(json_object_get(json_object_get(answer, "error"), "message"));

	if (text)
		err_set(&l->last_word, ERR_MISSING, "%s", text);
}

static struct question *find(struct launcher *l, const json_t *tag)
{
	struct question *q;

	TAILQ_FOREACH(q, &l->open, link)
		if (json_is_integer(tag) && q->tag == (uint64_t)json_integer_value(tag))
			return q;
	return NULL;
}

/* If the question was forgotten, the descriptors are closed with the datagram. */
static void on_answer(struct launcher *l, struct datagram *d)
{
	const json_t    *tag = json_object_get(d->answer.source, "tag");
	struct question *q   = find(l, tag);

	if (q) {
		q->heard = true;
		is_answered(l, q);
		q->answered(q->owner, d);
	} else if (!tag && d->answer.kind == ANSWER_ERROR) {
		keep_last_word(l, d->answer.source);
	}
}

static void send_questions(struct launcher *l);
static void send_waiting(struct launcher *l);

static void on_server(void *owner)
{
	struct launcher *l = owner;
	scoped_datagram  d = DATAGRAM_NONE;
	struct err       e = { 0 };

	if (l->blocked)
		send_waiting(l);
	if (l->server.sock < 0)
		return;
	switch (datagram_receive(l->server.sock, &d, &e)) {
	case DATAGRAM_CAME:
		on_answer(l, &d);
		send_questions(l);
		return;
	case DATAGRAM_END:
		on_silence(l);
		return;
	case DATAGRAM_BROKEN:
		if (e.errnum == EAGAIN) /* nothing to read: the socket had become writable */
			return;
		l->last_word = e; /* questions are not repeated to a brigd whose messages are invalid */
		break_off(l, &e);
		return;
	}
}

/* --- asking --- */

/* Connecting blocks the loop. */
enum { CONNECT_MS = 1000 };

/* After a failed attempt no other one is made for CONNECT_MS: otherwise a hundred calls would each block the loop for as long. */
static int reach(struct launcher *l, struct err *e)
{
	static const enum server_want wants[] = { [SETTING_SERVER_ANY]     = SERVER_ANY,
						  [SETTING_SERVER_PRIVATE] = SERVER_PRIVATE,
						  [SETTING_SERVER_SERVICE] = SERVER_SERVICE };

	if (l->closed.kind == ERR_LIMIT && loop_now_ms() - l->closed_ms < CONNECT_MS) {
		*e = l->closed;
		return -1;
	}
	if (server_connect_within(&l->server, wants[l->mcp->settings->server], CONNECT_MS, e) == 0)
		return 0;
	l->closed    = *e;
	l->closed_ms = loop_now_ms();
	return -1;
}

static int connect_first(struct launcher *l, struct err *e)
{
	if (l->server.sock >= 0)
		return 0;
	l->last_word = (struct err){ 0 };
	if (reach(l, e) < 0)
		return -1;
	fcntl(l->server.sock, F_SETFL, O_NONBLOCK);
	l->source = (struct loop_source){ .fd = l->server.sock, .ready = on_server, .owner = l };
	if (loop_add(&l->mcp->loop, &l->source, e) == 0)
		return 0;
	(void)server_close(&l->server);
	l->server = SERVER_NONE;
	return -1;
}

/* 1: sent; 0: not now; -1: never. */
static int try_send(struct launcher *l, const json_t *message, const int *fds, size_t n, struct err *e)
{
	if (datagram_send(l->server.sock, message, fds, n, e) == 0)
		return 1;
	if (e->errnum != EAGAIN)
		return -1;
	l->blocked = true;
	loop_want(&l->mcp->loop, &l->source, EPOLLIN | EPOLLOUT);
	return 0;
}

static int send_question(struct launcher *l, struct question *q, struct err *e)
{
	json_t *tagged;
	int     r;

	if (l->unanswered >= QUESTIONS_AT_ONCE)
		return 0;
	tagged = json_copy((json_t *)q->message);
	json_object_set_new(tagged, "tag", json_integer((json_int_t)q->tag));
	r = try_send(l, tagged, q->fds, q->fds_len, e);
	json_decref(tagged);
	q->sent = q->waits = r > 0;
	l->unanswered += q->waits;
	return r;
}

static bool is_gone(const struct err *e)
{
	return e->errnum == EPIPE || e->errnum == ECONNRESET || e->errnum == ENOTCONN;
}

/* A question that cannot be sent, as one too large for a datagram, fails alone. */
static void send_questions(struct launcher *l)
{
	struct question *q, *next;
	struct err       e;

	for (q = TAILQ_FIRST(&l->open); q && !l->blocked && l->unanswered < QUESTIONS_AT_ONCE; q = next) {
		next = TAILQ_NEXT(q, link);
		if (q->sent || send_question(l, q, &e) >= 0)
			continue;
		if (is_gone(&e)) /* the connection is gone: its end is read next, and unanswered questions are asked again */
			return;
		launcher_forget(l, q);
		q->lost(q->owner, &e);
		next = TAILQ_FIRST(&l->open); /* lost() may have forgotten any other question */
	}
}

static void send_words(struct launcher *l)
{
	struct word *w;
	struct err   ignored;

	while (!l->blocked && (w = TAILQ_FIRST(&l->words))) {
		if (try_send(l, w->message, NULL, 0, &ignored) == 0)
			return;
		TAILQ_REMOVE(&l->words, w, link);
		json_decref(w->message);
		free(w);
	}
}

/* Requests without an answer go first: most are cancels, which are short and make room. */
static void send_waiting(struct launcher *l)
{
	l->blocked = false;
	send_words(l);
	if (!l->blocked)
		send_questions(l);
	if (!l->blocked && l->server.sock >= 0)
		loop_want(&l->mcp->loop, &l->source, EPOLLIN);
}

/* If brigd has closed the connection and the loop has not read that yet, it is ended here, and the question is asked over a new one. */
static int send_first(struct launcher *l, struct question *q, struct err *e)
{
	int r = l->blocked ? 0 : send_question(l, q, e);

	if (r >= 0 || !is_gone(e))
		return r;
	on_silence(l);
	return connect_first(l, e) < 0 ? -1 : send_question(l, q, e);
}

int launcher_ask(struct launcher *l, struct question *q, struct err *e)
{
	if (connect_first(l, e) < 0)
		return -1;
	q->tag   = ++l->tag;
	q->sent  = q->waits = false;
	q->heard = false;
	if (send_first(l, q, e) < 0) {
		q->tag = 0;
		return -1;
	}
	TAILQ_INSERT_TAIL(&l->open, q, link);
	return 0;
}

void launcher_forget(struct launcher *l, struct question *q)
{
	if (q->tag) {
		TAILQ_REMOVE(&l->open, q, link);
		is_answered(l, q);
	}
	q->tag = 0;
}

void launcher_tell(struct launcher *l, json_t *message)
{
	struct word *w = l->server.sock < 0 ? NULL : calloc(1, sizeof *w);

	if (!w) {
		json_decref(message);
		return;
	}
	json_object_set_new(message, "tag", json_integer((json_int_t)++l->tag)); /* so that the answer is ignored, even if it is an error */
	w->message = message;
	TAILQ_INSERT_TAIL(&l->words, w, link);
	send_words(l);
}

void launcher_destroy(struct launcher *l)
{
	struct leaving *g;

	if (!l)
		return;
	hang_up(l);
	while ((g = TAILQ_FIRST(&l->gone)))
		leaving_done(g);
	json_decref(l->learnt);
	free(l);
}
