/* Whose files are obeyed. */
#include "scratch.h"
#include "trust.h"

/* clang-format off */
static const struct { const char *what; uid_t owner; mode_t file, folder; uid_t of_folder; const char *refused; } rows[] = {
	{ "one's own file in one's own folder is read",       0, 0644, 0755,  0,    NULL },
	{ "its group may read it",                            0, 0640, 0750,  0,    NULL },
	{ "one of another user is not",                       1234, 0644, 0755, 0,  "belongs to uid 1234; it must be root's" },
	{ "nor one that its group may write to",              0, 0664, 0755,  0,    "its group may write to it; type: chmod go-w" },
	{ "nor one that all may write to",                    0, 0646, 0755,  0,    "all users may write to it; type: chmod go-w" },
	{ "nor one's own in the folder of another user",      0, 0644, 0755,  1234, "belongs to uid 1234" },
	{ "nor in one that others may write to",              0, 0644, 0757,  0,    "all users may write to it" },
	{ "but in one where nobody removes what is another's", 0, 0644, 01777, 0,   NULL },
};
/* clang-format on */

int main(void)
{
	char         folder[256];
	const char  *file;
	struct bytes text;
	struct err   e;

	if (geteuid() != 0) {
		printf("ok # skip root is missed: files of other users\n");
		return tap_done();
	}
	scratch_make(folder);
	file = scratch_path(folder, "file");
	must(mknod(file, S_IFREG | 0644, 0) == 0, file);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool read;

		must(chown(file, rows[i].owner, 0) == 0 && chmod(file, rows[i].file) == 0, file);
		must(chown(folder, rows[i].of_folder, 0) == 0 && chmod(folder, rows[i].folder) == 0, folder);
		read = trust_read(file, 64, &text, &e) == 0;
		tap_ok(rows[i].refused ? !read && strstr(e.text, rows[i].refused) : read, "%s", rows[i].what);
		if (read)
			bytes_done(&text);
	}
	scratch_remove(folder);
	return tap_done();
}
