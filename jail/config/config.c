#define _GNU_SOURCE
#include "config.h"

#include "file.h"
#include "trust.h"
#include "monitor_protocol.h"
#include "text.h"
#include "wire.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { UID_LAST = 4294967294 };

/* clang-format off */
#define AT(member) offsetof(struct config_ids, member)
static const struct field ids_fields[] = {
	/* setting    type         where      least  most              preset   meaning */
	{ "base",     FIELD_COUNT, AT(base),  MONITOR_ID_LEAST,  INT32_MAX, 0,  "The first host id that cells may have", NULL, NULL },
	{ "count",    FIELD_COUNT, AT(count), MONITOR_IDS_LEAST, 1 << 24,   0,  "How many ids there are; each cell takes two, and all profiles get equal shares", NULL, NULL },
	{ 0 },
};
#undef AT
#define AT(member) offsetof(struct config_audit, member)
static const struct field audit_fields[] = {
	{ "file",      FIELD_STR,   AT(file),      0,        255,     0,        "Absolute path of the file; it gets a line for each run and each refusal", NULL, NULL },
	{ "max_bytes", FIELD_SIZE,  AT(max_bytes), 64 * KIB, 4 * GIB, 64 * MIB, "Size at which the file is rotated", NULL, NULL },
	{ "keep",      FIELD_COUNT, AT(keep),      1,        99,      4,        "How many rotated files are kept", NULL, NULL },
	{ 0 },
};
#undef AT
#define AT(member) offsetof(struct config_access, member)
const struct field config_access_fields[] = {
	{ "user",            FIELD_STR,   AT(user),            0, 63,          0,             "The user whom this row is about, by name", NULL, NULL },
	{ "group",           FIELD_STR,   AT(group),           0, 63,          0,             "Or a group: the row is about each of its members", NULL, NULL },
	{ "uid",             FIELD_COUNT, AT(uid),             0, UID_LAST,    CONFIG_NO_UID, "Or a user, by number", NULL, NULL },
	{ "profiles",        FIELD_LIST,  AT(profiles),        0, 255,         0,             "Profiles that may be used; default: all", NULL, NULL },
	{ "runs",            FIELD_COUNT, AT(runs),            0, 4096,        16,            "Runs of one user at once; 0: no limit", NULL, NULL },
	{ "memory_bytes",    FIELD_SIZE,  AT(memory_bytes),    0, 1024 * GIB,  0,             "Sum of the memory limits of one user's runs; 0: no limit", NULL, NULL },
	{ "runs_per_minute", FIELD_COUNT, AT(runs_per_minute), 0, 1000000,     6000,          "Runs that one user may start within a minute, calls in sessions among them; 0: no limit", NULL, NULL },
	{ "sessions",        FIELD_COUNT, AT(sessions),        0, 4096,        0,             "Sessions of one user at once, which are among the runs; 0: no limit but that of runs", NULL, NULL },
	{ "contexts",        FIELD_COUNT, AT(contexts),        1, CONFIG_CONTEXTS_MAX, CONFIG_CONTEXTS_MAX, "Contexts at once in one session", NULL, NULL },
	{ 0 },
};
#undef AT
#define AT(member) offsetof(struct config, member)
const struct field config_fields[] = {
	{ "comment",      FIELD_NOTE,  0,                0, 4096,              0,  "For people; brigd does not read it", NULL, NULL },
	{ "ids",          FIELD_TABLE, AT(ids),          0, 0,                 0,  "Host ids for cells; the default is described below", NULL, ids_fields },
	{ "ready",        FIELD_COUNT, AT(ready),        0, 64,                2,  "How many cells of each profile are kept ready", NULL, NULL },
	{ "runs",         FIELD_COUNT, AT(runs),         1, MONITOR_RUNS_MAX, 64, "Runs of all users at once", NULL, NULL },
	{ "memory_bytes", FIELD_SIZE,  AT(memory_bytes), 0, 1024 * GIB,        0,  "Sum of the memory limits of all runs; 0: no limit", NULL, NULL },
	{ "spare_memory_bytes", FIELD_SIZE, AT(spare_memory_bytes), 0, 1024 * GIB, 64 * MIB, "Where the host has less memory available, the session that is idle for longest is closed; 0: none is", NULL, NULL },
	{ "freeze_ms",    FIELD_MS,    AT(freeze_ms),    0, 2592000000ull,     60000, "After so long without a call a session is frozen until the next one, where control groups are of version 2; 0: none is", NULL, NULL },
	{ "private_runs", FIELD_BOOL,  AT(private_runs), 0, 1,                 1,  "Whether users may run programs without the service; the installed brig obeys this, a user's own copy of brig need not", NULL, NULL },
	{ "audit",        FIELD_TABLE, AT(audit),        0, 0,                 0,  "A file for the audit, beside the journal", NULL, audit_fields },
	{ "access",       FIELD_ROWS,  AT(access_rows),  0, CONFIG_ACCESS_MAX, 0,  "Which users may use what; the first row that names a user counts, and a user whom no row names is refused", NULL, config_access_fields },
	{ 0 },
};
#undef AT
/* clang-format on */

void config_done(struct config *c)
{
	json_decref(c->source);
	*c = (struct config){ 0 };
}

struct config config_acquire(const struct config *c)
{
	json_incref(c->source);
	return *c;
}

const char *config_changes_needing_restart(const struct config *is, const struct config *wish)
{
	const struct config_audit *a = &is->audit, *b = &wish->audit;
	bool is_same_file = a->file && b->file ? strcmp(a->file, b->file) == 0 : a->file == b->file;
	bool audit        = !is_same_file || a->max_bytes != b->max_bytes || a->keep != b->keep;
	bool ids          = is->ids.base != wish->ids.base || is->ids.count != wish->ids.count;

	return ids && audit ? "ids, audit" : ids ? "ids" : audit ? "audit" : NULL;
}

static int decode_access_row(struct config_access *a, const json_t *row, struct err *e)
{
	*a = (struct config_access){ 0 };
	fields_set_presets(config_access_fields, a);
	if (fields_decode(config_access_fields, row, a, e) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(a->profiles); i++)
		if (!text_is_name(json_string_value(json_array_get(a->profiles, i))))
			return err_set(e, ERR_BAD_SPEC, "profiles: \"%.63s\" is no name", json_string_value(json_array_get(a->profiles, i)));
	if (!!a->user + !!a->group + (a->uid != CONFIG_NO_UID) != 1)
		return err_set(e, ERR_BAD_SPEC, "give exactly one of user, group and uid");
	return 0;
}

static int config_check(const struct config *c, struct err *e)
{
	if (!c->ids.base != !c->ids.count)
		return err_set(e, ERR_BAD_SPEC, "ids: give both base and count");
	if (c->ids.base + c->ids.count > INT32_MAX)
		return err_set(e, ERR_BAD_SPEC, "ids: base and count lead beyond %d; some programs read a negative number there",
			       INT32_MAX);
	if (c->audit.file && c->audit.file[0] != '/')
		return err_set(e, ERR_BAD_SPEC, "audit: file: \"%.60s\" is no absolute path", c->audit.file);
	return 0;
}

int config_parse(struct config *ret, const void *bytes, size_t len, struct err *e)
{
	scoped_config c = { 0 };

	c.source = wire_parse(bytes, len, CONFIG_MAX, e);
	if (!c.source)
		return -1;
	fields_set_presets(config_fields, &c);
	if (fields_decode(config_fields, c.source, &c, e) < 0)
		return -1;
	for (; c.access_len < json_array_size(c.access_rows); c.access_len++)
		if (decode_access_row(&c.access[c.access_len], json_array_get(c.access_rows, c.access_len), e) < 0)
			return err_wrap(e, "access[%zu]", c.access_len);
	if (config_check(&c, e) < 0)
		return -1;
	*ret = c;
	c    = (struct config){ 0 };
	return 0;
}

int config_load(struct config *ret, const char *path, const char *name, struct err *e)
{
	scoped_bytes text = { 0 };

	if (trust_read(path, CONFIG_MAX, &text, e) < 0)
		return -1;
	return config_parse(ret, text.data, text.len, e) < 0 ? err_wrap(e, "%s", name) : 0;
}
