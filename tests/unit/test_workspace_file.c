/* Files of /workspace as models name them: paths, patterns that match one path, and what a call wants to put there. */
#include "file_stream.h"
#include "tap.h"
#include "workspace_file.h"

/* clang-format off */
static const struct { const char *given, *want; } paths[] = {
	{ "a.txt", "a.txt" }, { "./a.txt", "a.txt" }, { "/workspace/d/a.txt", "d/a.txt" }, { "a b\n.txt", "a b\n.txt" }, { "workspace/a", "workspace/a" },
	{ "", NULL }, { "/", NULL }, { "/etc/passwd", NULL }, { "../a", NULL }, { "a/../b", NULL }, { "a//b", NULL }, { "a/", NULL }, { ".", NULL },
	{ "/workspace", NULL }, { "/workspace/", NULL }, { "/workspace/../a", NULL },
};
static const char *const names[] = { "a.txt", "a*b", "what?", "[x]", "a[b", "]", "back\\slash", "!a", "d/[a-z]*", "\xff" };
static const struct { const char *list, *want; } puts_[] = {
	{ "[]", NULL }, { "[{\"path\":\"a\",\"content\":\"x\"},{\"path\":\"d/b\",\"base64\":\"AAEC\"}]", NULL }, { "{\"path\":\"a\",\"content\":\"\"}", NULL },
	{ "[{\"content\":\"x\"}]", "files[0]: path: missing" },
	{ "[{\"path\":\"a\",\"content\":\"\"},{\"path\":\"a\"}]", "files[1]: a: expected content, a text, or base64, bytes" },
	{ "[{\"path\":\"a\",\"content\":\"\",\"base64\":\"\"}]", "files[0]: a: expected content, a text, or base64, bytes" },
	{ "[{\"path\":\"a\",\"base64\":\"AAE\"}]", "files[0]: base64: damaged; write the standard alphabet with its padding, and no blanks" },
	{ "[{\"path\":\"a\",\"content\":7}]", "files[0]: content: expected text, not 7" },
	{ "[{\"path\":\"a\",\"data\":\"x\"}]", "files[0]: data: no such setting" },
	{ "[{\"path\":\"../a\",\"content\":\"x\"}]", "files[0]: path: \"../a\" has . or .. in it; name a file as it lies below /workspace, like data/a.csv" },
	{ "[{\"path\":\"/etc/a\",\"content\":\"x\"}]", "files[0]: path: \"/etc/a\" is not there; name a file as it lies below /workspace, like data/a.csv" },
};
/* clang-format on */

static void check_pattern(const char *name)
{
	char *pattern = workspace_file_exact_pattern(name);

	tap_ok(pattern && file_pattern_matches(pattern, name) == strlen(name), "the pattern of \"%s\" matches it", strcmp(name, "\xff") ? name : "\\xff");
	tap_ok(pattern && !file_pattern_matches(pattern, "axb") && !file_pattern_matches(pattern, "whatx") && !file_pattern_matches(pattern, "x"), "and nothing else");
	free(pattern);
}

/* Entries, each header followed by its name and bytes; two of them are ends, which come last. */
static void check_puts(const char *list, const char *want)
{
	json_t    *given = json_loads(list, 0, NULL);
	size_t     len   = 0, ends = 0, at = 0;
	struct err e     = { 0 };
	char      *bytes = workspace_file_make_puts(given, &len, &e);

	if (want)
		tap_ok(!bytes && tap_is(e.text, want, "with these words"), "%s is refused", list);
	while (bytes && at + sizeof(struct file_entry) <= len) {
		struct file_entry entry;

		memcpy(&entry, bytes + at, sizeof entry);
		ends += entry.kind == FILE_END;
		at += sizeof entry + entry.name_len + entry.bytes;
	}
	if (!want)
		tap_ok(bytes && at == len && ends == 2, "%s becomes two lists", list);
	free(bytes);
	json_decref(given);
}

int main(void)
{
	char       long_name[1100];
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		const char *path = workspace_file_parse_path(paths[i].given, &e);

		tap_ok(paths[i].want ? path && strcmp(path, paths[i].want) == 0 : !path && *e.text, "\"%s\" is %s", strcmp(paths[i].given, "a b\n.txt") ? paths[i].given : "a b\\n.txt",
		       paths[i].want ? "a path" : "none");
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		check_pattern(names[i]);
	memset(long_name, '*', sizeof long_name);
	long_name[1000] = 0;
	tap_ok(!workspace_file_exact_pattern(long_name), "a path that is too long for a pattern has none");
	for (size_t i = 0; i < ARRAY_LEN(puts_); i++)
		check_puts(puts_[i].list, puts_[i].want);
	return tap_done();
}
