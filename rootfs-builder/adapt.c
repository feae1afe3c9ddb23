#define _GNU_SOURCE
#include "adapt.h"

#include "cell_path.h"
#include "fd.h"
#include "generate.h"
#include "prune.h"
#include "tree.h"
#include "usr_merge.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PYTHON       "/usr/bin/python3" /* what a cell executes */
#define LOCAL_PYTHON "/usr/local/bin/python3" /* comes first in PATH, as in the python images of docker */

/* A file that has bytes. */
static bool has_nonempty_file(int root, const char *path)
{
	scoped_fd   fd = tree_open(root, path, O_PATH);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size;
}

/* A container runtime writes these files, so images lack them, or have empty ones. */
static int make_runtime_files(int root, int log, int stop, struct err *e)
{
	static const struct {
		const char *dir, *path, *generator;
		/* also if the image has the file, which is right for containers and wrong for a jail */
		bool        always;
	} files[] = {
		{ "/etc", "/etc/group", "group", false },
		{ "/etc", "/etc/hostname", "hostname", false },
		{ "/etc", "/etc/hosts", "hosts", false },
		{ "/etc", "/etc/nsswitch.conf", "nsswitch", false },
		{ "/etc", "/etc/passwd", "passwd", false },
		{ "/etc", "/etc/resolv.conf", "resolv", true },
		{ "/sys/devices/system/cpu", "/sys/devices/system/cpu/online", "four-cpus", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		const struct generator *g = generator_find(files[i].generator);

		if (!files[i].always && has_nonempty_file(root, files[i].path))
			continue;
		if (tree_make_dir(root, files[i].dir, e) < 0 ||
		    g->make(&(struct generator_use){ root, log, stop, files[i].path }, g->text, e) < 0)
			return -1;
	}
	return 0;
}

bool adapt_has_python(int root)
{
	return has_nonempty_file(root, PYTHON);
}

int adapt_apply(int root, int log, int stop, struct err *e)
{
	if (usr_merge_apply(root, e) < 0 || cell_paths_replace(root, e) < 0 ||
	    make_runtime_files(root, log, stop, e) < 0)
		return -1;
	if (has_nonempty_file(root, LOCAL_PYTHON)) {
		fprintf(stderr, "its Python is " LOCAL_PYTHON "\n");
		if (tree_make_dir(root, "/usr/bin", e) < 0 || tree_link(root, PYTHON, "../local/bin/python3", e) < 0)
			return -1;
	}
	return prune_apply(root, NULL, NULL, e);
}

json_t *adapt_find_modules(int root, struct err *e)
{
	static const char *const patterns[] = { "/usr/lib/python3", "/usr/lib/python3.[0-9]*",
						"/usr/local/lib/python3.[0-9]*" };
	scoped_tree              t          = { 0 };
	json_t                  *rows       = NULL;

	if (tree_scan(root, &t, e) < 0)
		return NULL;
	rows = json_array();
	for (size_t i = 0; i < t.n; i++)
		for (size_t j = 0; j < ARRAY_LEN(patterns); j++)
			if (t.entry[i].type == TREE_DIR && fnmatch(patterns[j], t.entry[i].path, FNM_PATHNAME) == 0)
				json_array_append_new(rows, json_string(t.entry[i].path));
	return rows;
}
