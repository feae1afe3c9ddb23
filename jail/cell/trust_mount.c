#define _GNU_SOURCE
#include "trust_mount.h"

#include "fd.h"
#include "file.h"
#include "net_listeners.h"
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUNDLE_MAX = 4 * MIB, TRUST_MAX = 64 * KIB };
/* Of Debian; where a rootfs has it elsewhere, its programs trust the CA alone. */
static const char bundle[] = "etc/ssl/certs/ca-certificates.crt";

static int trust_mount_fail(const char *what, struct err *e)
{
	return err_sys(e, "set-up step base-mounts: " NET_TRUST_PATH ": %s", what);
}

static int make_trust_tmpfs(struct err *e)
{
	scoped_fd fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	int       tree;

	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", "5M", 0) < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", "4", 0) < 0 ||
	    fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return trust_mount_fail("tmpfs", e);
	tree = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID);
	return tree < 0 ? trust_mount_fail("tmpfs", e) : tree;
}

/* Follows no link out of the tree, and does not wait for a FIFO or a device. -1 with errno. */
static int open_ca_bundle(int tree_fd)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	scoped_fd       fd  = openat2(tree_fd, bundle, &how, sizeof how);
	struct stat     st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -1;
	if (S_ISREG(st.st_mode))
		return fd_take(&fd);
	errno = ENOENT;
	return -1;
}

static int copy_certificates(int to, int from, size_t most, struct err *e)
{
	char    block[16 * KIB];
	off_t   at = 0;
	ssize_t n;

	while ((n = pread(from, block, sizeof block, at)) > 0) {
		at += n;
		if ((size_t)at > most)
			return err_set(e, ERR_LIMIT, "set-up step base-mounts: " NET_TRUST_PATH ": more than %zu bytes of certificates", most);
		if (write(to, block, (size_t)n) != n)
			return trust_mount_fail("write", e);
	}
	return n < 0 ? trust_mount_fail("read", e) : 0;
}

int trust_mount_make(int trust_fd, int tree_fd, const struct mount_step *step, struct err *e)
{
	struct mount_attr attr = { .attr_set = mount_step_attrs(step) };
	scoped_fd         tree = make_trust_tmpfs(e), file = -1, own = -1;

	if (tree < 0)
		return -1;
	file = openat(tree, strrchr(NET_TRUST_PATH, '/') + 1, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (file < 0)
		return trust_mount_fail("open", e);
	own = open_ca_bundle(tree_fd);
	if (own < 0 && errno != ENOENT && errno != ENOTDIR)
		return trust_mount_fail(bundle, e);
	if (own >= 0 && copy_certificates(file, own, BUNDLE_MAX, e) < 0)
		return -1;
	if (write(file, "\n", 1) != 1)
		return trust_mount_fail("write", e);
	if (copy_certificates(file, trust_fd, TRUST_MAX, e) < 0)
		return -1;
	fd_closep(&file); /* while a file is open for writing, the mount cannot become read-only */
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
		return trust_mount_fail("read-only", e);
	return fd_take(&tree);
}
