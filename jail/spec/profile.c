#include "profile.h"

#include "wire.h"

static const char *const require_names[] = { "mode", "all", NULL };

#define AT(member) offsetof(struct profile, member)
/* clang-format off */
const struct field profile_fields[] = {
	/* setting           type          where                least  most  preset        meaning */
	{ "comment",         FIELD_NOTE,   0,                   0,     4096, 0,            "For people; brig does not read it", NULL, NULL },
	{ "description",     FIELD_STR,    AT(description),     0,     200,  0,            "One line for brig profile list", NULL, NULL },
	{ "rootfs",          FIELD_NAME,   AT(rootfs),          0,     63,   0,            "The rootfs in the store that becomes /", NULL, NULL },
	{ "policy",          FIELD_NAME,   AT(policy),          0,     63,   0,            "The syscall policy: NAME.policy beside the profiles", NULL, NULL },
	{ "policy_extend",   FIELD_LIST,   AT(policy_extend),   0,     64,   0,            "Policy lines added to it; they extend it and cannot undo its floor", NULL, NULL },
	{ "workspace_exec",  FIELD_BOOL,   AT(workspace_exec),  0,     1,    1,            "Whether files in /workspace may be executed", NULL, NULL },
	{ "require",         FIELD_CHOICE, AT(require),         0,     1,    REQUIRE_MODE, "Which layers must be in force: those that the way of starting promises (mode), or every one (all)", require_names, NULL },
	{ "ready",           FIELD_COUNT,  AT(ready),           0,     64,   2,            "How many cells a service keeps ready for it (when not said: as many as brig.json says)", NULL, NULL },
	{ "limits",          FIELD_TABLE,  AT(limits),          0,     0,    0,            "What a run gets when it asks for nothing", NULL, limits_fields },
	{ "ceilings",        FIELD_TABLE,  AT(ceilings),        0,     0,    0,            "The most that a run may ask for", NULL, ceilings_fields },
	{ 0 },
};
/* clang-format on */

void profile_done(struct profile *p)
{
	json_decref(p->source);
	*p = (struct profile){ 0 };
}

static int check_ceilings(const struct profile *p, struct err *e)
{
	const struct field *f = limits_find_above(&p->limits, &p->ceilings);
	char                is[32], most[32];

	if (!f)
		return 0;
	field_print_value(f, limits_value(&p->limits, f), is, sizeof is);
	field_print_value(f, limits_value(&p->ceilings, f), most, sizeof most);
	return err_set(e, ERR_BAD_SPEC, "limits: %s: %s is above its ceiling %s", f->name, is, most);
}

int profile_parse(struct profile *ret, const char *name, const void *bytes, size_t len, struct err *e)
{
	scoped_profile p = { .name = name };

	p.source = wire_parse(bytes, len, PROFILE_MAX, e);
	if (!p.source)
		return -1;
	fields_preset(profile_fields, &p);
	p.description = "";
	if (fields_decode(profile_fields, p.source, &p, e) < 0)
		return -1;
	if (!p.rootfs)
		return err_set(e, ERR_BAD_SPEC, "rootfs: missing; name a rootfs of the store, like \"basic\"");
	if (!p.policy)
		return err_set(e, ERR_BAD_SPEC, "policy: missing; name a policy file, like \"python\"");
	if (check_ceilings(&p, e) < 0)
		return -1;
	*ret = p;
	p    = (struct profile){ 0 };
	return 0;
}
