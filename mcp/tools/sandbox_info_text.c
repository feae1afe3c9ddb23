/* sandbox_info_text.c - the sandbox as a model reads it best: each thing once */
#define _GNU_SOURCE
#include "sandbox_info.h"

#include "member.h"
#include "profile_info.h"
#include "run_request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool list_has_package(const json_t *packages, const char *name)
{
	for (size_t i = 0; i < json_array_size(packages); i++)
		if (strcmp(member_text(json_array_get(packages, i), "name"), name) == 0)
			return true;
	return false;
}

/* Python, and the packages that the profile basic does not have, with their versions. */
static void print_library_versions(FILE *out, const struct sandbox_info *s, const char *name)
{
	json_t     *packages = sandbox_info_packages(s, name), *basic = sandbox_info_packages(s, "basic");
	const char *before = "";

	for (size_t i = 0; i < json_array_size(packages); i++) {
		const json_t *one = json_array_get(packages, i);

		if (i && list_has_package(basic, member_text(one, "name")))
			continue;
		fprintf(out, "%s%s %s", before, i ? member_text(one, "name") : "Python", member_text(one, "version"));
		before = ", ";
	}
	json_decref(packages);
	json_decref(basic);
}

static void print_profile_line(FILE *out, const struct mcp *m, const struct sandbox_info *s, const char *name,
			  const json_t *found)
{
	fprintf(out, "%s%s: ", name, strcmp(name, s->preset) == 0 ? " (the default)" : "");
	print_library_versions(out, s, name);
	fprintf(out, "; %g s of time, at most %g; %" PRIu64 " MiB of memory, at most %" PRIu64 "\n",
		(double)run_request_default_wall_ms(m->settings, found) / 1000,
		(double)run_request_max_wall_ms(m->settings, found) / 1000,
		(uint64_t)(profile_info_limit(found, "limits", "memory_bytes") / MIB),
		(uint64_t)(profile_info_limit(found, "ceilings", "memory_bytes") / MIB));
}

static void print_isolation_layers(FILE *out, const struct sandbox_info *s, bool missing)
{
	static const char mark[] = "missing:";
	const char       *before = missing ? "Not in force here: " : "In force: ", *after = "";

	for (size_t i = 0; i < json_array_size(s->isolation); i++) {
		const char *name = json_string_value(json_array_get(s->isolation, i));

		if ((strncmp(name, mark, sizeof mark - 1) == 0) != missing)
			continue;
		fprintf(out, "%s%s", before, name + (missing ? sizeof mark - 1 : 0));
		before = ", ";
		after  = ".\n";
	}
	fputs(after, out);
}

char *sandbox_info_text(const struct mcp *m, const struct sandbox_info *s)
{
	const json_t *preset = json_object_get(s->profiles, s->preset), *found;
	char         *text   = NULL;
	size_t        len;
	FILE         *out = open_memstream(&text, &len);
	const char   *name;

	if (!out)
		return NULL;
	if (s->why)
		fprintf(out, "No program can be run here: %s\n", json_string_value(s->why));
	fputs("Profiles, and what they have beside Python's standard library:\n", out);
	json_object_foreach(s->profiles, name, found)
		if (sandbox_info_profile(s, name))
			print_profile_line(out, m, s, name, found);
	fprintf(out, "There is no network, and nothing can be installed. Of the output %" PRIu64 " KiB are kept.\n",
		run_request_output_bytes(m->settings, preset) >> 10);
	if (m->settings->imports == IMPORTS_ENFORCE)
		fputs("Only the modules that the profile lists can be imported; validate_code names those that are "
		      "not.\n",
		      out);
	print_isolation_layers(out, s, false);
	print_isolation_layers(out, s, true);
	return fclose(out) == 0 ? text : NULL;
}
