/* tool_get_sandbox_info.c - packages, profiles, limits and the layers that are in force */
#include "capabilities.h"
#include "profile_info.h"
#include "run_request.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
/* Only the keys that programs made for the published server look at first: every model has to read this schema. */
static const char schema[] = "{\"type\":\"object\",\"properties\":{\"success\":{\"type\":\"boolean\"},\"packages\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}}},"
			     "\"required\":[\"success\",\"packages\"]}";

/* The builtins that the published server allowed; here all of Python's exist. */
static const char *const builtins[] = {
	"abs", "all", "any", "bool", "bytes", "chr", "complex", "dict", "divmod", "enumerate", "filter",
	"float", "frozenset", "hash", "hex", "int",
	"isinstance", "issubclass", "iter", "len", "list", "map", "max", "min",
	"next", "oct", "ord", "pow", "print", "range", "repr", "reversed",
	"round", "set", "slice", "sorted", "str", "sum", "tuple", "type", "zip",
};

static const struct { const char *key, *profile; } tiers[] = {
	{ "basic",        "basic" },
	{ "data_science", "data-science" },
	{ "network",      "network" },
	{ "filesystem",   "filesystem" },
};
/* clang-format on */

static json_t *copy_profile_modules(const struct sandbox_info *s, const char *profile)
{
	const json_t *all = sandbox_info_modules(s, profile);

	return all ? json_incref((json_t *)all) : json_array();
}

static json_t *allowed_imports_to_json(const struct sandbox_info *s)
{
	return json_pack("{so so so so}", "safe_stdlib", copy_profile_modules(s, "basic"), "data_science",
			 sandbox_info_modules_beyond_basic(s, "data-science"), "network",
			 sandbox_info_modules_beyond_basic(s, "network"), "filesystem",
			 sandbox_info_modules_beyond_basic(s, "filesystem"));
}

static json_t *profile_tiers_to_json(const struct sandbox_info *s)
{
	json_t *object = json_object();

	for (size_t i = 0; i < ARRAY_LEN(tiers); i++) {
		const json_t *found  = json_object_get(s->profiles, tiers[i].profile),
			     *why    = json_object_get(found, "error");
		bool          usable = sandbox_info_profile(s, tiers[i].profile);
		json_t       *row    = json_pack("{sb so}", "enabled", usable, "modules",
					i ? sandbox_info_modules_beyond_basic(s, tiers[i].profile) : copy_profile_modules(s, "basic"));

		if (!usable)
			json_object_set_new(row, "reason",
					    why ? json_incref((json_t *)why)
						: json_sprintf("the rootfs is not built: brig rootfs build %s",
							       json_string_value(json_object_get(found, "rootfs"))));
		json_object_set_new(object, tiers[i].key, row);
	}
	return object;
}

static json_t *profile_limit_to_text(const json_t *found, const char *group, const char *name)
{
	return json_sprintf("%llum", (unsigned long long)(profile_info_limit(found, group, name) / MIB));
}

static json_t *profiles_to_json(const struct mcp *m, const struct sandbox_info *s)
{
	const struct settings *settings = m->settings;
	json_t                *list     = json_array(), *found, *limits;
	const char            *name;

	json_object_foreach(s->profiles, name, found) {
		if (!sandbox_info_profile(s, name))
			continue;
		limits = json_pack("{so so so so}", "timeout",
				   capabilities_seconds_json(run_request_default_wall_ms(settings, found)), "max_timeout",
				   capabilities_seconds_json(run_request_max_wall_ms(settings, found)), "memory_limit",
				   profile_limit_to_text(found, "limits", "memory_bytes"), "max_memory_limit",
				   profile_limit_to_text(found, "ceilings", "memory_bytes"));
		json_array_append_new(list, json_pack("{ss sO so so}", "name", name, "rootfs",
						      json_object_get(found, "rootfs"), "limits", limits, "packages",
						      sandbox_info_packages(s, name)));
	}
	return list;
}

static bool is_default_profile(const struct sandbox_info *s, const char *profile)
{
	return strcmp(s->preset, profile) == 0;
}

static void put_second_generation_keys(json_t *info, const struct mcp *m, const struct sandbox_info *s)
{
	const json_t *preset  = json_object_get(s->profiles, s->preset);
	json_t       *imports = allowed_imports_to_json(s), *names = json_array(), *list;
	const char   *key;
	size_t        n = 0;

	for (size_t i = 0; i < ARRAY_LEN(builtins); i++)
		json_array_append_new(names, json_string(builtins[i]));
	json_object_foreach(imports, key, list)
		n += json_array_size(list);
	json_object_set_new(info, "restricted_python", json_false());
	json_object_set_new(info, "timeout_seconds",
			    capabilities_seconds_json(run_request_default_wall_ms(m->settings, preset)));
	json_object_set_new(info, "max_output_size", json_integer((json_int_t)run_request_output_bytes(m->settings, preset)));
	json_object_set_new(info, "security_capabilities",
			    json_pack("{sb sb sb}", "network_enabled", m->settings->network || is_default_profile(s, "network"),
				      "filesystem_enabled", m->settings->filesystem || is_default_profile(s, "filesystem"),
				      "data_science_enabled",
				      m->settings->data_science || is_default_profile(s, "data-science")));
	json_object_set_new(info, "total_allowed_modules", json_integer((json_int_t)n));
	json_object_set_new(info, "allowed_imports", imports);
	json_object_set_new(info, "safe_builtins", names);
}

/* What the README of the published server promises. */
static void put_readme_keys(json_t *info, const struct mcp *m, const struct sandbox_info *s)
{
	const json_t *preset = json_object_get(s->profiles, s->preset);

	json_object_set_new(info, "security_profiles", profile_tiers_to_json(s));
	json_object_set_new(
		info, "resource_limits",
		json_pack("{so so so}", "timeout", capabilities_seconds_json(run_request_default_wall_ms(m->settings, preset)),
			  "max_output_size", json_integer((json_int_t)run_request_output_bytes(m->settings, preset)),
			  "memory_limit",
			  json_sprintf("%llum",
				       (unsigned long long)(run_request_default_memory(m->settings, preset) / MIB))));
	json_object_set_new(info, "container_mode", json_pack("{sb sb}", "available", 1, "enabled", 1));
}

static json_t *sandbox_info_to_json(const struct mcp *m, const struct sandbox_info *s)
{
	static const char *const policies[] = { [IMPORTS_ADVISE] = "advise", [IMPORTS_ENFORCE] = "enforce" };
	json_t                  *info = json_pack("{sb ss}", "success", s->why == NULL, "default_profile", s->preset),
	       *older                 = capabilities_json(m, s);

	json_object_set_new(info, "error", s->why ? json_incref(s->why) : json_null());
	json_object_set_new(info, "packages", sandbox_info_packages(s, s->preset));
	json_object_set(info, "isolation", s->isolation);
	json_object_set_new(info, "imports", json_string(policies[m->settings->imports]));
	json_object_set_new(info, "profiles", profiles_to_json(m, s));
	put_second_generation_keys(info, m, s);
	put_readme_keys(info, m, s);
	json_object_update(info, older);
	json_object_set_new(info, "version", json_incref(json_object_get(s->hello, "brig")));
	json_object_set_new(info, "quota", json_incref(json_object_get(s->hello, "quota")));
	json_decref(older);
	return info;
}

static const struct argument rows[] = { { { 0 }, false, NULL } };

static void answer_sandbox_info(struct call *c, const struct sandbox_info *s, const struct err *why, void *owner)
{
	char *text = s && c->mcp->settings->reply == REPLY_TEXT ? sandbox_info_text(c->mcp, s) : NULL;

	(void)owner;
	if (text)
		tool_answer_text(c, text, false);
	else
		sandbox_info_answer(c, sandbox_info_to_json, s, why);
	free(text);
}

static void get_sandbox_info_call(struct call *c, const json_t *arguments)
{
	static const struct sandbox_info_reader reader = { .isolation = true, .known = answer_sandbox_info };

	(void)arguments;
	sandbox_info_gather(c, &reader, NULL);
}

const struct tool tool_get_sandbox_info = {
	.name        = "get_sandbox_info",
	.title       = "Describe the sandbox",
	.description = "Profiles, with their packages and limits, and the isolation that is in force.",
	.manual    = "What execute_code can do here: installed packages with versions, profiles and their limits, "
		     "modules that validate_code accepts, "
		     "default and maximum timeout and memory, and the layers of isolation that are in force.",
	.arguments = rows,
	.output_schema = schema,
	.read_only     = true,
	.idempotent    = true,
	.text_only     = true,
	.call          = get_sandbox_info_call,
};
