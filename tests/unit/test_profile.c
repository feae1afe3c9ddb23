#include "profile.h"
#include "tap.h"

static const struct {
	const char   *name, *json;
	enum err_kind kind;
	const char   *says;
} rows[] = {
	/* sentence, file, answer, beginning of the error */
	{ "the smallest profile is accepted", "{\"rootfs\":\"basic\",\"policy\":\"python\"}", ERR_NONE, "" },
	{ "a profile needs a rootfs", "{\"policy\":\"python\"}", ERR_BAD_SPEC, "rootfs: missing" },
	{ "a profile needs a policy", "{\"rootfs\":\"basic\"}", ERR_BAD_SPEC, "policy: missing" },
	{ "an unknown key is refused", "{\"rootfs\":\"basic\",\"policy\":\"p\",\"net\":1}", ERR_BAD_SPEC, "net: no such setting" },
	{ "an unknown limit is refused by its full name", "{\"rootfs\":\"basic\",\"policy\":\"p\",\"limits\":{\"mem\":1}}", ERR_BAD_SPEC, "limits: mem: no such setting" },
	{ "a duplicate key is refused", "{\"rootfs\":\"a\",\"rootfs\":\"b\",\"policy\":\"p\"}", ERR_PROTOCOL, "line 1" },
	{ "pids zero is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"limits\":{\"pids\":0}}", ERR_BAD_SPEC, "limits: pids: 0 is outside 1..32768" },
	{ "a negative limit is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"limits\":{\"pids\":-1}}", ERR_BAD_SPEC, "limits: pids: expected a whole number from 1 to 32768, not -1" },
	{ "a time without its unit is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"limits\":{\"wall_ms\":\"30\"}}", ERR_BAD_SPEC, "limits: wall_ms: expected milliseconds as a number, or a time with its unit: \"250ms\", \"90s\", \"5m\", \"1h\", \"1d\", not \"30\"" },
	{ "a limit as text is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"limits\":{\"pids\":\"64\"}}", ERR_BAD_SPEC, "limits: pids: expected a whole number from 1 to 32768, not \"64\"" },
	{ "a size may be written 64M", "{\"rootfs\":\"b\",\"policy\":\"p\",\"limits\":{\"memory_bytes\":\"64M\"}}", ERR_NONE, "" },
	{ "a size that is none is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"limits\":{\"memory_bytes\":\"lots\"}}", ERR_BAD_SPEC, "limits: memory_bytes: expected a size (\"64M\") from 8M to 1T, not \"lots\"" },
	{ "half a CPU may be asked for", "{\"rootfs\":\"b\",\"policy\":\"p\",\"limits\":{\"cpus\":0.5}}", ERR_NONE, "" },
	{ "a default above its ceiling is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"limits\":{\"pids\":300}}", ERR_BAD_SPEC, "limits: pids: 300 is above its ceiling 256" },
	{ "a rootfs with a slash is refused", "{\"rootfs\":\"../etc\",\"policy\":\"p\"}", ERR_BAD_SPEC, "rootfs: \"../etc\" is no name" },
	{ "a NUL inside a text is refused", "{\"rootfs\":\"a\\u0000b\",\"policy\":\"p\"}", ERR_PROTOCOL, "line 1" },
	{ "require takes one of two words", "{\"rootfs\":\"b\",\"policy\":\"p\",\"require\":\"some\"}", ERR_BAD_SPEC, "require: \"some\" is none of mode, all" },
	{ "warm takes one of two words", "{\"rootfs\":\"b\",\"policy\":\"p\",\"warm\":\"always\"}", ERR_BAD_SPEC, "warm: \"always\" is none of never, demand, ready" },
	{ "a zygote for no run is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"zygote_runs\":0}", ERR_BAD_SPEC, "zygote_runs: " },
	{ "what is preloaded has the name of a module", "{\"rootfs\":\"b\",\"policy\":\"p\",\"preload\":[\"os\",\"x\\\";y\"]}", ERR_BAD_SPEC, "preload[1]: " },
	{ "modules and calls are names", "{\"rootfs\":\"b\",\"policy\":\"p\",\"modules\":[\"os.path\",\"_x9\"],\"calls\":[\"eval\",\"os.system\",\"subprocess.*\"]}", ERR_NONE, "" },
	{ "no module at all may be allowed", "{\"rootfs\":\"b\",\"policy\":\"p\",\"modules\":[]}", ERR_NONE, "" },
	{ "a module with a comma is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"modules\":[\"os\",\"a,b\"]}", ERR_BAD_SPEC, "modules[1]: \"a,b\" is not a valid name" },
	{ "any module is no module", "{\"rootfs\":\"b\",\"policy\":\"p\",\"modules\":[\"*\"]}", ERR_BAD_SPEC, "modules[0]: \"*\" is not a valid name" },
	{ "all of a module are no module", "{\"rootfs\":\"b\",\"policy\":\"p\",\"modules\":[\"os.*\"]}", ERR_BAD_SPEC, "modules[0]: \"os.*\" is not a valid name" },
	{ "a call with brackets is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"calls\":[\"eval()\"]}", ERR_BAD_SPEC, "calls[0]: \"eval()\" is not a valid name" },
	{ "all calls are no call", "{\"rootfs\":\"b\",\"policy\":\"p\",\"calls\":[\".*\"]}", ERR_BAD_SPEC, "calls[0]: \".*\" is not a valid name" },
	{ "modules are a list", "{\"rootfs\":\"b\",\"policy\":\"p\",\"modules\":\"os\"}", ERR_BAD_SPEC, "modules: " },
	{ "a description with an escape sequence is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"description\":\"a\\u001b[2J\"}", ERR_BAD_SPEC, "description: has a control" },
	{ "a description that reads backwards is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"description\":\"a\\u202eb\"}", ERR_BAD_SPEC, "description: has a control" },
	{ "a description may be in any language", "{\"rootfs\":\"b\",\"policy\":\"p\",\"description\":\"\\u05d0\\u00e9\"}", ERR_NONE, "" },
	{ "packages come from one index", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"index\":\"https://pypi.example/simple/\",\"hosts\":[\"files.example\"]}}", ERR_NONE, "" },
	{ "or from nowhere", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{}}", ERR_NONE, "" },
	{ "or from a directory", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"find_links\":\"/srv/wheels\"}}", ERR_NONE, "" },
	{ "but not from both", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"index\":\"https://pypi.example/\",\"find_links\":\"/srv\"}}", ERR_BAD_SPEC, "packages: index and find_links" },
	{ "a relative directory of wheels is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"find_links\":\"wheels\"}}", ERR_BAD_SPEC, "packages: find_links" },
	{ "hosts without an index are refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"hosts\":[\"a.example\"]}}", ERR_BAD_SPEC, "packages: hosts" },
	{ "an index is an address", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"index\":\"pypi.example\"}}", ERR_BAD_SPEC, "packages: index: \"pypi.example\" is no address" },
	{ "one with a password is refused", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"index\":\"https://me:secret@pypi.example/\"}}", ERR_BAD_SPEC, "packages: index: has a user name" },
	{ "one on the jail's own loopback, too", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"index\":\"http://localhost:3141/\"}}", ERR_BAD_SPEC, "packages: index: " },
	{ "and one that is every host", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"index\":\"https://*.example/\"}}", ERR_BAD_SPEC, "packages: index: " },
	{ "a private index and a network for programs are two profiles", "{\"rootfs\":\"b\",\"policy\":\"p\",\"network\":{\"allow\":[\"*.example\"]},\"packages\":{\"index\":\"https://a.example/\",\"hosts\":[{\"host\":\"a.example\",\"private\":true}]}}", ERR_BAD_SPEC, "packages: hosts[0]: private" },
	{ "a password is not printed, whatever is in it", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"index\":\"https://me:se#cret@pypi.example/\"}}", ERR_BAD_SPEC, "packages: index: has a user name" },
	{ "hosts of an index have no methods", "{\"rootfs\":\"b\",\"policy\":\"p\",\"packages\":{\"index\":\"https://a.example/\",\"hosts\":[{\"host\":\"b.example\",\"methods\":[\"GET\"]}]}}", ERR_BAD_SPEC, "packages: hosts[0]" },
	{ "a list is no profile", "[]", ERR_PROTOCOL, "expected an object" },
	{ "left-over bytes are refused", "{} x", ERR_PROTOCOL, "line 1" },
	{ "nothing is no profile", "", ERR_PROTOCOL, "0 bytes" },
	{ "deep nesting is refused before it is parsed", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", ERR_PROTOCOL, "line 1: nested deeper" },
};

static void check_presets(void)
{
	scoped_profile p    = { 0 };
	struct err     e    = { 0 };
	const char    *text = "{\"rootfs\":\"basic\",\"policy\":\"python\",\"limits\":{\"cpus\":0.5}}";

	tap_ok(profile_parse(&p, "x", text, strlen(text), &e) == 0, "a profile with one limit is accepted");
	tap_ok(p.limits.cpus == 500, "0.5 CPUs are 500 thousandths");
	tap_ok(p.limits.memory_bytes == 256 * MIB && p.ceilings.memory_bytes == GIB, "what is not said has its preset");
	tap_ok(p.workspace_exec && p.require == REQUIRE_MODE, "the workspace may execute unless the profile says no");
	tap_ok(p.warm == WARM_DEMAND, "runs are warm unless the profile says otherwise");
}

/* Each name is within its bounds, all of them together are not. */
static void check_many_modules(void)
{
	scoped_profile p       = { 0 };
	struct err     e       = { 0 };
	json_t        *profile = json_pack("{ss ss s[]}", "rootfs", "b", "policy", "p", "modules");
	char          *text;

	for (int i = 0; i < 200; i++)
		json_array_append_new(json_object_get(profile, "modules"), json_sprintf("a%093d", i));
	text = json_dumps(profile, 0);
	tap_ok(profile_parse(&p, "x", text, strlen(text), &e) < 0 && strstr(e.text, "modules: more than 16K"), "names have no more room than a message has");
	free(text);
	json_decref(profile);
}

static void check_options(void)
{
	struct limits l;
	struct err    e = { 0 };

	fields_set_presets(limits_fields, &l);
	tap_is(limits_option_name("memory_bytes"), "memory", "the option of memory_bytes is --memory");
	tap_ok(field_from_text(field_find(limits_fields, "memory_bytes"), "64M", &l, &e) == 0 && l.memory_bytes == 64 * MIB,
	       "an option reads the same units as the file");
	tap_ok(field_from_text(field_find(limits_fields, "wall_ms"), "soon", &l, &e) < 0, "a bad option is refused");
	tap_ok(field_from_text(field_find(limits_fields, "wall_ms"), "1h", &l, &e) == 0 && l.wall_ms == 3600000, "a time may have its unit");
	tap_is(e.text, "\"soon\" is not a time, like 30, 0.5, 90s, 5m, 1h or 1d", "a bad option says what to write instead");
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		scoped_profile p  = { 0 };
		struct err     e  = { 0 };
		bool           ok = (profile_parse(&p, "x", rows[i].json, strlen(rows[i].json), &e) == 0) == (rows[i].kind == ERR_NONE);

		if (!tap_ok(ok && e.kind == rows[i].kind && strncmp(e.text, rows[i].says, strlen(rows[i].says)) == 0, "%s", rows[i].name))
			printf("#   %s: %s\n", err_kind_name(e.kind), e.text);
	}
	check_presets();
	check_many_modules();
	check_options();
	return tap_done();
}
