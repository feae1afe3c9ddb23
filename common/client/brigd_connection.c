#define _GNU_SOURCE
#include "brigd_connection.h"

#include "fd.h"
#include "brigd_private.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>


enum answer { CONNECTED, NOT_LISTENING, FAILED }; /* NOT_LISTENING: no service has this socket */

/*
 * After EACCES: true when only the owner may enter the socket's directory. It is then the
 * runtime directory of root's private runs, without a service. A service's directory can be
 * entered, and EACCES comes from its socket, whose group the caller is not in.
 */
static bool dir_is_owner_only(const char *path)
{
	char        folder[PATH_SIZE];
	struct stat st;

	snprintf(folder, sizeof folder, "%s", path);
	*strrchr(folder, '/') = 0;
	return stat(folder, &st) == 0 && !(st.st_mode & (S_IXGRP | S_IXOTH));
}

/* --private is not suggested to a caller that needs a service. */
static int set_connect_error(const char *path, enum brigd_want want, struct err *e)
{
	const char *or = want == BRIGD_SERVICE ? "" : ", or say --private (brig-mcp: --server private)";

	switch (errno) {
	case EACCES:
		return err_set(e, ERR_DENIED, "%s: %s; join the group brig%s", path, strerror(EACCES), or);
	case ECONNREFUSED:
		return err_set(e, ERR_MISSING, "%s: no brigd listens there; start one%s", path, or);
	case ENOENT:
		return err_set(e, ERR_MISSING, "%s: there is no such socket; start brigd%s", path, or);
	case EAGAIN:
		return err_set(e, ERR_LIMIT, "%s: brigd accepts no connection: it is stopped, or too many clients connect at once", path);
	case EPROTOTYPE:
		return err_set(e, ERR_BAD_SPEC, "%s: not the socket of a brigd", path);
	default:
		return err_sys(e, "connect to %s", path);
	}
}

/* How long connect() waits while the service's backlog is full; 0: for ever. */
static void set_connect_timeout(int fd, unsigned ms)
{
	struct timeval time = { .tv_sec = ms / 1000, .tv_usec = (suseconds_t)(ms % 1000) * 1000 };

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
}

/* FAILED: *e is set. NOT_LISTENING: errno is. */
static enum answer connect_to_socket(const char *path, enum brigd_want want, unsigned ms, struct brigd *ret, struct err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	scoped_fd          fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		err_sys(e, "connect to %s", path);
		return FAILED;
	}
	if (strlen(path) >= sizeof at.sun_path) {
		err_set(e, ERR_BAD_SPEC, "%.60s...: a socket's path has at most %zu bytes", path, sizeof at.sun_path - 1);
		return FAILED;
	}
	strcpy(at.sun_path, path);
	if (ms)
		set_connect_timeout(fd, ms);
	while (connect(fd, (struct sockaddr *)&at, sizeof at) < 0) {
		if (errno == EINTR)
			continue;
		if (errno == ENOENT || (errno == EACCES && dir_is_owner_only(path)))
			return NOT_LISTENING;
		set_connect_error(path, want, e);
		return FAILED;
	}
	if (ms)
		set_connect_timeout(fd, 0);
	ret->sock = fd_take(&fd);
	snprintf(ret->name, sizeof ret->name, "%s", path);
	return CONNECTED;
}

/* BRIG_SOCKET: without a service there, it is an error. */
static int connect_to_named_socket(const char *path, enum brigd_want want, unsigned ms, struct brigd *ret, struct err *e)
{
	if (path[0] != '/')
		return err_set(e, ERR_BAD_SPEC, "BRIG_SOCKET: \"%.60s\" is no absolute path", path);
	switch (connect_to_socket(path, want, ms, ret, e)) {
	case CONNECTED:
		return 0;
	case NOT_LISTENING:
		set_connect_error(path, want, e);
		break;
	case FAILED:
		break;
	}
	return err_wrap(e, "BRIG_SOCKET");
}

static enum answer connect_to_default_sockets(enum brigd_want want, unsigned ms, struct brigd *ret, struct err *e)
{
	char        own[64];
	enum answer answer;

	snprintf(own, sizeof own, "/run/user/%u/brig/brig.sock", geteuid());
	answer = connect_to_socket(own, want, ms, ret, e);
	return answer == NOT_LISTENING ? connect_to_socket(BRIGD_SOCKET, want, ms, ret, e) : answer;
}

/* --- a service that is enabled but not running --- */

/* Whether one of the links of `systemctl enable` is there, and its unit still installed. */
static bool brigd_unit_is_enabled(const char *folder)
{
	static const char *const links[] = { "sockets.target.wants/brigd.socket", "multi-user.target.wants/brigd.service", "default.target.wants/brigd.service" };
	char                     path[PATH_SIZE + 64];

	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		snprintf(path, sizeof path, "%s/%s", folder, links[i]);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

/* The reason that a failed service wrote (failure.h), or "". */
static void read_failure_file(const char *path, char *text, size_t len)
{
	scoped_fd fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t   n  = fd < 0 ? -1 : read(fd, text, len - 1);

	text[n > 0 ? n : 0] = 0;
	text_make_plain(text);
}

bool brigd_read_failure(const struct brigd *s, char *why, size_t len)
{
	if (s->pid || strcmp(s->name, BRIGD_SOCKET) != 0)
		return false;
	read_failure_file(PLACE_FAILURE, why, len);
	return *why;
}

/* A private run instead would silently go without the service's quota and audit. */
static int refuse_private_while_enabled(const char *whose, const char *failure, const char *systemctl, struct err *e)
{
	char why[360]; /* leaves room in the message for what to do */

	read_failure_file(failure, why, sizeof why);
	return err_set(e, ERR_MISSING, "%s service is down%s%s; %s status brigd says more, --private (brig-mcp: --server private) runs without it", whose, *why ? ": " : "", why, systemctl);
}

/* Refuses when a service is enabled, for this user or for the host. 0: no service is. */
static int check_no_service_enabled(const struct brig_paths *p, struct err *e)
{
	const char *home = secure_getenv("HOME"), *config = secure_getenv("XDG_CONFIG_HOME");
	char        folder[PATH_SIZE + 32], failure[PATH_SIZE + 16];

	if (p->apart || access("/run/systemd/system", F_OK) < 0) /* as sd_booted(3): a container image may have the links but no systemd that follows them */
		return 0;
	if (config && *config == '/')
		snprintf(folder, sizeof folder, "%.*s/systemd/user", PATH_SIZE, config);
	else
		snprintf(folder, sizeof folder, "%.*s/.config/systemd/user", PATH_SIZE, home ? home : "");
	snprintf(failure, sizeof failure, "%s/failure", p->runtime);
	if (geteuid() != 0 && brigd_unit_is_enabled(folder))
		return refuse_private_while_enabled("your", failure, "systemctl --user", e);
	return brigd_unit_is_enabled("/etc/systemd/system") ? refuse_private_while_enabled("this host's", PLACE_FAILURE, "systemctl", e) : 0;
}

/* --- a service of one's own --- */

/* Where a client of this user looks, or, apart from the host's places, a socket that BRIG_SOCKET must name. */
static int choose_own_socket(const struct brig_paths *p, const char *named, char path[PATH_SIZE], bool *unusual, struct err *e)
{
	char usual[64];

	snprintf(usual, sizeof usual, geteuid() == 0 ? BRIGD_SOCKET : "/run/user/%u/brig/brig.sock", geteuid());
	if (snprintf(path, PATH_SIZE, "%s%s", named && *named ? named : p->runtime, named && *named ? "" : p->apart ? "/own.sock" : "/brig.sock") >= PATH_SIZE)
		return err_set(e, ERR_LIMIT, "the path of a socket is too long");
	*unusual = !(named && *named) && strcmp(path, usual) != 0;
	return 0;
}

/* It listens a moment after it was started: there is no event to wait for but its end. */
static int start_own_service(const struct brig_paths *p, const char *named, struct brigd *ret, struct err *e)
{
	static const struct timespec moment = { .tv_nsec = 10000000 };
	char                         path[PATH_SIZE], why[360];
	enum answer                  answer;
	bool                         unusual = false;
	pid_t                        pid     = 0;

	if (choose_own_socket(p, named, path, &unusual, e) < 0)
		return -1;
	while ((answer = connect_to_socket(path, BRIGD_SERVICE, 0, ret, e)) != CONNECTED) {
		if (answer == FAILED && !(pid && e->kind == ERR_MISSING)) /* between bind() and listen() a socket refuses */
			return -1;
		if (!pid && (pid = brigd_start_own(p->brigd, path, e)) < 0)
			return -1;
		if (waitpid(pid, NULL, WNOHANG) != 0) {
			char failure[PATH_SIZE + 16];

			snprintf(failure, sizeof failure, "%s/failure", p->runtime);
			read_failure_file(failure, why, sizeof why);
			return err_set(e, ERR_SETUP, "a service of your own ended as it began%s%s; brigd --foreground --socket %s says more", *why ? ": " : "", why, path);
		}
		nanosleep(&moment, NULL);
	}
	ret->stays   = pid;
	ret->unusual = unusual;
	return 0;
}

int brigd_connect_within(struct brigd *ret, enum brigd_want want, unsigned ms, struct err *e)
{
	struct brig_paths places;
	struct brigd      s     = BRIGD_NONE;
	const char       *named = secure_getenv("BRIG_SOCKET");
	enum answer       found = NOT_LISTENING;

	if (brig_paths_find(&places, e) < 0)
		return -1;
	if (want != BRIGD_PRIVATE && named && *named && !(want == BRIGD_STARTED && access(named, F_OK) < 0 && *named == '/'))
		found = connect_to_named_socket(named, want, ms, &s, e) < 0 ? FAILED : CONNECTED;
	else if (want != BRIGD_PRIVATE && !places.apart && !(named && *named))
		found = connect_to_default_sockets(want, ms, &s, e);
	if (found == FAILED)
		return -1;
	if (found == NOT_LISTENING && want == BRIGD_SERVICE)
		return err_set(e, ERR_MISSING, "no brigd is running; start one (systemctl start brigd, or brigd --foreground)%s",
			       places.apart ? " and name its socket in BRIG_SOCKET" : "");
	if (found == NOT_LISTENING && want != BRIGD_PRIVATE && check_no_service_enabled(&places, e) < 0)
		return -1;
	if (found == NOT_LISTENING && want == BRIGD_STARTED) {
		if (start_own_service(&places, named, &s, e) < 0)
			return -1;
	} else if (found == NOT_LISTENING && brigd_start(&s, places.brigd, e) < 0)
		return -1;
	*ret = s;
	return 0;
}

int brigd_connect(struct brigd *ret, enum brigd_want want, struct err *e)
{
	return brigd_connect_within(ret, want, 0, e);
}

int brigd_close(struct brigd *s)
{
	int status = 0;

	fd_closep(&s->sock);
	while (s->pid > 0 && waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
	s->pid = 0;
	return status;
}
