/*
 * session_client.c - a client of brigd that measures sessions.
 *
 *     BRIG_SOCKET=PATH session_client [--keys JSON] open PROGRAM EXPECT
 *     BRIG_SOCKET=PATH session_client [--keys JSON] call PROGRAM EXPECT
 *     BRIG_SOCKET=PATH session_client [--keys JSON] exec EXPECT COMMAND
 *     BRIG_SOCKET=PATH session_client [--keys JSON] files BYTES
 *     BRIG_SOCKET=PATH session_client [--keys JSON] each SESSIONS PROGRAM EXPECT
 *
 * open    a session for each run, and one call in it: setup is until the session is open, first until the first byte of output, record until
 *         the record of the call. Closing it is not measured.
 * call    calls in one context of one session: until the first byte of output, and until the record.
 * exec    commands in one session, the same.
 * files   puts a file of so many bytes and gets it back, over one socket: first is until the first byte that comes back, record until all are there.
 * each    opens so many sessions at the first order; a run is a call in each of them, several at a time, first: the slowest of them.
 *
 * --keys are members of the request `open`, as '"profile":"basic"'. What is printed or comes back must be as
 * EXPECT says, and end with exit_code 0. The record is searched for what is asked, not parsed. See orders.h.
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANSWER_MAX = 64 * 1024, FDS_MAX = 4, ID_LEN = 36, AT_ONCE = 16, SESSIONS_MAX = 4096, HEAD_LEN = 16 };
enum { ENTRY_END, ENTRY_FILE, ENTRY_PATTERN = 3 };

struct call {
	int     fd[FDS_MAX]; /* stdout, stderr, then result of a context */
	size_t  fds;
	int64_t began, first;
};

struct client {
	const char  *keys, *expect, *command;
	char        *text;
	size_t       len;
	size_t       bytes;
	unsigned     wanted; /* sessions of `each` */
	struct brigd server;
	char         session[ID_LEN + 1];
	char        (*all)[ID_LEN + 1];
	unsigned char *out, *back; /* what files sends, and what comes back */
	char          answer[ANSWER_MAX];
};

static bool has(const char *text, const char *what)
{
	return strstr(text, what) != NULL;
}

static int complain(const struct client *c, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, c->answer);
	return -1;
}

static int send_text(struct client *c, const char *text, int len, const int *fds, size_t n)
{
	errno = -packet_send(c->server.sock, text, (size_t)len, fds, n);
	return errno ? perror("request"), -1 : 0;
}

/* The next answer, as text; its descriptors into call. */
static int hear(struct client *c, struct call *call)
{
	int     fd[FDS_MAX];
	size_t  n;
	ssize_t got = packet_receive(c->server.sock, c->answer, ANSWER_MAX - 1, fd, FDS_MAX, &n);

	if (got <= 0)
		return fprintf(stderr, "brigd is gone: %s\n", got < 0 ? strerror(errno) : "end of the connection"), -1;
	c->answer[got] = 0;
	for (size_t i = 0; i < n; i++)
		if (call && call->fds < FDS_MAX)
			call->fd[call->fds++] = fd[i];
		else
			close(fd[i]);
	return has(c->answer, "\"error\":{\"code\"") ? complain(c, "refused") : 0;
}

static void close_streams(struct call *call)
{
	while (call->fds)
		close(call->fd[--call->fds]);
}

/* The value of a key whose value is a text of 36 characters. */
static int take_id(const char *answer, const char *key, char *ret)
{
	const char *at = strstr(answer, key);

	if (!at)
		return -1;
	snprintf(ret, ID_LEN + 1, "%.36s", at + strlen(key));
	return 0;
}

/* --- a session ---------------------------------------------------------------------------------------------------- */

static int open_session(struct client *c, char *id)
{
	char text[4096];
	int  len = snprintf(text, sizeof text, "{\"op\":\"open\"%s%s}", *c->keys ? "," : "", c->keys);

	if (send_text(c, text, len, NULL, 0) < 0)
		return -1;
	do
		if (hear(c, NULL) < 0)
			return -1;
	while (has(c->answer, "\"event\":\"waiting\""));
	return has(c->answer, "\"event\":\"opened\"") && take_id(c->answer, "\"session\":\"", id) == 0 ? 0 : complain(c, "open");
}

static int close_session(struct client *c, const char *id)
{
	char text[256];
	int  len = snprintf(text, sizeof text, "{\"op\":\"close\",\"session\":\"%s\"}", id);

	if (send_text(c, text, len, NULL, 0) < 0)
		return -1;
	do
		if (hear(c, NULL) < 0)
			return -1;
	while (!has(c->answer, "\"event\":\"ended\""));
	return 0;
}

static int connected(struct client *c)
{
	struct err e;

	if (c->server.sock >= 0)
		return 0;
	return brigd_connect(&c->server, BRIGD_SERVICE, &e) < 0 ? (fprintf(stderr, "%s\n", e.text), -1) : 0;
}

static int with_session(struct client *c)
{
	return connected(c) < 0 ? -1 : *c->session ? 0 : open_session(c, c->session);
}

/* --- a call ------------------------------------------------------------------------------------------------------- */

static int ask_call(struct client *c, const char *session, unsigned tag)
{
	char       text[512];
	struct err e;
	scoped_fd  code = sealed_create("call", c->text, c->len, &e);
	int        len  = snprintf(text, sizeof text, "{\"op\":\"run\",\"session\":\"%s\",\"tag\":%u}", session, tag);

	if (code < 0)
		return fprintf(stderr, "%s\n", e.text), -1;
	return send_text(c, text, len, &(int){ code }, 1);
}

static int ask_command(struct client *c, const char *session)
{
	char text[512];
	int  len = snprintf(text, sizeof text, "{\"op\":\"exec\",\"session\":\"%s\",\"argv\":[\"%s\"]}", session, c->command);

	return send_text(c, text, len, NULL, 0);
}

static bool is_as_expected(const struct client *c, const struct call *call)
{
	char    said[4096];
	ssize_t n;

	(void)fcntl(call->fd[0], F_SETFL, O_NONBLOCK);
	n = read(call->fd[0], said, sizeof said);
	n = n < 0 ? 0 : n;
	return (size_t)n == strlen(c->expect) && memcmp(said, c->expect, (size_t)n) == 0;
}

/* What was asked for is measured to its end. The output stays in its pipe until that: a byte of it can be polled for. */
static int follow(struct client *c, struct call *call)
{
	struct pollfd p;
	bool          good;

	if (hear(c, call) < 0)
		return -1;
	if (!has(c->answer, "\"event\":\"started\"") || call->fds < 2)
		return complain(c, "not started");
	p = (struct pollfd){ call->fd[0], POLLIN, 0 };
	if (*c->expect && poll(&p, 1, -1) < 0)
		return perror("poll"), -1;
	call->first = clock_us();
	do
		if (hear(c, NULL) < 0)
			return -1;
	while (!has(c->answer, "\"event\":\"ended\""));
	good = has(c->answer, "\"exit_code\":0,") && is_as_expected(c, call);
	return good ? 0 : complain(c, "not what it should be");
}

static int measured(struct client *c, struct call *call, int64_t setup, struct figures *f)
{
	int64_t ended;
	int     r = follow(c, call);

	ended = clock_us();
	close_streams(call);
	if (r == 0)
		figures_add(f, (struct figure){ "run", call->first - call->began, ended - call->began, setup });
	return r;
}

static int once_open(void *self, struct figures *f)
{
	struct client *c    = self;
	struct call    call = { .began = clock_us() };
	int64_t        opened;

	if (connected(c) < 0)
		return -1;
	call.began = clock_us();
	if (open_session(c, c->session) < 0)
		return -1;
	opened = clock_us();
	if (ask_call(c, c->session, 1) < 0 || measured(c, &call, opened - call.began, f) < 0)
		return -1;
	return close_session(c, c->session);
}

static int once_call(void *self, struct figures *f)
{
	struct client *c    = self;
	struct call    call = { 0 };

	if (with_session(c) < 0)
		return -1;
	call.began = clock_us();
	return ask_call(c, c->session, 1) < 0 ? -1 : measured(c, &call, -1, f);
}

static int once_exec(void *self, struct figures *f)
{
	struct client *c    = self;
	struct call    call = { 0 };

	if (with_session(c) < 0)
		return -1;
	call.began = clock_us();
	return ask_command(c, c->session) < 0 ? -1 : measured(c, &call, -1, f);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static const char NAME[] = "data.bin";

static size_t put_head(unsigned char *to, uint32_t kind, const char *name, uint64_t size)
{
	uint32_t len = (uint32_t)strlen(name);

	memcpy(to, &kind, 4);
	memcpy(to + 4, &len, 4);
	memcpy(to + 8, &size, 8);
	memcpy(to + HEAD_LEN, name, len);
	return HEAD_LEN + len;
}

/* All that is said to it: the file, an end, the pattern, an end. */
static size_t lists_of(struct client *c)
{
	size_t at = put_head(c->out, ENTRY_FILE, NAME, c->bytes);

	memset(c->out + at, 'x', c->bytes);
	at += c->bytes;
	at += put_head(c->out + at, ENTRY_END, "", 0);
	at += put_head(c->out + at, ENTRY_PATTERN, NAME, 0);
	return at + put_head(c->out + at, ENTRY_END, "", 0);
}

/* Both ways at once, or each side waits for the other. */
static int exchange(struct client *c, int sock, size_t out, size_t back, int64_t *first)
{
	size_t sent = 0, got = 0;

	while (sent < out || got < back) {
		struct pollfd p = { sock, (short)((sent < out ? POLLOUT : 0) | POLLIN), 0 };
		ssize_t       n = poll(&p, 1, -1);

		if (n > 0 && p.revents & POLLOUT) {
			n = send(sock, c->out + sent, out - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
			sent += n > 0 ? (size_t)n : 0;
		}
		if (p.revents & (POLLIN | POLLHUP)) {
			n = recv(sock, c->back + got, back - got, MSG_DONTWAIT);
			if (n == 0)
				return fprintf(stderr, "the socket for files ended after %zu of %zu bytes\n", got, back), -1;
			if (n > 0 && got == 0)
				*first = clock_us();
			got += n > 0 ? (size_t)n : 0;
		}
	}
	return 0;
}

static int once_files(void *self, struct figures *f)
{
	struct client *c    = self;
	struct call    call = { 0 };
	size_t         out, back = HEAD_LEN + strlen(NAME) + c->bytes + HEAD_LEN;
	char           text[256];
	int            len, r;

	if (with_session(c) < 0)
		return -1;
	out        = lists_of(c);
	len        = snprintf(text, sizeof text, "{\"op\":\"files\",\"session\":\"%s\"}", c->session);
	call.began = clock_us();
	if (send_text(c, text, len, NULL, 0) < 0 || hear(c, &call) < 0)
		return -1;
	if (call.fds != 1)
		return complain(c, "no socket for files");
	r = exchange(c, call.fd[0], out, back, &call.first);
	if (r == 0)
		figures_add(f, (struct figure){ "run", call.first - call.began, clock_us() - call.began, -1 });
	close_streams(&call);
	if (r == 0 && memcmp(c->out, c->back, back - HEAD_LEN) != 0)
		return fputs("other bytes came back\n", stderr), -1;
	return r;
}

/* --- a call in each of many --------------------------------------------------------------------------------------- */

static int open_all(struct client *c)
{
	if (connected(c) < 0)
		return -1;
	if (c->all)
		return 0;
	c->all = calloc(c->wanted, sizeof *c->all);
	for (unsigned i = 0; c->all && i < c->wanted; i++)
		if (open_session(c, c->all[i]) < 0)
			return -1;
	return c->all ? 0 : -1;
}

static unsigned tag_of(const char *answer)
{
	const char *at = strstr(answer, "\"tag\":");

	return at ? (unsigned)strtoul(at + 6, NULL, 10) : 0;
}

/* Sixteen are under way, as with so many clients. The tag is the number of the session, from 1. */
static int each(struct client *c, int64_t *slowest)
{
	struct call *calls = calloc(c->wanted, sizeof *calls);
	unsigned     asked = 0, ended = 0, i;
	int          r     = calls ? 0 : -1;

	*slowest = 0;
	while (r == 0 && ended < c->wanted) {
		struct call beside = { 0 };

		while (r == 0 && asked < c->wanted && asked - ended < AT_ONCE) {
			calls[asked].began = clock_us();
			r = ask_call(c, c->all[asked], asked + 1);
			asked++;
		}
		r = r < 0 ? r : hear(c, &beside);
		i = tag_of(c->answer) - 1;
		if (r < 0 || i >= asked)
			r = complain(c, "of no call");
		else if (has(c->answer, "\"event\":\"started\"")) {
			memcpy(calls[i].fd, beside.fd, sizeof beside.fd);
			calls[i].fds = beside.fds;
		} else if (has(c->answer, "\"event\":\"ended\"")) {
			int64_t took = clock_us() - calls[i].began;

			*slowest = took > *slowest ? took : *slowest;
			ended++;
			if (!has(c->answer, "\"exit_code\":0,") || !calls[i].fds || !is_as_expected(c, &calls[i]))
				r = complain(c, "not what it should be");
			close_streams(&calls[i]);
		}
	}
	free(calls);
	return r;
}

static int once_each(void *self, struct figures *f)
{
	struct client *c = self;
	int64_t        began, slowest;

	if (open_all(c) < 0)
		return -1;
	began = clock_us();
	if (each(c, &slowest) < 0)
		return -1;
	figures_add(f, (struct figure){ "run", slowest, clock_us() - began, -1 });
	return 0;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static int sustained(void *self, int64_t until, unsigned parallel, struct figures *f)
{
	(void)self, (void)until, (void)parallel, (void)f;
	return fputs("one at a time\n", stderr), -1;
}

static int take_program(struct client *c, const char *path, const char *expect)
{
	struct stat st;
	scoped_fd   fd = open(path, O_RDONLY | O_CLOEXEC);

	c->expect = expect;
	if (fd < 0 || fstat(fd, &st) < 0 || !(c->text = malloc((size_t)st.st_size + 1)))
		return perror(path), -1;
	c->len = (size_t)st.st_size;
	return read(fd, c->text, c->len) == (ssize_t)c->len ? 0 : (perror(path), -1);
}

static int take_bytes(struct client *c, const char *word)
{
	c->bytes = strtoul(word, NULL, 10);
	c->out   = malloc(c->bytes + 1024);
	c->back  = malloc(c->bytes + 1024);
	return c->out && c->back ? 0 : -1;
}

static int (*way_of(struct client *c, int n, char **words))(void *, struct figures *)
{
	if (n == 3 && strcmp(words[0], "open") == 0)
		return take_program(c, words[1], words[2]) < 0 ? NULL : once_open;
	if (n == 3 && strcmp(words[0], "call") == 0)
		return take_program(c, words[1], words[2]) < 0 ? NULL : once_call;
	if (n == 3 && strcmp(words[0], "exec") == 0) {
		c->expect  = words[1];
		c->command = words[2];
		return once_exec;
	}
	if (n == 2 && strcmp(words[0], "files") == 0)
		return take_bytes(c, words[1]) < 0 ? NULL : once_files;
	if (n == 4 && strcmp(words[0], "each") == 0) {
		c->wanted = (unsigned)strtoul(words[1], NULL, 10);
		return c->wanted < 1 || c->wanted > SESSIONS_MAX || take_program(c, words[2], words[3]) < 0 ? NULL : once_each;
	}
	fputs("usage: session_client [--keys JSON] open|call|exec|files|each ...\n", stderr);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "keys", required_argument, NULL, 'k' }, { 0 } };
	static struct client       c         = { .keys = "", .server = { .sock = -1 } };
	int (*once)(void *, struct figures *);
	int o;

	while ((o = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		if (o != 'k')
			return 2;
		c.keys = optarg;
	}
	once = way_of(&c, argc - optind, argv + optind);
	return once ? orders_serve(&(struct orders){ &c, once, sustained }) : 2;
}
