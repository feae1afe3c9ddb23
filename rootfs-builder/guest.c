#define _GNU_SOURCE
#include "guest.h"

#include "chroot.h"
#include "fd.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define GUEST_DIR "/usr/lib/brig"
#define GUEST_MAX MIB

int guest_load(const char *path, struct recipe *r, struct bytes *source, struct err *e)
{
	char both[2 * DIGEST_HEX + 1];

	if (file_read(AT_FDCWD, path, GUEST_MAX, source, e) < 0)
		return e->errnum == ENOENT ? err_set(e, ERR_MISSING, "%s: no such file; what runs programs inside a jail is a part of every rootfs", path) : -1;
	memcpy(both, r->sha256, DIGEST_HEX);
	if (digest_bytes(source->data, source->len, both + DIGEST_HEX, e) < 0)
		return -1;
	return digest_bytes(both, 2 * DIGEST_HEX, r->sha256, e);
}

/* Beside its source, not in __pycache__: brigd names it. Why an unchecked hash: compile.c. */
static const char program[] =
	"import importlib.util, importlib._bootstrap_external as b\n"
	"path = '" GUEST_DIR "/guest.py'\n"
	"with open(path, 'rb') as f:\n"
	"    source = f.read()\n"
	"code = compile(source, path, 'exec', dont_inherit=True, optimize=0)\n"
	"with open(path + 'c', 'wb') as f:\n"
	"    f.write(b._code_to_hash_pyc(code, importlib.util.source_hash(source), False))\n";

int guest_apply(int root, const struct bytes *source, int log, int stop, struct err *e)
{
	static const char *const argv[] = { "/usr/bin/python3", "-I", "-S", "-B", "-c", program, NULL };
	scoped_fd                python = tree_open(root, argv[0], O_PATH);

	if (python < 0)
		return errno == ENOENT ? 0 : err_sys(e, "%s", argv[0]);
	if (tree_make_dir(root, GUEST_DIR, e) < 0 || tree_write(root, GUEST_DIR "/guest.py", source->data, source->len, e) < 0)
		return -1;
	return chroot_run(root, argv, log, stop, e);
}
