/*
 * warm_client.c - a client of brigd that measures: from the request to the first byte of output, and to the record.
 *
 *     BRIG_SOCKET=PATH warm_client [--keys JSON] [--warm] [--bomb-keys JSON] [--bomb FILE]... PROGRAM EXPECT
 *
 * --keys are members of the request, as '"profile":"basic"'. Each run must print
 * EXPECT, end with exit_code 0 and be as warm as --warm says. With bombs every
 * tenth run of a connection is one of them, in turn, which must end otherwise;
 * what ends wrongly beside them is told and counted as "lost".
 * The record is searched for what is asked, not parsed: what the client
 * computes is CPU time that the runs do not have. See orders.h.
 */
#define _GNU_SOURCE
#include "fd.h"
#include "file.h"
#include "orders.h"
#include "packet.h"
#include "sealed.h"
#include "brigd_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { ANSWER_MAX = 64 * 1024, FDS_MAX = 4, PARALLEL_MAX = 64, BOMBS_MAX = 8, BOMB_EVERY = 10, IDLE_MAX_US = 60 * 1000000 };

struct program {
	const char *name;
	char       *text;
	size_t      len;
	const char *keys;
};

struct client {
	struct program honest, bomb[BOMBS_MAX];
	unsigned       bombs;
	const char    *expect;
	bool           warm;
	struct brigd   server;
	int64_t        last; /* when it was asked last */
};

/* One run on one connection. */
struct run {
	int                   sock;
	const struct program *program; /* NULL: none is going on */
	bool                  is_bomb;
	unsigned              count;
	int                   fd[FDS_MAX]; /* stdout, stderr */
	size_t                fds;
	uint64_t              seen; /* bytes of a bomb's output */
	bool                  cancelled;
	int64_t               began, first;
	char                  id[40];
};

/* --- one run ------------------------------------------------------------------------------------------------------ */

static int ask(struct run *r, const struct program *p)
{
	char       text[4096];
	struct err e;
	scoped_fd  code = sealed_create("program", p->text, p->len, &e);
	int        len  = snprintf(text, sizeof text, "{\"op\":\"run\"%s%s}", *p->keys ? "," : "", p->keys);

	if (code < 0)
		return fprintf(stderr, "%s\n", e.text), -1;
	r->program   = p;
	r->seen      = 0;
	r->first     = -1;
	r->cancelled = false;
	r->began     = clock_us();
	errno        = -packet_send(r->sock, text, (size_t)len, &(int){ code }, 1);
	return errno ? perror("request"), -1 : 0;
}

static void close_streams(struct run *r)
{
	while (r->fds)
		close(r->fd[--r->fds]);
}

static bool has(const char *text, const char *what)
{
	return strstr(text, what) != NULL;
}

/* setup_ms has a fraction. -1: it is null. */
static int64_t setup_of(const char *text)
{
	const char *at = strstr(text, "\"setup_ms\":");

	return at && at[11] != 'n' ? (int64_t)(strtod(at + 11, NULL) * 1000) : -1;
}

static int refuse(const struct run *r, const char *text, const char *said, size_t len)
{
	fprintf(stderr, "%s: not what it should be: printed \"%.*s\"; %s\n", r->program->name, (int)(len < 500 ? len : 500), said, text);
	return -1;
}

/* What an honest program has printed, some of it perhaps already in `said`. */
static size_t read_rest(int fd, char *said, size_t len, size_t room)
{
	ssize_t n;

	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	while (len < room && (n = read(fd, said + len, room - len)) > 0)
		len += (size_t)n;
	return len;
}

static int end(struct client *c, struct run *r, const char *text, char *said, size_t len, size_t room, struct figures *f)
{
	int64_t ended = clock_us();
	bool    good;

	if (r->is_bomb) {
		good = !has(text, "\"exit_reason\":\"exited\"") && !has(text, "\"exit_reason\":\"setup_failed\"");
	} else {
		len  = r->fds ? read_rest(r->fd[0], said, len, room) : len;
		good = has(text, "\"exit_code\":0,") && has(text, c->warm ? "\"warm\":true" : "\"warm\":false") && len == strlen(c->expect) &&
		       memcmp(said, c->expect, len) == 0;
	}
	if (!good && refuse(r, text, said, len) < 0 && !c->bombs)
		return -1;
	figures_add(f, (struct figure){ !good ? "lost" : r->is_bomb ? r->program->name : "run", r->first < 0 ? -1 : r->first - r->began, ended - r->began,
					setup_of(text) });
	close_streams(r);
	r->program = NULL;
	return 0;
}

/* The next answer, as text. */
static int hear(struct run *r, char *text)
{
	int     fd[FDS_MAX];
	size_t  n;
	ssize_t got = packet_receive(r->sock, text, ANSWER_MAX - 1, fd, FDS_MAX, &n);

	if (got <= 0)
		return fprintf(stderr, "brigd is gone: %s\n", got < 0 ? strerror(errno) : "end of the connection"), -1;
	text[got] = 0;
	for (size_t i = 0; i < n; i++)
		if (r->fds < FDS_MAX)
			r->fd[r->fds++] = fd[i];
		else
			close(fd[i]);
	return 0;
}

static int once(void *self, struct figures *f)
{
	struct client *c = self;
	struct run     r = { .sock = c->server.sock };
	char           text[ANSWER_MAX], said[4096];
	ssize_t        n = 0;

	if (ask(&r, &c->honest) < 0 || hear(&r, text) < 0)
		return -1;
	if (!has(text, "\"event\":\"started\"") || r.fds < 2)
		return refuse(&r, text, "", 0);
	n       = read(r.fd[0], said, sizeof said);
	r.first = clock_us();
	do
		if (hear(&r, text) < 0)
			return -1;
	while (!has(text, "\"event\":\"ended\""));
	return end(c, &r, text, said, n > 0 ? (size_t)n : 0, sizeof said, f);
}

/* --- many at once ------------------------------------------------------------------------------------------------- */

static int begin(struct client *c, struct run *r)
{
	r->is_bomb = c->bombs && r->count % BOMB_EVERY == BOMB_EVERY - 1;
	return ask(r, r->is_bomb ? &c->bomb[r->count++ / BOMB_EVERY % c->bombs] : (r->count++, &c->honest));
}

static void take_id(struct run *r, const char *text)
{
	const char *at = strstr(text, "\"run\":\"");

	r->id[0] = 0;
	if (at)
		snprintf(r->id, sizeof r->id, "%.36s", at + 7);
}

/* As brig does it: eight times what is kept, and it is ended. */
static int read_bomb(struct run *r)
{
	char    chunk[ANSWER_MAX], text[160];
	ssize_t n = read(r->fd[0], chunk, sizeof chunk);
	int     len;

	if (n <= 0)
		return 0;
	r->seen += (uint64_t)n;
	if (r->seen <= 8 * MIB || r->cancelled)
		return 0;
	r->cancelled = true;
	len          = snprintf(text, sizeof text, "{\"op\":\"cancel\",\"run\":\"%s\",\"reason\":\"output_limit\"}", r->id);
	errno        = -packet_send(r->sock, text, (size_t)len, NULL, 0);
	return errno ? perror("cancel"), -1 : 0;
}

static int take_answer(struct client *c, struct run *r, int64_t until, struct figures *f)
{
	char text[ANSWER_MAX], said[4096];

	if (hear(r, text) < 0)
		return -1;
	if (has(text, "\"error\":{\"code\"") && !has(text, "not_found")) /* a cancel may come too late */
		return refuse(r, text, "", 0);
	if (has(text, "\"event\":\"started\""))
		take_id(r, text);
	if (!has(text, "\"event\":\"ended\""))
		return 0;
	if (end(c, r, text, said, 0, sizeof said, f) < 0)
		return -1;
	return clock_us() < until ? begin(c, r) : 0;
}

/* A connection each, and the output of bombs that print: it has to be read, or they wait for their reader. */
static size_t waits_of(const struct run *r, unsigned n, struct pollfd *p)
{
	size_t going = 0;

	for (unsigned i = 0; i < n; i++) {
		bool reads = r[i].is_bomb && r[i].fds && !r[i].cancelled;

		p[2 * i]     = (struct pollfd){ r[i].program ? r[i].sock : -1, POLLIN, 0 };
		p[2 * i + 1] = (struct pollfd){ r[i].program && reads ? r[i].fd[0] : -1, POLLIN, 0 };
		going += r[i].program != NULL;
	}
	return going;
}

static int serve(struct client *c, struct run *r, unsigned n, int64_t until, struct figures *f)
{
	struct pollfd p[2 * PARALLEL_MAX];

	while (waits_of(r, n, p)) {
		if (poll(p, 2 * n, -1) < 0 && errno != EINTR)
			return perror("poll"), -1;
		for (unsigned i = 0; i < n; i++) {
			if (p[2 * i + 1].revents & POLLIN && read_bomb(&r[i]) < 0)
				return -1;
			if (p[2 * i].revents && take_answer(c, &r[i], until, f) < 0)
				return -1;
		}
	}
	return 0;
}

static int sustained(void *self, int64_t until, unsigned parallel, struct figures *f)
{
	struct client *c = self;
	struct brigd   s[PARALLEL_MAX];
	struct run     r[PARALLEL_MAX] = { 0 };
	struct err     e;
	unsigned       n = 0;
	int            answer = 0;

	if (parallel > PARALLEL_MAX)
		return fprintf(stderr, "at most %d at once\n", PARALLEL_MAX), -1;
	for (; answer == 0 && n < parallel; n++) {
		s[n] = BRIGD_NONE;
		answer = brigd_connect(&s[n], BRIGD_SERVICE, &e);
		if (answer < 0)
			fprintf(stderr, "%s\n", e.text);
		r[n].sock  = s[n].sock;
		r[n].count = 3 * n; /* not all bombs at once */
	}
	for (unsigned i = 0; answer == 0 && i < n; i++)
		answer = begin(c, &r[i]);
	if (answer == 0)
		answer = serve(c, r, n, until, f);
	while (n--) {
		close_streams(&r[n]);
		brigd_close(&s[n]);
	}
	return answer;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static int take_program(struct program *ret, const char *path, const char *keys)
{
	struct stat st;
	const char *slash = strrchr(path, '/');
	scoped_fd   fd    = open(path, O_RDONLY | O_CLOEXEC);

	*ret = (struct program){ .name = slash ? slash + 1 : path, .keys = keys };
	if (fd < 0 || fstat(fd, &st) < 0 || !(ret->text = malloc((size_t)st.st_size + 1)))
		return perror(path), -1;
	ret->len = (size_t)st.st_size;
	return read(fd, ret->text, ret->len) == (ssize_t)ret->len ? 0 : (perror(path), -1);
}

/* A service hangs up on who is silent for minutes. */
static int connected(struct client *c)
{
	struct err e;

	if (c->server.sock >= 0 && clock_us() - c->last < IDLE_MAX_US) {
		c->last = clock_us();
		return 0;
	}
	brigd_close(&c->server);
	c->server = BRIGD_NONE;
	c->last   = clock_us();
	return brigd_connect(&c->server, BRIGD_SERVICE, &e) < 0 ? (fprintf(stderr, "%s\n", e.text), -1) : 0;
}

static int once_connected(void *self, struct figures *f)
{
	return connected(self) < 0 ? -1 : once(self, f);
}

static int parse(struct client *c, int argc, char **argv)
{
	static const struct option options[] = {
		{ "keys", required_argument, NULL, 'k' }, { "warm", no_argument, NULL, 'w' },
		{ "bomb-keys", required_argument, NULL, 'K' }, { "bomb", required_argument, NULL, 'b' }, { 0 },
	};
	const char *keys = "", *bomb_keys = "";
	int         o;

	while ((o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'k')
			keys = optarg;
		else if (o == 'w')
			c->warm = true;
		else if (o == 'K')
			bomb_keys = optarg;
		else if (o != 'b' || c->bombs == BOMBS_MAX || take_program(&c->bomb[c->bombs++], optarg, bomb_keys) < 0)
			return -1;
	}
	if (optind + 2 != argc)
		return fputs("usage: warm_client [OPTION]... PROGRAM EXPECT\n", stderr), -1;
	c->expect = argv[optind + 1];
	return take_program(&c->honest, argv[optind], keys);
}

int main(int argc, char **argv)
{
	struct client c = { .server = BRIGD_NONE };

	if (parse(&c, argc, argv) < 0)
		return 2;
	return orders_serve(&(struct orders){ &c, once_connected, sustained });
}
