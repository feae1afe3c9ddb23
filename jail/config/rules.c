#define _GNU_SOURCE
#include "rules.h"

#include "sealed.h"
#include "sub_ids.h"
#include "wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void rules_done(struct rules *r)
{
	profile_set_done(&r->profiles);
	config_done(&r->config);
}

/* --- from files --- */

/* The administrator reserves the ids of the file; they must not overlap those that other programs of this host use. */
static int choose_id_range(const struct config *c, const struct rules_source *from, struct id_range *ret, struct err *e)
{
	const struct config_ids *wish = &c->ids;
	struct id_range          others;

	*ret = from->ids;
	if (!wish->count || from->mode != MONITOR_SERVICE)
		return 0;
	*ret = (struct id_range){ (uint32_t)wish->base, (uint32_t)wish->count };
	if (sub_ids_choose_for_root(&others, e) < 0)
		return -1;
	if (ret->base < others.base + others.count && others.base < ret->base + ret->count)
		return err_set(e, ERR_BAD_SPEC, "ids: %u to %u are those that brig run of root takes from; name others, or none", others.base,
			       others.base + others.count - 1);
	return 0;
}

void rules_skip_missing_config(struct reader_files *f)
{
	if (f->is_optional && access(f->config, F_OK) < 0 && errno == ENOENT)
		*f->config = 0;
}

int rules_load(struct rules *ret, const struct rules_source *from, profile_left_out_fn *left_out, void *context, bool *is_config,
	       struct err *e)
{
	const struct reader_files *f = from->files;
	scoped_rules               r = { .ids = { 0 } };

	*is_config = true;
	if ((*f->config ? config_load(&r.config, f->config, f->name, e) : config_parse(&r.config, "{}", 2, e)) < 0)
		return -1;
	if (choose_id_range(&r.config, from, &r.ids, e) < 0 ||
	    (r.config.access_rows && access_build(&r.access, &r.config, e) < 0))
		return err_wrap(e, "%s", f->name);
	if (!r.config.access_rows && from->mode == MONITOR_SERVICE)
		access_build_preset(&r.access);
	else if (!r.config.access_rows)
		access_build_for_user(&r.access, geteuid());
	*is_config = false;
	profile_set_init(&r.profiles, from->places, false);
	if (profile_set_load(&r.profiles, left_out, context, e) < 0)
		return -1;
	if (r.profiles.n > MONITOR_PROFILES_MAX)
		return err_set(e, ERR_LIMIT, "%zu profiles, of at most %d", r.profiles.n, MONITOR_PROFILES_MAX);
	*ret = r;
	r    = (struct rules){ .ids = { 0 } };
	return 0;
}

/* --- as text --- */

enum { RULES_BYTES_MAX = 16 * 1024 * 1024 }; /* of 64 profiles and a configuration, which have 64 KiB each, and lists of packages */

/* As a JSON string: rules_from_sealed_file() parses it as the text of a file. */
static json_t *json_as_text(const json_t *source)
{
	char   *text = json_dumps(source, JSON_COMPACT);
	json_t *as   = text ? json_string(text) : NULL;

	free(text);
	return as;
}

static json_t *profiles_to_json(const struct profile_set *s, const uint32_t *numbers)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n; i++) {
		const struct served_profile *p = s->item[i];

		json_array_append_new(list, json_pack("{ss so sI ss sO}", "name", p->name, "text",
						      json_as_text(p->profile.source), "number",
						      (json_int_t)numbers[i], "filter_sha256", p->filter_sha256, "packages", p->packages));
	}
	return list;
}

int rules_to_sealed_file(const struct rules *r, const uint32_t *numbers, struct err *e)
{
	json_t *all  = json_pack("{so so so}", "config", json_as_text(r->config.source), "access",
				 access_to_json(&r->access), "profiles",
				 profiles_to_json(&r->profiles, numbers));
	char   *text = json_dumps(all, JSON_COMPACT);
	int     fd   = text ? sealed_create("rules", text, strlen(text), e) : err_set(e, ERR_LIMIT, "out of memory");

	free(text);
	json_decref(all);
	return fd;
}

/* --- from text --- */

static int rules_parse(struct rules *r, const json_t *all, struct err *e)
{
	const json_t *config = json_object_get(all, "config"), *list = json_object_get(all, "profiles");

	if (config_parse(&r->config, json_string_value(config), json_string_length(config), e) < 0 ||
	    access_from_json(&r->access, &r->config, json_object_get(all, "access"), e) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(list); i++)
		if (profile_set_add_from_json(&r->profiles, json_array_get(list, i), e) < 0)
			return -1;
	return 0;
}

int rules_from_sealed_file(struct rules *ret, int fd, const struct brig_paths *places, struct err *e)
{
	scoped_rules r = { .ids = { 0 } };
	size_t       len;
	void        *bytes;
	json_t      *all;
	int          done;

	if (sealed_check(fd, RULES_BYTES_MAX, &len, e) < 0)
		return err_wrap(e, "rules");
	bytes = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_sys(e, "rules");
	all = wire_parse(bytes, len, RULES_BYTES_MAX, e);
	munmap(bytes, len);
	profile_set_init(&r.profiles, places, false);
	done = all ? rules_parse(&r, all, e) : -1;
	json_decref(all);
	if (done < 0)
		return err_wrap(e, "rules");
	*ret = r;
	r    = (struct rules){ .ids = { 0 } };
	return 0;
}
