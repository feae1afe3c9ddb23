#define _GNU_SOURCE
#include "datagram.h"
#include "fd.h"
#include "brigd_connection.h"
#include "brigd_private.h"
#include "tap.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/brig-test-server-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[2][256];
	static int  turn;

	turn = !turn;
	snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
	return path[turn];
}

static int listen_at(const char *path, int type)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int                fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	strcpy(at.sun_path, path);
	if (bind(fd, (struct sockaddr *)&at, sizeof at) < 0 || listen(fd, 4) < 0)
		perror(path);
	return fd;
}

static void refuse_named(const char *path, const char *says, const char *name)
{
	struct brigd s = BRIGD_NONE;
	struct err   e = { 0 };

	setenv("BRIG_SOCKET", path, 1);
	tap_ok(brigd_connect(&s, BRIGD_ANY, &e) < 0 && strstr(e.text, says) && strstr(e.text, "BRIG_SOCKET"), "%s", name);
	if (!strstr(e.text, says))
		printf("#   says: %s\n", e.text);
}

static void write_program(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
	chmod(path, 0755);
}

/* A brigd that tells what it was started with. */
static void start_private(void)
{
	static const char *const loaders[] = { "LD_PRELOAD", "LD_AUDIT", "GLIBC_TUNABLES", "GCONV_PATH", "OPENSSL_CONF" };
	const char   *program = in_folder("brigd");
	char          got[256] = "", script[512];
	struct brigd  s = BRIGD_NONE;
	struct err    e;
	int           status, kept = fcntl(1, F_DUPFD, 20); /* not close-on-exec: a caller's */
	ssize_t       n;

	snprintf(script, sizeof script,
		 "#!/bin/sh\n"
		 "trap '' PIPE; set -- \"$@\" $(for n in 0 1 2; do readlink /proc/$$/fd/$n; done) $(readlink /proc/$$/fd/%d)\n"
		 "printf '%%s ' \"$LD_PRELOAD$LD_AUDIT$GLIBC_TUNABLES$GCONV_PATH$OPENSSL_CONF$LDKEPT\" >&3\n"
		 "sed -n 's/^SigBlk:.//p; s/^SigIgn:.//p' /proc/$$/status | tr '\\n' ' ' >&3\nprintf %%s \"$*\" >&3\nexit 7\n", kept);
	write_program(program, script);
	signal(SIGINT, SIG_IGN);
	for (size_t i = 0; i < ARRAY_LEN(loaders); i++)
		setenv(loaders[i], "evil", 1);
	setenv("LDKEPT", "kept", 1);
	tap_ok(brigd_start(&s, program, &e) == 0 && s.pid > 0 && strcmp(s.name, program) == 0, "a private brigd is started");
	tap_ok(fcntl(s.sock, F_GETFD) == FD_CLOEXEC, "its socket closes on exec");
	while ((n = read(s.sock, got + strlen(got), sizeof got - 1 - strlen(got))) > 0)
		;
	for (size_t i = 0; i < ARRAY_LEN(loaders); i++)
		unsetenv(loaders[i]);
	tap_is(got, "kept 0000000000000000 0000000000001000 --private --fd 3 /dev/null /dev/null /dev/null", /* 1: SIGPIPE, by the script */
	       "it has the socket and three times /dev/null, no signal is blocked or ignored, no variable makes it load code");
	status = brigd_close(&s);
	tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 7 && s.pid == 0 && s.sock < 0, "closing it waits for its end, and tells it");
	tap_ok(brigd_close(&s) == 0, "closing it again does nothing");
	signal(SIGINT, SIG_DFL);
	close(kept);
	unlink(program);
	tap_ok(brigd_start(&s, program, &e) < 0 && strstr(e.text, program) && strstr(e.text, "No such file"), "one that is not there is named");
}

int main(void)
{
	struct brigd s = BRIGD_NONE;
	struct err   e;
	int          listening, stream;
	const char  *path;

	if (!mkdtemp(folder))
		return EXIT_FAILURE;
	setenv("BRIG_STORE", folder, 1); /* apart from the host, whatever runs there */
	path      = in_folder("sock");
	listening = listen_at(path, SOCK_SEQPACKET);
	setenv("BRIG_SOCKET", path, 1);
	tap_ok(brigd_connect(&s, BRIGD_ANY, &e) == 0 && s.pid == 0 && strcmp(s.name, path) == 0, "BRIG_SOCKET is connected to");
	tap_ok(brigd_close(&s) == 0, "and let go");
	tap_ok(brigd_connect(&s, BRIGD_SERVICE, &e) == 0, "also by who wants a service");
	brigd_close(&s);
	close(listening);
	refuse_named(path, "no brigd listens", "a socket without a listener is an error");
	unlink(path);
	refuse_named(path, "no such socket", "a missing one is an error");
	refuse_named("sock", "absolute", "a relative one is an error");
	refuse_named(in_folder("a-name-that-is-longer-than-what-the-kernel-has-room-for-in-the-address-of-a-socket-which-are-108-bytes-with-the-zero"),
		     "at most 107", "one that is too long is an error");
	stream = listen_at(path, SOCK_STREAM);
	refuse_named(path, "not the socket of a brigd", "a socket of another kind is an error");
	close(stream);
	unlink(path);
	unsetenv("BRIG_SOCKET");
	tap_ok(brigd_connect(&s, BRIGD_SERVICE, &e) < 0 && strstr(e.text, "no brigd is running") && strstr(e.text, "BRIG_SOCKET"),
	       "who wants a service and has none hears how to get one");
	start_private();
	rmdir(folder);
	return tap_done();
}
