#define _GNU_SOURCE
#include "loop.h"

#include "fd.h"

#include <errno.h>
#include <sys/epoll.h>

int loop_open(struct loop *ret, struct err *e)
{
	ret->fd = epoll_create1(EPOLL_CLOEXEC);
	return ret->fd < 0 ? err_sys(e, "epoll_create1") : 0;
}

void loop_close(struct loop *l)
{
	fd_closep(&l->fd);
}

int loop_add(struct loop *l, struct loop_source *source, struct err *e)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = source };

	return epoll_ctl(l->fd, EPOLL_CTL_ADD, source->fd, &event) < 0 ? err_sys(e, "epoll_ctl") : 0;
}

/* Before the descriptor is closed: another process may still hold the same file open, and it would go on being told. */
void loop_remove(struct loop *l, struct loop_source *source)
{
	(void)epoll_ctl(l->fd, EPOLL_CTL_DEL, source->fd, NULL);
}

int loop_turn(struct loop *l, int ms, struct err *e)
{
	struct epoll_event event;
	int                n = epoll_wait(l->fd, &event, 1, ms);

	if (n < 0 && errno != EINTR)
		return err_sys(e, "epoll_wait");
	if (n > 0) {
		struct loop_source *source = event.data.ptr;

		source->ready(source->owner);
	}
	return 0;
}
