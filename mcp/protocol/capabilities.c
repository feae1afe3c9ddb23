#include "capabilities.h"

#include "run_request.h"

#include <string.h>

json_t *capabilities_seconds_json(uint64_t ms)
{
	return ms % 1000 ? json_real((double)ms / 1000) : json_integer((json_int_t)(ms / 1000));
}

json_t *capabilities_json(const struct mcp *m, const struct sandbox_info *s)
{
	const struct settings *settings = m->settings;
	const json_t *preset = json_object_get(s->profiles, s->preset), *modules = sandbox_info_modules(s, "basic");
	json_t                *in_force = json_array();
	json_t                *limits   = json_object();

	for (size_t i = 0; i < json_array_size(s->isolation); i++) /* missing ones are reported by other keys */
		if (strncmp(json_string_value(json_array_get(s->isolation, i)), "missing:", 8) != 0)
			json_array_append(in_force, json_array_get(s->isolation, i));
	json_object_set_new(limits, "default_timeout",
			    capabilities_seconds_json(run_request_default_wall_ms(settings, preset)));
	json_object_set_new(limits, "max_timeout",
			    capabilities_seconds_json(run_request_max_wall_ms(settings, preset)));
	json_object_set_new(limits, "max_output_size",
			    json_integer((json_int_t)run_request_output_bytes(settings, preset)));
	json_object_set_new(
		limits, "default_memory_limit",
		json_sprintf("%llum", (unsigned long long)(run_request_default_memory(settings, preset) / MIB)));
	return json_pack("{ss sb sb sb so so so}", "sandbox_type", "native jail (namespaces, seccomp, cgroups)",
			 "restricted_python_available", 0, "container_runtime_available", 1, "container_mode_enabled",
			 1, "limits", limits, "safe_modules", modules ? json_incref((json_t *)modules) : json_array(),
			 "security_features", in_force);
}
