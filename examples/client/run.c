/*
 * run.c - a client of brig-protocol(7) in a page: runs a program in a jail, passes its output on, prints the record
 *
 *   cc -o run run.c $(pkg-config --cflags brig) && ./run 'print(6 * 7)'
 *
 * It speaks to $BRIG_SOCKET, or to the service of this host. JSON is searched as text here; a real client uses a library.
 */
#define _GNU_SOURCE
#include <brig/protocol.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int fail(const char *what)
{
	perror(what);
	return 125;
}

static int connect_to(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int                sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
	return sock >= 0 && connect(sock, (struct sockaddr *)&to, sizeof to) == 0 ? sock : -1;
}

/* The program's text, sealed: what brigd looks at is what runs. */
static int seal(const char *text)
{
	int fd = memfd_create("program", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		return -1;
	return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0 ? -1 : fd;
}

static int request(int sock, const char *json, int program)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof program)];
	struct iovec    io = { (void *)json, strlen(json) };
	struct msghdr   message = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type  = SCM_RIGHTS;
	c->cmsg_len   = CMSG_LEN(sizeof program);
	memcpy(CMSG_DATA(c), &program, sizeof program);
	return sendmsg(sock, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

/* With `started` come stdout and stderr of the program. */
static ssize_t hear(int sock, char *text, int streams[2])
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))];
	struct iovec    io = { text, BRIG_MESSAGE_MAX };
	struct msghdr   message = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	ssize_t         n = recvmsg(sock, &message, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

	if (n > 0)
		text[n] = 0;
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(2 * sizeof(int)))
		memcpy(streams, CMSG_DATA(c), 2 * sizeof(int));
	return n;
}

static void pass_on(int from, int to)
{
	char    bytes[4096];
	ssize_t n;

	while (from >= 0 && (n = read(from, bytes, sizeof bytes)) > 0)
		if (write(to, bytes, (size_t)n) != n)
			return;
}

int main(int argc, char **argv)
{
	static char text[BRIG_MESSAGE_MAX + 1];
	const char *path = getenv("BRIG_SOCKET");
	int         sock = connect_to(path ? path : BRIG_SOCKET_PATH), streams[2] = { -1, -1 };

	if (argc != 2)
		return 2;
	if (sock < 0)
		return fail("connect");
	if (request(sock, "{\"op\":\"" BRIG_REQUEST_run "\",\"profile\":\"basic\"}", seal(argv[1])) < 0)
		return fail("send");
	while (hear(sock, text, streams) > 0) {
		if (strstr(text, "\"event\":\"" BRIG_EVENT_started "\"")) {
			pass_on(streams[0], STDOUT_FILENO);
			pass_on(streams[1], STDERR_FILENO);
		} else if (!strstr(text, "\"event\":\"" BRIG_EVENT_waiting "\"") && !strstr(text, "\"event\":\"" BRIG_EVENT_limit "\"")) {
			fprintf(stderr, "%s\n", text); /* the record, or an error */
			return strstr(text, "\"exit_reason\":\"" BRIG_EXIT_exited "\"") ? 0 : 1;
		}
	}
	return fail("the service went away");
}
