#define _GNU_SOURCE
#include "wheels.h"

#include "fd.h"
#include "text.h"
#include "tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void wheels_done(struct wheels *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->file[i]);
	free(w->file);
	requirements_done(&w->asked);
	*w = (struct wheels){ 0 };
}

int wheels_load(struct wheels *ret, struct recipe *r, struct err *e)
{
	scoped_digest d = { 0 };

	ret->recipe = r;
	if (!r->requirements)
		return 0;
	if (requirements_read(&ret->asked, r->requirements, e) < 0)
		return err_wrap(e, "requirements");
	if (digest_init(&d, e) < 0 || digest_add(&d, r->sha256, DIGEST_HEX, e) < 0 || digest_add(&d, ret->asked.text, ret->asked.len, e) < 0)
		return -1;
	return digest_end(&d, r->sha256, e);
}

/* --- a folder of wheels --- */

static bool ends_in(const char *name, const char *tail)
{
	size_t n = strlen(name), m = strlen(tail);

	return n > m && strcmp(name + n - m, tail) == 0;
}

/* "NAME-VERSION-....whl"; there is no '-' in names and versions. */
static bool is_wheel_of(const char *file, const struct requirement *r)
{
	size_t n    = strcspn(file, "-");
	char  *name = requirement_name(file, n);
	bool   same = name && strcmp(name, r->name) == 0;

	free(name);
	return same && ends_in(file, ".whl") && text_is_plain(file);
}

static bool is_version_of(const char *file, const struct requirement *r)
{
	const char *version = file + strcspn(file, "-") + 1;
	size_t      n       = strlen(r->version);

	return strncmp(version, r->version, n) == 0 && version[n] == '-';
}

static bool has_hash(const struct requirement *r, const char *hash)
{
	for (size_t i = 0; i < r->n_hashes; i++)
		if (strcmp(r->hash[i], hash) == 0)
			return true;
	return false;
}

static int keep_file(struct wheels *w, const char *folder, const char *name, struct err *e)
{
	char **more = realloc(w->file, (w->n + 1) * sizeof *more);

	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	w->file = more;
	if (asprintf(&w->file[w->n], "%s/%s", folder, name) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	w->n++;
	return 0;
}

/* The search for one requirement. `other` and `hash` are the last wheel of that version with another hash, for the error. */
struct search {
	const struct requirement *asked;
	size_t                    found;
	char                      other[256], hash[DIGEST_HEX + 1];
};

static int look_at(struct wheels *w, int folder, const char *name, struct search *s, struct err *e)
{
	char      hash[DIGEST_HEX + 1];
	uint64_t  size;
	scoped_fd fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "%s", name);
	if (digest_fd(fd, name, &size, hash, e) < 0)
		return -1;
	if (has_hash(s->asked, hash)) {
		s->found++;
		return keep_file(w, w->recipe->wheels, name, e);
	}
	if (is_version_of(name, s->asked)) {
		snprintf(s->other, sizeof s->other, "%s", name);
		memcpy(s->hash, hash, sizeof hash);
	}
	return 0;
}

static int err_not_found(const struct wheels *w, const struct search *s, struct err *e)
{
	const struct recipe *r = w->recipe;

	if (s->other[0])
		return err_set(e, ERR_BAD_SPEC, "%s: line %zu: %s has sha256:%s, which is not among the hashes of %.60s==%.60s", r->requirements,
			       s->asked->line, s->other, s->hash, s->asked->name, s->asked->version);
	return err_set(e, ERR_MISSING, "%s: line %zu: no wheel of %.60s==%.60s in %s", r->requirements, s->asked->line, s->asked->name,
		       s->asked->version, r->wheels);
}

static int find_one(struct wheels *w, const struct requirement *asked, struct err *e)
{
	scoped_dir   *d = opendir(w->recipe->wheels);
	struct search s = { .asked = asked };

	if (!d)
		return err_sys(e, "wheels: %s", w->recipe->wheels);
	for (struct dirent *at; (at = readdir(d));)
		if (is_wheel_of(at->d_name, asked) && look_at(w, dirfd(d), at->d_name, &s, e) < 0)
			return err_wrap(e, "wheels: %s", w->recipe->wheels);
	return s.found || asked->marker ? 0 : err_not_found(w, &s, e);
}

int wheels_find(struct wheels *w, struct err *e)
{
	for (size_t i = 0; w->recipe->wheels && i < w->asked.n; i++)
		if (find_one(w, &w->asked.row[i], e) < 0)
			return -1;
	return 0;
}
