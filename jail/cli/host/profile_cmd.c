/* profile_cmd.c - brig profile list_profiles, check and schema */
#include "call_number.h"
#include "command.h"
#include "policy.h"
#include "profile_file.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int report_profile_error(const struct err *e)
{
	return command_print_error("profile", e, STATUS_FAILED);
}

static int list_profiles(const struct brig_paths *places, char **words)
{
	struct err why;
	char     **names;
	int        status = STATUS_OK;

	(void)words;
	if (profile_folders_check(places, &why) < 0)
		return report_profile_error(&why);
	names = profile_list_names(places, &why);
	if (!names)
		return report_profile_error(&why);
	if (!names[0]) {
		fprintf(stderr, "brig profile: no profiles in %s\n", places->profiles[PROFILES_PRESET]);
		status = STATUS_FAILED;
	}
	for (size_t i = 0; names[i]; i++) {
		scoped_profile p = { 0 };
		unsigned       place;
		struct err     e;

		if (profile_file_load(&p, places, names[i], &e) < 0) {
			status = report_profile_error(&e);
			continue;
		}
		printf("%-*s%s%s", *p.description ? 14 : 0, names[i], *p.description ? " " : "", p.description);
		place = profile_file_find(places, names[i]);
		if (place < PROFILES_PRESET) /* it did not come with brig */
			printf(" (from %s)", places->profiles[place]);
		putchar('\n');
	}
	profile_names_free(names);
	return status;
}

/* Checks a profile, and the policy that it names. */
static int check_profile(const struct brig_paths *places, const char *word, struct err *e)
{
	scoped_profile       p      = { 0 };
	scoped_policy_bundle bundle = { 0 };
	struct policy       *policy = malloc(sizeof *policy);
	int                  r;

	if (!policy)
		return err_set(e, ERR_LIMIT, "out of memory");
	r = text_is_name(word) && !strchr(word, '.') ? profile_file_load(&p, places, word, e)
						     : profile_file_check(&p, places, word, e);
	if (r == 0)
		r = profile_policy_load(&bundle, places, &p, e);
	if (r == 0)
		r = policy_parse(policy, &bundle, call_number, e);
	free(policy);
	return r;
}

static int check_profiles(const struct brig_paths *places, char **words)
{
	int status = STATUS_OK;

	for (; *words; words++) {
		struct err e;

		if (check_profile(places, *words, &e) < 0)
			status = report_profile_error(&e);
		else
			printf("%s: fine\n", *words);
	}
	return status;
}

static int print_schema(const struct brig_paths *places, char **words)
{
	json_t *j = fields_schema(profile_fields);

	(void)places, (void)words;
	json_object_set_new(j, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
	json_object_set_new(j, "title", json_string("brig profile"));
	json_object_set_new(j, "anyOf",
			    json_pack("[{s[ss]}{s[s]}]", "required", "rootfs", "policy", "required", "extends"));
	json_dumpf(j, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(j);
	return STATUS_OK;
}

/* clang-format off */
static const struct {
	const char *name;
	int (*run)(const struct brig_paths *, char **words);
	bool        wants_args;
	const char *usage, *doc;
} verbs[] = {
	{ "list",   list_profiles,  false, "list",                    "list the profiles" },
	{ "check",  check_profiles, true,  "check NAME|FILE.json...", "check profiles and policies for mistakes" },
	{ "schema", print_schema,   false, "schema",                  "print the JSON schema of a profile" },
};
/* clang-format on */

static void print_usage(FILE *out)
{
	fputs("usage: brig profile list | check NAME|FILE.json... | schema\n\n", out);
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		fprintf(out, "  %-26s %s\n", verbs[i].usage, verbs[i].doc);
	fprintf(out, "  %-26s %s\n", "-h, --help", "This text");
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int profile_usage_error(const char *word, const char *what)
{
	struct err e;

	err_set(&e, ERR_BAD_SPEC, "%.60s: %s; see brig profile --help", word, what);
	report_profile_error(&e);
	return STATUS_USAGE;
}

static int run_profile_verb(size_t verb, char **words)
{
	struct brig_paths places;
	struct err        e;

	if (words[0] && words[0][0] == '-' && words[0][1])
		return profile_usage_error(words[0], "no such option");
	if (verbs[verb].wants_args != (words[0] != NULL))
		return profile_usage_error(words[0] ? words[0] : verbs[verb].name,
					   words[0] ? "one argument too many" : "name a profile or a file");
	return brig_paths_find(&places, &e) < 0 ? report_profile_error(&e) : verbs[verb].run(&places, words);
}

int profile_main(int argc, char **argv)
{
	if (argc < 2) {
		print_usage(stderr);
		return STATUS_USAGE;
	}
	if (is_help(argv[1]) || (argc > 2 && is_help(argv[2]))) {
		print_usage(stdout);
		return STATUS_OK;
	}
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return run_profile_verb(i, argv + 2);
	return profile_usage_error(argv[1], "no such command");
}
