#include "openapi.h"

#include "route.h"

#include <string.h>

__asm__(".section .rodata\n"
	".global openapi_start, openapi_end\n"
	"openapi_start:\n"
	".incbin \"" BRIG_OPENAPI_FILE "\"\n"
	"openapi_end:\n"
	".previous\n");
extern const char openapi_start[] __attribute__((visibility("hidden")));
extern const char openapi_end[] __attribute__((visibility("hidden")));

static bool path_is_served(const struct route *table, const char *path, interface_set served)
{
	for (const struct route *r = table; r->method; r++)
		if (strcmp(r->path, path) == 0)
			return r->api == INTERFACE_NONE || interface_set_has(served, r->api);
	return false;
}

json_t *openapi_to_json(const struct route *table, interface_set served)
{
	/* cppcheck-suppress comparePointers ; two labels around the same bytes */
	json_t     *all   = json_loadb(openapi_start, (size_t)(openapi_end - openapi_start), 0, NULL);
	json_t     *paths = json_object_get(all, "paths"), *value;
	const char *path;
	void       *next;

	json_object_foreach_safe(paths, next, path, value)
		if (!path_is_served(table, path, served))
			json_object_del(paths, path);
	if (all)
		json_object_set_new(json_object_get(all, "info"), "version", json_string(BRIG_VERSION));
	return all;
}
