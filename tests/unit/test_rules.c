#define _GNU_SOURCE
#include "fd.h"
#include "rules.h"
#include "sealed.h"
#include "tap.h"

#include <sys/mman.h>

static struct brig_paths places;

static void on_left_out(void *context, const char *name, const struct err *why)
{
	(void)context;
	printf("# %s: %s\n", name, why->text);
}

static int text_fd(const char *text)
{
	struct err e;

	return sealed_create("rules", text, strlen(text), &e);
}

/* --- as the reader writes them, the server reads them --- */

static bool is_same(const struct served_profile *a, const struct served_profile *b)
{
	return strcmp(a->name, b->name) == 0 && memcmp(&a->profile.limits, &b->profile.limits, sizeof a->profile.limits) == 0 &&
	       memcmp(&a->profile.ceilings, &b->profile.ceilings, sizeof a->profile.ceilings) == 0 && json_equal(a->profile.source, b->profile.source) &&
	       strcmp(a->filter_sha256, b->filter_sha256) == 0 && json_equal(a->packages, b->packages);
}

static void check_round(void)
{
	const struct reader_files files = { .is_optional = true };
	const struct rules_source from  = { &places, &files, MONITOR_USER, { 0 } };
	scoped_rules              is = { .ids = { 0 } }, back = { .ids = { 0 } };
	uint32_t                  numbers[MONITOR_PROFILES_MAX];
	scoped_fd                 fd = -1;
	bool                      is_config, same = true;
	struct err                e;

	for (uint32_t i = 0; i < MONITOR_PROFILES_MAX; i++)
		numbers[i] = 100 + i % 20;
	if (rules_load(&is, &from, on_left_out, NULL, &is_config, &e) < 0 ||
	    (fd = rules_to_sealed_file(&is, numbers, &e)) < 0)
		exit(EXIT_FAILURE);
	tap_ok(rules_from_sealed_file(&back, fd, &places, &e) == 0 && back.profiles.n == is.profiles.n &&
	       is.profiles.n >= 5, "all profiles come through");
	for (size_t i = 0; i < back.profiles.n; i++)
		same &= is_same(is.profiles.item[i], back.profiles.item[i]) && back.profiles.item[i]->index == numbers[i] && back.profiles.item[i]->filter_fd < 0;
	tap_ok(same, "as they were read, with the monitor's numbers and without a filter");
	tap_ok(back.access.n == 1 && back.access.rule[0].id == geteuid() && back.config.runs == is.config.runs, "access and quotas, too");
}

static void check_wrong_config(void)
{
	struct reader_files       files = { .name = "known" };
	const struct rules_source from  = { &places, &files, MONITOR_USER, { 0 } };
	scoped_rules              is    = { .ids = { 0 } };
	bool                      is_config;
	struct err                e;

	snprintf(files.config, sizeof files.config, "/tmp/brig-test-no-such-file");
	tap_ok(rules_load(&is, &from, on_left_out, NULL, &is_config, &e) < 0 && is_config, "a configuration that was named and is not there is an error");
	rules_skip_missing_config(&files);
	tap_ok(*files.config, "and is not passed over");
	files.is_optional = true;
	rules_skip_missing_config(&files);
	tap_ok(rules_load(&is, &from, on_left_out, NULL, &is_config, &e) == 0 && is.config.runs == 64, "the usual one may be missing");
}

/* A file in the place of a folder: what a folder on a disk that fails is to the process that reads it. */
static void check_folder(void)
{
	const struct reader_files files = { .is_optional = true };
	struct brig_paths         some  = places;
	const struct rules_source from  = { &some, &files, MONITOR_USER, { 0 } };
	scoped_rules              is    = { .ids = { 0 } }, without = { .ids = { 0 } };
	bool                      is_config;
	struct err                e     = { 0 };

	snprintf(some.profiles[PROFILES_HOST], sizeof some.profiles[PROFILES_HOST], "%s", TEST_SOURCE "/README.md");
	tap_ok(rules_load(&is, &from, on_left_out, NULL, &is_config, &e) < 0 && strcmp(e.text, TEST_SOURCE "/README.md: Not a directory") == 0,
	       "a folder of profiles that cannot be read is no empty one");
	snprintf(some.profiles[PROFILES_HOST], sizeof some.profiles[PROFILES_HOST], "%s", TEST_SOURCE "/no-such-folder");
	tap_ok(rules_load(&without, &from, on_left_out, NULL, &is_config, &e) == 0 && without.profiles.n >= 5, "one that does not exist is");
}

/* --- what the server does not take --- */

#define HEAD "{\"config\":\"{}\",\"access\":[[false,0,1,2,3,4,5]],\"profiles\":"
#define PROFILE(name, number) "{\"name\":\"" name "\",\"text\":\"{\\\"rootfs\\\":\\\"basic\\\",\\\"policy\\\":\\\"python\\\"}\",\"number\":" number ",\"filter_sha256\":\"\",\"packages\":[]}"

static const struct {
	const char *name, *text, *said; /* said NULL: it is taken */
} rows[] = {
	{ "no profile at all is taken", HEAD "[]}", NULL },
	{ "a complete profile is taken", HEAD "[" PROFILE("a", "7") "]}", NULL },
	{ "a list is refused", "[]", "rules" },
	{ "a configuration that is wrong is refused", "{\"config\":\"{\\\"runs\\\":0}\",\"access\":[],\"profiles\":[]}", "runs" },
	{ "no configuration is refused", "{\"access\":[],\"profiles\":[]}", "rules" },
	{ "an access that is no list of rules is refused", "{\"config\":\"{}\",\"access\":[7],\"profiles\":[]}", "access[0]" },
	{ "a number that no monitor gives is refused", HEAD "[" PROFILE("a", "128") "]}", "profile 0" },
	{ "a negative one, too", HEAD "[" PROFILE("a", "-1") "]}", "profile 0" },
	{ "a profile without a text is refused", HEAD "[{\"name\":\"a\"}]}", "profile 0" },
	{ "one that does not parse is named", HEAD "[{\"name\":\"a\",\"text\":\"{}\",\"number\":1,\"filter_sha256\":\"\",\"packages\":[]}]}", "profile a" },
};

static void check_texts(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		scoped_rules r  = { .ids = { 0 } };
		scoped_fd    fd = text_fd(rows[i].text);
		struct err   e  = { 0 };
		int          is = rules_from_sealed_file(&r, fd, &places, &e);

		tap_ok(rows[i].said ? is < 0 && strstr(e.text, rows[i].said) : is == 0, "%s", rows[i].name);
		if (rows[i].said && is < 0 && !strstr(e.text, rows[i].said))
			printf("# %s\n", e.text);
	}
}

static void check_unsealed(void)
{
	scoped_fd    fd = memfd_create("rules", MFD_CLOEXEC);
	scoped_rules r  = { .ids = { 0 } };
	struct err   e;

	tap_ok(write(fd, HEAD "[]}", sizeof HEAD "[]}" - 1) > 0 && rules_from_sealed_file(&r, fd, &places, &e) < 0,
	       "a file that could still change is refused");
}

int main(void)
{
	struct err e;

	setenv("BRIG_PRESETS", TEST_SOURCE "/profiles", 1);
	if (brig_paths_find(&places, &e) < 0)
		return EXIT_FAILURE;
	check_round();
	check_wrong_config();
	check_folder();
	check_texts();
	check_unsealed();
	return tap_done();
}
