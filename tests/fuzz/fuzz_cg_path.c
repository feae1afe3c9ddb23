/* fuzz_cg_path.c - any bytes as /proc/self/cgroup and as a counter file: paths stay below the mount, figures are figures */
#include "fuzz.h"
#include "cg_path.h"

static void must_stay_below(const char *text, const char *controller, size_t room)
{
	char path[64] = "untouched";

	if (cg_path_find(text, controller, path, room) < 0) {
		must(strcmp(path, "untouched") == 0);
		return;
	}
	size_t n = strlen(path);
	must(n < room);
	must_about(path, n == 0 || (path[0] == '/' && path[n - 1] != '/'));
	must_about(path, !strstr(path, "/../") && !(n >= 3 && strcmp(path + n - 3, "/..") == 0));
	must_about(path, strstr(text, path) && !strchr(path, '\n'));
}

/* Cut into words by the C library. */
static bool is_a_word(const char *list, const char *word)
{
	char *copy = strdup(list), *rest;
	bool  found = false;

	must(copy);
	for (char *at = strtok_r(copy, " ,\n", &rest); at && !found; at = strtok_r(NULL, " ,\n", &rest))
		found = strcmp(at, word) == 0;
	free(copy);
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const controllers[] = { "", "memory", "pids", "cpu", "cpuacct", "blkio" };
	static const char *const keys[]        = { "oom_kill", "usage_usec", "max" };
	char                    *text          = take_text(&data, &size);

	for (size_t i = 0; i < ARRAY_LEN(controllers); i++) {
		must_stay_below(text, controllers[i], 64);
		must_stay_below(text, controllers[i], 12);
		must_about(text, !*controllers[i] || cg_list_has(text, controllers[i]) == is_a_word(text, controllers[i]));
	}
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		must(cg_find_key_value(text, keys[i]) >= -1);
	must(cg_device_sum(text, "rbytes=") >= -1);
	free(text);
	return 0;
}
