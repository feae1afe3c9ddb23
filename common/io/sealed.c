#define _GNU_SOURCE
#include "sealed.h"

#include "fd.h"
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* Linux 6.3 */
#endif

enum { SEALS = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW };

static int create_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	return fd < 0 && errno == EINVAL ? memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING) : fd;
}

int sealed_create(const char *name, const void *bytes, size_t len, struct err *e)
{
	scoped_fd fd = create_memfd(name);

	if (fd < 0 || file_write_all(fd, bytes, len) < 0 || fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0)
		return err_sys(e, "memory file \"%s\"", name);
	return fd_take(&fd);
}

/* A function of its own, because F_SEAL_WRITE fails with EBUSY as long as a writable mapping exists. */
static int fill_mapped_memfd(int fd, const char *name, size_t len, int (*fill)(void *bytes, void *arg, struct err *e), void *arg, struct err *e)
{
	void *bytes = ftruncate(fd, (off_t)len) < 0 ? MAP_FAILED : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int   done;

	if (bytes == MAP_FAILED)
		return err_sys(e, "memory file \"%s\": %zu bytes", name, len);
	(void)!madvise(bytes, len, MADV_DONTFORK); /* nor may a child inherit the mapping */
	done = fill(bytes, arg, e);
	munmap(bytes, len);
	return done;
}

int sealed_create_filled(const char *name, size_t len, int (*fill)(void *bytes, void *arg, struct err *e), void *arg, struct err *e)
{
	scoped_fd fd = create_memfd(name);

	if (fd < 0)
		return err_sys(e, "memory file \"%s\"", name);
	if (fill_mapped_memfd(fd, name, len, fill, arg, e) < 0)
		return -1;
	return fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0 ? err_sys(e, "memory file \"%s\"", name) : fd_take(&fd);
}

int sealed_create_fixed_size(const char *name, size_t size, struct err *e)
{
	scoped_fd fd = create_memfd(name);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_sys(e, "memory file \"%s\"", name);
	return fd_take(&fd);
}

int memfd_create_mapped(const char *name, size_t size, void **ret, struct err *e)
{
	scoped_fd fd = create_memfd(name);
	void     *bytes;

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		return err_sys(e, "memory file \"%s\"", name);
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return err_sys(e, "memory file \"%s\"", name);
	if (madvise(bytes, size, MADV_DONTFORK) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
		err_sys(e, "memory file \"%s\"", name);
		munmap(bytes, size);
		return -1;
	}
	*ret = bytes;
	return fd_take(&fd);
}

int sealed_check(int fd, size_t max, size_t *len, struct err *e)
{
	int         seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "is not a memory file (memfd_create)");
	if ((seals & SEALS) != SEALS)
		return err_set(e, ERR_BAD_SPEC, "is not sealed: F_SEAL_WRITE, F_SEAL_SHRINK and F_SEAL_GROW are needed");
	if (st.st_size < 0 || (size_t)st.st_size > max)
		return err_set(e, ERR_BAD_SPEC, "has %lld bytes, of at most %zu", (long long)st.st_size, max);
	*len = (size_t)st.st_size;
	return 0;
}
