/* fuzz_mountinfo.c - any bytes as /proc/self/mountinfo, NUL, a root, NUL, a path: mounts are whole, and a path below a root stays below it */
#include "fuzz.h"
#include "mountinfo.h"

/* As the kernel escapes it; how many bytes that took. */
static size_t print_escaped(FILE *out, const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += fprintf(out, strchr(" \t\n\\", *text) ? "\\%03o" : "%c", (unsigned char)*text);
	return (size_t)n;
}

static void must_read_the_same(const struct mountinfo *m)
{
	char            *line = NULL;
	size_t           len, at = 0, longest;
	struct mountinfo again;
	FILE            *out = open_memstream(&line, &len);

	must(out);
	fputs("36 35 98:0 ", out);
	longest = print_escaped(out, m->root);
	fputc(' ', out);
	size_t n = print_escaped(out, m->at);
	longest  = n > longest ? n : longest;
	fprintf(out, " rw master:1 - %s source %s\n", m->type, m->options);
	fclose(out);
	if (longest >= sizeof m->root) { /* escapes that the kernel would have written make it too long: passed over */
		free(line);
		return;
	}
	must_about(line, mountinfo_next(line, len, &at, &again) && at == len);
	must_about(line, strcmp(m->root, again.root) == 0 && strcmp(m->at, again.at) == 0);
	must_about(line, strcmp(m->type, again.type) == 0 && strcmp(m->options, again.options) == 0);
	free(line);
}

static void check_mounts(const char *text, size_t len)
{
	size_t           at = 0, before = 0;
	struct mountinfo m;

	while (mountinfo_next(text, len, &at, &m)) {
		must(at > before && at <= len);
		before = at;
		must(*m.root && *m.at && *m.type && *m.options);
		must_read_the_same(&m);
	}
	must(at == len);
}

/* What is stripped and what stays make the path again. */
static void check_strip(const char *root, const char *path)
{
	char   stays[256];
	size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

	snprintf(stays, sizeof stays, "%s", path);
	if (strcmp(stays, path) != 0)
		return;
	if (!mountinfo_strip_root(root, stays)) {
		must_about(path, strcmp(stays, path) == 0);
		return;
	}
	must_about(path, !*stays || *stays == '/');
	must_about(path, strncmp(path, root, n) == 0 && (strcmp(path + n, stays) == 0 || (!*stays && strcmp(path + n, "/") == 0)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	size_t      len  = strnlen(text, size);
	char       *root, *path;

	check_mounts(text, size); /* with every NUL in it */
	check_mounts(text, len);
	data += len + (len < size);
	size -= len + (len < size);
	root = take_text(&data, &size);
	path = take_text(&data, &size);
	check_strip(root, path);
	free(root);
	free(path);
	return 0;
}
