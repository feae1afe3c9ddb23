#define _GNU_SOURCE
#include "terminal.h"

#include "file.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

/* The alternate screen, no cursor, no line wrap; and back. */
#define ENTER "\033[?1049h\033[?25l\033[?7l"
#define LEAVE "\033[?7h\033[?25h\033[?1049l"

static struct {
	bool           has_keys;
	struct termios before;
	sigset_t       mask;
	int            signals;
} at;

static void terminal_write_text(const char *text)
{
	(void)!file_write_all(STDOUT_FILENO, text, strlen(text));
}

static void terminal_enter_screen(void)
{
	struct termios keys = at.before;

	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	keys.c_cc[VMIN]  = 0;
	keys.c_cc[VTIME] = 0;
	if (at.has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &keys);
	terminal_write_text(ENTER);
}

static void terminal_leave_screen(void)
{
	terminal_write_text(LEAVE);
	if (at.has_keys)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &at.before);
}

/* Signals are blocked before the terminal is changed, and handled between two pages. */
int terminal_open(struct err *e)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };
	sigset_t         ours;

	sigemptyset(&ours);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaddset(&ours, numbers[i]);
	if (sigprocmask(SIG_BLOCK, &ours, &at.mask) < 0 ||
	    (at.signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK)) < 0)
		return err_sys(e, "signalfd");
	signal(SIGPIPE, SIG_IGN);
	at.has_keys = tcgetattr(STDIN_FILENO, &at.before) == 0;
	terminal_enter_screen();
	return 0;
}

void terminal_close(void)
{
	terminal_leave_screen();
	close(at.signals);
	sigprocmask(SIG_SETMASK, &at.mask, NULL);
}

/* --- drawing --- */

/* How many bytes of the line fit; a character of several bytes is not cut. */
static size_t count_bytes_that_fit(const char *line, size_t len, size_t columns)
{
	size_t n = 0, wide = 0;

	while (n < len && wide < columns) {
		n++;
		while (n < len && ((unsigned char)line[n] & 0xc0) == 0x80)
			n++;
		wide++;
	}
	return n;
}

void terminal_draw(const char *text, size_t len)
{
	struct winsize size = { 0 };
	char          *page = NULL;
	size_t         page_len = 0, rows, columns;
	FILE          *out;

	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	rows    = size.ws_row ? size.ws_row : 24;
	columns = size.ws_col ? size.ws_col : 80;
	out     = open_memstream(&page, &page_len);
	if (!out)
		return;
	fputs("\033[H", out);
	for (size_t row = 0; len && row < rows; row++) {
		const char *end = memchr(text, '\n', len);
		size_t      n   = end ? (size_t)(end - text) : len;

		fprintf(out, "%s%.*s\033[K", row ? "\r\n" : "", (int)count_bytes_that_fit(text, n, columns), text);
		n += end != NULL;
		text += n;
		len -= n;
	}
	fputs("\033[J", out);
	fclose(out);
	(void)!file_write_all(STDOUT_FILENO, page, page_len);
	free(page);
}

/* --- waiting --- */

static enum terminal_event terminal_handle_signal(void)
{
	struct signalfd_siginfo info;

	if (read(at.signals, &info, sizeof info) != sizeof info)
		return TERMINAL_RESIZED;
	if (info.ssi_signo == SIGTSTP) { /* which is blocked, so SIGSTOP stops; the terminal is restored meanwhile */
		terminal_leave_screen();
		raise(SIGSTOP);
		terminal_enter_screen();
	}
	return info.ssi_signo == SIGTSTP || info.ssi_signo == SIGWINCH ? TERMINAL_RESIZED : TERMINAL_END;
}

enum terminal_event terminal_wait(int ms, char *key)
{
	struct pollfd fds[] = { { at.signals, POLLIN, 0 },
				{ at.has_keys ? STDIN_FILENO : -1, POLLIN, 0 },
				{ STDOUT_FILENO, 0, 0 } };

	if (poll(fds, ARRAY_LEN(fds), ms) < 0)
		return TERMINAL_RESIZED;
	if (fds[2].revents)
		return TERMINAL_END; /* the terminal has gone */
	if (fds[0].revents)
		return terminal_handle_signal();
	if (!fds[1].revents)
		return TERMINAL_TIME;
	/* end of file: no key could end the page any more */
	return read(STDIN_FILENO, key, 1) == 1 ? TERMINAL_KEY : TERMINAL_END;
}
