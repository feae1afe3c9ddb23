#include "compile.h"

#include "chroot.h"

#include <stdlib.h>

/*
 * Why not `python3 -m compileall -j`: the bytes of a .pyc depend on what else
 * its process has compiled before (marshal marks objects that are referenced
 * more than once, and interned strings are shared), so a pool of workers gives
 * another tree each time. Here every directory is compiled, in the order of its
 * names, in a fork of one and the same parent, which has compiled nothing; how
 * many run at a time does not matter. (A fork for every file costs more than to
 * compile it: plotly has 11,500 small ones.) Unchecked hash: the tree is never written to, so Python need not
 * look at the source's time or content.
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
	"            status = 1\n"
	"    os._exit(status)\n"
	"folders, running, failed = {}, 0, 0\n"
	"for top in sys.argv[2:]:\n"
	"    assert os.path.isdir(top), f'{top}: no such directory'\n"
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

#define WORKERS "8" /* at a time; more than processors does no harm */
#define HEAD        7

static const char *const head[HEAD] = { "/usr/bin/python3", "-I", "-S", "-B", "-c", program, WORKERS };

static int run(int root, const struct recipe_row *rows, size_t n, int log, int stop, struct err *e)
{
	const char **argv = calloc(HEAD + n + 1, sizeof *argv);
	int          result;

	if (!argv)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < HEAD; i++)
		argv[i] = head[i];
	for (size_t i = 0; i < n; i++)
		argv[HEAD + i] = rows[i].key;
	result = chroot_run(root, argv, log, stop, e);
	free(argv);
	return result;
}

int compile_apply(int root, const struct recipe *r, int log, int stop, struct err *e)
{
	size_t             n    = json_array_size(r->compile);
	struct recipe_row *rows = n ? calloc(n, sizeof *rows) : NULL;
	int                result;

	if (n == 0)
		return 0;
	if (!rows)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (size_t i = 0; i < n; i++)
		recipe_row_read(json_array_get(r->compile, i), &rows[i]);
	result = run(root, rows, n, log, stop, e);
	free(rows);
	return result;
}
