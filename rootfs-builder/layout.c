#define _GNU_SOURCE
#include "layout.h"

#include "fd.h"
#include "file.h"
#include "store.h"
#include "text.h"
#include "tree.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define INDEX_DEPTH 4 /* the most indexes that refer to each other */
#define INDEX_MAX   256
#define WEIGHT_MAX  200000 /* wire_memory_weight(): the JSON of an image has few texts */

struct reader {
	int         dir;
	const char *arch; /* this machine's architecture, by the name that images use */
	FILE       *notes;
};

/* --- files of the image --- */

enum layout_kind layout_kind(int dir)
{
	if (tree_path_has_type(dir, "oci-layout", S_IFREG) && tree_path_has_type(dir, "index.json", S_IFREG))
		return LAYOUT_OCI;
	if (tree_path_has_type(dir, "manifest.json", S_IFREG) && !tree_path_has_type(dir, "usr", S_IFDIR) &&
	    !tree_path_has_type(dir, "bin", S_IFDIR))
		return LAYOUT_DOCKER;
	return LAYOUT_NONE;
}

const char *layout_kind_name(enum layout_kind kind)
{
	static const char *const names[] = {
		[LAYOUT_NONE] = "tree", [LAYOUT_OCI] = "OCI image layout", [LAYOUT_DOCKER] = "archive of docker save"
	};

	return names[kind];
}

static int open_image_file(int dir, const char *path, struct stat *st, struct err *e)
{
	scoped_fd fd = tree_open(dir, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_MISSING, "%.200s: the image names this file, and it is not there", path);
	if (fd < 0 || fstat(fd, st) < 0)
		return err_sys(e, "%.200s", path);
	if (!S_ISREG(st->st_mode))
		return err_set(e, ERR_BAD_SPEC, "%.200s: not a regular file", path);
	return fd_take(&fd);
}

static int read_image_file(int dir, const char *path, struct bytes *ret, struct err *e)
{
	struct stat st;
	scoped_fd   fd = open_image_file(dir, path, &st, e);

	return fd < 0 ? -1 : file_read_fd(fd, path, LAYOUT_JSON_MAX, ret, e);
}

static json_t *parse_image_json(const char *path, const char *text, size_t len, struct err *e)
{
	json_t *json = NULL;

	if (wire_memory_weight(text, len) > WEIGHT_MAX)
		err_set(e, ERR_LIMIT, "it has too many values");
	else
		json = wire_parse(text, len, LAYOUT_JSON_MAX + 64, e);
	if (!json)
		err_wrap(e, "%.200s", path);
	return json;
}

static json_t *read_image_json(int dir, const char *path, struct err *e)
{
	scoped_bytes b = { 0 };

	return read_image_file(dir, path, &b, e) < 0 ? NULL : parse_image_json(path, b.data, b.len, e);
}

/* --- descriptors --- */

struct blob {
	char     path[300];
	char     sha256[DIGEST_HEX + 1];
	uint64_t size;
};

#define SIZE_UNKNOWN UINT64_MAX /* docker save writes none */

static const char *json_text_or_empty(const json_t *json, const char *key)
{
	const char *text = json_string_value(json_object_get(json, key));

	return text ? text : "";
}

/* The digits after "sha256:"; NULL for any other text. */
static const char *sha256_hex_of(const char *digest)
{
	static const char head[] = "sha256:";

	return strncmp(digest, head, strlen(head)) == 0 && store_is_digest(digest + strlen(head))
		       ? digest + strlen(head)
		       : NULL;
}

static int read_descriptor(const json_t *json, const char *what, struct blob *ret, struct err *e)
{
	const json_t *size = json_object_get(json, "size");
	const char   *hex  = sha256_hex_of(json_text_or_empty(json, "digest"));

	if (!hex)
		return err_set(e, ERR_BAD_SPEC, "%s: its digest is not \"sha256:\" and 64 hex digits", what);
	if (!json_is_integer(size) || json_integer_value(size) < 0)
		return err_set(e, ERR_BAD_SPEC, "%s: its size is no number", what);
	snprintf(ret->path, sizeof ret->path, "/blobs/sha256/%s", hex);
	snprintf(ret->sha256, sizeof ret->sha256, "%s", hex);
	ret->size = (uint64_t)json_integer_value(size);
	return 0;
}

static int err_digest_mismatch(const char *path, const char *is, struct err *e)
{
	return err_set(e, ERR_BAD_SPEC, "%.200s: its content has another digest: it has sha256 %s", path, is);
}

static json_t *read_json_blob(int dir, const struct blob *b, struct err *e)
{
	scoped_bytes text = { 0 };
	char         hex[DIGEST_HEX + 1];

	if (read_image_file(dir, b->path, &text, e) < 0)
		return NULL;
	if (b->size != SIZE_UNKNOWN && text.len != b->size) {
		err_set(e, ERR_BAD_SPEC, "%.200s: has %zu bytes, its descriptor says %" PRIu64, b->path, text.len,
			b->size);
		return NULL;
	}
	if (digest_compute_of_bytes(text.data, text.len, hex, e) < 0)
		return NULL;
	if (strcmp(hex, b->sha256) != 0) {
		err_digest_mismatch(b->path, hex, e);
		return NULL;
	}
	return parse_image_json(b->path, text.data, text.len, e);
}

/* --- which image --- */

/* A list of hostile texts, made safe to print. */
struct words {
	char   text[240];
	size_t len;
};

static void printf_like(2, 3) add_words(struct words *w, const char *fmt, ...)
{
	va_list ap;

	if (w->len >= sizeof w->text)
		return;
	va_start(ap, fmt);
	w->len += (size_t)vsnprintf(w->text + w->len, sizeof w->text - w->len, fmt, ap);
	va_end(ap);
	text_make_plain(w->text);
}

static const char *print_platform(const json_t *row, char text[100])
{
	const json_t *p = json_object_get(row, "platform");

	if (!json_is_object(p))
		return NULL;
	snprintf(text, 100, "%.40s/%.40s", json_text_or_empty(p, "os"), json_text_or_empty(p, "architecture"));
	return text;
}

static int err_no_platform(const struct reader *r, const json_t *list, struct err *e)
{
	struct words has = { 0 };
	char         text[100];

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *platform = print_platform(json_array_get(list, i), text);

		add_words(&has, "%s%s", i ? ", " : "", platform ? platform : "?");
	}
	return err_set(e, ERR_BAD_SPEC, "it has no image for linux/%s; it has: %s", r->arch,
		       has.len ? has.text : "none");
}

static int err_several(const json_t *list, struct err *e)
{
	struct words has = { 0 };

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *row = json_array_get(list, i);
		const char   *ref = json_text_or_empty(json_object_get(row, "annotations"),
						       "org.opencontainers.image.ref.name");

		add_words(&has, "%s%s", i ? ", " : "", *ref ? ref : json_text_or_empty(row, "digest"));
	}
	return err_set(e, ERR_BAD_SPEC, "it has several images; save one alone: %s", has.text);
}

/* The only image for this machine. The same image may be listed under several names. */
static const json_t *choose_image(const struct reader *r, const json_t *list, struct err *e)
{
	const json_t *chosen = NULL;
	char          text[100], mine[64];
	struct words  others = { 0 };

	snprintf(mine, sizeof mine, "linux/%s", r->arch);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *row      = json_array_get(list, i);
		const char   *platform = print_platform(row, text);

		if (platform && strcmp(platform, mine) != 0) {
			add_words(&others, "%s%s", others.len ? ", " : "", platform);
			continue;
		}
		if (chosen && strcmp(json_text_or_empty(chosen, "digest"), json_text_or_empty(row, "digest")) != 0) {
			err_several(list, e);
			return NULL;
		}
		chosen = row;
	}
	if (!chosen)
		err_no_platform(r, list, e);
	else if (others.len)
		fprintf(r->notes, "taking linux/%s; there are also: %s\n", r->arch, others.text);
	return chosen;
}

static json_t *read_oci_manifest(const struct reader *r, const json_t *index, unsigned depth, struct err *e)
{
	const json_t *list = json_object_get(index, "manifests"), *row;
	scoped_json  *found = NULL;
	struct blob   b     = { 0 };

	if (!json_is_array(list) || json_array_size(list) > INDEX_MAX) {
		err_set(e, ERR_BAD_SPEC, "index.json: \"manifests\" is no list, or has more than %d rows", INDEX_MAX);
		return NULL;
	}
	row = choose_image(r, list, e);
	if (!row || read_descriptor(row, "the image", &b, e) < 0)
		return NULL;
	found = read_json_blob(r->dir, &b, e);
	if (!found || !json_object_get(found, "manifests"))
		return json_incref(found);
	if (depth == INDEX_DEPTH) {
		err_set(e, ERR_LIMIT, "more than %d indexes below each other", INDEX_DEPTH);
		return NULL;
	}
	return read_oci_manifest(r, found, depth + 1, e);
}

/* --- its configuration --- */

/* Checks its platform, and reads the digests of the layers. */
static int read_image_config(const struct reader *r, struct layout *im, const json_t *config, struct err *e)
{
	const json_t *list = json_object_get(json_object_get(config, "rootfs"), "diff_ids");
	struct words  has  = { 0 };
	const char   *os = json_text_or_empty(config, "os"), *arch = json_text_or_empty(config, "architecture");

	add_words(&has, "%.40s/%.40s", *os ? os : "linux", arch);
	snprintf(im->platform, sizeof im->platform, "linux/%s", r->arch);
	if (strcmp(has.text, im->platform) != 0)
		return err_set(e, ERR_BAD_SPEC, "it is an image for %s, this machine is %s", has.text, im->platform);
	if (!json_is_array(list) || json_array_size(list) != im->n)
		return err_set(e, ERR_BAD_SPEC, "its manifest names %zu layers, its configuration %zu", im->n,
			       json_array_size(list));
	for (size_t i = 0; i < im->n; i++) {
		const char *text = json_string_value(json_array_get(list, i)), *hex = text ? sha256_hex_of(text) : NULL;

		if (!hex)
			return err_set(e, ERR_BAD_SPEC, "diff_ids: row %zu is not \"sha256:\" and 64 hex digits",
				       i + 1);
		snprintf(im->layer[i].diff_id, sizeof im->layer[i].diff_id, "%s", hex);
	}
	return 0;
}

static int check_layers(const json_t *list, struct err *e)
{
	size_t n = json_array_size(list);

	if (!json_is_array(list) || n == 0 || n > LAYOUT_LAYERS_MAX)
		return err_set(e, ERR_BAD_SPEC, "its layers are no list of 1 to %d", LAYOUT_LAYERS_MAX);
	return 0;
}

/* --- OCI --- */

static int read_oci_layers(struct layout *im, const json_t *list, struct err *e)
{
	if (check_layers(list, e) < 0)
		return -1;
	for (im->n = 0; im->n < json_array_size(list); im->n++) {
		struct layout_layer *l = &im->layer[im->n];
		struct blob          b = { 0 };

		if (read_descriptor(json_array_get(list, im->n), "a layer", &b, e) < 0)
			return -1;
		snprintf(l->path, sizeof l->path, "%s", b.path);
		snprintf(l->sha256, sizeof l->sha256, "%s", b.sha256);
		l->size = b.size;
	}
	return 0;
}

static int read_oci(const struct reader *r, struct layout *im, struct err *e)
{
	scoped_json *layout = read_image_json(r->dir, "/oci-layout", e), *index = NULL, *manifest = NULL,
		*config = NULL;
	struct blob  b      = { 0 };

	if (!layout)
		return -1;
	if (!begins_with(json_text_or_empty(layout, "imageLayoutVersion"), "1."))
		return err_set(e, ERR_BAD_SPEC, "oci-layout: expected version 1");
	index    = read_image_json(r->dir, "/index.json", e);
	manifest = index ? read_oci_manifest(r, index, 1, e) : NULL;
	if (!manifest || read_oci_layers(im, json_object_get(manifest, "layers"), e) < 0 ||
	    read_descriptor(json_object_get(manifest, "config"), "the configuration", &b, e) < 0)
		return -1;
	snprintf(im->sha256, sizeof im->sha256, "%s", b.sha256);
	config = read_json_blob(r->dir, &b, e);
	return config ? read_image_config(r, im, config, e) : -1;
}

/* --- docker save --- */

/* The digest is in the name of the configuration: "HEX.json", or "blobs/sha256/HEX". */
static int read_docker_digest(struct layout *im, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t      n     = strlen(name);

	if (n == DIGEST_HEX + 5 && strcmp(name + DIGEST_HEX, ".json") == 0)
		n = DIGEST_HEX;
	if (n < sizeof im->sha256)
		snprintf(im->sha256, sizeof im->sha256, "%.*s", (int)n, name);
	return store_is_digest(im->sha256)
		       ? 0
		       : err_set(e, ERR_BAD_SPEC, "manifest.json: the name of the configuration is no digest");
}

/* Paths in manifest.json are relative, as in a tar archive. */
static int read_docker_path(const char *text, char path[300], struct err *e)
{
	int n = snprintf(path, 300, "/%s", text);

	return n < 300 && tree_path_is_plain(path)
		       ? 0
		       : err_set(e, ERR_BAD_SPEC, "manifest.json: a file that is no plain path below it");
}

/* manifest.json is a list, but the parser takes only objects: the list becomes the value of one. */
static json_t *read_docker_manifest(const struct reader *r, struct err *e)
{
	scoped_bytes b    = { 0 }, object = { 0 };
	int          n;

	if (read_image_file(r->dir, "/manifest.json", &b, e) < 0)
		return NULL;
	n = asprintf(&object.data, "{\"images\":%s}", b.data);
	if (n < 0) {
		object.data = NULL;
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	return parse_image_json("/manifest.json", object.data, (size_t)n, e);
}

static const json_t *only_docker_image(const json_t *list, struct err *e)
{
	struct words has = { 0 };

	if (json_array_size(list) == 1)
		return json_array_get(list, 0);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *tag =
			json_string_value(json_array_get(json_object_get(json_array_get(list, i), "RepoTags"), 0));

		add_words(&has, "%s%s", i ? ", " : "", tag ? tag : "?");
	}
	if (has.len)
		err_set(e, ERR_BAD_SPEC, "it has several images; save one alone: %s", has.text);
	else
		err_set(e, ERR_BAD_SPEC, "manifest.json: not as docker save writes it, a list of one image");
	return NULL;
}

static int read_docker(const struct reader *r, struct layout *im, struct err *e)
{
	scoped_json  *file = read_docker_manifest(r, e), *config = NULL;
	const json_t *one  = file ? only_docker_image(json_object_get(file, "images"), e) : NULL,
		     *list = json_object_get(one, "Layers");
	struct blob   b    = { .size = SIZE_UNKNOWN };

	if (!one || check_layers(list, e) < 0)
		return -1;
	for (im->n = 0; im->n < json_array_size(list); im->n++) {
		const char *text = json_string_value(json_array_get(list, im->n));

		if (read_docker_path(text ? text : "", im->layer[im->n].path, e) < 0)
			return -1;
	}
	if (read_docker_path(json_text_or_empty(one, "Config"), b.path, e) < 0 || read_docker_digest(im, b.path, e) < 0)
		return -1;
	memcpy(b.sha256, im->sha256, sizeof b.sha256);
	config = read_json_blob(r->dir, &b, e);
	return config ? read_image_config(r, im, config, e) : -1;
}

/* --- the whole --- */

static const char *image_arch_of_machine(const char *machine)
{
	static const struct {
		const char *kernel, *image;
	} names[] = { { "x86_64", "amd64" }, { "aarch64", "arm64" } };

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (strcmp(machine, names[i].kernel) == 0)
			return names[i].image;
	return machine;
}

int layout_read(int dir, enum layout_kind kind, struct layout *ret, FILE *notes, struct err *e)
{
	struct utsname host;
	struct reader  r = { .dir = dir, .notes = notes };

	if (uname(&host) < 0)
		return err_sys(e, "uname");
	r.arch = image_arch_of_machine(host.machine);
	*ret   = (struct layout){ .kind = kind };
	return kind == LAYOUT_OCI ? read_oci(&r, ret, e) : read_docker(&r, ret, e);
}

int layout_open_layer(int dir, const struct layout_layer *l, struct err *e)
{
	struct stat st = { 0 };
	scoped_fd   fd = open_image_file(dir, l->path, &st, e);
	uint64_t    size;
	char        hex[DIGEST_HEX + 1];

	if (fd < 0 || !l->sha256[0])
		return fd_take(&fd);
	if ((uint64_t)st.st_size != l->size)
		return err_set(e, ERR_BAD_SPEC, "%s: has %" PRIu64 " bytes, its descriptor says %" PRIu64, l->path,
			       (uint64_t)st.st_size, l->size);
	if (digest_compute_of_fd(fd, l->path, &size, hex, e) < 0)
		return -1;
	if (strcmp(hex, l->sha256) != 0)
		return err_digest_mismatch(l->path, hex, e);
	return lseek(fd, 0, SEEK_SET) < 0 ? err_sys(e, "%s", l->path) : fd_take(&fd);
}
