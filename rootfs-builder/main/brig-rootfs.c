/* brig-rootfs - rootfs trees for jails: build, import, verify, list, gc, lint */
#define _GNU_SOURCE
#include "build.h"
#include "fd.h"
#include "file.h"
#include "gc.h"
#include "lint.h"
#include "list.h"
#include "paths.h"
#include "store.h"
#include "text.h"
#include "verify.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

enum { EXIT_FAILED = 1, EXIT_USAGE = 2 };

struct options {
	bool              force, json, dry_run;
	const char       *sources;
	uint64_t          size_max;
	char            **args;
	int               n_args;
	struct brig_paths places;
};

/* --- commands --- */

/* A signalfd, so that a wait for a program is also a wait for signals. */
static int open_stop_signalfd(struct err *e)
{
	sigset_t set;
	int      fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, "block signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(e, "signalfd") : fd;
}

static int command_build(const struct options *o, struct err *e)
{
	scoped_fd stop = open_stop_signalfd(e);

	if (stop < 0)
		return -1;
	return build_from_recipe(&(struct build_options){ .store = o->places.store[0], .recipes = o->places.recipes,
						  .recipe = o->args[0], .guest = o->places.guest,
						  .sources = o->sources, .force = o->force, .stop = stop }, e);
}

static int command_import(const struct options *o, struct err *e)
{
	scoped_fd            stop = open_stop_signalfd(e);
	struct build_options b    = { .store = o->places.store[0], .guest = o->places.guest, .recipe = o->args[0],
				      .source = o->args[1], .force = o->force, .size_max = o->size_max,
				      .stop = stop };

	return stop < 0 ? -1 : build_from_import(&b, e);
}

static int command_layer(const struct options *o, struct err *e)
{
	scoped_fd            stop = open_stop_signalfd(e);
	struct build_options b    = { .store = o->places.store[0], .recipe = o->args[0], .source = o->args[1],
				      .size_max = o->size_max, .stop = stop };

	return stop < 0 ? -1 : build_layer(&b, e);
}

/* Verifies one tree; text: its digest, or its name. */
static int verify_name_or_digest(const struct tree_store *s, const char *text, struct err *e)
{
	scoped_store_tree t = STORE_TREE_NONE;

	if (!store_is_digest(text)) {
		if (store_open_tree(s->path, text, &t, e) < 0)
			return -1;
		text = t.digest;
	}
	if (verify_tree(s, text, stdout, e) < 0)
		return -1;
	printf("%s is sound\n", text);
	return 0;
}

static int command_verify(const struct options *o, struct err *e)
{
	scoped_shelf       s     = TREE_STORE_NONE;
	scoped_shelf_names trees = { 0 };
	size_t             n, bad = 0;

	if (tree_store_open(o->places.store[0], &s, e) < 0)
		return -1;
	if (!o->n_args && tree_store_list_trees(&s, &trees, e) < 0)
		return -1;
	n = o->n_args ? (size_t)o->n_args : trees.n;
	for (size_t i = 0; i < n; i++) { /* all of them, even after one has failed; each failure gets a line */
		if (verify_name_or_digest(&s, o->n_args ? o->args[i] : trees.name[i].digest, e) == 0)
			continue;
		bad++;
		if (n > 1)
			fprintf(stderr, "brig-rootfs: %s\n", e->text);
	}
	if (bad && n > 1)
		return err_set(e, ERR_BAD_SPEC, "%zu of %zu trees failed", bad, n);
	return bad ? -1 : 0;
}

/* A store that does not exist counts as empty, as it does for gc. */
static int command_list(const struct options *o, struct err *e)
{
	scoped_shelf s = TREE_STORE_NONE;

	if (tree_store_open(o->places.store[0], &s, e) < 0) {
		if (e->kind != ERR_MISSING)
			return -1;
		if (o->json)
			puts("[]");
		else
			fprintf(stderr, "brig-rootfs: %s\n",
				e->text); /* names the store, and the command that makes it */
		return 0;
	}
	return list_print(&s, o->json, stdout, e);
}

static int command_gc(const struct options *o, struct err *e)
{
	scoped_shelf s = TREE_STORE_NONE;

	if (tree_store_open(o->places.store[0], &s, e) < 0)
		return e->kind == ERR_MISSING ? 0 : -1;
	return gc_run(&s, o->dry_run, stdout, e);
}

static int command_lint(const struct options *o, struct err *e)
{
	scoped_fd root = open(o->args[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return root < 0 ? err_sys(e, "%s", o->args[0]) : lint_tree(root, LINT_ROOTFS, stdout, e);
}

/* --- the command line --- */

static const struct command {
	const char *name, *usage, *about;
	int (*run)(const struct options *, struct err *);
	int         least, most; /* arguments */
	const char *letters; /* of the command's own options, see choices[] */
} commands[] = {
	/* clang-format off */
	{ "build",  "NAME|RECIPE.json",
	  "build a rootfs from a recipe and put it into the store",
	  command_build, 1, 1, "fs" },
	{ "import", "NAME SOURCE",
	  "put a directory, a tar archive or a container image into the store",
	  command_import, 2, 2, "Fm" },
	{ "layer",  "KEY FILE.tar",
	  "put packages into the store, as brig packages does",
	  command_layer, 2, 2, "m" },
	{ "verify", "[NAME|DIGEST]...",
	  "hash the files of trees (default: all) and print what has changed",
	  command_verify, 0, 256, "" },
	{ "list",   "",
	  "list the rootfs trees of the store",
	  command_list, 0, 0, "j" },
	{ "gc",     "",
	  "remove trees that have no name and are not in use, and packages that no run has used for 30 days",
	  command_gc, 0, 0, "n" },
	{ "lint",   "DIR",
	  "check a directory by the rules for a rootfs",
	  command_lint, 1, 1, "" },
	/* clang-format on */
};

/* A command has the options whose letters are in its row, and --store and --help. */
static const struct choice {
	char        letter;
	const char *name, *value, *about;
} choices[] = {
	/* clang-format off */
	{ 'f', "force",   NULL,   "build even if the store has the tree of this recipe" },
	{ 'F', "force",   NULL,   "use the name even if another tree in the store has it" },
	{ 'm', "size-max", "SIZE", "limit for all files together, with those that a later layer replaces; default 2G" },
	{ 's', "sources", "FILE", "take packages from the sources in FILE instead of /etc/apt" },
	{ 'j', "json",    NULL,   "print a JSON array of name, digest, path and size" },
	{ 'n', "dry-run", NULL,   "print what would be removed, and remove nothing" },
	{ 'S', "store",   "DIR",  "use this store (also: the variable BRIG_STORE)" },
	{ 'h', "help",    NULL,   "this text" },
	/* clang-format on */
};

static bool command_has_option(const struct command *c, const struct choice *x)
{
	return x->letter == 'S' || x->letter == 'h' || strchr(c->letters, x->letter);
}

static int print_usage(FILE *out)
{
	fprintf(out, "usage: brig-rootfs COMMAND [OPTION]... [ARGUMENT]...\n\n");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].about);
	fprintf(out, "\nbrig-rootfs COMMAND --help prints the options of a command. Manual: man brig-rootfs\n");
	return out == stdout ? 0 : EXIT_USAGE;
}

static int print_help(const struct command *c)
{
	printf("usage: brig-rootfs %s [OPTION]...%s%s\n%s\n\n", c->name, *c->usage ? " " : "", c->usage, c->about);
	for (size_t i = 0; i < ARRAY_LEN(choices); i++) {
		char text[64];

		snprintf(text, sizeof text, "--%s%s%s", choices[i].name, choices[i].value ? " " : "",
			 choices[i].value ? choices[i].value : "");
		if (command_has_option(c, &choices[i]))
			printf("  %-16s %s\n", text, choices[i].about);
	}
	if (c->run == command_lint) {
		printf("\nrules:\n");
		lint_print_rules(stdout);
	}
	return 0;
}

static int report_usage_error(const struct command *c, const char *what, const char *about)
{
	struct err e;

	err_set(&e, ERR_BAD_SPEC, "%s: %s%.60s; brig-rootfs %s --help shows what it takes", c->name, what, about,
		c->name);
	fprintf(stderr, "brig-rootfs: %s\n", e.text);
	return EXIT_USAGE;
}

/* Makes the store's path absolute. */
static int set_store_path(struct options *o, const char *dir, struct err *e)
{
	char  *cwd  = dir[0] == '/' ? strdup("") : getcwd(NULL, 0);
	size_t size = sizeof o->places.store[0];
	int    n    = cwd && *dir ? snprintf(o->places.store[0], size, "%s%s%s", cwd, *cwd ? "/" : "", dir) : -1;

	free(cwd);
	if (n < 0 || n >= (int)size)
		return err_set(e, ERR_BAD_SPEC, "--store \"%.60s\": empty, or too long a path", dir);
	return 0;
}

static int set_size_max(struct options *o, const char *text, struct err *e)
{
	if (text_to_size(text, &o->size_max) == 0 && o->size_max && o->size_max <= BUILD_IMPORT_MAX)
		return 0;
	return err_set(e, ERR_BAD_SPEC, "--size-max \"%.60s\": expected a size such as 500M or 4G, at most 64G", text);
}

static int apply_option(struct options *o, int letter, const char *value, struct err *e)
{
	switch (letter) {
	case 'f':
	case 'F':
		o->force = true;
		return 0;
	case 'm':
		return set_size_max(o, value, e);
	case 's':
		o->sources = value;
		return 0;
	case 'j':
		o->json = true;
		return 0;
	case 'n':
		o->dry_run = true;
		return 0;
	default:
		return set_store_path(o, value, e);
	}
}

static void fill_longopts(const struct command *c, struct option *into)
{
	for (const struct choice *x = choices; x < choices + ARRAY_LEN(choices); x++)
		if (command_has_option(c, x))
			*into++ = (struct option){ x->name, x->value ? required_argument : no_argument, NULL,
						   x->letter };
	*into = (struct option){ 0 };
}

static int report_command_result(int result, const struct err *e)
{
	if (fflush(stdout) != 0 || ferror(stdout)) {
		fprintf(stderr, "brig-rootfs: write to stdout: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	if (result == 0)
		return 0;
	fprintf(stderr, "brig-rootfs: %s%s\n", e->text, e->errnum == ECANCELED ? "; nothing of it was kept" : "");
	return EXIT_FAILED;
}

static int run_command(const struct command *c, int argc, char **argv)
{
	struct option  longopts[ARRAY_LEN(choices) + 1];
	struct options o = { .size_max = 2 * GIB };
	struct err     e = { 0 };
	int            letter;

	fill_longopts(c, longopts);
	if (brig_paths_find(&o.places, &e) < 0)
		return report_command_result(-1, &e);
	opterr = 0;
	while ((letter = getopt_long(argc, argv, ":h", longopts, NULL)) != -1) {
		if (letter == 'h')
			return print_help(c);
		if (letter == '?' || letter == ':')
			return report_usage_error(c, letter == ':' ? "a value is missing after " : "no such option: ",
						  argv[optind - 1]);
		if (apply_option(&o, letter, optarg, &e) < 0)
			return report_command_result(-1, &e);
	}
	o.args   = argv + optind;
	o.n_args = argc - optind;
	if (o.n_args < c->least || o.n_args > c->most)
		return report_usage_error(c, o.n_args < c->least ? "expected " : "too many arguments: expected ",
					  *c->usage ? c->usage : "none");
	return report_command_result(c->run(&o, &e), &e);
}

int main(int argc, char **argv)
{
	struct err e;

	/* Modes in a store must not depend on the caller's umask: other users read the trees. */
	umask(022);
	if (file_open_standard_fds() < 0)
		return EXIT_FAILED;
	if (argc < 2)
		return print_usage(stderr);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)
		return print_usage(stdout);
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
		printf("brig-rootfs %s\n", BRIG_VERSION);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return run_command(&commands[i], argc - 1, argv + 1);
	err_set(&e, ERR_BAD_SPEC, "no such command: %.60s; brig-rootfs --help lists them", argv[1]);
	fprintf(stderr, "brig-rootfs: %s\n", e.text);
	return EXIT_USAGE;
}
