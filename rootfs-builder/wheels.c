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
	if (digest_init(&d, e) < 0 || digest_add(&d, r->sha256, DIGEST_HEX, e) < 0 ||
	    digest_add(&d, ret->asked.text, ret->asked.len, e) < 0)
		return -1;
	return digest_finish(&d, r->sha256, e);
}

/* --- a folder of wheels --- */

/* "NAME-VERSION-....whl"; there is no '-' in names and versions. */
static bool is_wheel_of_requirement(const char *file, const struct requirement *r)
{
	size_t n    = strcspn(file, "-");
	char  *name = requirement_name(file, n);
	bool   same = name && strcmp(name, r->name) == 0;

	free(name);
	return same && text_ends_in(file, ".whl") && text_is_plain(file);
}

static int add_wheel_file(struct wheels *w, const char *name, struct err *e)
{
	char **more = realloc(w->file, (w->n + 1) * sizeof *more);

	if (!more)
		return err_set(e, ERR_LIMIT, "out of memory");
	w->file = more;
	if (asprintf(&w->file[w->n], "%s/%s", w->recipe->wheels, name) < 0)
		return err_set(e, ERR_LIMIT, "out of memory");
	w->n++;
	return 0;
}

/* The search for one requirement. `other` and `hash` are the last wheel of that version with another hash, for the
 * error. */
struct search {
	struct wheels            *wheels;
	const struct requirement *asked;
	size_t                    found;
	char                      other[256], hash[DIGEST_HEX + 1];
};

static int check_wheel_hash(void *search, int folder, const char *name, struct err *e)
{
	struct search            *s     = search;
	const struct requirement *asked = s->asked;
	const char               *version = name + strcspn(name, "-") + 1;
	size_t                    n       = strlen(asked->version);
	char                      hash[DIGEST_HEX + 1];
	uint64_t                  size;
	scoped_fd                 fd      = -1;

	if (!is_wheel_of_requirement(name, asked))
		return 0;
	fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "%s", name);
	if (digest_compute_of_fd(fd, name, &size, hash, e) < 0)
		return -1;
	for (size_t i = 0; i < asked->n_hashes; i++)
		if (strcmp(asked->hash[i], hash) == 0) {
			s->found++;
			return add_wheel_file(s->wheels, name, e);
		}
	if (strncmp(version, asked->version, n) == 0 && version[n] == '-') {
		snprintf(s->other, sizeof s->other, "%s", name);
		memcpy(s->hash, hash, sizeof hash);
	}
	return 0;
}

static int err_wheel_not_found(const struct wheels *w, const struct search *s, struct err *e)
{
	const struct recipe *r = w->recipe;

	if (s->other[0])
		return err_set(e, ERR_BAD_SPEC,
			       "%s: line %zu: %s has sha256:%s, which is not among the hashes of %.60s==%.60s",
			       r->requirements, s->asked->line, s->other, s->hash, s->asked->name, s->asked->version);
	return err_set(e, ERR_MISSING, "%s: line %zu: no wheel of %.60s==%.60s in %s", r->requirements, s->asked->line,
		       s->asked->name, s->asked->version, r->wheels);
}

static int find_wheel(struct wheels *w, const struct requirement *asked, struct err *e)
{
	struct search s = { .wheels = w, .asked = asked };

	if (tree_each_in_dir(open(w->recipe->wheels, O_RDONLY | O_DIRECTORY | O_CLOEXEC), w->recipe->wheels,
			     check_wheel_hash, &s, e) <
	    0)
		return err_wrap(e, "wheels");
	return s.found || asked->marker ? 0 : err_wheel_not_found(w, &s, e);
}

int wheels_find(struct wheels *w, struct err *e)
{
	for (size_t i = 0; w->recipe->wheels && i < w->asked.n; i++)
		if (find_wheel(w, &w->asked.row[i], e) < 0)
			return -1;
	return 0;
}
