#define _GNU_SOURCE
#include "net_ca.h"

#include "clock.h"
#include "fd.h"
#include "libexec.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAKE_MS_MAX = 10000 };

static _Noreturn void become_maker(int program, net_read_host *hosts, size_t n, int out)
{
	char        *argv[NET_READ_MAX + 3] = { (char *)"brig-proxy", (char *)"--make-ca" };
	char *const  none[]                 = { NULL };
	sigset_t     empty;

	for (size_t i = 0; i < n; i++)
		argv[2 + i] = hosts[i];
	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(out, STDOUT_FILENO) >= 0)
		execveat(program, "", argv, none, AT_EMPTY_PATH);
	_exit(EXIT_FAILURE);
}

/* Reads up to end of file. -1: it took too long, or the text is too large. */
static int read_all(int fd, char *text, size_t size)
{
	double end = clock_ms(CLOCK_MONOTONIC) + MAKE_MS_MAX;
	size_t len = 0;

	for (;;) {
		struct pollfd p    = { .fd = fd, .events = POLLIN };
		double        left = end - clock_ms(CLOCK_MONOTONIC);
		ssize_t       n;

		if (left <= 0 || (poll(&p, 1, (int)left + 1) <= 0 && errno != EINTR))
			return -1;
		n = p.revents ? read(fd, text + len, size - 1 - len) : 0;
		if (n < 0 || (n > 0 && len + (size_t)n == size - 1))
			return -1;
		if (n == 0 && p.revents)
			break;
		len += (size_t)n;
	}
	text[len] = 0;
	return 0;
}

/* The certificate, then the key. */
static int split(const char *text, char cert[NET_PEM_MAX], char key[NET_PEM_MAX])
{
	static const char  end[] = "-----END CERTIFICATE-----\n";
	const char        *edge  = strncmp(text, "-----BEGIN CERTIFICATE-----\n", 28) == 0 ? strstr(text, end) : NULL;
	size_t             len   = edge ? (size_t)(edge - text) + strlen(end) : NET_PEM_MAX;

	if (len >= NET_PEM_MAX || strncmp(text + len, "-----BEGIN ", 11) != 0 || strlen(text + len) >= NET_PEM_MAX)
		return -1;
	memcpy(cert, text, len);
	cert[len] = 0;
	memcpy(key, text + len, strlen(text + len) + 1);
	return 0;
}

static int hear(int fd, char cert[NET_PEM_MAX], char key[NET_PEM_MAX])
{
	char text[2 * NET_PEM_MAX];
	int  done = read_all(fd, text, sizeof text) < 0 ? -1 : split(text, cert, key);

	explicit_bzero(text, sizeof text);
	return done;
}

int net_ca_make(const struct brig_paths *places, net_read_host *hosts, size_t n, char cert[NET_PEM_MAX], char key[NET_PEM_MAX], struct err *e)
{
	scoped_fd program = libexec_open(places, PROXY_PROGRAM, e), in = -1, out = -1;
	int       pair[2], status = -1, done;
	pid_t     pid;

	if (program < 0)
		return -1;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "set-up step make-ca: pipe");
	in  = pair[0];
	out = pair[1];
	pid = fork();
	if (pid == 0)
		become_maker(program, hosts, n, out);
	if (pid < 0)
		return err_sys(e, "set-up step make-ca: fork");
	fd_closep(&out);
	done = hear(in, cert, key);
	if (done < 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return done == 0 && status == 0 ? 0 : err_set(e, ERR_SETUP, "set-up step make-ca: brig-proxy made no CA; what it said is above");
}
