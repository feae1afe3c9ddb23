#include "mountinfo.h"
#include "tap.h"

#define V2 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"

static const struct {
	const char *name, *text;
	const char *want; /* "root at type options" of the first mount; NULL: there is none */
} rows[] = {
	{ "a mount is read", V2, "/ /sys/fs/cgroup cgroup2 rw,nsdelegate" },
	{ "a part of a file system is told", "1 2 0:3 /docker/a /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n",
	  "/docker/a /sys/fs/cgroup/memory cgroup rw,memory" },
	{ "several optional fields are passed over", "1 2 0:3 / /a rw shared:1 master:2 propagate_from:3 - ext4 /dev/a rw\n", "/ /a ext4 rw" },
	{ "a blank in a path is undone", "1 2 0:3 /a\\040b /c\\134d rw - ext4 /dev/a rw\n", "/a b /c\\d ext4 rw" },
	{ "a path of one dash is a path", "1 2 0:3 - - rw - ext4 /dev/a rw\n", "- - ext4 rw" },
	{ "a last line without an end is read", "1 2 0:3 / /a rw - ext4 /dev/a rw", "/ /a ext4 rw" },
	{ "a line without its second half is passed over", "1 2 0:3 / /a rw\n" V2, "/ /sys/fs/cgroup cgroup2 rw,nsdelegate" },
	{ "a line without options of the file system is passed over", "1 2 0:3 / /a rw - ext4 /dev/a\n", NULL },
	{ "an empty line is passed over", "\n\n" V2, "/ /sys/fs/cgroup cgroup2 rw,nsdelegate" },
	{ "an escaped end of a text is refused", "1 2 0:3 /a\\000b /c rw - ext4 /dev/a rw\n", NULL },
	{ "a device without its second number is refused", "1 2 0 / /a rw - ext4 /dev/a rw\n", NULL },
	{ "an empty text has no mounts", "", NULL },
};

static const struct {
	const char *name, *root, *path;
	const char *want; /* NULL: not below */
} strips[] = {
	{ "below the whole, a path stays", "/", "/a/b", "/a/b" },
	{ "the root of the whole is empty", "/", "/", "" },
	{ "an empty path is the root", "/", "", "" },
	{ "a prefix goes", "/a", "/a/b", "/b" },
	{ "the mounted part itself is its root", "/a/b", "/a/b", "" },
	{ "a name that only begins alike is not below", "/a", "/ab", NULL },
	{ "a group above the mounted part is not below", "/a/b", "/a", NULL },
	{ "what lies above our own namespace is not below", "/../..", "/a", NULL },
};

static void check_row(size_t i)
{
	struct mountinfo m     = { .root = "untouched" };
	size_t           at    = 0;
	char             got[128];
	bool             found = mountinfo_next(rows[i].text, strlen(rows[i].text), &at, &m);

	snprintf(got, sizeof got, "%.20s %.30s %.20s %.40s", m.root, m.at, m.type, m.options);
	if (rows[i].want)
		tap_is(found ? got : NULL, rows[i].want, rows[i].name);
	else
		tap_ok(!found && strcmp(m.root, "untouched") == 0, "%s", rows[i].name);
}

int main(void)
{
	char             big[4096] = "1 2 0:3 / /";
	struct mountinfo m;
	size_t           at = 0, n = 0;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_row(i);
	for (size_t i = 0; i < ARRAY_LEN(strips); i++) {
		char path[32];
		bool is_below;

		snprintf(path, sizeof path, "%s", strips[i].path);
		is_below = mountinfo_strip_root(strips[i].root, path);
		tap_is(is_below ? path : NULL, strips[i].want ? strips[i].want : "(null)", strips[i].name);
	}
	while (mountinfo_next(V2 V2 V2, 3 * strlen(V2), &at, &m))
		n++;
	tap_ok(n == 3 && at == 3 * strlen(V2), "every line is a mount");
	tap_ok(m.major == 0 && m.minor == 26, "its device has two numbers");
	memset(big + strlen(big), 'a', 2000);
	strcat(big, " rw - ext4 /dev/a rw\n");
	at = 0;
	tap_ok(!mountinfo_next(big, strlen(big), &at, &m), "a path that does not fit is passed over, not cut");
	return tap_done();
}
