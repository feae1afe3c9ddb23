#include "access.h"
#include "config.h"
#include "tap.h"

#include <sys/stat.h>
#include <unistd.h>

static const struct {
	const char *name, *json;
	const char *says; /* NULL: accepted */
} rows[] = {
	{ "an empty object is the presets", "{}", NULL },
	{ "the example of the manual is accepted",
	  "{\"ids\":{\"base\":1879048192,\"count\":65536},\"ready\":2,\"runs\":64,\"memory_bytes\":\"8G\","
	  "\"audit\":{\"file\":\"/var/log/brig/audit.jsonl\",\"max_bytes\":\"64M\",\"keep\":4},"
	  "\"access\":[{\"group\":\"brig\",\"profiles\":[\"basic\"],\"runs\":8,\"memory_bytes\":\"2G\",\"runs_per_minute\":600},"
	  "{\"user\":\"alice\"},{\"uid\":1000}]}", NULL },
	{ "an unknown key is refused", "{\"run\":1}", "run: no such setting" },
	{ "an unknown key of a row is refused", "{\"access\":[{\"uid\":1,\"all\":true}]}", "access[0]: all: no such setting" },
	{ "a row without a user is refused", "{\"access\":[{\"runs\":1}]}", "access[0]: give exactly one of user, group and uid" },
	{ "a row with two users is refused", "{\"access\":[{\"uid\":1},{\"uid\":1,\"group\":\"a\"}]}", "access[1]: give exactly one of user, group and uid" },
	{ "a row that is no object is refused", "{\"access\":[1]}", "access[0]: expected an object" },
	{ "a profile that is no name is refused", "{\"access\":[{\"uid\":1,\"profiles\":[\"../x\"]}]}", "access[0]: profiles: \"../x\" is no name" },
	{ "an id that means nobody is refused", "{\"access\":[{\"uid\":4294967295}]}", "access[0]: uid: 4294967295 is outside 0..4294967294" },
	{ "no runs at all is refused", "{\"runs\":0}", "runs: 0 is outside 1..512" },
	{ "a base of ids without a count is refused", "{\"ids\":{\"base\":100000}}", "ids: give both base and count" },
	{ "ids beyond the last are refused", "{\"ids\":{\"base\":2147483000,\"count\":1000}}", "ids: base and count lead beyond 2147483647" },
	{ "ids of accounts are refused", "{\"ids\":{\"base\":65535,\"count\":1000}}", "ids: base: 65535 is outside" },
	{ "fewer ids than a cell for each profile takes are refused", "{\"ids\":{\"base\":100000,\"count\":383}}", "ids: count: 383 is outside" },
	{ "a relative audit file is refused", "{\"audit\":{\"file\":\"audit.jsonl\"}}", "audit: file: \"audit.jsonl\" is no absolute path" },
	{ "a key twice is refused", "{\"runs\":1,\"runs\":2}", "line 1" },
};

static void check_row(size_t i)
{
	scoped_config c  = { 0 };
	struct err    e  = { 0 };
	bool          no = config_parse(&c, rows[i].json, strlen(rows[i].json), &e) < 0;
	bool          ok = no ? rows[i].says && strncmp(e.text, rows[i].says, strlen(rows[i].says)) == 0 : !rows[i].says;

	if (!tap_ok(ok, "%s", rows[i].name))
		printf("#   %s\n", e.text);
}

static void check_values(void)
{
	static const char text[] = "{\"memory_bytes\":\"8G\",\"access\":[{\"uid\":5,\"runs\":3}]}";
	scoped_config     c      = { 0 };
	struct err        e;

	tap_ok(config_parse(&c, text, strlen(text), &e) == 0 && c.memory_bytes == 8 * GIB, "a size is read as in a profile");
	tap_ok(c.runs == 64 && c.ready == 2 && c.audit.keep == 4 && !c.audit.file, "what is not said has its preset");
	tap_ok(c.access_len == 1 && c.access[0].uid == 5 && c.access[0].runs == 3 && !c.access[0].profiles, "so has what a row does not say");
}

static bool may(const struct access *a, uid_t uid, gid_t gid, gid_t extra, uint64_t runs)
{
	struct peer               p      = { .uid = uid, .gid = gid };
	struct peer_groups        groups = { .gid = { extra }, .n = 1 };
	const struct access_rule *r      = access_find(a, &p, &groups);

	return r ? r->quota.runs == runs : runs == 0;
}

static void check_access(void)
{
	static const char text[] = "{\"access\":[{\"uid\":7,\"runs\":1},{\"group\":\"root\",\"runs\":2},{\"uid\":8,\"runs\":3,\"profiles\":[\"basic\"]}]}";
	scoped_config     c      = { 0 };
	struct access     a;
	struct err        e;

	tap_ok(config_parse(&c, text, strlen(text), &e) == 0 && access_build(&a, &c, &e) == 0, "rows become ids");
	tap_ok(may(&a, 7, 0, 0, 1), "the first row that fits counts");
	tap_ok(may(&a, 9, 0, 9, 2), "a group fits by the first group of a process");
	tap_ok(may(&a, 9, 9, 0, 2), "and by any other");
	tap_ok(may(&a, 9, 9, 9, 0), "whom no row fits is refused");
	tap_ok(may(&a, 0, 9, 9, 16), "root is let in without a row, with the presets of one");
	tap_ok(may(&a, 0, 9, 0, 2), "and by a row that fits, if there is one");
	tap_ok(access_allows(&a.rule[0], "strict"), "without a list every profile may be used");
	tap_ok(access_allows(&a.rule[2], "basic") && !access_allows(&a.rule[2], "strict"), "with one only its own");
	access_build_for_user(&a, 7);
	tap_ok(may(&a, 7, 9, 9, 16) && may(&a, 0, 0, 0, 0), "a user's own service is nobody else's");
}

static void check_access_as_text(void)
{
	static const char text[] = "{\"access\":[{\"uid\":7,\"runs\":1},{\"group\":\"root\",\"runs\":2,\"profiles\":[\"basic\"]}]}";
	scoped_config     c      = { 0 };
	struct access     a, b;
	struct err        e;
	json_t           *told;

	if (config_parse(&c, text, strlen(text), &e) < 0 || access_build(&a, &c, &e) < 0)
		exit(EXIT_FAILURE);
	told = access_to_json(&a);
	tap_ok(access_from_json(&b, &c, told, &e) == 0 && may(&b, 7, 0, 0, 1) && may(&b, 9, 0, 9, 2) && may(&b, 9, 9, 9, 0) && may(&b, 0, 9, 9, 16),
	       "rows of numbers say the same");
	tap_ok(access_allows(&b.rule[0], "strict") && !access_allows(&b.rule[1], "strict") && access_allows(&b.rule[1], "basic"),
	       "with the lists of profiles of the configuration");
	json_array_append_new(told, json_pack("[b i]", 1, 0));
	tap_ok(access_from_json(&b, &c, told, &e) < 0 && strstr(e.text, "access[3]"), "what is no rule is named");
	json_array_clear(told);
	tap_ok(access_from_json(&b, &c, told, &e) < 0, "a row of the configuration that is missing is an error");
	json_decref(told);
}

static const char *differ(const char *is, const char *wish)
{
	scoped_config a = { 0 }, b = { 0 };
	struct err    e;

	if (config_parse(&a, is, strlen(is), &e) < 0 || config_parse(&b, wish, strlen(wish), &e) < 0)
		exit(EXIT_FAILURE);
	return config_changes_needing_restart(&a, &b);
}

static void check_differences(void)
{
	static const char ids[] = "{\"ids\":{\"base\":100000,\"count\":65536}}", file[] = "{\"audit\":{\"file\":\"/a/b\"}}";

	tap_ok(!differ("{}", "{\"runs\":3,\"ready\":1,\"access\":[]}"), "quotas and access can change while a service lives");
	tap_ok(!differ(ids, ids) && !differ(file, file), "what is the same does not differ");
	tap_is(differ("{}", ids), "ids", "host ids are for life");
	tap_is(differ("{}", file), "audit", "so is the audit's file");
	tap_is(differ("{}", "{\"audit\":{\"keep\":9}}"), "audit", "and how much of it is kept");
	tap_is(differ(ids, file), "ids, audit", "both are named");
}

static void check_unknown_names(void)
{
	static const char text[] = "{\"access\":[{\"group\":\"no-such-group\"}]}";
	scoped_config     c      = { 0 };
	struct access     a;
	struct err        e;

	tap_ok(config_parse(&c, text, strlen(text), &e) == 0 && access_build(&a, &c, &e) < 0, "a rule for a group that is not there is an error");
	tap_is(e.text, "access[0]: there is no group \"no-such-group\" on this host", "which names it");
}

static void check_file(void)
{
	char          path[] = "/tmp/brig-test-config-XXXXXX";
	int           fd     = mkstemp(path);
	scoped_config c      = { 0 };
	struct err    e      = { 0 };

	if (fd < 0 || write(fd, "{}", 2) != 2)
		exit(EXIT_FAILURE);
	tap_ok(config_load(&c, path, path, &e) == 0, "a file of one's own is read");
	tap_ok(fchmod(fd, 0666) == 0 && config_load(&c, path, path, &e) < 0 && strstr(e.text, "all users may write"), "one that everybody may write is not");
	unlink(path);
	close(fd);
	tap_ok(config_load(&c, path, path, &e) < 0 && strstr(e.text, path), "one that is not there is named");
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_row(i);
	check_values();
	check_access();
	check_access_as_text();
	check_differences();
	check_unknown_names();
	check_file();
	return tap_done();
}
