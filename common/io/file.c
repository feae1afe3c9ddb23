#define _GNU_SOURCE
#include "file.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void bytes_done(struct bytes *b)
{
	free(b->data);
	*b = (struct bytes){ 0 };
}

int file_read_fd(int fd, const char *path, size_t max, struct bytes *ret, struct err *e)
{
	scoped_bytes b = { 0 };
	size_t       room;
	struct stat  st;

	if (fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > max)
		return err_set(e, ERR_BAD_SPEC, "%s: %lld bytes, at most %zu are allowed", path, (long long)st.st_size, max);
	room   = S_ISREG(st.st_mode) && st.st_size ? (size_t)st.st_size + 2 : 8 * 1024; /* the size of a kernel's file is 0 */
	b.data = malloc(room);
	for (;;) {
		ssize_t n;

		if (!b.data)
			return err_set(e, ERR_LIMIT, "%s: out of memory", path);
		n = read(fd, b.data + b.len, room - 1 - b.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "%s", path);
		if (n == 0)
			break;
		b.len += (size_t)n;
		if (b.len > max)
			return err_set(e, ERR_BAD_SPEC, "%s: more than %zu bytes", path, max);
		if (b.len == room - 1) {
			char *more = realloc(b.data, room *= 2);

			if (!more)
				return err_set(e, ERR_LIMIT, "%s: out of memory", path);
			b.data = more;
		}
	}
	b.data[b.len] = 0;
	*ret          = b;
	b             = (struct bytes){ 0 };
	return 0;
}

int file_read(int dir, const char *path, size_t max, struct bytes *ret, struct err *e)
{
	scoped_fd fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	return fd < 0 ? err_sys(e, "%s", path) : file_read_fd(fd, path, max, ret, e);
}

int file_stat_type(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, ret) < 0 || !(ret->stx_mask & STATX_TYPE) ? -1 : 0;
}

int file_open_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++) /* open() returns the lowest free number; without O_CLOEXEC, as usual for a standard stream */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return -1;
	return 0;
}

/* False when poll() fails. */
static bool wait_writable(int fd)
{
	struct pollfd p = { fd, POLLOUT, 0 };

	return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

int file_write_all(int fd, const void *bytes, size_t len)
{
	const char *p = bytes;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && (errno == EINTR || (errno == EAGAIN && wait_writable(fd))))
			continue;
		if (n < 0)
			return -1;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int file_write_existing(int dir, const char *path, const char *text)
{
	scoped_fd fd  = openat(dir, path, O_WRONLY | O_CLOEXEC);
	size_t    len = strlen(text);

	if (fd < 0)
		return -1;
	return write(fd, text, len) == (ssize_t)len ? 0 : -1;
}
