/* What brig-proxy can still do when it is taken over: it has confined itself before it reads what a stranger sent. */
#define _GNU_SOURCE
#include "../../jail/proxy/proxy_confine.h"
#include "taken_over.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/socket.h>

static int try_resolver(void)
{
	return open("/etc/hosts", O_RDONLY | O_CLOEXEC);
}

static int try_file(void)
{
	return open("/usr/bin/env", O_RDONLY | O_CLOEXEC);
}

static int try_proc(void)
{
	return open("/proc/1/environ", O_RDONLY | O_CLOEXEC);
}

static int try_folder(void)
{
	return open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int try_to_make_a_file(void)
{
	return open("/tmp/brig-test-proxy-confine", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

static int try_to_write(void)
{
	return open("/etc/hosts", O_RDWR | O_CLOEXEC);
}

static int try_user(void)
{
	return setuid(getuid());
}

/* Services of the host listen on paths and abstract names. */
static int try_local_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static int try_netlink(void)
{
	return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static int try_to_bind(void)
{
	struct sockaddr_in address = loopback(0);

	return bind(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), (struct sockaddr *)&address, sizeof address);
}

static int try_to_listen(void)
{
	return listen(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), 1);
}

/* Port 0 is nobody's: that it gets as far as that shows that it may. */
static int try_to_connect(void)
{
	struct sockaddr_in address = loopback(0);

	return connect(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), (struct sockaddr *)&address, sizeof address);
}

static const struct {
	const char *name;
	int (*act)(void);
	int errnum; /* 0: it must work */
} rows[] = {
	{ "a confined proxy reads the files of the resolver", try_resolver, 0 },
	{ "a confined proxy connects", try_to_connect, ECONNREFUSED },
	{ "a confined proxy cannot read another file", try_file, EACCES },
	{ "a confined proxy cannot read what /proc says of processes", try_proc, EACCES },
	{ "a confined proxy cannot list a directory", try_folder, EACCES },
	{ "a confined proxy cannot make a file", try_to_make_a_file, EPERM },
	{ "a confined proxy cannot write to a file that it reads", try_to_write, EPERM },
	{ "a confined proxy cannot execute a program", try_program, EPERM },
	{ "a confined proxy cannot fork", try_process, EPERM },
	{ "a confined proxy cannot send a signal", try_signal, EPERM },
	{ "a confined proxy cannot trace", try_trace, EPERM },
	{ "a confined proxy cannot make a namespace", try_namespace, EPERM },
	{ "a confined proxy cannot change its user", try_user, EPERM },
	{ "a confined proxy cannot get executable memory", try_code, EPERM },
	{ "a confined proxy cannot make itself readable again", try_to_be_seen, EPERM },
	{ "a confined proxy cannot make a local socket", try_local_socket, EPERM },
	{ "a confined proxy cannot make a netlink socket", try_netlink, EPERM },
	{ "a confined proxy cannot bind to a port", try_to_bind, EPERM },
	{ "a confined proxy cannot listen", try_to_listen, EPERM },
};

static int confine_as_the_proxy(void)
{
	struct err e;

	return proxy_confine(&e);
}

int main(void)
{
	bool has_landlock = landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int got;

		if (rows[i].errnum == EACCES && !has_landlock) {
			printf("ok # skip this kernel has no Landlock: %s\n", rows[i].name);
			continue;
		}
		got = outcome(rows[i].act, confine_as_the_proxy);
		if (!tap_ok(got == rows[i].errnum, "%s", rows[i].name))
			printf("#   %s\n", strerror(got));
	}
	tap_ok(outcome(try_file, NULL) == 0 && outcome(try_folder, NULL) == 0 && outcome(try_program, NULL) == 0 && outcome(try_local_socket, NULL) == 0 &&
		       outcome(try_to_bind, NULL) == 0 && outcome(try_to_listen, NULL) == 0 && outcome(try_code, NULL) == 0,
	       "without confinement a process can");
	return tap_done();
}
