#define _GNU_SOURCE
#include "build.h"

#include "build_log.h"
#include "compile.h"
#include "fd.h"
#include "file.h"
#include "adapt.h"
#include "populate.h"
#include "guest.h"
#include "import.h"
#include "lint.h"
#include "manifest.h"
#include "normalise.h"
#include "process.h"
#include "progress.h"
#include "prune.h"
#include "tree_store.h"
#include "sources.h"
#include "store.h"
#include "text.h"
#include "unpack.h"
#include "wheels.h"
#include "wire.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#define LOG_TAIL 15
#define IMPORT_COMPILED (256 * MIB)

struct build {
	const struct build_options *options;
	struct recipe               recipe;
	struct guest                guest;
	struct wheels               wheels;
	struct sources              sources;
	struct tree_store           tree_store;
	struct workspace            work;
	int                         tree, log;
	json_t                     *packages;
	struct manifest             manifest;
	bool                        is_layer;
};

static void build_done(struct build *b)
{
	fd_closep(&b->tree);
	fd_closep(&b->log);
	workspace_close(&b->work);
	tree_store_close(&b->tree_store);
	manifest_done(&b->manifest);
	json_decref(b->packages);
	sources_done(&b->sources);
	guest_done(&b->guest);
	wheels_done(&b->wheels);
	recipe_done(&b->recipe);
}

/* --- stages --- */

static int stage_unpack(struct build *b, struct err *e)
{
	char          place[1400];
	struct unpack u = { &b->recipe, &b->sources, place, b->work.dir, b->log, b->options->stop };

	snprintf(place, sizeof place, "%s/tmp/%s/" UNPACK_PLACE, b->tree_store.path, b->work.name);
	if (unpack_apply(&u, e) < 0)
		return -1;
	b->tree = openat(b->work.dir, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (b->tree < 0)
		return err_sys(e, "the tree that mmdebstrap made");
	b->packages = unpack_list_packages(b->tree, e);
	return b->packages ? 0 : -1;
}

static void print_unmatched_pattern(const char *row)
{
	fprintf(stderr, "  prune: %s matched nothing\n", row);
}

static int stage_prune(struct build *b, struct err *e)
{
	return prune_apply(b->tree, b->recipe.prune, print_unmatched_pattern, e);
}

static int stage_populate(struct build *b, struct err *e)
{
	return populate_apply(b->tree, &b->recipe, b->log, b->options->stop, e);
}

static int stage_wheels(struct build *b, struct err *e)
{
	return wheels_apply(&b->wheels, b->tree, b->packages, b->log, b->options->stop, e);
}

static int stage_guest(struct build *b, struct err *e)
{
	return guest_apply(b->tree, &b->guest, b->log, b->options->stop, e);
}

static int stage_compile(struct build *b, struct err *e)
{
	return compile_apply(b->tree, &b->recipe, b->log, b->options->stop, e);
}

static int stage_prune_last(struct build *b, struct err *e)
{
	return prune_apply(b->tree, b->recipe.prune_last, print_unmatched_pattern, e);
}

static int stage_normalise(struct build *b, struct err *e)
{
	return normalise_apply(b->tree, e);
}

static int stage_lint(struct build *b, struct err *e)
{
	return lint_tree(b->tree, b->is_layer ? LINT_LAYER : b->options->source ? LINT_IMPORT : LINT_ROOTFS, stderr, e);
}

/* Checks the size before anything is hashed: a sparse file of a terabyte takes no room, but hours to hash. */
static int check_tree_size(const struct build *b, struct err *e)
{
	scoped_tree t     = { 0 };
	uint64_t    bytes = 0, most = field_find(recipe_fields, "size_max")->max;
	char        is[32], more[32];

	if (tree_scan(b->tree, &t, e) < 0)
		return -1;
	for (size_t i = 0; i < t.n; i++)
		if (__builtin_add_overflow(bytes, t.entry[i].size, &bytes))
			bytes = UINT64_MAX;
	if (bytes <= b->recipe.size_max)
		return 0;
	text_from_size(b->recipe.size_max, is, sizeof is);
	if (b->options->source)
		return err_set(e, ERR_LIMIT,
			       "the tree has %" PRIu64
			       " bytes, now that its own Python has run, of at most %s; more by --size-max",
			       bytes, is);
	if (bytes >= most)
		return err_set(e, ERR_LIMIT,
			       "the tree has %" PRIu64
			       " bytes, size_max of the recipe is %s, and no recipe may have more than %s",
			       bytes, is, text_from_size(most, more, sizeof more));
	return err_set(e, ERR_LIMIT,
		       "the tree has %" PRIu64 " bytes, size_max of the recipe is %s; raise it: \"size_max\": \"%s\"",
		       bytes, is, text_from_size((bytes / MIB + 1) * MIB, more, sizeof more));
}

static int stage_manifest(struct build *b, struct err *e)
{
	struct utsname host;

	if (uname(&host) < 0)
		return err_sys(e, "uname");
	if (check_tree_size(b, e) < 0 || manifest_make(b->tree, &b->manifest, e) < 0)
		return -1;
	struct manifest_origin from = { b->recipe.name, b->recipe.sha256, host.machine, b->packages };
	scoped_json           *json = manifest_to_json(&b->manifest, &from);
	scoped_fd              fd = openat(b->work.dir, "manifest.json", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (!json)
		return err_set(e, ERR_BROKEN, "manifest.json: the tree cannot be written as JSON");
	if (fd < 0 || json_dumpfd(json, fd, JSON_INDENT(1)) < 0 || file_write_all(fd, "\n", 1) < 0)
		return err_sys(e, "write manifest.json");
	return 0;
}

/* --- stages of an import --- */

/* An import has a recipe without rows, but for those of compile. Its digest is made from that of the archive or, of a
 * directory, of the image in it. */
static int set_recipe_digest(struct build *b, const char *hex, struct err *e)
{
	char text[DIGEST_HEX + 16];
	int  n = snprintf(text, sizeof text, "import %s", hex);

	return digest_compute_of_bytes(text, (size_t)n, b->recipe.sha256, e) < 0 ? -1 :
		guest_add_to_digest(&b->guest, &b->recipe, e);
}

/* Does nothing for what is no regular file: its content is not known before it is read. */
static int set_recipe_digest_from_archive(struct build *b, struct err *e)
{
	const char *path = b->options->source;
	scoped_fd   from = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	uint64_t    size;
	char        hex[DIGEST_HEX + 1];

	if (from < 0 || fstat(from, &st) < 0)
		return err_sys(e, "%.200s", path);
	return !S_ISREG(st.st_mode) ? 0 : digest_compute_of_fd(from, path, &size, hex, e) < 0 ? -1
			       : set_recipe_digest(b, hex, e);
}

static int stage_import(struct build *b, struct err *e)
{
	const struct build_options *o = b->options;
	struct import               i = { .source = o->source, .size_max = o->size_max, .work = &b->work,
					  .store = b->tree_store.dir, .log = b->log, .stop = o->stop };
	char          hex[DIGEST_HEX + 1];

	if (import_apply(&i, hex, e) < 0)
		return -1;
	b->tree = openat(b->work.dir, "tree", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (b->tree < 0)
		return err_sys(e, "the tree");
	b->packages = json_array();
	return b->recipe.sha256[0] ? 0 : set_recipe_digest(b, hex, e);
}

static int stage_adapt(struct build *b, struct err *e)
{
	if (adapt_apply(b->tree, b->log, b->options->stop, e) < 0)
		return -1;
	b->recipe.source  = adapt_find_modules(b->tree, e);
	b->recipe.compile = b->recipe.source;
	return b->recipe.source ? 0 : -1;
}

/* Files that cannot be compiled are no error here: each run that imports one compiles it. */
static int stage_compile_most(struct build *b, struct err *e)
{
	if (!adapt_has_python(b->tree)) {
		fprintf(stderr,
			"it has no Python: brig exec runs its programs, brig run has nothing to run a program with\n");
		return 0;
	}
	if (compile_apply(b->tree, &b->recipe, b->log, b->options->stop, e) == 0)
		return 0;
	if (e->errnum)
		return -1;
	fprintf(stderr, "some of its Python files cannot be compiled; they stay as they are\n");
	return 0;
}

static int stage_publish(struct build *b, struct err *e)
{
	static const char *const ours[] = { "log", "sources", "apt-config", "apt.conf", "omit" };

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (tree_remove(b->work.dir, ours[i], e) < 0)
			return -1;
	return tree_store_publish(&b->tree_store, &b->work, b->manifest.digest,
				  b->is_layer ? STORE_LAYERS : STORE_NAMES, &b->recipe, e);
}

/* "/cpython-311/NAME-VERSION.dist-info" */
static int stage_list_packages(struct build *b, struct err *e)
{
	scoped_tree t = { 0 };

	if (tree_scan(b->tree, &t, e) < 0)
		return -1;
	for (size_t i = 0; i < t.n; i++)
		if (wheels_add_installed_package(&t.entry[i], "", b->packages, e) < 0)
			return -1;
	return 0;
}

struct stage {
	const char *name;
	int       (*run)(struct build *, struct err *);
	/* each row ends with the reason for its place */
};

/* clang-format off */
static const struct stage stages[] = {
	{ "unpack",    stage_unpack },     /* makes the tree that all others work on */
	{ "prune",     stage_prune },      /* first, so that no pattern removes what the recipe adds */
	{ "files",     stage_populate },   /* before compile: the interpreter may need its links and directories */
	{ "wheels",    stage_wheels },     /* with the tree's own interpreter, as the next two */
	{ "runner",    stage_guest },      /* before compile, which fails because of other authors' files */
	{ "compile",   stage_compile },    /* the last stage that runs a program of the tree */
	{ "clean",     stage_prune_last }, /* removes what only the stages before needed */
	{ "normalise", stage_normalise }, /* after the last writer */
	{ "lint",      stage_lint },      /* checks what will be published, so after the last change */
	{ "manifest",  stage_manifest },  /* after lint, which refuses names that could forge its lines */
	{ "publish",   stage_publish },   /* from here on runs can use the tree */
	{ 0 },
};

static const struct stage import_stages[] = {
	{ "unpack",    stage_import },    /* the order as above, without the stages that a recipe controls */
	{ "files",     stage_adapt },
	{ "runner",    stage_guest },
	{ "compile",   stage_compile_most },
	{ "normalise", stage_normalise },
	{ "lint",      stage_lint },
	{ "manifest",  stage_manifest },
	{ "publish",   stage_publish },
	{ 0 },
};

static const struct stage layer_stages[] = {
	{ "unpack",    stage_import },    /* as an import that has neither programs to run nor a runner to get */
	{ "normalise", stage_normalise },
	{ "lint",      stage_lint },
	{ "list",      stage_list_packages }, /* after lint, which refuses names that cannot be shown */
	{ "manifest",  stage_manifest },
	{ "publish",   stage_publish },
	{ 0 },
};
/* clang-format on */

/* --- running the stages --- */

static double monotonic_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The lines are not trusted: programs of the tree have written them, and others that print names from archives. */
static void print_log_tail(const struct build *b)
{
	scoped_bytes log   = { 0 };
	unsigned     lines = LOG_TAIL;
	char        *tail;

	if (!build_log_read(b->log, &log))
		return;
	sources_hide_hosts(&b->sources, log.data);
	fputs("the last lines of its log:\n", stderr);
	for (tail = log.data + strlen(log.data); tail > log.data && (tail[-1] != '\n' || lines--);)
		tail--;
	for (char *line; (line = strsep(&tail, "\n")) && (*line || tail);) {
		text_make_plain(line);
		fprintf(stderr, "%s\n", line);
	}
}

static int run_stages(struct build *b, const struct stage *stage, struct err *e)
{
	const struct stage *first = stage;
	unsigned            n     = 0;

	while (stage[n].name)
		n++;
	for (; stage->name; stage++) {
		double          start = monotonic_seconds();
		struct progress progress;
		int             r;

		if (take_stop_signal(b->options->stop, e) < 0)
			return -1;
		progress_start(&progress, stage->name, (unsigned)(stage - first) + 1, n);
		r = stage->run(b, e);
		progress_stop(&progress);
		if (r < 0) {
			if (e->kind == ERR_SETUP && !e->errnum) /* a program failed: its output has the reason */
				print_log_tail(b);
			return err_wrap(e, "%s", stage->name);
		}
		if (!b->is_layer) /* a user waits for a program, and need not know */
			fprintf(stderr, "  %-10s %5.1f s\n", stage->name, monotonic_seconds() - start);
	}
	return 0;
}

static int open_workspace_and_log(struct build *b, struct err *e)
{
	unsigned swept = 0;

	if (workspace_sweep(b->tree_store.dir, false, &swept, e) < 0 ||
	    workspace_open(b->tree_store.dir, &b->work, e) < 0)
		return -1;
	b->log = openat(b->work.dir, "log", O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	return b->log < 0 ? err_sys(e, "log") : 0;
}

static bool tree_is_built(const struct build *b)
{
	scoped_store_tree t = STORE_TREE_NONE;
	struct err        e;

	return store_open_tree(b->options->store, b->recipe.name, &t, &e) == 0 &&
	       tree_store_is_marked(&b->tree_store, t.digest, b->recipe.sha256);
}

static int load_sources(struct build *b, struct err *e)
{
	char *own = recipe_source_lines(&b->recipe);
	int   r   = own ? sources_load(&b->sources, b->options->sources, own, b->recipe.suite, e)
			: err_set(e, ERR_LIMIT, "out of memory");

	free(own);
	return r;
}

int build_from_recipe(const struct build_options *o, struct err *e)
{
	scoped(build_done) struct build b = {
		.options = o, .tree_store = TREE_STORE_NONE, .work = WORKSPACE_NONE, .tree = -1, .log = -1
	};
	double                          start = monotonic_seconds();

	if (recipe_load(&b.recipe, o->recipes, o->recipe, e) < 0 || wheels_load(&b.wheels, &b.recipe, e) < 0 ||
	    guest_load(&b.guest, o->guest, e) < 0 || guest_add_to_digest(&b.guest, &b.recipe, e) < 0 ||
	    tree_store_make(o->store, &b.tree_store, e) < 0)
		return -1;
	if (!o->force && tree_is_built(&b)) {
		fprintf(stderr, "%s is already built from this recipe; --force builds it again\n", b.recipe.name);
		return 0;
	}
	if (!o->force) { /* only looked at: the lock of a tree keeps others from its removal */
		scoped_store_tree old = STORE_TREE_NONE;

		if (store_open_tree(o->store, b.recipe.name, &old, e) == 0)
			fprintf(stderr, "%s in the store was built from another recipe or by another brig\n",
				b.recipe.name);
	}
	if (wheels_find(&b.wheels, e) < 0 || load_sources(&b, e) < 0 ||
	    open_workspace_and_log(&b, e) < 0)
		return err_wrap(e, "%s", b.recipe.name);
	fprintf(stderr, "building %s from %zu packages and what they need\n", b.recipe.name,
		json_array_size(b.recipe.packages));
	if (run_stages(&b, stages, e) < 0)
		return err_wrap(e, "%s", b.recipe.name);
	fprintf(stderr, "%s is %.12s: %zu entries, %.1f MB, %zu packages, %.1f s\n", b.recipe.name, b.manifest.digest,
		b.manifest.tree.n, (double)b.manifest.bytes / 1e6, json_array_size(b.packages),
			monotonic_seconds() - start);
	return 0;
}

int build_from_import(const struct build_options *o, struct err *e)
{
	scoped(build_done) struct build b = {
		.options = o, .tree_store = TREE_STORE_NONE, .work = WORKSPACE_NONE, .tree = -1, .log = -1
	};
	double                          start = monotonic_seconds();
	scoped_store_tree               old   = STORE_TREE_NONE;

	if (!text_is_name(o->recipe))
		return err_set(e, ERR_BAD_SPEC,
			       "\"%.63s\" is not a valid name of a rootfs; use a-z, 0-9, '-', '_', '.'",
			       o->recipe);
	snprintf(b.recipe.name, sizeof b.recipe.name, "%s", o->recipe);
	/* import_apply() has checked o->size_max; compiled files come on top */
	b.recipe.size_max = 2 * o->size_max + IMPORT_COMPILED;
	if (guest_load(&b.guest, o->guest, e) < 0 || set_recipe_digest_from_archive(&b, e) < 0 ||
	    tree_store_make(o->store, &b.tree_store, e) < 0)
		return -1;
	if (!o->force && b.recipe.sha256[0] && tree_is_built(&b)) {
		fprintf(stderr, "%s is already imported from this archive; --force imports it again\n", b.recipe.name);
		return 0;
	}
	/* A name in use: every profile that has it would use another tree from now on. */
	if (!o->force && store_open_tree(o->store, b.recipe.name, &old, e) == 0)
		return err_set(e, ERR_BAD_SPEC,
			       "%s is in the store already, as %.12s; --force gives its name to this tree",
			       b.recipe.name, old.digest);
	if (open_workspace_and_log(&b, e) < 0 || run_stages(&b, import_stages, e) < 0)
		return err_wrap(e, "%s", b.recipe.name);
	fprintf(stderr, "%s is %.12s: %zu entries, %.1f MB, %.1f s\n", b.recipe.name, b.manifest.digest,
		b.manifest.tree.n, (double)b.manifest.bytes / 1e6, monotonic_seconds() - start);
	return 0;
}

int build_layer(const struct build_options *o, struct err *e)
{
	scoped(build_done) struct build b = {
		.options = o, .tree_store = TREE_STORE_NONE, .work = WORKSPACE_NONE, .tree = -1, .log = -1,
		.is_layer = true
	};

	if (!store_is_layer_key(o->recipe))
		return err_set(e, ERR_BAD_SPEC, "\"%.63s\" is no key of a layer; brig packages makes one", o->recipe);
	snprintf(b.recipe.name, sizeof b.recipe.name, "%s", o->recipe);
	b.recipe.size_max = o->size_max;
	if (digest_compute_of_bytes(o->recipe, strlen(o->recipe), b.recipe.sha256, e) < 0 ||
	    tree_store_make(o->store, &b.tree_store, e) < 0 || open_workspace_and_log(&b, e) < 0)
		return -1;
	return run_stages(&b, layer_stages, e) < 0 ? err_wrap(e, "packages") : 0;
}
