#include "profile.h"

#include "text.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

static const char *const require_names[] = { "mode", "all", NULL };
static const char *const warm_names[]    = { "never", "demand", "ready", NULL };

const char *profile_warm_name(unsigned warm)
{
	return warm_names[warm];
}

#define AT(member) offsetof(struct package_settings, member)
/* clang-format off */
const struct field package_fields[] = {
	{ "index",      FIELD_STR,   AT(index),      8, 1024,              0, "The address of a simple index, like \"https://pypi.org/simple/\"; wheels are all that is taken from it", NULL, NULL },
	{ "hosts",      FIELD_MIXED, AT(hosts),      0, PACKAGE_HOSTS_MAX, 0, "Further hosts that serve the index's files, as rules of network; for pypi.org brig knows them", NULL, net_rule_fields },
	{ "find_links", FIELD_STR,   AT(find_links), 2, 1023,              0, "Instead of an index: the path of a directory of wheels, which the client must be able to read; no network is used", NULL, NULL },
	{ 0 },
};
/* clang-format on */
#undef AT

#define AT(member) offsetof(struct profile, member)
/* clang-format off */
const struct field profile_fields[] = {
	/* setting           type          where                least  most  preset        meaning */
	{ "comment",         FIELD_NOTE,   0,                   0,     4096, 0,            "For people; brig does not read it", NULL, NULL },
	{ "description",     FIELD_STR,    AT(description),     0,     200,  0,            "One line for brig profile list", NULL, NULL },
	{ "extends",         FIELD_NAME,   AT(extends),         0,     63,   0,            "Another profile, whose settings this one has where it does not set them; of limits, ceilings and network each key counts for itself", NULL, NULL },
	{ "rootfs",          FIELD_NAME,   AT(rootfs),          0,     63,   0,            "The rootfs in the store that becomes /", NULL, NULL },
	{ "policy",          FIELD_NAME,   AT(policy),          0,     63,   0,            "The system call policy: the file NAME.policy in a directory of profiles", NULL, NULL },
	{ "policy_extend",   FIELD_LIST,   AT(policy_extend),   0,     64,   0,            "Statements added to the policy; they cannot allow what its floor forbids", NULL, NULL },
	{ "workspace_exec",  FIELD_BOOL,   AT(workspace_exec),  0,     1,    1,            "Whether files in /workspace may be executed", NULL, NULL },
	{ "modules",         FIELD_LIST,   AT(modules),         0,     512,  0,            "Modules that brig check accepts, each with its submodules; default: any", NULL, NULL },
	{ "calls",           FIELD_LIST,   AT(calls),           0,     512,  0,            "Calls that brig check warns about, like os.system, or subprocess.* for all of a module", NULL, NULL },
	{ "require",         FIELD_CHOICE, AT(require),         0,     1,    REQUIRE_MODE, "Which layers must be in force: those that runs of root, or of a plain user, always have (mode), or every layer (all)", require_names, NULL },
	{ "allow_missing",   FIELD_LIST,   AT(allow_missing),   0,     2,    0,            "Limits (memory, cpus) that a host without control groups need not enforce; otherwise a run that asks for them is refused there", NULL, NULL },
	{ "ready",           FIELD_COUNT,  AT(ready),           0,     64,   2,            "Number of cells that a service keeps ready for it; default: that of brig.json", NULL, NULL },
	{ "warm",            FIELD_CHOICE, AT(warm),            0,     2,    WARM_DEMAND,  "Whether a service executes a new Python for each run (never), forks a zygote, a Python that waits with its modules imported, when the run is asked for (demand), or keeps such forks ready in their cells (ready); all runs of one zygote share its hash seed and its layout in memory", warm_names, NULL },
	{ "preload",         FIELD_LIST,   AT(preload),         0,     64,   0,            "Modules that a zygote imports before any run; every run then has them in memory; their names have at most 1 KiB in all", NULL, NULL },
	{ "zygote_runs",     FIELD_COUNT,  AT(zygote_runs),     1,     1000000, 1000,      "After how many runs a zygote is replaced by a new one, with another hash seed and another layout; a cell that waits for its run counts", NULL, NULL },
	{ "zygote_ms",       FIELD_MS,     AT(zygote_ms),       1000,  86400000, 600000,   "After how long a zygote is replaced, if there are runs", NULL, NULL },
	{ "limits",          FIELD_TABLE,  AT(limits),          0,     0,    0,            "What a run gets when it asks for nothing", NULL, limits_fields },
	{ "ceilings",        FIELD_TABLE,  AT(ceilings),        0,     0,    0,            "The most that a run may ask for", NULL, ceilings_fields },
	{ "network",         FIELD_TABLE,  AT(network),         0,     0,    0,            "The hosts that a run reaches by name, see NETWORK; default: none", NULL, net_fields },
	{ "packages",        FIELD_TABLE,  AT(packages),        0,     0,    0,            "Where packages come from that a client asks for, see PACKAGES; {}: from nowhere; default: in private runs from PyPI, in a service from nowhere", NULL, package_fields },
	{ 0 },
};
/* clang-format on */

void profile_done(struct profile *p)
{
	free(p->net);
	json_decref(p->source);
	*p = (struct profile){ 0 };
}

static int check_limits_below_ceilings(const struct profile *p, struct err *e)
{
	const struct field *f = limits_find_above_ceiling(&p->limits, &p->ceilings);
	char                is[32], most[32];

	if (!f)
		return 0;
	field_print_value(f, limits_value(&p->limits, f), is, sizeof is);
	field_print_value(f, limits_value(&p->ceilings, f), most, sizeof most);
	return err_set(e, ERR_BAD_SPEC, "limits: %s: %s is above its ceiling %s", f->name, is, most);
}

/* Of the names of one list, so that all fit into one message. */
enum { NAMES_BYTES_MAX = 16 * 1024 };

typedef bool is_name_fn(const char *text);

/* "os.system", or "subprocess.*" for all of a module. */
static bool is_python_call_name(const char *text)
{
	char   name[128];
	size_t len = strlen(text);

	if (len > 2 && strcmp(text + len - 2, ".*") == 0)
		len -= 2;
	return len < sizeof name && snprintf(name, sizeof name, "%.*s", (int)len, text) > 0 && text_is_module(name);
}

static int check_python_names(const char *field, const json_t *names, is_name_fn *is, size_t most, struct err *e)
{
	size_t bytes = 0;

	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));

		bytes += strlen(name) + 1;
		if (!is(name))
			return err_set(e, ERR_BAD_SPEC, "%s[%zu]: \"%.60s\" is not a valid name; write one as Python does, like \"os.path\"", field, i,
				       name);
	}
	return bytes > most ? err_set(e, ERR_BAD_SPEC, "%s: more than %zuK of names", field, most / 1024) : 0;
}

static int check_packages(const struct package_settings *p, struct err *e)
{
	if (p->index && p->find_links)
		return err_set(e, ERR_BAD_SPEC, "index and find_links: only one of them");
	if (p->hosts && !p->index)
		return err_set(e, ERR_BAD_SPEC, "hosts: of which index? write index, too");
	if (p->find_links && (p->find_links[0] != '/' || !text_is_plain(p->find_links)))
		return err_set(e, ERR_BAD_SPEC, "find_links: \"%.60s\" is no absolute path", p->find_links);
	return 0;
}

int profile_parse(struct profile *ret, const char *name, const void *bytes, size_t len, struct err *e)
{
	scoped_profile p = { .name = name };

	p.source = wire_parse(bytes, len, PROFILE_MAX, e);
	if (!p.source)
		return -1;
	fields_set_presets(profile_fields, &p);
	p.description = "";
	if (fields_decode(profile_fields, p.source, &p, e) < 0)
		return -1;
	if (p.extends) /* the reader of files has put both together */
		return err_set(e, ERR_BAD_SPEC, "extends: a profile that extends another is read from a directory of profiles");
	if (!p.rootfs)
		return err_set(e, ERR_BAD_SPEC, "rootfs: missing; name a rootfs of the store, like \"basic\"");
	if (!p.policy)
		return err_set(e, ERR_BAD_SPEC, "policy: missing; name a policy file, like \"python\"");
	if (!text_is_plain(p.description))
		return err_set(e, ERR_BAD_SPEC, "description: has a control character, or one that changes the direction of text");
	if (limits_parse_waived(p.allow_missing, &p.limits.waived, e) < 0)
		return err_wrap(e, "allow_missing");
	if (check_limits_below_ceilings(&p, e) < 0 ||
	    check_python_names("modules", p.modules, text_is_module, NAMES_BYTES_MAX, e) < 0 ||
	    check_python_names("calls", p.calls, is_python_call_name, NAMES_BYTES_MAX, e) < 0 ||
	    check_python_names("preload", p.preload, text_is_module, PRELOAD_BYTES_MAX, e) < 0)
		return -1;
	p.has_packages = json_object_get(p.source, "packages") != NULL;
	if (check_packages(&p.packages, e) < 0)
		return err_wrap(e, "packages");
	p.network.index       = p.packages.index;
	p.network.index_hosts = p.packages.hosts;
	if (net_policy_build(&p.net, &p.network, e) < 0)
		return begins_with(e->text, "packages: ") ? -1 : err_wrap(e, "network"); /* its rules are compiled with those of network */
	*ret = p;
	p    = (struct profile){ 0 };
	return 0;
}
