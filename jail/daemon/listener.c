#define _GNU_SOURCE
#include "listener.h"

#include "fd.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { FIRST_GIVEN = 3, BACKLOG = 256, LOCK_TRIES = 100, LOCK_WAIT_MS = 20 };

/* --- systemd's --- */

static bool is_env_number(const char *name, uint64_t want)
{
	const char *text = secure_getenv(name);
	uint64_t    n;

	return text && text_to_u64(text, &n) == 0 && n == want;
}

bool listener_is_given_by_systemd(void)
{
	return is_env_number("LISTEN_PID", (uint64_t)getpid());
}

static bool has_socket_option_value(int fd, int option, int want)
{
	int       value;
	socklen_t len = sizeof value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == want;
}

int listener_adopt_systemd_socket(struct listener *ret, struct err *e)
{
	if (!is_env_number("LISTEN_FDS", 1))
		return err_set(e, ERR_BAD_SPEC, "LISTEN_FDS: one socket is expected");
	if (!has_socket_option_value(FIRST_GIVEN, SO_DOMAIN, AF_UNIX) ||
	    !has_socket_option_value(FIRST_GIVEN, SO_TYPE, SOCK_SEQPACKET) ||
	    !has_socket_option_value(FIRST_GIVEN, SO_ACCEPTCONN, 1))
		return err_set(e, ERR_BAD_SPEC, "LISTEN_FDS: the socket must be a ListenSequentialPacket= of the unit");
	if (fcntl(FIRST_GIVEN, F_SETFD, FD_CLOEXEC) < 0 || fcntl(FIRST_GIVEN, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "LISTEN_FDS");
	*ret = (struct listener){ .fd = FIRST_GIVEN, .lock = -1 };
	return 0;
}

/* --- our own --- */

/* "/run/brig/brig.sock" -> "/run/brig". Only the usual folder is created: another path may be a typing mistake. */
static int open_socket_folder(const char *path, bool is_usual, struct err *e)
{
	char  folder[sizeof((struct sockaddr_un *)0)->sun_path];
	char *slash;
	int   fd;

	snprintf(folder, sizeof folder, "%s", path);
	slash = strrchr(folder, '/');
	if (path[0] != '/' || !slash || slash == folder)
		return err_set(e, ERR_BAD_SPEC, "%s: not the absolute path of a file in a directory", path);
	*slash = 0;
	if (is_usual && mkdir(folder, 0711) < 0 && errno != EEXIST)
		return err_sys(e, "%s", folder);
	fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "%s", folder) : fd;
}

enum { LOCK_NAME = sizeof((struct listener *)0)->path + 8 };

static void format_lock_path(const char *path, char *buf, size_t len)
{
	snprintf(buf, len, "%s.lock", path);
}

/*
 * Two services must not remove each other's socket: one that is bound and does not
 * listen yet looks stale. The service holds the lock as long as it lives, and then its
 * sweeper does. Other users cannot open the lock file, so they cannot hold the lock.
 */
static int take_socket_lock(const char *path, struct err *e)
{
	char lock[LOCK_NAME];

	format_lock_path(path, lock, sizeof lock);
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		scoped_fd   fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		struct stat held, there;

		if (fd < 0)
			return err_sys(e, "%s", lock);
		/* a lock on a file that was removed meanwhile keeps no other service out */
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &held) == 0 && lstat(lock, &there) == 0 &&
		    held.st_dev == there.st_dev && held.st_ino == there.st_ino)
			return fd_take(&fd);
		poll(NULL, 0, LOCK_WAIT_MS); /* the sweeper of the last service may still hold it */
	}
	return err_set(e, ERR_LIMIT, "%s: another brigd is just starting, or ending", path);
}

/* 0 if there is nothing, or a socket on which no process listens. *there: it exists. */
static int check_socket_is_stale(const struct sockaddr_un *at, bool *there, struct err *e)
{
	struct stat st;
	scoped_fd   sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	*there = lstat(at->sun_path, &st) == 0;
	if (sock < 0 || (!*there && errno != ENOENT))
		return err_sys(e, "%s", at->sun_path);
	if (!*there)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "%s: is not a socket; it was not changed", at->sun_path);
	if (connect(sock, (const void *)at, sizeof *at) == 0 || errno == EAGAIN)
		return err_set(e, ERR_LIMIT, "%s: another brigd already listens there", at->sun_path);
	return errno == ECONNREFUSED || errno == ENOENT ? 0 : err_sys(e, "%s", at->sun_path);
}

/* Also checked before the wait for the lock: a service that listens holds it and keeps it. */
static int claim_socket_path(struct listener *l, const struct sockaddr_un *at, struct err *e)
{
	bool there;

	if (check_socket_is_stale(at, &there, e) < 0)
		return -1;
	l->lock = take_socket_lock(at->sun_path, e);
	if (l->lock < 0 || check_socket_is_stale(at, &there, e) < 0)
		return -1;
	return there && unlink(at->sun_path) < 0 ? err_sys(e, "%s", at->sun_path) : 0;
}

static int bind_and_listen(int sock, const struct sockaddr_un *at, struct err *e)
{
	const struct group *group = geteuid() == 0 ? getgrnam("brig") : NULL;
	/*
	 * Creates the socket with its final mode: chmod() would follow a link by which another user has replaced it,
	 * where others may write to the folder. Until the file has its group no client can connect, because no process
	 * listens yet.
	 */
	mode_t before = umask(group ? 0117 : 0177);
	int    r      = bind(sock, (const void *)at, sizeof *at);

	umask(before);
	if (r < 0)
		return err_sys(e, "%s", at->sun_path);
	if ((!group || lchown(at->sun_path, (uid_t)-1, group->gr_gid) == 0) && listen(sock, BACKLOG) == 0)
		return 0;
	err_sys(e, "%s", at->sun_path);
	unlink(at->sun_path);
	return -1;
}

static int open_listening_socket(struct listener *l, const struct sockaddr_un *at, struct err *e)
{
	char lock[LOCK_NAME];

	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (l->fd >= 0 && bind_and_listen(l->fd, at, e) == 0)
		return 0;
	format_lock_path(at->sun_path, lock, sizeof lock);
	unlink(lock);
	return l->fd < 0 ? err_sys(e, "%s", at->sun_path) : -1;
}

int listener_open(struct listener *ret, const char *path, bool is_usual, struct err *e)
{
	struct sockaddr_un at     = { .sun_family = AF_UNIX };
	scoped_fd          folder = -1;
	struct stat        st;

	*ret = LISTENER_NONE;
	if (strlen(path) >= sizeof at.sun_path)
		return err_set(e, ERR_BAD_SPEC, "%.120s: longer than the %zu bytes that a socket's path can have", path,
			       sizeof at.sun_path - 1);
	strcpy(at.sun_path, path);
	folder = open_socket_folder(path, is_usual, e);
	if (folder < 0)
		return -1;
	/*
	 * Lets all users pass through root's folder. It may exist already, created for the lock on host ids and closed.
	 */
	if (is_usual && geteuid() == 0 &&
	    (fstat(folder, &st) < 0 || (st.st_uid == 0 && (st.st_mode & 0011) != 0011 &&
					fchmodat(folder, ".", (st.st_mode & 07777) | 0011, 0) < 0)))
		return err_sys(e, "the socket's folder");
	if (claim_socket_path(ret, &at, e) < 0 || open_listening_socket(ret, &at, e) < 0)
		return -1;
	strcpy(ret->path, at.sun_path);
	return 0;
}

void listener_close(struct listener *l)
{
	fd_closep(&l->fd);
	fd_closep(&l->lock);
}
