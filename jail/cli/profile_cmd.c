/* profile_cmd.c - brig profile list, check and schema */
#include "call_number.h"
#include "command.h"
#include "policy.h"
#include "profile_file.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fail(const struct err *e)
{
	fprintf(stderr, "brig profile: %s\n", e->text);
	return STATUS_FAILED;
}

static int list(const struct places *places, char **words)
{
	char **names = profile_names(places);
	int    status = STATUS_OK;

	(void)words;
	for (size_t i = 0; names && names[i]; i++) {
		scoped_profile p = { 0 };
		struct err     e;

		if (profile_file_load(&p, places, names[i], &e) < 0)
			status = fail(&e);
		else
			printf("%-14s %s\n", names[i], p.description);
	}
	profile_names_free(names);
	return status;
}

/* The file, and the policy that it names. */
static int check_one(const struct places *places, const char *word, struct err *e)
{
	scoped_profile       p      = { 0 };
	scoped_policy_bundle bundle = { 0 };
	struct policy       *policy = malloc(sizeof *policy);
	int                  r;

	if (!policy)
		return err_set(e, ERR_LIMIT, "out of memory");
	r = text_is_name(word) && !strchr(word, '.') ? profile_file_load(&p, places, word, e) : profile_file_check(&p, word, e);
	if (r == 0)
		r = profile_policy_load(&bundle, places, &p, e);
	if (r == 0)
		r = policy_parse(policy, &bundle, call_number, e);
	free(policy);
	return r;
}

static int check(const struct places *places, char **words)
{
	int status = STATUS_OK;

	if (!words[0]) {
		fputs("brig profile check: name a profile or a file\n", stderr);
		return STATUS_USAGE;
	}
	for (; *words; words++) {
		struct err e;

		if (check_one(places, *words, &e) < 0)
			status = fail(&e);
		else
			printf("%s: fine\n", *words);
	}
	return status;
}

static int schema(const struct places *places, char **words)
{
	json_t *j = fields_schema(profile_fields);

	(void)places, (void)words;
	json_object_set_new(j, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
	json_object_set_new(j, "title", json_string("brig profile"));
	json_object_set_new(j, "required", json_pack("[ss]", "rootfs", "policy"));
	json_dumpf(j, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(j);
	return STATUS_OK;
}

/* clang-format off */
static const struct {
	const char *name;
	int (*run)(const struct places *, char **words);
	const char *usage, *doc;
} verbs[] = {
	{ "list",   list,   "list",                      "which profiles there are" },
	{ "check",  check,  "check NAME|FILE.json...",   "read profiles and their policies, say what is wrong" },
	{ "schema", schema, "schema",                    "the JSON schema of a profile" },
};
/* clang-format on */

static void usage(FILE *out)
{
	fputs("usage: brig profile list | check NAME|FILE.json... | schema\n\n", out);
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		fprintf(out, "  %-26s %s\n", verbs[i].usage, verbs[i].doc);
	fprintf(out, "  %-26s %s\n", "-h, --help", "This text");
}

int profile_main(int argc, char **argv)
{
	struct places places;
	struct err    e;

	if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		usage(stdout);
		return STATUS_OK;
	}
	for (size_t i = 0; argc >= 2 && i < ARRAY_LEN(verbs); i++)
		if (strcmp(argv[1], verbs[i].name) == 0)
			return places_find(&places, &e) < 0 ? fail(&e) : verbs[i].run(&places, argv + 2);
	usage(stderr);
	return STATUS_USAGE;
}
