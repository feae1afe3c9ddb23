#include "profile_set.h"

#include "fd.h"
#include "filter_cache.h"
#include "package_list.h"
#include "profile_file.h"
#include "sealed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void profile_set_init(struct profile_set *ret, const struct places *places, bool on_demand)
{
	*ret = (struct profile_set){ .places = places, .on_demand = on_demand };
}

static void item_destroy(struct served_profile *p)
{
	fd_closep(&p->filter_fd);
	json_decref(p->packages);
	policy_bundle_done(&p->policy);
	profile_done(&p->profile);
	free(p);
}

void profile_set_done(struct profile_set *s)
{
	while (s->n)
		item_destroy(s->item[--s->n]);
}

static int prepare(struct served_profile *p, const struct places *places, struct err *e)
{
	scoped_filter filter = { 0 };

	if (filter_open(&p->policy, places->runtime, &filter, e) < 0)
		return -1;
	code_digest(filter.insn, filter.len * sizeof *filter.insn, p->filter_sha256);
	p->packages  = package_list_read(places, p->profile.rootfs);
	p->filter_fd = sealed_open("filter", filter.insn, filter.len * sizeof *filter.insn, e);
	return p->filter_fd < 0 ? -1 : 0;
}

static struct served_profile *item_load(const struct profile_set *s, const char *name, struct err *e)
{
	const struct places   *places = s->places;
	struct served_profile *p      = calloc(1, sizeof *p);

	if (!p) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	p->filter_fd = -1;
	snprintf(p->name, sizeof p->name, "%s", name);
	if (profile_file_load(&p->profile, places, p->name, e) == 0 && profile_policy_load(&p->policy, places, &p->profile, e) == 0 &&
	    (s->on_demand || prepare(p, places, e) == 0))
		return p;
	item_destroy(p);
	return NULL;
}

static struct served_profile *add(struct profile_set *s, const char *name, struct err *e)
{
	struct served_profile *p;

	if (s->n == PROFILE_SET_MAX) {
		err_set(e, ERR_LIMIT, "more than %d profiles", PROFILE_SET_MAX);
		return NULL;
	}
	p = item_load(s, name, e);
	if (p) {
		p->index        = (unsigned)s->n;
		s->item[s->n++] = p;
	}
	return p;
}

void profile_set_load(struct profile_set *s, profile_left_out_fn *left_out, void *context)
{
	char     **names = profile_names(s->places);
	struct err e     = { 0 };

	for (size_t i = 0; names && names[i]; i++)
		if (!add(s, names[i], &e))
			left_out(context, names[i], &e);
	profile_names_free(names);
}

/* As profile_file_load() says it, of those that are there. */
static void err_unknown(const struct profile_set *s, const char *name, struct err *e)
{
	char   list[256] = "none";
	size_t n         = 0;

	for (size_t i = 0; i < s->n && n < sizeof list; i++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", s->item[i]->name);
	err_set(e, ERR_BAD_SPEC, "profile \"%.63s\" does not exist here; there are: %s; brig run --private reads those of your own", name, list);
}

const struct served_profile *profile_set_find(struct profile_set *s, const char *name, struct err *e)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->item[i]->name, name) == 0)
			return s->item[i];
	if (s->on_demand)
		return add(s, name, e);
	err_unknown(s, name, e);
	return NULL;
}
