#define _GNU_SOURCE
#include "stop.h"

#include "fd.h"

#include <signal.h>
#include <sys/signalfd.h>

static void read_stop_signal(void *owner)
{
	struct stop            *s = owner;
	struct signalfd_siginfo info;

	if (read(s->source.fd, &info, sizeof info) == sizeof info)
		s->asked(s->owner);
}

int stop_open(struct stop *s, struct loop *loop, void (*asked)(void *owner), void *owner, struct err *e)
{
	sigset_t set;

	*s = (struct stop){ .loop = loop, .asked = asked, .owner = owner };
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* beyond the file size limit a write fails, and does not kill the process */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	s->source = (struct loop_source){ .fd    = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK),
					  .ready = read_stop_signal,
					  .owner = s };
	if (s->source.fd < 0)
		return err_sys(e, "signalfd");
	return loop_add(loop, &s->source, e);
}

void stop_close(struct stop *s)
{
	if (s->source.fd < 0)
		return;
	loop_remove(s->loop, &s->source);
	fd_closep(&s->source.fd);
}
