#define _GNU_SOURCE
#include "net_ca.h"

#include "child_wait.h"
#include "fd.h"
#include "libexec.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAKE_S_MAX = 10 };

static _Noreturn void exec_ca_maker(int program, net_read_host *hosts, size_t n, int out)
{
	char        *argv[NET_READ_MAX + 3] = { (char *)"brig-proxy", (char *)"--make-ca" };
	char *const  none[]                 = { NULL };
	sigset_t     empty;

	for (size_t i = 0; i < n; i++)
		argv[2 + i] = hosts[i];
	sigemptyset(&empty);
	sigprocmask(SIG_SETMASK, &empty, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGALRM, SIG_DFL);
	alarm(MAKE_S_MAX); /* execve() keeps it: the parent need not watch the time */
	if (dup2(out, STDOUT_FILENO) >= 0)
		execveat(program, "", argv, none, AT_EMPTY_PATH);
	_exit(EXIT_FAILURE);
}

/* The certificate, then the key. */
static int split_cert_and_key(const char *text, char cert[NET_PEM_MAX], char key[NET_PEM_MAX])
{
	static const char  end[] = "-----END CERTIFICATE-----\n";
	const char        *edge  = begins_with(text, "-----BEGIN CERTIFICATE-----\n") ? strstr(text, end) : NULL;
	size_t             len   = edge ? (size_t)(edge - text) + strlen(end) : NET_PEM_MAX;

	if (len >= NET_PEM_MAX || !begins_with(text + len, "-----BEGIN ") || strlen(text + len) >= NET_PEM_MAX)
		return -1;
	memcpy(cert, text, len);
	cert[len] = 0;
	memcpy(key, text + len, strlen(text + len) + 1);
	return 0;
}

int net_ca_make(const struct brig_paths *places, net_read_host *hosts, size_t n, char cert[NET_PEM_MAX], char key[NET_PEM_MAX],
		struct err *e)
{
	scoped_fd program = libexec_open(places, PROXY_PROGRAM, e), in = -1, out = -1;
	int       pair[2], status, done;
	char      text[2 * NET_PEM_MAX] = "";
	size_t    len = 0;
	ssize_t   got;
	pid_t     pid;

	if (program < 0)
		return -1;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(e, "set-up step make-ca: pipe");
	in  = pair[0];
	out = pair[1];
	pid = fork();
	if (pid == 0)
		exec_ca_maker(program, hosts, n, out);
	if (pid < 0)
		return err_sys(e, "set-up step make-ca: fork");
	fd_closep(&out);
	/* Where it writes too much, the pipe is closed early, and SIGPIPE ends it. */
	while (len < sizeof text - 1 && ((got = read(in, text + len, sizeof text - 1 - len)) > 0 || (got < 0 && errno == EINTR)))
		len += got > 0 ? (size_t)got : 0;
	fd_closep(&in);
	status = child_wait(pid);
	done   = status == 0 ? split_cert_and_key(text, cert, key) : -1;
	explicit_bzero(text, sizeof text);
	return done == 0 ? 0 : err_set(e, ERR_SETUP, "set-up step make-ca: brig-proxy made no CA; its message is above");
}
