#define _GNU_SOURCE
#include "peer.h"

#include "fd.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

int peer_read_groups(struct peer_groups *groups, int sock, struct err *e)
{
	socklen_t len = sizeof groups->gid;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups->gid, &len) < 0)
		return err_sys(e, "the peer's groups");
	groups->n = len / sizeof *groups->gid;
	return 0;
}

static void read_peer_comm(struct peer *p, int sock)
{
	scoped_fd pidfd = -1, fd = -1;
	socklen_t len = sizeof pidfd;
	char      path[32], comm[sizeof p->comm];
	ssize_t   n;

	(void)getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len);
	snprintf(path, sizeof path, "/proc/%d/comm", p->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n  = fd < 0 ? -1 : read(fd, comm, sizeof comm - 1);
	/* The pid of a process that has ended may belong to another one. Before Linux 6.5 no pidfd can show this. */
	if (n <= 0 || (pidfd >= 0 && poll(&(struct pollfd){ .fd = pidfd, .events = POLLIN }, 1, 0) != 0))
		return;
	comm[n - (comm[n - 1] == '\n')] = 0;
	text_make_plain(comm);
	memcpy(p->comm, comm, sizeof p->comm);
}

int peer_identify(struct peer *ret, struct peer_groups *groups, int sock, struct err *e)
{
	struct ucred cred;
	socklen_t    len = sizeof cred;

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return err_sys(e, "the peer's user");
	if (len != sizeof cred || cred.uid == (uid_t)-1)
		return err_set(e, ERR_DENIED, "the kernel does not know the peer's user");
	if (peer_read_groups(groups, sock, e) < 0)
		return -1;
	*ret = (struct peer){ .uid = cred.uid, .gid = cred.gid, .pid = cred.pid, .comm = "?" };
	read_peer_comm(ret, sock);
	return 0;
}

bool peer_has_group(const struct peer *p, const struct peer_groups *groups, gid_t gid)
{
	for (size_t i = 0; i < groups->n; i++)
		if (groups->gid[i] == gid)
			return true;
	return p->gid == gid;
}
