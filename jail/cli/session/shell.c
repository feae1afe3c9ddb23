#define _GNU_SOURCE
#include "shell.h"

#include "clock.h"
#include "fd.h"
#include "raw_terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { KEY_ESCAPE = 0x1d, ESCAPES = 3, ESCAPE_MS = 1000 }; /* Ctrl-], as with machinectl shell */

/* Without a command, the first of these that the rootfs has is started. */
static char *const shells[][3] = { { (char *)"bash" }, { (char *)"sh" }, { (char *)"python3", (char *)"-q" } };

/* --- requests --- */

static void shell_send_request(struct shell *s)
{
	struct request *r = s->c.request;

	if (run_client_start_request(&s->c.run, r->message, r->fd, r->fds, &s->c.lost) == 0)
		s->c.sent = true;
}

static void shell_start_command(struct shell *s)
{
	char *const *words = s->words;
	int          n     = s->words_len;
	uint64_t     rows = 24, columns = 80;

	if (!words) {
		words = shells[s->next];
		n     = 1 + (words[1] != NULL);
	}
	raw_terminal_size(&rows, &columns);
	if (request_set_terminal_command(s->c.request, *s->own ? s->own : s->c.request->session, words, n, rows, columns, &s->c.lost) == 0)
		shell_send_request(s);
}

static void shell_send_size(struct shell *s)
{
	uint64_t rows = 24, columns = 80;

	raw_terminal_size(&rows, &columns);
	if (s->c.run.state == RUN_RUNS)
		run_client_send(&s->c.run, json_pack("{ss ss sI sI}", "op", "resize", "run", s->c.run.id, "rows", (json_int_t)rows, "columns", (json_int_t)columns));
}

/*
 * The first time it cancels the command, and brig waits for its end; the second time brig does not wait. The rest of the output is
 * dropped, because the terminal may accept no more.
 */
static void shell_leave(struct shell *s)
{
	raw_terminal_close();
	s->shown.len = 0;
	fd_closep(&s->c.run.out.stream.fd);
	if (s->is_escaping || s->c.run.state != RUN_RUNS) {
		err_set(&s->c.lost, ERR_DENIED, "left before it had ended");
		return;
	}
	s->is_escaping = true;
	s->typed.len  = 0;
	fd_closep(&s->c.stdin_to);
	run_client_send(&s->c.run, cancel_request_to_json(s->c.run.id, NULL));
}

/* --- messages of brigd --- */

static void shell_print_banner(const struct shell *s)
{
	if (s->c.request->quiet || !isatty(STDERR_FILENO))
		return;
	fprintf(stderr, "brig: %s%s; \"exit\" leaves it, Ctrl-] three times ends it\r\n", s->c.request->program, *s->own ? " in a session of its own" : "");
	if (s->next == ARRAY_LEN(shells) - 1 && !s->words)
		fputs("brig: the rootfs has no shell, so this is Python\r\n", stderr);
}

static void shell_on_started(void *owner, int fd[RUN_STREAMS])
{
	struct shell  *s   = owner;
	struct stream *out = &s->c.run.out.stream; /* a terminal has one stream for both */

	if (out->fd < 0 || fd[RUN_STDIN] < 0)
		err_set(&s->c.lost, ERR_PROTOCOL, "brigd broke the protocol: a terminal without its streams");
	else
		(void)!raw_terminal_open(&s->c.lost);
	if (s->c.lost.kind != ERR_NONE) {
		s->c.run.state = RUN_WAITS;
		return;
	}
	out->keep     = UINT64_MAX;
	s->c.stdin_to = fd_take(&fd[RUN_STDIN]);
	shell_print_banner(s);
	shell_send_size(s); /* the size may have changed since the request */
}

static void shell_on_session_opened(void *owner, const json_t *event)
{
	struct shell *s = owner;

	snprintf(s->own, sizeof s->own, "%s", json_string_value(json_object_get(event, "session")));
	shell_start_command(s);
}

static bool shell_should_try_next(const struct shell *s, const json_t *event)
{
	const char *error = json_string_value(json_object_get(event, "exec_error"));

	return !s->words && s->c.run.state == RUN_WAITS && s->next + 1 < ARRAY_LEN(shells) && error && strcmp(error, "ENOENT") == 0;
}

static void shell_on_ended(void *owner, const json_t *event)
{
	struct shell *s = owner;

	if (*s->own && strcmp(json_string_value(json_object_get(event, "run")), s->own) == 0) {
		s->is_own_over = true;
		if (s->c.ended)
			return;
	}
	if (!s->is_own_over && shell_should_try_next(s, event)) {
		s->next++;
		shell_start_command(s);
		return;
	}
	s->c.ended = json_incref((json_t *)event);
}

static const struct run_events events_of_shell = {
	.waiting = foreground_run_on_waiting,
	.started = shell_on_started,
	.opened  = shell_on_session_opened,
	.ended   = shell_on_ended,
	.refused = foreground_run_on_refused,
	.lost    = foreground_run_on_lost,
};

/* --- keys --- */

/* True at the third Ctrl-] in a row within a second. One or two are passed on: the program may use the key. */
static bool keys_end_in_leave_sequence(struct shell *s, const char *text, size_t len)
{
	double now = clock_ms(CLOCK_MONOTONIC);

	for (size_t i = 0; i < len; i++) {
		if (text[i] != KEY_ESCAPE || now - s->escape_ms > ESCAPE_MS)
			s->escapes = 0;
		if (text[i] != KEY_ESCAPE)
			continue;
		if (!s->escapes)
			s->escape_ms = now;
		if (++s->escapes == ESCAPES)
			return true;
	}
	return false;
}

/* Keys that do not fit are dropped, as a terminal does when its program does not read: brig must keep reading to see Ctrl-]. */
static void shell_read_keys(struct shell *s)
{
	char    text[sizeof s->typed.text];
	ssize_t n = read(STDIN_FILENO, text, sizeof text);
	size_t  room = sizeof s->typed.text - s->typed.len, fits;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0 || keys_end_in_leave_sequence(s, text, (size_t)n)) { /* the terminal has gone */
		shell_leave(s);
		return;
	}
	fits = (size_t)n < room ? (size_t)n : room;
	memcpy(s->typed.text + s->typed.len, text, fits);
	s->typed.len += fits;
}

static void shell_write_keys(struct shell *s)
{
	ssize_t n = write(s->c.stdin_to, s->typed.text, s->typed.len);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) { /* the command reads no more; brigd will report its end */
		fd_closep(&s->c.stdin_to);
		s->typed.len = 0;
		return;
	}
	s->typed.len -= (size_t)n;
	memmove(s->typed.text, s->typed.text + n, s->typed.len);
}

/* --- output --- */

static void shell_read_output(struct shell *s)
{
	ssize_t n = stream_read_now(s->c.run.out.stream.fd, s->shown.text, sizeof s->shown.text);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		fd_closep(&s->c.run.out.stream.fd);
		return;
	}
	s->c.run.out.stream.seen += (uint64_t)n;
	s->shown.len = (size_t)n;
}

static void shell_write_output(struct shell *s)
{
	ssize_t n = raw_terminal_write(s->shown.text, s->shown.len);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n < 0) { /* the terminal has gone */
		shell_leave(s);
		return;
	}
	s->shown.len -= (size_t)n;
	memmove(s->shown.text, s->shown.text + n, s->shown.len);
}

/*
 * The call has ended, so what is in the pipe now is the rest of its output. No more is read: another program of the session may have
 * the pipe open, and write as fast as it is read.
 */
static void shell_write_rest(struct shell *s)
{
	int left = 0;

	(void)!ioctl(s->c.run.out.stream.fd, FIONREAD, &left);
	for (uint64_t until = s->c.run.out.stream.seen + (uint64_t)left; s->c.run.out.stream.fd >= 0 && s->c.lost.kind == ERR_NONE && (s->shown.len || s->c.run.out.stream.seen < until);) {
		struct pollfd p = { .fd = s->shown.len ? STDOUT_FILENO : s->c.run.out.stream.fd, .events = s->shown.len ? POLLOUT : POLLIN };

		if (!s->shown.len) {
			if (poll(&p, 1, 0) <= 0)
				return;
			shell_read_output(s);
			continue;
		}
		switch (raw_terminal_wait(&p, 1)) {
		case RAW_TERMINAL_READY:
			shell_write_output(s);
			break;
		case RAW_TERMINAL_RESIZED:
			break;
		case RAW_TERMINAL_ENDS: /* a terminal that accepts nothing does not hold brig */
			return;
		}
	}
}

/* --- the loop --- */

static void shell_poll_once(struct shell *s)
{
	struct pollfd fds[] = {
		{ s->c.server.sock, POLLIN, 0 },
		{ s->shown.len ? -1 : s->c.run.out.stream.fd, POLLIN, 0 },
		{ s->shown.len ? STDOUT_FILENO : -1, POLLOUT, 0 },
		{ s->c.run.state == RUN_RUNS && !s->is_escaping ? STDIN_FILENO : -1, POLLIN, 0 },
		{ s->typed.len ? s->c.stdin_to : -1, POLLOUT, 0 },
	};

	switch (raw_terminal_wait(fds, ARRAY_LEN(fds))) {
	case RAW_TERMINAL_RESIZED:
		shell_send_size(s);
		return;
	case RAW_TERMINAL_ENDS:
		shell_leave(s);
		return;
	case RAW_TERMINAL_READY:
		break;
	}
	if (fds[1].revents)
		shell_read_output(s);
	if (fds[2].revents)
		shell_write_output(s);
	if (fds[3].revents)
		shell_read_keys(s);
	if (fds[4].revents && s->c.stdin_to >= 0)
		shell_write_keys(s);
	if (fds[0].revents)
		run_client_receive(&s->c.run);
}

/* Closes the session that this command opened, and waits for its end, so that nothing of it is left. Its record is not printed. */
static void shell_close_own_session(struct shell *s)
{
	struct err lost = s->c.lost;

	if (!*s->own || lost.kind != ERR_NONE)
		return;
	run_client_send(&s->c.run, json_pack("{ss ss}", "op", "close", "session", s->own));
	while (!s->is_own_over && s->c.lost.kind == ERR_NONE)
		shell_poll_once(s);
	s->c.lost = lost;
}

void shell_init(struct shell *s, struct brigd *server, struct request *request, char *const *words, int words_len)
{
	*s = (struct shell){ .words = words_len ? words : NULL, .words_len = words_len };
	foreground_run_init(&s->c, server, request, &events_of_shell);
	signal(SIGPIPE, SIG_IGN);
}

void shell_run(struct shell *s)
{
	if (s->c.request->session)
		shell_start_command(s);
	else
		shell_send_request(s);
	while (!s->c.ended && !s->c.refused && s->c.lost.kind == ERR_NONE)
		shell_poll_once(s);
	shell_write_rest(s);
	raw_terminal_close();
	fd_closep(&s->c.run.out.stream.fd);
	fd_closep(&s->c.stdin_to);
	s->shown.len = s->typed.len = 0; /* their descriptors are closed */
	shell_close_own_session(s);
	*s->c.run.limit = 0; /* the record has the reason for the end */
	fd_closep(&s->c.server.sock);
	raw_terminal_done();
}

void shell_done(struct shell *s)
{
	raw_terminal_done();
	foreground_run_done(&s->c);
}
