/* cg_leaf.c - reads the files of a leaf, for all other group*.c */
#include "cg.h"

#include "fd.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

bool cg_read_file(int dir, const char *name, char *buf, size_t len)
{
	scoped_fd fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t   n  = fd < 0 ? -1 : read(fd, buf, len - 1);

	buf[n < 0 ? 0 : n] = 0;
	return n >= 0;
}

static int open_counter_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CLOEXEC);

	if (fd < 0 && (errno == EACCES || errno == EPERM))
		fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int cg_get_kept_file(struct cg_files *f, const struct cg_leaf *leaf, const char *name)
{
	size_t i = 0;

	while (i < f->n && (f->file[i].dir != leaf->fd || strcmp(f->file[i].name, name) != 0))
		i++;
	if (i == ARRAY_LEN(f->file))
		return -EMFILE;
	if (i == f->n) {
		f->file[i].dir  = leaf->fd;
		f->file[i].name = name;
		f->file[i].fd   = open_counter_file(leaf->fd, name);
		if (f->file[i].fd == -EMFILE || f->file[i].fd == -ENFILE)
			return f->file[i].fd; /* tried again: other descriptors will be closed */
		f->n++;
	}
	return f->file[i].fd;
}

void cg_files_close(struct cg_files *f)
{
	for (size_t i = 0; i < f->n; i++)
		fd_closep(&f->file[i].fd);
	*f = (struct cg_files){ 0 };
}

/* kernfs generates the text again at each read from offset 0, so a descriptor that stays open gives current values. */
bool cg_read_counter_text(const struct cg *g, const struct cg_leaf *leaf, const char *name, char *buf, size_t len)
{
	int     fd;
	ssize_t n;

	if (!g->files)
		return cg_read_file(leaf->fd, name, buf, len);
	fd             = cg_get_kept_file(g->files, leaf, name);
	n              = fd < 0 ? -1 : pread(fd, buf, len - 1, 0);
	buf[n < 0 ? 0 : n] = 0;
	return n >= 0;
}

const struct cg_leaf *cg_leaf_with_controller(const struct cg *g, unsigned controller)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->leaf[i].controllers & controller)
			return &g->leaf[i];
	return NULL;
}
