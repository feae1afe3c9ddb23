#include "cg_path.h"
#include "tap.h"

static const char hybrid[] = "9:name=systemd:/\n8:pids:/\n4:memory:/a/b\n3:cpu,cpuacct:/c/\n0::/user.slice\n";

static const struct {
	const char *name, *text, *controller;
	const char *path; /* NULL: none */
} rows[] = {
	{ "a v1 controller is found by its name", hybrid, "memory", "/a/b" },
	{ "the root group is an empty path", hybrid, "pids", "" },
	{ "a controller that is mounted with another is found", hybrid, "cpuacct", "/c" },
	{ "the v2 group has no controller", hybrid, "", "/user.slice" },
	{ "a controller that is not there is not found", hybrid, "blkio", NULL },
	{ "a name that is part of another is not found", hybrid, "mem", NULL },
	{ "a named hierarchy is no controller", hybrid, "systemd", NULL },
	{ "an empty file has nothing", "", "memory", NULL },
	{ "a line without colons has nothing", "memory\n", "memory", NULL },
	{ "a group above our own namespace is refused", "4:memory:/../x\n", "memory", NULL },
	{ "a last line without an end was cut, and is refused", "4:memory:/x", "memory", NULL },
	{ "a path that does not begin at the root is refused", "4:memory:x\n", "memory", NULL },
	{ "a line without a path is refused", "4:memory:\n", "memory", NULL },
	{ "a path that does not fit is refused", "4:memory:/0123456789012345678901234567890123456789\n", "memory", NULL },
};

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char path[32] = "untouched";
		int  r        = cg_path_find(rows[i].text, rows[i].controller, path, sizeof path);

		tap_ok(rows[i].path ? r == 0 && strcmp(path, rows[i].path) == 0 : r < 0 && strcmp(path, "untouched") == 0, "%s", rows[i].name);
	}
	tap_ok(cg_list_has("cpuset cpu io memory\n", "cpu") && cg_list_has("rw,cpu,cpuacct", "cpuacct"), "a word of a list is found");
	tap_ok(cg_list_has("memory", "memory") && cg_list_has(" \n memory", "memory"), "a word alone is a list");
	tap_ok(!cg_list_has("cpuset cpuacct", "cpu") && !cg_list_has("", "cpu"), "a part of a word is not found");
	tap_ok(cg_find_key_value("low 1\noom 2\noom_kill 3\n", "oom_kill") == 3, "a counter is found by its whole key");
	tap_ok(cg_find_key_value("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", "oom_kill") == 1, "a longer key is another counter");
	tap_ok(cg_find_key_value("max 3", "min") == -1, "a counter that is not there is -1, not 0");
	tap_ok(cg_device_sum("8:0 rbytes=10 wbytes=1\n8:16 rbytes=5 wbytes=2\n", "rbytes=") == 15, "bytes are added over devices");
	tap_ok(cg_find_key_value("oom_kill -7\n", "oom_kill") == -1, "a counter below nothing is no counter");
	tap_ok(cg_device_sum("8:0 rbytes=9223372036854775807\n8:16 rbytes=1\n", "rbytes=") == -1, "a sum that no figure holds is no sum");
	tap_ok(cg_device_sum("", "rbytes=") == 0, "no device has read nothing");
	return tap_done();
}
