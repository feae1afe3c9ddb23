#define _GNU_SOURCE
#include "warm.h"

#include "cell.h"
#include "clock.h"
#include "fd.h"
#include "packet.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

/* --- asking --- */

int warm_want(struct warm *w, const struct child_order *order, int words_fd, struct err *e)
{
	w->words_fd = fcntl(words_fd, F_DUPFD_CLOEXEC, 0);
	w->order    = *order;
	w->state    = WARM_WANTED;
	return w->words_fd < 0 ? err_sys(e, "words for the zygote") : 0;
}

/* Two pairs; the second of each is for the zygote. */
static int make_sockets(struct warm *w, int fds[2], struct err *e)
{
	int answer[2], report[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, answer) < 0)
		return err_sys(e, "socketpair");
	w->answer_fd = answer[0];
	fds[0]       = answer[1];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report) < 0)
		return err_sys(e, "socketpair");
	w->report_fd = report[0];
	fds[1]       = report[1];
	return 0;
}

static size_t fill(struct zygote_order *o, int *fds, const struct warm *w, const struct cell *c)
{
	const struct child_ctx *child = &c->child;
	int                     group = group_clone_fd(&c->group);
	size_t                  n     = ZYGOTE_GROUPS;

	o->joins          = (uint32_t)child->join_len;
	o->clones_into    = group >= 0;
	o->init_id        = child->init_id;
	o->program_id     = child->program_uid;
	o->workspace_exec = child->workspace_exec;
	o->cpu_before_ns  = w->cpu_before_ns;
	for (int i = 0; i < child->join_len; i++)
		fds[n++] = child->join_fd[i];
	if (group >= 0)
		fds[n++] = group;
	return n;
}

static int ask(struct warm *w, const struct cell *c, int ours[2], struct err *e)
{
	struct zygote_order o;
	int                 fds[ZYGOTE_ORDER_FDS_MAX], r;
	size_t              n;

	if (make_sockets(w, ours, e) < 0)
		return -1;
	memset(&o, 0, sizeof o); /* padding too */
	o.order             = w->order;
	fds[ZYGOTE_ANSWER]  = ours[0];
	fds[ZYGOTE_REPORT]  = ours[1];
	fds[ZYGOTE_CELL]    = c->pidfd;
	fds[ZYGOTE_GO]      = c->child.ready_fd[0];
	fds[ZYGOTE_WORDS]   = w->words_fd;
	n                   = fill(&o, fds, w, c);
	r                   = packet_send(w->orders, &o, sizeof o, fds, n);
	errno               = -r;
	return r < 0 ? err_sys(e, "it cannot be reached") : 0;
}

int warm_ask(struct warm *w, const struct cell *c, struct err *e)
{
	int ours[2] = { -1, -1 }, r = ask(w, c, ours, e);

	fd_closep(&ours[0]);
	fd_closep(&ours[1]);
	fd_closep(&w->words_fd);
	w->state = WARM_ASKED;
	w->asked = clock_ms(CLOCK_MONOTONIC);
	return r;
}

/* --- hearing --- */

/* To PID 1. One that is dead needs to know nothing. */
static void tell(int fd, const void *word, size_t len)
{
	(void)!send(fd, word, len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void warm_give_up(struct warm *w, const struct cell *c)
{
	const char go = CHILD_GO_COLD;

	warm_close(w); /* first: a fork that comes late can say nothing to anybody, and ends of it */
	w->state = WARM_COLD;
	tell(c->report_fd, &go, 1);
}

static void on_forked(struct warm *w, const struct cell *c)
{
	const char go = CHILD_GO_WARM;

	w->state = WARM_FORKED;
	tell(c->report_fd, &go, 1);
}

static void on_ended(struct warm *w, const struct cell *c, int status)
{
	tell(c->status_fd, &status, sizeof status);
	fd_closep(&w->answer_fd);
}

static void explain(const struct zygote_word *word, bool is_word, struct err *e)
{
	errno = word->status;
	if (is_word && word->kind == ZYGOTE_FAILED)
		err_sys(e, "it cannot fork into the cell");
	else
		err_set(e, ERR_SETUP, "the zygote ended, or is out of its senses");
}

enum warm_answer warm_hear(struct warm *w, const struct cell *c, struct err *e)
{
	struct zygote_word word;
	ssize_t            n = recv(w->answer_fd, &word, sizeof word, 0);
	bool               is_word = n == sizeof word;

	if (n < 0 && errno == EINTR)
		return WARM_GOES_ON;
	if (is_word && word.kind == ZYGOTE_FORKED && w->state == WARM_ASKED) {
		on_forked(w, c);
		return WARM_GOES_ON;
	}
	if (is_word && word.kind == ZYGOTE_ENDED && w->state == WARM_FORKED) {
		on_ended(w, c, word.status);
		return WARM_GOES_ON;
	}
	explain(&word, is_word, e);
	fd_closep(&w->answer_fd);
	return w->state == WARM_ASKED ? WARM_CANNOT : WARM_IS_LOST;
}

void warm_close(struct warm *w)
{
	fd_closep(&w->answer_fd);
	fd_closep(&w->report_fd);
	fd_closep(&w->words_fd);
}
