#define _GNU_SOURCE
#include "monitored_proxy.h"

#include "clock.h"
#include "fd.h"
#include "monitor_protocol.h"
#include "privilege.h"
#include "proxy_exec.h"
#include "stderr_line.h"
#include "sys.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static _Noreturn void confine_and_exec_monitored_proxy(const struct monitored_proxy *p,
						       const struct monitored_proxy_options *w, int sock)
{
	struct err e;
	int        r = cg_join_proxy_group(w->group, &e);

	if (r == 0)
		r = w->id == 0 ? privilege_drop_caps(&e) : privilege_switch_to_account(w->id, w->id, PRIVILEGE_NO_CAPS,
										    &e);
	if (r < 0 || privilege_set_no_new_privs(PRIVILEGE_NO_CAPS, &e) < 0) {
		stderr_print_line("brig monitor: brig-proxy: %s\n", e.text);
		_exit(EXIT_FAILURE);
	}
	proxy_exec(MONITOR_PROXY_FD, sock, p->config_fd, w->lock_fd);
	stderr_print_line("brig monitor: brig-proxy: exec: %s\n", strerror(errno));
	_exit(EXIT_FAILURE);
}

int monitored_proxy_start(struct monitored_proxy *p, const struct monitored_proxy_options *w, struct err *e)
{
	struct clone_args args = { .flags       = CLONE_PIDFD,
				   .pidfd       = (uint64_t)(uintptr_t)&p->pidfd,
				   .exit_signal = SIGCHLD };
	int               pair[2];
	pid_t             pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "brig-proxy: socketpair");
	pid = cg_clone_into_proxy_group(w->group, &args);
	if (pid == 0) {
		close(pair[0]); /* with a copy of it, brig-proxy would get no end of file on its own socket */
		confine_and_exec_monitored_proxy(p, w, pair[1]);
	}
	close(pair[1]);
	p->sock = pair[0];
	if (pid > 0) {
		p->began        = clock_ms(CLOCK_MONOTONIC);
		p->is_announced = false;
		return 0;
	}
	p->pidfd = -1;
	err_sys(e, "brig-proxy: clone");
	monitored_proxy_shut_down(p);
	return -1;
}

void monitored_proxy_shut_down(struct monitored_proxy *p)
{
	if (p->sock >= 0)
		/* The server has a copy of this end: closing this one causes no end of file. */
		(void)shutdown(p->sock, SHUT_RDWR);
	fd_closep(&p->sock);
	fd_closep(&p->pidfd);
}
