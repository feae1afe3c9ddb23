#define _GNU_SOURCE
#include "raw_terminal.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const int numbers[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGCONT, SIGWINCH };

/* The caller's terminal modes, signal actions and signal mask; then the flags that the handler sets. */
static struct {
	bool             is_open, is_caught; /* the terminal is raw; the handlers are installed */
	struct termios   before;
	struct sigaction actions[ARRAY_LEN(numbers)];
	sigset_t         outside; /* the mask while signals may come */
	bool             has_timer;
	timer_t          again;
} at;
static volatile sig_atomic_t ends, stops, resized;

/*
 * A signal that comes just before a write to a terminal that accepts nothing does not interrupt it, and there is no write with a signal mask. So
 * until the signal is taken, another one follows each AGAIN_MS: SIGWINCH, after which only the size is looked at. O_NONBLOCK would be the
 * caller's as well, and a terminal cannot always be opened again (su).
 */
static void stop_and_reopen(void)
{
	enum { AGAIN_MS = 200 };
	struct itimerspec when = { .it_value = { .tv_nsec = AGAIN_MS * 1000000L } };

	if (at.has_timer)
		timer_settime(at.again, 0, &when, NULL);
}

static void terminal_on_signal(int number)
{
	if (number == SIGTSTP)
		stops = 1;
	else if (number == SIGWINCH || number == SIGCONT)
		resized = 1;
	else
		ends = 1;
	if (stops || ends)
		stop_and_reopen();
}

bool raw_terminal_is_available(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static int set_raw_mode(void)
{
	struct termios raw = at.before;

	cfmakeraw(&raw);
	return tcsetattr(STDIN_FILENO, TCSANOW, &raw);
}

/* No SA_RESTART: a signal must interrupt a write to a terminal that accepts nothing. */
static void catch_signals(sigset_t *ours)
{
	struct sigaction action = { .sa_handler = terminal_on_signal };

	sigemptyset(ours);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct sigaction *old = &at.actions[i];

		sigaddset(ours, numbers[i]);
		if (sigaction(numbers[i], NULL, old) == 0 && (old->sa_handler != SIG_IGN || numbers[i] == SIGWINCH || numbers[i] == SIGCONT))
			sigaction(numbers[i], &action, NULL);
	}
}

int raw_terminal_open(struct err *e)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGWINCH };
	sigset_t        ours;

	if (at.is_open)
		return 0;
	if (tcgetattr(STDIN_FILENO, &at.before) < 0)
		return err_sys(e, "the terminal's modes cannot be read");
	if (!at.has_timer) /* without one (RLIMIT_SIGPENDING) only such a signal has to be sent twice */
		at.has_timer = timer_create(CLOCK_MONOTONIC, &event, &at.again) == 0;
	catch_signals(&ours);
	sigprocmask(SIG_BLOCK, &ours, &at.outside);
	at.is_open = at.is_caught = true;
	if (set_raw_mode() == 0)
		return 0;
	raw_terminal_close();
	return err_sys(e, "the terminal's modes cannot be set");
}

/* The handlers stay: a signal that comes now only ends the wait for brigd's last message. */
void raw_terminal_close(void)
{
	if (at.is_open) {
		tcflush(STDIN_FILENO, TCIFLUSH); /* an answer that the jail made the terminal send must not become a command of the caller's shell */
		tcsetattr(STDIN_FILENO, TCSANOW, &at.before);
	}
	at.is_open = false;
}

void raw_terminal_done(void)
{
	raw_terminal_close();
	if (!at.is_caught)
		return;
	at.is_caught = false;
	if (at.has_timer)
		timer_delete(at.again);
	at.has_timer = false;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaction(numbers[i], &at.actions[i], NULL);
	sigprocmask(SIG_SETMASK, &at.outside, NULL);
}

void raw_terminal_size(uint64_t *rows, uint64_t *columns)
{
	struct winsize size = { 0 };

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 || !size.ws_row || !size.ws_col)
		return;
	*rows    = size.ws_row;
	*columns = size.ws_col;
}

static enum raw_terminal_event handle_signals(void)
{
	if (ends) {
		ends = 0;
		return RAW_TERMINAL_ENDS;
	}
	if (stops) { /* SIGTSTP is caught, so SIGSTOP stops; the shell that started brig gets the terminal in the modes from before */
		stops = 0;
		if (at.is_open)
			tcsetattr(STDIN_FILENO, TCSANOW, &at.before);
		raise(SIGSTOP);
	}
	resized = 0;
	if (at.is_open)
		set_raw_mode(); /* also after a SIGSTOP from outside, when the shell has changed the modes */
	return RAW_TERMINAL_RESIZED;
}

enum raw_terminal_event raw_terminal_wait(struct pollfd *fds, size_t n)
{
	if (!ends && !stops && !resized && ppoll(fds, n, NULL, at.is_caught ? &at.outside : NULL) >= 0)
		return RAW_TERMINAL_READY;
	return handle_signals();
}

ssize_t raw_terminal_write(const char *text, size_t len)
{
	sigset_t inside;
	ssize_t  n;
	int      kept;

	sigprocmask(SIG_SETMASK, &at.outside, &inside);
	n    = write(STDOUT_FILENO, text, len);
	kept = errno;
	sigprocmask(SIG_SETMASK, &inside, NULL);
	errno = kept;
	return n;
}
