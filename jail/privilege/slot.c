#define _GNU_SOURCE
#include "slot.h"

#include "fd.h"
#include "file.h"
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int open_runtime_dir(const char *path)
{
	return open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Root makes /run as well, which a host of few files may not have. */
static int make_runtime_dir(const char *path)
{
	char above[256];

	if (mkdir(path, 0700) == 0 || errno == EEXIST)
		return 0;
	snprintf(above, sizeof above, "%.*s", (int)(strrchr(path, '/') - path), path);
	if (errno != ENOENT)
		return -1;
	if (mkdir(above, 0755) < 0 && errno != EEXIST) { /* EEXIST: another process was first, here and below */
		errno = ENOENT;
		return -1;
	}
	return mkdir(path, 0700) == 0 || errno == EEXIST ? 0 : -1;
}

/* The directory nearly always exists, so open it first. */
static int open_lock_file_of_slots(const char *runtime_dir, struct err *e)
{
	scoped_fd   dir = -1, fd = -1;
	struct stat st;

	dir = open_runtime_dir(runtime_dir);
	if (dir < 0 && errno == ENOENT && make_runtime_dir(runtime_dir) == 0)
		dir = open_runtime_dir(runtime_dir);
	if (dir < 0 && errno == ENOENT)
		return err_set(e, ERR_MISSING, "%s: cannot be made, because the directory above it is not there; as root, for /tmp: mkdir -m 1777 /tmp", runtime_dir);
	if ((dir < 0 && errno != ENOTDIR) || (dir >= 0 && fstat(dir, &st) < 0))
		return err_sys(e, "%s", runtime_dir);
	if (dir < 0 || !trust_stat_is_safe(&st))
		return err_set(e, ERR_DENIED, "%s: must be a directory of the caller or root that no other user can write to; if another user made "
			       "it, root can remove it, or make /run/user/UID (loginctl enable-linger)", runtime_dir);
	fd = openat(dir, "slots", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? err_sys(e, "%s/slots", runtime_dir) : fd_take(&fd);
}

enum lock_answer { LOCK_TAKEN, LOCK_BUSY, LOCK_FAILED };

static enum lock_answer try_lock_slots(int fd, uint32_t first, uint32_t n, struct err *e)
{
	struct flock byte = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = first, .l_len = n };

	if (fcntl(fd, F_OFD_SETLK, &byte) == 0)
		return LOCK_TAKEN;
	if (errno == EAGAIN || errno == EACCES)
		return LOCK_BUSY;
	err_sys(e, "set-up step take-slot: lock");
	return LOCK_FAILED;
}

static enum lock_answer try_lock_slot(int fd, uint32_t number, struct err *e)
{
	return try_lock_slots(fd, number, 1, e);
}

enum { SLOTS_OF_ONE_ID = 65536, SLOTS_OF_BLOCK = 4096 };

static struct slot make_slot(const struct id_range *range, uint32_t number, int *fd)
{
	uint32_t first = range->count == 1 ? range->base : range->base + number * IDS_PER_CELL;

	return (struct slot){ .number = number, .init_id = first, .program_id = range->count == 1 ? first : first + 1, .fd = fd_take(fd) };
}

int slot_take_free(const char *runtime_dir, const struct id_range *range, uint32_t first, struct slot *ret, struct err *e)
{
	uint32_t  slots = range->count == 1 ? SLOTS_OF_ONE_ID : id_range_slots(range);
	scoped_fd fd    = open_lock_file_of_slots(runtime_dir, e);

	if (fd < 0)
		return -1;
	for (uint32_t i = first; i < slots; i++) {
		switch (try_lock_slot(fd, i, e)) {
		case LOCK_TAKEN:
			*ret = make_slot(range, i, &fd);
			return 0;
		case LOCK_BUSY:
			continue;
		case LOCK_FAILED:
			return -1;
		}
	}
	return err_set(e, ERR_LIMIT, "all %u id slots are taken", slots);
}

int slot_take_block(const char *runtime_dir, const struct id_range *range, struct id_range *ret, struct err *e)
{
	uint32_t  half = id_range_slots(range) / 2, size = half < SLOTS_OF_BLOCK ? half : SLOTS_OF_BLOCK;
	scoped_fd fd   = open_lock_file_of_slots(runtime_dir, e);

	if (fd < 0)
		return -1;
	for (uint32_t first = 2 * half; first >= half + size && size;) {
		first -= size;
		switch (try_lock_slots(fd, first, size, e)) {
		case LOCK_TAKEN:
			*ret = (struct id_range){ range->base + first * IDS_PER_CELL, size * IDS_PER_CELL };
			return fd_take(&fd);
		case LOCK_BUSY:
			continue;
		case LOCK_FAILED:
			return -1;
		}
	}
	return err_set(e, ERR_LIMIT, "all blocks of host ids are taken: as many services run already");
}

int slot_wait_for_number(const char *runtime_dir, uint32_t number, struct slot *ret, struct err *e)
{
	scoped_fd fd = open_lock_file_of_slots(runtime_dir, e);

	if (fd < 0)
		return -1;
	for (int ms = 0; ms < 2000; ms++) {
		switch (try_lock_slot(fd, number, e)) {
		case LOCK_TAKEN:
			*ret = (struct slot){ .number = number, .fd = fd_take(&fd) };
			return 0;
		case LOCK_BUSY:
			break;
		case LOCK_FAILED:
			return -1;
		}
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return err_set(e, ERR_LIMIT, "slot %u is still taken", number);
}

bool slot_try_lock_other(const struct slot *s, uint32_t number)
{
	struct err ignored;

	return try_lock_slot(s->fd, number, &ignored) == LOCK_TAKEN;
}

void slot_unlock_other(const struct slot *s, uint32_t number)
{
	struct flock byte = { .l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1 };

	(void)!fcntl(s->fd, F_OFD_SETLK, &byte);
}

void slot_release(struct slot *s)
{
	fd_closep(&s->fd);
}
