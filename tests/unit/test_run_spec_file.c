/* test_run_spec_file.c - an order as a cell gets it, and as a server that was taken over would send it */
#define _GNU_SOURCE
#include "run_spec_file.h"
#include "packet.h"
#include "sealed.h"
#include "tap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static const char exec_args[] = "/usr/bin/python3\0python3\0a b\0K=V";
static const char code[]      = "print(1)\n";

static struct run_spec_head order(void)
{
	return (struct run_spec_head){ .exec_args = { .paths = 1, .argc = 2, .envc = 1, .len = sizeof exec_args },
				    .code_len  = sizeof code - 1 };
}

struct desk {
	int orders[2], run_spec_file;
};

static struct desk desk_open(void)
{
	struct desk d;
	struct err  e;

	d.run_spec_file = run_spec_file_open(&e);
	if (d.run_spec_file < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, d.orders) < 0)
		abort();
	return d;
}

static void desk_close(struct desk *d)
{
	close(d->run_spec_file);
	close(d->orders[0]);
	close(d->orders[1]);
}

/* What the reader says to this header and that file. */
static int answer(const void *header, size_t len, const char *bytes, size_t n)
{
	struct desk          d = desk_open();
	struct run_spec_head got;
	char                *text, *program;
	int                  r;

	if (pwrite(d.run_spec_file, bytes, n, 0) != (ssize_t)n || send(d.orders[0], header, len, 0) != (ssize_t)len)
		abort();
	shutdown(d.orders[0], SHUT_WR);
	r = run_spec_file_read(d.orders[1], d.run_spec_file, &got, &text, &program);
	desk_close(&d);
	return r;
}

static void arrives(void)
{
	static struct exec_lists lists;
	struct desk              d    = desk_open();
	struct run_spec_head     o    = order(), got;
	char                    *text = NULL, *program = NULL;
	struct err               e;

	tap_ok(run_spec_file_write(d.run_spec_file, &o, exec_args, code, &e) == 0 &&
	       run_spec_send_head(d.orders[0], &o, -1) == 0,
	       "an order file is written and sent");
	tap_ok(run_spec_file_read(d.orders[1], d.run_spec_file, &got, &text, &program) == 0, "it can be read");
	tap_ok(memcmp(&got, &o, sizeof o) == 0, "its numbers arrive");
	tap_ok(exec_args_split(&got.exec_args, text, &lists) && strcmp(lists.argv[1], "a b") == 0 &&
		       strcmp(lists.envp[0], "K=V") == 0,
	       "its words arrive");
	tap_ok(program && strcmp(program, code) == 0, "its program arrives, and ends with a NUL");
	tap_ok(pwrite(d.run_spec_file, "XXXX", 4, 0) == 4 && *text == '/',
	       "what is written into the order file later is not seen");
	desk_close(&d);
}

static void is_copied(void)
{
	enum { BIG = 3 * 16 * 1024 + 5 };
	static char          big[BIG];
	struct desk          d    = desk_open();
	struct run_spec_head o    = order(), got;
	char                *text = NULL, *program = NULL;
	struct err           e;
	struct run_spec_fds  from = RUN_SPEC_FDS_NONE;

	memset(big, 'x', sizeof big);
	o.code_len     = sizeof big;
	from.exec_args = sealed_create("words", exec_args, sizeof exec_args, &e);
	from.code      = sealed_create("code", big, sizeof big, &e);
	tap_ok(run_spec_file_copy(d.run_spec_file, &o, &from, &e) == 0 && run_spec_send_head(d.orders[0], &o, -1) == 0,
	       "memory files are copied into an order file");
	tap_ok(run_spec_file_read(d.orders[1], d.run_spec_file, &got, &text, &program) == 0 &&
		       memcmp(text, exec_args, sizeof exec_args) == 0 && memcmp(program, big, sizeof big) == 0,
	       "a long program arrives, too");
	o.code_len = sizeof big + 1;
	tap_ok(run_spec_file_copy(d.run_spec_file, &o, &from, &e) < 0, "one that is shorter than was said is refused");
	close(from.exec_args);
	close(from.code);
	desk_close(&d);
}

static void without_program(void)
{
	struct desk          d = desk_open();
	struct run_spec_head o = order(), got;
	char                *text, *program = d.run_spec_file < 0 ? NULL : (char *)exec_args;
	struct err           e;

	o.code_len = 0;
	o.executes = 1;
	tap_ok(run_spec_file_write(d.run_spec_file, &o, exec_args, NULL, &e) == 0 &&
	       run_spec_send_head(d.orders[0], &o, -1) == 0 &&
		       run_spec_file_read(d.orders[1], d.run_spec_file, &got, &text, &program) == 0 && !program,
	       "an order file may have no program");
	close(d.orders[0]);
	tap_ok(run_spec_file_read(d.orders[1], d.run_spec_file, &got, &text, &program) == -EPIPE,
	       "the end of who would have sent one is noticed");
	d.orders[0] = dup(d.orders[1]);
	tap_ok(run_spec_send_head(d.orders[0], &o, -1) == -EPIPE, "the end of who would have read one is noticed");
	desk_close(&d);
}

static int directory(void)
{
	return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int file(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int datagrams(void)
{
	return socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static int network(void)
{
	return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static const struct {
	const char *name;
	int (*open)(void);
} wrong[] = { { "a directory", directory },
	      { "a file", file },
	      { "a socket of datagrams", datagrams },
	      { "a socket of a network", network } };

static void brings_a_socket(void)
{
	struct desk          d = desk_open();
	struct run_spec_head o = order(), got;
	char                *text, *program;
	struct err           e;
	int                  pair[2], fd;
	char                 said[8] = "";

	o.tools = 1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		tap_ok(false, "a pair can be made");
	tap_ok(run_spec_file_write(d.run_spec_file, &o, exec_args, code, &e) == 0 &&
	       run_spec_send_head(d.orders[0], &o, pair[1]) == 0 &&
		       run_spec_file_read(d.orders[1], d.run_spec_file, &got, &text, &program) == 0 && got.tools == 1,
	       "an order may say that a socket follows");
	fd = run_spec_receive_tools_socket(d.orders[1]);
	tap_ok(fd >= 0 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC), "it does, and a program that is executed inherits it");
	tap_ok(write(fd, "hello", 5) == 5 && read(pair[0], said, sizeof said) == 5 && strcmp(said, "hello") == 0,
	       "it is the other end of that pair");
	close(fd);
	send(d.orders[0], "t", 1, 0);
	tap_ok(run_spec_receive_tools_socket(d.orders[1]) == -EPROTO, "a datagram without one is refused");
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		fd = wrong[i].open();
		tap_ok(fd >= 0 && packet_send(d.orders[0], "t", 1, &fd, 1) == 0 &&
		       run_spec_receive_tools_socket(d.orders[1]) == -EPROTO,
		       "%s is refused", wrong[i].name);
		close(fd);
	}
	send(d.orders[0], "xy", 2, 0);
	tap_ok(run_spec_receive_tools_socket(d.orders[1]) < 0, "and so is a longer one");
	close(d.orders[0]);
	tap_ok(run_spec_receive_tools_socket(d.orders[1]) == -EPIPE,
	       "the end of the process that would have sent it is noticed");
	d.orders[0] = -1;
	close(pair[0]);
	close(pair[1]);
	desk_close(&d);
}

static void lies(void)
{
	struct run_spec_head o         = order();
	char                 file[256] = { 0 }, longer[sizeof o + 1] = { 0 };

	memcpy(file, exec_args, sizeof exec_args);
	memcpy(longer, &o, sizeof o);
	tap_ok(answer(&o, sizeof o, file, sizeof file) == 0, "an order that is none of these lies is taken");
	tap_ok(answer(&o, sizeof o - 1, file, sizeof file) == -EPROTO, "an order that is too short is refused");
	tap_ok(answer(longer, sizeof longer, file, sizeof file) == -EPROTO, "an order that is too long is refused");
	tap_ok(answer(&o, sizeof o, file, sizeof exec_args) == -EPROTO,
	       "a file that is shorter than the order says is refused");
	tap_ok(answer(&o, sizeof o, file, 0) == -EPROTO, "an empty file is refused");
	o.code_len = RUN_SPEC_CODE_MAX + 1;
	tap_ok(answer(&o, sizeof o, file, sizeof file) == -EPROTO, "a program above the bound is refused");
	o               = order();
	o.exec_args.len = EXEC_ARGS_BYTES_MAX + 1;
	tap_ok(answer(&o, sizeof o, file, sizeof file) == -EPROTO, "words above the bound are refused");
	o                = order();
	o.exec_args.argc = 0;
	tap_ok(answer(&o, sizeof o, file, sizeof file) == -EPROTO, "an order without a word is refused");
	o             = order();
	o.result_pipe = 2;
	tap_ok(answer(&o, sizeof o, file, sizeof file) == -EPROTO, "a truth that is neither 0 nor 1 is refused");
	o          = order();
	o.code_len = 0;
	tap_ok(answer(&o, sizeof o, file, sizeof file) == -EPROTO, "a command that executes nothing is refused");
	o       = order();
	o.tools = 2;
	tap_ok(answer(&o, sizeof o, file, sizeof file) == -EPROTO, "nor is a socket two sockets");
	o          = order();
	o.executes = 2;
	tap_ok(answer(&o, sizeof o, file, sizeof file) == -EPROTO, "a number that means nothing must be 0");
}

int main(void)
{
	arrives();
	is_copied();
	without_program();
	brings_a_socket();
	lies();
	return tap_done();
}
