#include "profile_set.h"

#include "fd.h"
#include "filter_cache.h"
#include "monitor_protocol.h"
#include "package_list.h"
#include "profile_file.h"
#include "sealed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void profile_set_init(struct profile_set *ret, const struct brig_paths *places, bool on_demand)
{
	*ret = (struct profile_set){ .places = places, .on_demand = on_demand };
}

static void served_profile_destroy(struct served_profile *p)
{
	fd_closep(&p->filter_fd);
	net_config_close(&p->net);
	json_decref(p->packages);
	policy_bundle_done(&p->policy);
	profile_done(&p->profile);
	free(p);
}

/* const, because only the count of holders changes. */
const struct served_profile *profile_acquire(const struct served_profile *p)
{
	((struct served_profile *)p)->holders++;
	return p;
}

void profile_release(const struct served_profile *p)
{
	struct served_profile *held = (struct served_profile *)p;

	if (--held->holders == 0)
		served_profile_destroy(held);
}

void profile_set_done(struct profile_set *s)
{
	while (s->n)
		profile_release(s->item[--s->n]);
}

int profile_check_network_filter(const struct served_profile *p, const struct brig_paths *places, struct err *e)
{
	scoped_filter filter = { 0 };

	if (filter_load_or_compile(&p->policy, places->runtime, &filter, e) < 0)
		return -1;
	if (filter_allows_inet_sockets(&filter))
		return 0;
	return err_set(e, ERR_BAD_SPEC, "policy \"%s\" lets no program open a socket of IPv4: it would reach nothing", p->profile.policy);
}

static int served_profile_prepare(struct served_profile *p, const struct brig_paths *places, struct err *e)
{
	scoped_filter filter = { 0 };

	if (net_policy_allows_any_host(p->profile.net) && profile_check_network_filter(p, places, e) < 0)
		return err_wrap(e, "network");
	if (net_policy_allows_any_host(p->profile.net) && net_config_make(&p->net, places, p->profile.net, NULL, e) < 0)
		return -1;
	if (filter_load_or_compile(&p->policy, places->runtime, &filter, e) < 0)
		return -1;
	code_compute_digest(filter.insn, filter.len * sizeof *filter.insn, p->filter_sha256);
	p->packages  = package_list_read(places, p->profile.rootfs);
	p->filter_fd = sealed_create("filter", filter.insn, filter.len * sizeof *filter.insn, e);
	return p->filter_fd < 0 ? -1 : 0;
}

static struct served_profile *served_profile_create(const char *name, struct err *e)
{
	struct served_profile *p = calloc(1, sizeof *p);

	if (!p) {
		err_set(e, ERR_LIMIT, "out of memory");
		return NULL;
	}
	p->filter_fd = -1;
	p->net       = NET_CONFIG_NONE;
	p->holders   = 1; /* the set */
	snprintf(p->name, sizeof p->name, "%s", name);
	return p;
}

static struct served_profile *served_profile_load(const struct profile_set *s, const char *name, struct err *e)
{
	const struct brig_paths *places = s->places;
	struct served_profile   *p      = served_profile_create(name, e);

	if (!p)
		return NULL;
	if (profile_file_load(&p->profile, places, p->name, e) == 0 &&
	    profile_policy_load(&p->policy, places, &p->profile, e) == 0 &&
		    (s->on_demand || served_profile_prepare(p, places, e) == 0))
		return p;
	served_profile_destroy(p);
	return NULL;
}

static struct served_profile *profile_set_add(struct profile_set *s, const char *name, struct err *e)
{
	struct served_profile *p;

	if (s->n == PROFILE_SET_MAX) {
		err_set(e, ERR_LIMIT, "more than %d profiles", PROFILE_SET_MAX);
		return NULL;
	}
	p = served_profile_load(s, name, e);
	if (p) {
		p->index        = (unsigned)s->n;
		p->is_private   = s->on_demand;
		s->item[s->n++] = p;
	}
	return p;
}

int profile_set_add_from_json(struct profile_set *s, const json_t *row, struct err *e)
{
	const char            *name, *text, *digest;
	size_t                 len;
	int                    number;
	json_t                *packages;
	struct served_profile *p;

	if (s->n == PROFILE_SET_MAX ||
	    json_unpack((json_t *)row, "{ss ss% si ss so!}", "name", &name, "text", &text, &len, "number", &number,
			"filter_sha256", &digest, "packages", &packages) < 0 ||
	    number < 0 || number >= MONITOR_ALL_PROFILES_MAX)
		return err_set(e, ERR_PROTOCOL, "profile %zu: invalid", s->n);
	p = served_profile_create(name, e);
	if (!p)
		return -1;
	if (profile_parse(&p->profile, p->name, text, len, e) < 0) {
		served_profile_destroy(p);
		return err_wrap(e, "profile %s", name);
	}
	p->index    = (unsigned)number;
	p->packages = json_incref(packages);
	snprintf(p->filter_sha256, sizeof p->filter_sha256, "%s", digest);
	s->item[s->n++] = p;
	return 0;
}

int profile_set_load(struct profile_set *s, profile_left_out_fn *left_out, void *context, struct err *e)
{
	char     **names = profile_list_names(s->places, e);
	struct err why;

	if (!names)
		return -1;
	for (size_t i = 0; names[i]; i++)
		if (!profile_set_add(s, names[i], &why))
			left_out(context, names[i], &why);
	profile_names_free(names);
	return 0;
}

const struct served_profile *profile_set_find(struct profile_set *s, const char *name, struct err *e)
{
	char   list[256] = "none";
	size_t n         = 0;

	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->item[i]->name, name) == 0)
			return s->item[i];
	if (s->on_demand)
		return profile_set_add(s, name, e);
	for (size_t i = 0; i < s->n && n < sizeof list; i++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", i ? ", " : "", s->item[i]->name);
	err_set(e, ERR_BAD_SPEC, "profile \"%.63s\" does not exist here; there are: %s; brig run --private reads those of your own", name,
		list);
	return NULL;
}
