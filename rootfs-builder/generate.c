#define _GNU_SOURCE
#include "generate.h"

#include "chroot.h"
#include "fd.h"
#include "file.h"
#include "net_listeners.h"
#include "text.h"
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CA_FOLDER "/usr/share/ca-certificates/mozilla/"
#define CA_MAX    (8 * MIB)

static int write_text(const struct generator_use *use, const char *text, struct err *e)
{
	return tree_write(use->root, use->path, text, strlen(text), e);
}

static int append_cert_file(int root, const struct tree_entry *entry, FILE *out, struct err *e)
{
	scoped_fd    fd = tree_open_entry(root, entry, O_RDONLY);
	scoped_bytes b  = { 0 };

	if (fd < 0)
		return err_sys(e, "%s", entry->path);
	if (file_read_fd(fd, entry->path, CA_MAX, &b, e) < 0)
		return -1;
	fwrite(b.data, 1, b.len, out);
	if (b.len && b.data[b.len - 1] != '\n')
		fputc('\n', out);
	return 0;
}

static void file_closep(FILE **f)
{
	if (*f)
		fclose(*f);
}

/* Joins all certificates in the order of their names, as update-ca-certificates does. */
static int make_ca_bundle(const struct generator_use *use, const char *text, struct err *e)
{
	scoped_tree              t      = { 0 };
	scoped_bytes             bundle = { 0 };
	scoped(file_closep) FILE *out   = open_memstream(&bundle.data, &bundle.len);

	(void)text;
	if (tree_scan(use->root, &t, e) < 0)
		return -1;
	if (!out)
		return err_sys(e, "make the CA bundle");
	for (size_t i = 0; i < t.n; i++) {
		const struct tree_entry *entry = &t.entry[i];
		bool                     is_certificate = entry->type == TREE_FILE &&
				      strncmp(entry->path, CA_FOLDER, strlen(CA_FOLDER)) == 0 &&
				      text_ends_in(entry->path, ".crt");

		if (is_certificate && append_cert_file(use->root, entry, out, e) < 0)
			return -1;
	}
	if (fflush(out) != 0)
		return err_sys(e, "make the CA bundle");
	if (bundle.len == 0)
		return err_set(e, ERR_BAD_SPEC,
			       "%s: no certificate in " CA_FOLDER "; the package ca-certificates brings them",
			       use->path);
	return tree_write(use->root, use->path, bundle.data, bundle.len, e);
}

/* -X: packages bring their links. ldconfig always writes an auxiliary cache, with inode numbers and times: it is
 * removed. */
static int make_ld_cache(const struct generator_use *use, const char *text, struct err *e)
{
	const char *argv[] = { "/sbin/ldconfig", "-X", "-C", use->path, NULL };

	(void)text;
	if (chroot_run(use->root, argv, false, use->log, use->stop, e) < 0)
		return err_wrap(e, "%s", use->path);
	return tree_remove_path(use->root, "/var/cache/ldconfig", e);
}

/* clang-format off */
const struct generator generators[] = {
	/* name        maker            content, or what it is made from */
	{ "empty",     write_text,      "", "An empty file; the jail mounts a device or a file over it" },
	{ "passwd",    write_text,      "root:x:0:0:root:/root:/bin/sh\n"
	          "user:x:1000:1000:user:/workspace:/bin/sh\n"
	          "nobody:x:65534:65534:nobody:/nonexistent:/bin/false\n",
	          "root, user (1000) and nobody" },
	{ "group",     write_text,      "root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n", "The groups of these three" },
	{ "nsswitch",  write_text,
	          "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nnetworks: files\n"
	          "protocols: files\nservices: files\n",
	          "Names come from files, host names from files and DNS" },
	{ "hosts",     write_text,      "127.0.0.1 localhost brig\n::1 localhost brig\n", "localhost and brig" },
	{ "resolv",    write_text,      "nameserver " NET_GATEWAY_TEXT "\n",
	          "The resolver of a run that may reach hosts by name; without one nothing answers there" },
	{ "hostname",  write_text,      "brig\n", "brig" },
	{ "utc",       write_text,      "Etc/UTC\n", "The name of the time zone" },
	{ "four-cpus", write_text,      "0-3\n",
	          "What os.cpu_count() says: as many CPUs as the shipped profiles give at most, wherever it runs" },
	{ "matplotlibrc", write_text,   "backend: Agg\n", "Figures are drawn into files: there is no screen" },
	{ "openblas-dirs", write_text,
	          "/usr/lib/x86_64-linux-gnu/openblas-pthread\n/usr/lib/aarch64-linux-gnu/openblas-pthread\n",
	          "Where the loader finds OpenBLAS as libblas.so.3 and liblapack.so.3" },
	{ "ca-bundle", make_ca_bundle,  NULL,
	          "All certificates below " CA_FOLDER ", as update-ca-certificates(8) does" },
	{ "ld-cache",  make_ld_cache,   NULL, "The cache of ldconfig(8), run inside the tree" },
	{ 0 },
};
/* clang-format on */

const struct generator *generator_find(const char *name)
{
	for (const struct generator *g = generators; g->name; g++)
		if (strcmp(g->name, name) == 0)
			return g;
	return NULL;
}
