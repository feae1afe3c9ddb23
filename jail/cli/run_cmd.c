/* run_cmd.c - brig run and brig exec: the client's side of one run */
#define _GNU_SOURCE
#include "command.h"
#include "fd.h"
#include "file.h"
#include "layer.h"
#include "privilege.h"
#include "request.h"
#include "stream.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_SIGINT = 130, STATUS_SIGPIPE = 141, STATUS_NO_EXEC = 126, STATUS_NOT_FOUND = 127 };

struct client {
	struct request req;
	struct run     run;
	struct stream  out, err;
	int            stdin_to; /* the program's stdin; -1: closed */
	char           pending[64 * 1024];
	size_t         pending_at, pending_len;
	bool           started, ended;
	struct run_end end;
	struct record  record;
};

/* --- Ctrl-C: the one thing that a signal handler must reach --- */

static volatile sig_atomic_t caught;      /* which signal; 0: none */
static volatile sig_atomic_t cancel_sock; /* the launcher's */

/* A second one ends brig itself: the launcher then cleans up alone. */
static void on_signal(int number)
{
	struct run run = { .sock = (int)cancel_sock };

	caught = number;
	run_cancel(&run, EXIT_cancelled);
}

static void catch_signals(int sock)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

	cancel_sock = sock;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct sigaction old;

		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) /* nohup keeps its meaning */
			sigaction(numbers[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
}

/* --- stdin --- */

static void close_stdin(struct client *c)
{
	fd_closep(&c->stdin_to);
	fd_closep(&c->req.stdin_fd);
}

static void fill_pending(struct client *c)
{
	ssize_t n = read(c->req.stdin_fd, c->pending, sizeof c->pending);

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) {
		close_stdin(c);
		return;
	}
	c->pending_at  = 0;
	c->pending_len = (size_t)n;
}

static void write_pending(struct client *c)
{
	ssize_t n = write(c->stdin_to, c->pending + c->pending_at, c->pending_len - c->pending_at);

	if (n > 0)
		c->pending_at += (size_t)n;
	else if (n < 0 && errno != EINTR && errno != EAGAIN)
		close_stdin(c); /* the program closed it, or is gone */
}

/* --- the loop --- */

static void on_output(struct client *c, struct stream *s)
{
	switch (stream_read(s)) {
	case STREAM_GOES_ON:
		return;
	case STREAM_FLOOD:
		run_cancel(&c->run, EXIT_output_limit);
		return;
	case STREAM_BROKEN:
		run_cancel(&c->run, EXIT_cancelled);
		return;
	}
}

static void on_launcher(struct client *c)
{
	int streams[3];

	if (run_next(&c->run, streams, &c->end) == RUN_ENDED) {
		c->ended = true;
		return;
	}
	c->started  = true;
	c->out.fd   = streams[0];
	c->err.fd   = streams[1];
	c->stdin_to = streams[2];
	/* the program can open the other ends again: it could read what poll promised us, and keep what it wrote to open */
	fcntl(c->out.fd, F_SETFL, O_NONBLOCK);
	fcntl(c->err.fd, F_SETFL, O_NONBLOCK);
	if (c->stdin_to >= 0)
		fcntl(c->stdin_to, F_SETFL, O_NONBLOCK);
}

static void attend(struct client *c)
{
	bool          has_pending = c->pending_at < c->pending_len;
	struct pollfd fds[]       = {
		{ c->ended ? -1 : c->run.sock, POLLIN, 0 },
		{ c->out.fd, POLLIN, 0 },
		{ c->err.fd, POLLIN, 0 },
		{ has_pending ? c->stdin_to : -1, POLLOUT, 0 },
		{ c->stdin_to >= 0 && !has_pending ? c->req.stdin_fd : -1, POLLIN, 0 },
	};

	if (poll(fds, ARRAY_LEN(fds), -1) < 0)
		return;
	if (fds[1].revents)
		on_output(c, &c->out);
	if (fds[2].revents)
		on_output(c, &c->err);
	if (fds[3].revents)
		write_pending(c);
	if (fds[4].revents)
		fill_pending(c);
	if (fds[0].revents)
		on_launcher(c);
}

/* What is in the pipe, without waiting for more and without end. */
static void drain(struct stream *s)
{
	struct pollfd p = { .fd = s->fd, .events = POLLIN };

	while (s->fd >= 0 && poll(&p, 1, 0) > 0)
		if (stream_read(s) != STREAM_GOES_ON)
			return;
}

/*
 * Until the launcher has cleaned up and the last byte is read. Every process of
 * the cell is dead by then; the pipes need not be closed, for a program may have
 * sent its end of one to somebody outside, through a socket that --ro shows.
 */
static void attend_until_end(struct client *c)
{
	while (!c->ended)
		attend(c);
	drain(&c->out);
	drain(&c->err);
	close_stdin(c);
}

/* --- the record --- */

static int make_run_id(char id[37], struct err *e)
{
	unsigned char b[16];

	if (getrandom(b, sizeof b, 0) != sizeof b)
		return err_sys(e, "no random bytes for a run id");
	b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* RFC 4122, version 4 */
	b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
	snprintf(id, 37, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2], b[3], b[4], b[5], b[6],
		 b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
	return 0;
}

static void fill_outcome(struct record *r, const struct run_end *end)
{
	if (end->wait_status < 0)
		return;
	if (WIFSIGNALED(end->wait_status)) {
		r->signal    = WTERMSIG(end->wait_status);
		r->exit_code = 128 + r->signal;
	} else {
		r->exit_code = WEXITSTATUS(end->wait_status);
	}
}

static void fill_output(struct client *c)
{
	struct record *r = &c->record;

	if (!c->started)
		return;
	r->stdout_bytes = (int64_t)c->out.seen;
	r->stderr_bytes = (int64_t)c->err.seen;
	r->truncated    = stream_is_truncated(&c->out) || stream_is_truncated(&c->err);
}

/* The limit that ended the run, as the option that would give another one. */
static void fill_limit(struct record *r, const struct limits *limits)
{
	static const struct {
		enum exit_reason reason;
		enum limit_id    limit;
	} ends[] = {
		{ EXIT_timeout_wall, LIMIT_wall_ms },
		{ EXIT_timeout_cpu,  LIMIT_cpu_ms },
		{ EXIT_oom,          LIMIT_memory_bytes },
		{ EXIT_output_limit, LIMIT_output_bytes },
	};
	char text[32];

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		const struct field *f = &limits_fields[ends[i].limit];

		if (ends[i].reason != r->exit_reason)
			continue;
		field_print_text(f, limits_value(limits, f), text, sizeof text);
		snprintf(r->limit, sizeof r->limit, "--%s %s", limits_option(f->name), text);
	}
}

static void fill_record(struct client *c)
{
	struct record        *r   = &c->record;
	const struct run_end *end = &c->end;

	r->exit_reason       = end->reason;
	r->wall_ms           = end->wall_ms;
	r->cpu_ms            = end->cpu_ms;
	r->setup_ms          = end->setup_ms;
	r->started_at        = end->started_at;
	r->memory_peak_bytes = end->memory_peak_bytes;
	r->pids_peak         = end->pids_peak;
	r->io_read_bytes     = end->io_read_bytes;
	r->io_write_bytes    = end->io_write_bytes;
	r->layers            = end->layers;
	r->layers_missing    = end->missing;
	r->why               = end->why;
	r->rootfs_digest     = end->rootfs_digest[0] ? end->rootfs_digest : NULL;
	for (unsigned i = 0; i < end->hits; i++)
		record_add_hit(r, limits_fields[end->hit[i].limit].name, end->hit[i].value, end->hit[i].peak, end->hit[i].times);
	fill_outcome(r, end);
	fill_output(c);
	fill_limit(r, &c->req.limits);
}

static json_t *output_text(const struct stream *s)
{
	size_t  len;
	char   *text = text_as_utf8(s->data ? s->data : "", s->len, &len);
	json_t *j    = text ? json_stringn_nocheck(text, len) : json_null();

	free(text);
	return j;
}

/* jansson hands over a few bytes at a time; stdio would lose what a full pipe that does not block refuses. */
struct printer {
	char   buf[64 * 1024];
	size_t n;
};

static int flush_printer(struct printer *p)
{
	int r = file_write_all(STDOUT_FILENO, p->buf, p->n);

	p->n = 0;
	return r;
}

static int print_piece(const char *piece, size_t len, void *context)
{
	struct printer *p = context;

	if (len > sizeof p->buf - p->n && flush_printer(p) < 0)
		return -1;
	if (len > sizeof p->buf)
		return file_write_all(STDOUT_FILENO, piece, len);
	memcpy(p->buf + p->n, piece, len);
	p->n += len;
	return 0;
}

/* A record that nobody could read is no success: 0 or -1 with errno. */
static int print_json(const struct client *c)
{
	struct printer p = { .n = 0 };
	json_t        *j = record_json(&c->record);
	int            r;

	json_object_set_new(j, "stdout", c->started ? output_text(&c->out) : json_null());
	json_object_set_new(j, "stderr", c->started ? output_text(&c->err) : json_null());
	r = json_dump_callback(j, print_piece, &p, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	if (r == 0 && (r = print_piece("\n", 1, &p)) == 0)
		r = flush_printer(&p);
	json_decref(j);
	return r;
}

/* The kernel refused a step: the host is not as it should be. */
static bool points_to_doctor(const struct client *c)
{
	return c->record.exit_reason == EXIT_setup_failed && c->record.why.kind == ERR_SETUP && !c->end.exec_errno;
}

/* In brackets behind the layers that are missing for it. */
static void print_missing(uint64_t layers, const char *why)
{
	const char *separator = " ";

	for (unsigned i = 0; i < LAYER_COUNT; i++) {
		if (!(layers & (1ull << i)))
			continue;
		fprintf(stderr, "%s%s", separator, layer_name(i));
		separator = ", ";
	}
	if (layers && *why)
		fprintf(stderr, " (%s)", why);
}

/* What root would have had. Once, for the record says it too. */
static void print_losses(const struct run_end *end)
{
	uint64_t lost = 0, limits = LAYER_BIT(MEMORY) | LAYER_BIT(PIDS) | LAYER_BIT(CPU) | LAYER_BIT(CPU_TIME);

	for (unsigned i = 0; i < LAYER_COUNT; i++)
		if (layer_need(i) == NEED_ROOT)
			lost |= end->missing & (1ull << i);
	if (!lost)
		return;
	fputs("brig: not in force without root:", stderr);
	print_missing(lost & ~limits, end->missing_why[0]);
	fputs(lost & ~limits && lost & limits ? ";" : "", stderr);
	print_missing(lost & limits, end->missing_why[1]);
	fputs("; brig doctor says how to get them\n", stderr);
}

/* One story on stderr: a refusal in words, an unusual end as a summary. */
static void print_story(const struct client *c)
{
	const struct record *r      = &c->record;
	int                  broken = c->out.broken ? c->out.broken : c->err.broken;

	if (broken == EPIPE && !c->req.verbose)
		return; /* brig run ... | head: nobody wants to hear more */
	if (broken)
		fprintf(stderr, "brig: the output cannot be %s: %s\n", c->out.unread || c->err.unread ? "read" : "written", strerror(broken));
	if (r->why.kind != ERR_NONE && !c->started)
		fprintf(stderr, "brig: %s%s\n", r->why.text, points_to_doctor(c) ? "; brig doctor says what this host lacks" : "");
	else if (r->exit_reason != EXIT_exited || r->truncated > 0 || c->req.verbose) {
		fputs("brig: ", stderr);
		record_print(r, stderr);
	}
	print_losses(&c->end);
	if (c->end.left.kind != ERR_NONE)
		fprintf(stderr, "brig: left behind: %s\n", c->end.left.text);
}

static int status_of(const struct client *c)
{
	if (c->end.exec_errno)
		return c->end.exec_errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NO_EXEC;
	if (c->out.broken || c->err.broken)
		return STATUS_SIGPIPE;
	if (c->record.exit_reason == EXIT_cancelled && caught == SIGINT)
		return STATUS_SIGINT;
	return record_status(&c->record);
}

static int report(struct client *c)
{
	int printed = c->req.json ? print_json(c) : 0;

	if (printed < 0)
		fprintf(stderr, "brig: the record cannot be written: %m\n");
	print_story(c);
	return printed < 0 ? STATUS_SIGPIPE : status_of(c);
}

/* --- from words to a run --- */

static int refuse(struct client *c, const struct err *e)
{
	c->record.exit_reason = EXIT_denied;
	c->record.why         = *e;
	return report(c);
}

static int carry_out(struct client *c)
{
	struct err e;
	int        dropped;

	c->out = (struct stream){ .fd = -1, .to = c->req.json ? -1 : STDOUT_FILENO, .keep = c->req.limits.output_bytes };
	c->err = (struct stream){ .fd = -1, .to = c->req.json ? -1 : STDERR_FILENO, .keep = c->req.limits.output_bytes };
	if (run_start(&c->run, &c->req.order, &e) < 0)
		return refuse(c, &e);
	catch_signals(c->run.sock);
	dropped = privilege_drop(&e); /* what comes now is hostile data */
	if (dropped < 0)
		run_cancel(&c->run, EXIT_cancelled); /* read before the launcher lets the program start */
	attend_until_end(c);
	run_done(&c->run);
	fill_record(c);
	if (dropped < 0) {
		c->record.exit_reason = EXIT_setup_failed;
		c->record.why         = e;
	}
	return report(c);
}

static void usage(FILE *out, const char *line, const char *what)
{
	fprintf(out, "usage: %s\n\n%s\n\n", line, what);
	options_print(request_options, out);
	fputs("\nbrig explain PROFILE shows what each limit is when not said, and the most that may be asked for.\n", out);
}

static int complain(const char *command, const struct err *e)
{
	fprintf(stderr, "brig %s: %s\n", command, e->text);
	return STATUS_USAGE;
}

typedef int take_fn(struct request *, char **words, int n, struct err *);

static int take_program(struct request *r, char **words, int n, struct err *e)
{
	if (strcmp(words[0], "-") == 0 && r->stdin_path && strcmp(r->stdin_path, "-") == 0)
		return err_set(e, ERR_BAD_SPEC, "stdin cannot be both the program (-) and its input (--stdin -)");
	return request_take_program(r, words[0], words + 1, n - 1, e);
}

static int main_of(struct client *c, int argc, char **argv, const char *line, const char *what, take_fn *take)
{
	struct err e;
	int        n;

	request_init(&c->req);
	record_init(&c->record);
	c->stdin_to = -1;
	c->out.fd = c->err.fd = -1;
	n = options_parse(request_options, argc, argv, &c->req, &e);
	if (n == OPTIONS_HELP) {
		usage(stdout, line, what);
		return STATUS_OK;
	}
	if (n < 0)
		return complain(argv[0], &e);
	if (n + 1 >= argc) {
		fprintf(stderr, "brig %s: nothing to run; write: %s\n", argv[0], line);
		return STATUS_USAGE;
	}
	c->record.profile = c->req.profile_name;
	if (make_run_id(c->record.run_id, &e) < 0)
		return refuse(c, &e);
	if (take(&c->req, argv + n + 1, argc - n - 1, &e) < 0 || request_prepare(&c->req, &e) < 0)
		return refuse(c, &e);
	c->record.rootfs = c->req.profile.rootfs;
	return carry_out(c);
}

static int run_or_exec(int argc, char **argv, const char *line, const char *what, take_fn *take)
{
	struct client *c = calloc(1, sizeof *c);
	int            status;

	if (!c) {
		fputs("brig: out of memory\n", stderr);
		return STATUS_DENIED;
	}
	status = main_of(c, argc, argv, line, what, take);
	stream_done(&c->out);
	stream_done(&c->err);
	request_done(&c->req);
	free(c);
	return status;
}

int run_main(int argc, char **argv)
{
	return run_or_exec(argc, argv, "brig run [OPTION]... FILE|- [ARG]...", "Run a Python program in a jail.", take_program);
}

int exec_main(int argc, char **argv)
{
	return run_or_exec(argc, argv, "brig exec [OPTION]... -- COMMAND [ARG]...", "Run a command of the rootfs in a jail.",
			   request_take_command);
}
