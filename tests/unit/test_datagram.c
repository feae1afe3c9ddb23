#define _GNU_SOURCE
#include "datagram.h"
#include "tap.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static int pair[2];

/* What a brigd that is none would send. */
static void send_raw(const char *text, size_t len, int fd, size_t n)
{
	char            room[CMSG_SPACE(16 * sizeof(int))] = { 0 };
	struct iovec    io  = { (void *)text, len };
	struct msghdr   msg = { .msg_iov = &io, .msg_iovlen = 1 };
	struct cmsghdr *c;

	if (n) {
		msg.msg_control    = room;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		c                  = CMSG_FIRSTHDR(&msg);
		*c                 = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n * sizeof(int)) };
		for (size_t i = 0; i < n; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof fd);
	}
	if (sendmsg(pair[0], &msg, MSG_NOSIGNAL) < 0)
		perror("sendmsg");
}

static int lowest_free(void)
{
	int fd = dup(pair[0]);

	close(fd);
	return fd;
}

#define CANCELLED(more) "{\"reply\":\"cancel\",\"run\":\"r\"," more "}"
#define STARTED        "{\"event\":\"started\",\"run\":\"r\",\"streams\":[\"stdout\",\"stderr\"],\"output_bytes\":1024}"

static const struct {
	const char *text, *says, *name;
	size_t      len, fds;
} wrong[] = {
	{ "{\"event\":1,\"event\":2}", "duplicate", "a key twice is broken",             0, 0 },
	{ "[1]",                       "object",    "what is no object is broken",       0, 0 },
	{ "{} {}",                     "end of",    "left-over bytes are broken",        0, 0 },
	{ "{\"a\":\"\\u0000\"}",       "line 1",    "a NUL in a text is broken",         0, 0 },
	{ "{}",                        "too long",  "six descriptors are broken",        0, 6 },
	{ NULL,                        "too long",  "more than 64 KiB are broken",       PROTOCOL_MAX + 1, 1 },
	{ "{}",                        "missing",   "what is no answer is broken",       0, 0 },
	{ CANCELLED("\"x\":1"),        "x",         "an unknown key is broken",          0, 0 },
	{ CANCELLED("\"tag\":-1"),     "tag",       "a wrong tag is broken",             0, 0 },
	{ CANCELLED("\"tag\":1"),      "1 descr",   "a descriptor too many is broken",   0, 1 },
};

static void refuse_wrong(const char *big, int null)
{
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		const char     *text   = wrong[i].text ? wrong[i].text : big;
		int             before = lowest_free();
		struct datagram d;
		struct err      e = { 0 };

		send_raw(text, wrong[i].len ? wrong[i].len : strlen(text), null, wrong[i].fds);
		tap_ok(datagram_receive(pair[1], &d, &e) == DATAGRAM_BROKEN && strstr(e.text, wrong[i].says) && !d.answer.source && !d.fds, "%s", wrong[i].name);
		if (!strstr(e.text, wrong[i].says))
			printf("#   says: %s\n", e.text);
		tap_ok(lowest_free() == before, "and nothing of it stays open: %s", wrong[i].name);
	}
}

int main(void)
{
	static char     big[PROTOCOL_MAX + 1];
	int             null = open("/dev/null", O_RDONLY | O_CLOEXEC), before, many[PROTOCOL_FDS_MAX + 1];
	json_t         *hello = json_pack("{ss}", "op", "hello"), *large;
	struct datagram d;
	struct err      e;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return EXIT_FAILURE;
	memset(big, ' ', sizeof big);
	before = lowest_free();
	send_raw(STARTED, strlen(STARTED), null, 2);
	tap_ok(datagram_receive(pair[1], &d, &e) == DATAGRAM_RECEIVED && d.answer.event == EVENT_started && d.fds == 2, "an event arrives with its descriptors");
	tap_ok(fcntl(d.fd[0], F_GETFD) == FD_CLOEXEC && fcntl(d.fd[1], F_GETFD) == FD_CLOEXEC, "they close on exec");
	datagram_done(&d);
	tap_ok(lowest_free() == before, "datagram_done() closes what nobody took");
	datagram_done(&d);

	refuse_wrong(big, null);

	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		many[i] = null;
	tap_ok(datagram_send(pair[0], hello, many, ARRAY_LEN(many), &e) < 0 && strstr(e.text, "19 descriptors"), "19 descriptors are not sent");
	large = json_pack("{ss%}", "op", big, (size_t)PROTOCOL_MAX);
	tap_ok(datagram_send(pair[0], large, NULL, 0, &e) < 0 && strstr(e.text, "at most 65536"), "more than 64 KiB are not sent");
	json_decref(large);
	close(pair[0]);
	tap_ok(datagram_receive(pair[1], &d, &e) == DATAGRAM_END && !d.answer.source, "the other side's death is the end");
	tap_ok(datagram_send(pair[1], hello, NULL, 0, &e) < 0 && strstr(e.text, "Broken pipe"), "sending then is an error, not a signal");
	json_decref(hello);
	return tap_done();
}
