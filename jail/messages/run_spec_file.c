#define _GNU_SOURCE
#include "run_spec_file.h"

#include "fd.h"
#include "packet.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* 6.3 */
#endif

enum { CODE_ALIGN = 16, COPY_BYTES = 16 * 1024 };

static size_t code_offset(const struct run_spec_head *o)
{
	return ((size_t)o->exec_args.len + CODE_ALIGN - 1) / CODE_ALIGN * CODE_ALIGN;
}

/* --- writing --- */

int run_spec_file_open(struct err *e)
{
	int fd = memfd_create("order", MFD_CLOEXEC | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL)
		fd = memfd_create("order", MFD_CLOEXEC);
	return fd < 0 ? err_sys(e, "set-up step channels: order file") : fd;
}

int run_spec_file_write(int run_spec_file, const struct run_spec_head *o, const char *exec_args, const char *code, struct err *e)
{
	static const char none[CODE_ALIGN];
	size_t            gap = code_offset(o) - o->exec_args.len;
	struct iovec io[]     = { { (void *)exec_args, o->exec_args.len }, { (void *)none, gap }, { (void *)code, o->code_len } };
	ssize_t      all      = (ssize_t)(o->exec_args.len + gap + o->code_len), n;

	do
		n = pwritev(run_spec_file, io, ARRAY_LEN(io), 0);
	while (n < 0 && errno == EINTR);
	if (n >= 0 && n != all)
		errno = ENOSPC; /* a memory file is short of nothing else */
	return n == all ? 0 : err_sys(e, "set-up step order");
}

static int copy_file_bytes(int to, off_t at, int from, size_t len)
{
	char   block[COPY_BYTES];
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(from, block, len - done < sizeof block ? len - done : sizeof block, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || pwrite(to, block, (size_t)n, at + (off_t)done) != n) {
			errno = n == 0 ? ENODATA : errno;
			return -1;
		}
		done += (size_t)n;
	}
	return 0;
}

int run_spec_file_copy(int run_spec_file, const struct run_spec_head *o, const struct run_spec_fds *from, struct err *e)
{
	if (copy_file_bytes(run_spec_file, 0, from->exec_args, o->exec_args.len) < 0 ||
	    (o->code_len && copy_file_bytes(run_spec_file, (off_t)code_offset(o), from->code, o->code_len) < 0))
		return err_sys(e, "set-up step order");
	return 0;
}

int run_spec_send_head(int orders, const struct run_spec_head *o, int tools)
{
	ssize_t n;

	do
		n = send(orders, o, sizeof *o, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof *o)
		return n < 0 ? -errno : -EMSGSIZE;
	return o->tools ? packet_send_nowait(orders, "t", 1, &tools, 1) : 0; /* a supervisor can fill this socket: nothing here may wait */
}

/* --- reading --- */

/* Reads one byte more than there should be: read() cuts a longer datagram off silently. */
static int receive_spec_head(int orders, struct run_spec_head *ret)
{
	char    bytes[sizeof *ret + 1];
	ssize_t n;

	do
		n = read(orders, bytes, sizeof bytes);
	while (n < 0 &&
	       (errno == EINTR || errno == ECONNRESET)); /* ECONNRESET comes once, and before messages that were sent earlier */
	if (n <= 0)
		return n < 0 ? -errno : -EPIPE;
	if (n != (ssize_t)sizeof *ret)
		return -EPROTO;
	memcpy(ret, bytes, sizeof *ret);
	return run_spec_head_is_bounded(ret) ? 0 : -EPROTO;
}

static int pread_all(int fd, char *to, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, to + done, len - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPROTO; /* it is shorter than the spec has it */
		done += (size_t)n;
	}
	return 0;
}

/* New memory is zero: the program's text ends with a NUL, and so do the arguments, or exec_args_split() fails. */
int run_spec_file_read(int orders, int run_spec_file, struct run_spec_head *ret, char **text, char **code)
{
	int    r = receive_spec_head(orders, ret);
	size_t len;
	char  *copy;

	if (r < 0)
		return r;
	len  = code_offset(ret) + ret->code_len;
	copy = mmap(NULL, len + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (copy == MAP_FAILED)
		return -errno;
	r = pread_all(run_spec_file, copy, ret->code_len ? len : ret->exec_args.len);
	if (r < 0) {
		munmap(copy, len + 1);
		return r;
	}
	*text = copy;
	*code = ret->code_len ? copy + code_offset(ret) : NULL;
	return 0;
}

static bool has_socket_option(int fd, int option, int want)
{
	int       value;
	socklen_t len = sizeof value;

	return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == want;
}

/* Without packet_receive(), which sets close-on-exec: the program that is executed inherits this descriptor. */
static int receive_inherited_descriptor(int orders)
{
	union {
		struct cmsghdr head;
		char           room[CMSG_SPACE(sizeof(int))];
	} control;
	char          byte;
	struct iovec  io = { &byte, 1 };
	struct msghdr m  = { .msg_iov = &io, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control };
	ssize_t       n;
	int           fd;

	do
		n = recvmsg(orders, &m, 0);
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n != 1)
		return n < 0 ? -errno : -EPIPE;
	if (m.msg_controllen < CMSG_LEN(sizeof fd) || control.head.cmsg_level != SOL_SOCKET ||
	    control.head.cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	memcpy(&fd, CMSG_DATA(&control.head), sizeof fd);
	return fd;
}

int run_spec_receive_tools_socket(int orders)
{
	int fd = receive_inherited_descriptor(orders);

	if (fd < 0 || (has_socket_option(fd, SO_DOMAIN, AF_UNIX) && (has_socket_option(fd, SO_TYPE, SOCK_STREAM) || has_socket_option(fd, SO_TYPE, SOCK_SEQPACKET))))
		return fd;
	close(fd);
	return -EPROTO;
}
