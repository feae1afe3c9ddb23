#include "access.h"

#include <grp.h>
#include <pwd.h>
#include <string.h>

#define SERVICE_GROUP "brig"

static struct quota_limits quota_from_row(const struct config_access *row)
{
	return (struct quota_limits){ row->runs, row->memory_bytes, row->runs_per_minute, row->sessions, row->contexts };
}

static int find_user_or_group_id(const struct config_access *row, struct access_rule *rule, struct err *e)
{
	const struct passwd *user  = row->user ? getpwnam(row->user) : NULL;
	const struct group  *group = row->group ? getgrnam(row->group) : NULL;

	if (row->user && !user)
		return err_set(e, ERR_MISSING, "there is no user \"%.63s\" on this host", row->user);
	if (row->group && !group)
		return err_set(e, ERR_MISSING, "there is no group \"%.63s\" on this host", row->group);
	rule->is_group = group;
	rule->id       = user ? user->pw_uid : group ? group->gr_gid : (uint32_t)row->uid;
	return 0;
}

static void access_add_rule(struct access *a, bool is_group, uint32_t id, struct quota_limits quota)
{
	a->rule[a->n++] = (struct access_rule){ .is_group = is_group, .id = id, .quota = quota };
}

static struct quota_limits preset_quota(void)
{
	struct config_access preset = { 0 };

	fields_set_presets(config_access_fields, &preset);
	return quota_from_row(&preset);
}

int access_build(struct access *ret, const struct config *c, struct err *e)
{
	struct access a = { .n = c->access_len };

	for (size_t i = 0; i < a.n; i++) {
		a.rule[i].profiles = c->access[i].profiles;
		a.rule[i].quota    = quota_from_row(&c->access[i]);
		if (find_user_or_group_id(&c->access[i], &a.rule[i], e) < 0)
			return err_wrap(e, "access[%zu]", i);
	}
	access_add_rule(&a, false, 0, preset_quota()); /* last, so that a row for root in the file comes first */
	*ret = a;
	return 0;
}

void access_build_preset(struct access *ret)
{
	const struct group *group = getgrnam(SERVICE_GROUP);

	*ret = (struct access){ 0 };
	access_add_rule(ret, false, 0, preset_quota());
	if (group)
		access_add_rule(ret, true, group->gr_gid, preset_quota());
}

void access_build_for_user(struct access *ret, uid_t own)
{
	struct quota_limits quota = preset_quota();

	quota.runs_per_minute = 0; /* no other user shares these runs */
	*ret = (struct access){ 0 };
	access_add_rule(ret, false, own, quota);
}

const struct access_rule *access_find(const struct access *a, const struct peer *p, const struct peer_groups *groups)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->rule[i].is_group ? peer_has_group(p, groups, a->rule[i].id) : p->uid == a->rule[i].id)
			return &a->rule[i];
	return NULL;
}

bool access_allows(const struct access_rule *r, const char *profile)
{
	for (size_t i = 0; i < json_array_size(r->profiles); i++)
		if (strcmp(json_string_value(json_array_get(r->profiles, i)), profile) == 0)
			return true;
	return !r->profiles;
}

/* --- as text --- */

json_t *access_to_json(const struct access *a)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < a->n; i++) {
		const struct access_rule *r = &a->rule[i];

		json_array_append_new(rows, json_pack("[b I I I I I I]", r->is_group, (json_int_t)r->id, (json_int_t)r->quota.runs,
						      (json_int_t)r->quota.memory_bytes, (json_int_t)r->quota.runs_per_minute,
						      (json_int_t)r->quota.sessions, (json_int_t)r->quota.contexts));
	}
	return rows;
}

int access_from_json(struct access *ret, const struct config *c, const json_t *rows, struct err *e)
{
	struct access a = { .n = json_array_size(rows) };

	if (a.n > ARRAY_LEN(a.rule) || a.n < c->access_len)
		return err_set(e, ERR_PROTOCOL, "access: %zu rows", a.n);
	for (size_t i = 0; i < a.n; i++) {
		int        is_group;
		json_int_t id, runs, memory, starts, sessions, contexts;

		if (json_unpack(json_array_get(rows, i), "[b I I I I I I!]", &is_group, &id, &runs, &memory, &starts, &sessions,
				&contexts) < 0)
			return err_set(e, ERR_PROTOCOL, "access[%zu]: not a rule", i);
		a.rule[i] = (struct access_rule){ is_group, (uint32_t)id, i < c->access_len ? c->access[i].profiles : NULL,
						  { (uint64_t)runs, (uint64_t)memory, (uint64_t)starts, (uint64_t)sessions, (uint64_t)contexts } };
	}
	*ret = a;
	return 0;
}
