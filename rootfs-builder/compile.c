#define _GNU_SOURCE
#include "compile.h"

#include "chroot.h"
#include "fd.h"
#include "tree.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

/*
 * Why not `python3 -m compileall -j`: the bytes of a .pyc depend on what its
 * process has compiled before (marshal marks objects that are referenced more
 * than once, and interned strings are shared), so a pool of workers makes another
 * tree each time. Here a fork compiles the files of one directory in the order
 * of their names. All forks have the same parent, which has compiled nothing, so
 * it does not matter how many run at a time. (A fork for each file costs more
 * than compiling it: plotly has 11,500 small ones.) The hash of the source is not
 * checked: the tree is never written to, so Python need not look at the source.
 */
static const char program[] =
	"import os, sys, importlib.util, importlib._bootstrap_external as b\n"
	"def compile_one(path):\n"
	"    with open(path, 'rb') as f:\n"
	"        source = f.read()\n"
	"    code = compile(source, path, 'exec', dont_inherit=True, optimize=0)\n"
	"    data = b._code_to_hash_pyc(code, importlib.util.source_hash(source), False)\n"
	"    to = importlib.util.cache_from_source(path, optimization='')\n"
	"    os.makedirs(os.path.dirname(to), exist_ok=True)\n"
	"    with open(to, 'wb') as f:\n"
	"        f.write(data)\n"
	"def child(paths):\n"
	"    status = 0\n"
	"    for path in paths:\n"
	"        try:\n"
	"            compile_one(path)\n"
	"        except BaseException as e:\n"
	"            print(f'{path}: {type(e).__name__}: {e}', flush=True)\n"
	"            status = sys.argv[2] == 'all'\n"
	"    os._exit(status)\n"
	"folders, running, failed = {}, 0, 0\n"
	"for top in sys.argv[3:]:\n"
	"    for folder, _, names in os.walk(top):\n"
	"        folders[folder] = sorted(os.path.join(folder, n) for n in names if n.endswith('.py'))\n"
	"def reap():\n"
	"    global running, failed\n"
	"    failed += os.wait()[1] != 0\n"
	"    running -= 1\n"
	"for _, paths in sorted(folders.items()):\n"
	"    if running == int(sys.argv[1]):\n"
	"        reap()\n"
	"    if paths and os.fork() == 0:\n"
	"        child(paths)\n"
	"    running += bool(paths)\n"
	"while running:\n"
	"    reap()\n"
	"sys.exit(1 if failed else 0)\n";

#define WORKERS  "8" /* at a time; more of them than CPUs do no harm */
#define HEAD     8
#define DIRS_MAX 256

struct dirs {
	const char *path[DIRS_MAX];
	size_t      n;
};

static int run_py_compiler(int root, const char *which, const struct dirs *dirs, int log, int stop, struct err *e)
{
	const char *argv[HEAD + DIRS_MAX + 1] = { "/usr/bin/python3", "-I", "-S", "-B", "-c", program, WORKERS, which };

	memcpy(argv + HEAD, dirs->path, dirs->n * sizeof *dirs->path);
	return dirs->n ? chroot_run(root, argv, false, log, stop, e) : 0;
}

static int add_matching_dirs(struct dirs *dirs, const struct tree *t, const char *pattern, struct err *e)
{
	size_t before = dirs->n;

	for (size_t i = 0; i < t->n; i++) {
		if (t->entry[i].type != TREE_DIR ||
		    fnmatch(pattern, t->entry[i].path, FNM_PATHNAME | FNM_NOESCAPE) != 0)
			continue;
		if (dirs->n == DIRS_MAX)
			return err_set(e, ERR_LIMIT, "\"%.120s\" matches more than %d directories", pattern, DIRS_MAX);
		dirs->path[dirs->n++] = t->entry[i].path;
	}
	return dirs->n > before ? 0 : err_set(e, ERR_BAD_SPEC, "\"%.120s\": no such directory in the tree", pattern);
}

int compile_apply(int root, const struct recipe *r, int log, int stop, struct err *e)
{
	scoped_tree       t    = { 0 };
	struct dirs       dirs = { .n = 0 };
	struct recipe_row row;
	size_t            i;

	if (tree_scan(root, &t, e) < 0)
		return -1;
	recipe_foreach(r->compile, row, i) {
		if (add_matching_dirs(&dirs, &t, row.key, e) < 0)
			return -1;
	}
	return run_py_compiler(root, "all", &dirs, log, stop, e);
}

int compile_wheels(int root, const char *dir, int log, int stop, struct err *e)
{
	scoped_fd is = tree_open(root, dir, O_PATH | O_DIRECTORY);

	return is < 0 ? 0 : run_py_compiler(root, "some", &(struct dirs){ .path = { dir }, .n = 1 }, log, stop, e);
}
