#include "route.h"
#include "tap.h"

#include <string.h>

static bool rows_differ(const struct route *a, const struct route *b)
{
	return strcmp(a->method, b->method) != 0 || strcmp(a->path, b->path) != 0;
}

static bool table_is_unambiguous(void)
{
	for (const struct route *a = routes; a->method; a++)
		for (const struct route *b = a + 1; b->method; b++)
			if (!rows_differ(a, b)) {
				printf("# %s %s\n", a->method, a->path);
				return false;
			}
	return true;
}

static bool leads_to(const char *method, const char *path, interface_set served, const char *shape, const char *argument)
{
	const char         *rest;
	char                allow[64];
	const struct route *r = route_find(method, path, served, &rest, allow, sizeof allow);

	return shape ? r && strcmp(r->shape, shape) == 0 && strcmp(rest, argument) == 0 : !r;
}

int main(void)
{
	const interface_set judge0 = 1u << INTERFACE_judge0;
	const char         *rest;
	char                allow[64];

	tap_ok(table_is_unambiguous(), "each method and path belongs to one interface");
	tap_ok(leads_to("GET", "/submissions/batch", INTERFACE_ALL, "submission_batch", ""), "a path without a name goes before one with it");
	tap_ok(leads_to("GET", "/submissions/x", INTERFACE_ALL, "submission", "x"), "what stands for the name is the argument");
	tap_ok(leads_to("GET", "/submissions/a/b", INTERFACE_ALL, NULL, NULL) && leads_to("GET", "/submissions/", INTERFACE_ALL, NULL, NULL),
	       "a name is one component, and not empty");
	tap_ok(leads_to("HEAD", "/languages", INTERFACE_ALL, "languages", ""), "HEAD is GET");
	tap_ok(leads_to("POST", "/run_code", judge0, NULL, NULL) && leads_to("POST", "/submissions", judge0, "submit", ""), "only what is switched on is served");
	tap_ok(leads_to("GET", "/healthz", 0, "health", ""), "the pages of brig-api are always there");
	tap_ok(!route_find("PUT", "/submissions/x", INTERFACE_ALL, &rest, allow, sizeof allow) && strcmp(allow, "GET, DELETE") == 0, "a wrong method is told the right ones");
	return tap_done();
}
