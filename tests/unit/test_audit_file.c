#define _GNU_SOURCE
#include "audit_file.h"
#include "fd.h"
#include "scratch.h"
#include "sys.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static struct audit_file open_at(const char *folder, uint64_t max_bytes, unsigned keep)
{
	struct audit_file f = AUDIT_FILE_NONE;
	struct err        e = { 0 };

	if (audit_file_open(&f, scratch_path(folder, "log"), max_bytes, keep, &e) < 0)
		printf("# %s\n", e.text);
	return f;
}

static int add(struct audit_file *f, const char *line)
{
	return audit_file_append_line(f, line, strlen(line));
}

static void check_lines(const char *folder)
{
	mode_t            mask = umask(022);
	struct audit_file f    = open_at(folder, 1000, 2);
	struct stat       st   = { 0 };

	tap_ok(add(&f, "one\n") == 0 && add(&f, "two\n") == 0, "lines are taken");
	tap_is(scratch_read(folder, "log"), "one\ntwo\n", "and are in the file in their order");
	stat(scratch_path(folder, "log"), &st);
	tap_ok((st.st_mode & 07777) == 0640, "which everybody but owner and group is kept out of");
	tap_ok((fcntl(f.fd, F_GETFL) & O_ACCMODE) == O_WRONLY && fcntl(f.fd, F_GETFD) & FD_CLOEXEC, "whoever takes us over cannot read it");
	audit_file_close(&f);
	f = open_at(folder, 1000, 2);
	add(&f, "three\n");
	tap_is(scratch_read(folder, "log"), "one\ntwo\n\nthree\n", "the next start goes on, on a line of its own");
	add(&f, "four\n");
	tap_is(scratch_read(folder, "log"), "one\ntwo\n\nthree\nfour\n", "and only its first line needs that");
	audit_file_close(&f);
	audit_file_close(&f);
	umask(mask);
	scratch_empty(folder);
}

static void check_rotation(const char *folder)
{
	struct audit_file f = open_at(folder, 8, 2);

	add(&f, "1234567\n");
	tap_ok(access(scratch_path(folder, "log.1"), F_OK) < 0, "a file may be as large as it may");
	add(&f, "b\n");
	tap_is(scratch_read(folder, "log.1"), "1234567\n", "a line that does not fit begins another file");
	tap_is(scratch_read(folder, "log"), "b\n", "and is whole in it");
	add(&f, "234567\n");
	add(&f, "345678\n");
	tap_is(scratch_read(folder, "log.2"), "b\n", "older files move on");
	add(&f, "456789\n");
	add(&f, "567890\n");
	tap_is(scratch_read(folder, "log.2"), "345678\n", "the oldest goes");
	tap_is(scratch_read(folder, "log"), "567890\n", "the youngest is never another");
	tap_ok(access(scratch_path(folder, "log.3"), F_OK) < 0, "no more are kept than was said");
	add(&f, "longer than a whole file may be\n");
	tap_is(scratch_read(folder, "log"), "longer than a whole file may be\n", "a line longer than a file is not lost");
	audit_file_close(&f);
	scratch_empty(folder);
}

/* The power fails between two renames, at each place where it can. */
static void check_crash(const char *folder)
{
	struct audit_file f;

	scratch_write(folder, "log", "new\n");
	scratch_write(folder, "log.2", "old\n");
	f = open_at(folder, 4, 3);
	add(&f, "now\n");
	tap_is(scratch_read(folder, "log.1"), "new\n", "a gap that a crash left is filled");
	tap_is(scratch_read(folder, "log.2"), "old\n", "and what lies behind it stays");
	tap_is(scratch_read(folder, "log"), "now\n", "and lines go on");
	audit_file_close(&f);
	scratch_empty(folder);
	scratch_write(folder, "log.1", "old\n");
	f = open_at(folder, 100, 3);
	tap_ok(add(&f, "now\n") == 0, "a crash before the new file was made is no loss");
	tap_is(scratch_read(folder, "log"), "now\n", "it is made then");
	audit_file_close(&f);
	scratch_empty(folder);
	scratch_write(folder, "log", "{\"half\":");
	f = open_at(folder, 100, 3);
	add(&f, "now\n");
	tap_is(scratch_read(folder, "log"), "{\"half\":\nnow\n", "half a line garbles no other");
	audit_file_close(&f);
	scratch_empty(folder);
}

static void check_fewer(const char *folder)
{
	struct audit_file f;

	scratch_write(folder, "log.2", "2\n");
	scratch_write(folder, "log.3", "3\n");
	scratch_write(folder, "log.9", "9\n");
	scratch_write(folder, "log.old", "old\n");
	f = open_at(folder, 100, 2);
	tap_ok(access(scratch_path(folder, "log.3"), F_OK) < 0 && access(scratch_path(folder, "log.9"), F_OK) < 0, "when fewer are to be kept, the others go");
	tap_ok(access(scratch_path(folder, "log.2"), F_OK) == 0 && access(scratch_path(folder, "log.old"), F_OK) == 0, "and no more than those");
	audit_file_close(&f);
	scratch_empty(folder);
}

/* Others tidy up while we run. */
static void check_underneath(const char *folder)
{
	struct audit_file f = open_at(folder, 100, 2);
	char              gone[256];
	struct err        e;

	add(&f, "one\n");
	unlink(scratch_path(folder, "log"));
	tap_ok(add(&f, "two\n") == 0, "a file that was removed is made again");
	tap_is(scratch_read(folder, "log"), "two\n", "for the lines that come");
	rename(scratch_path(folder, "log"), scratch_path(folder, "log.elsewhere"));
	add(&f, "three\n");
	tap_is(scratch_read(folder, "log"), "three\n", "one that was renamed as well");
	tap_is(scratch_read(folder, "log.elsewhere"), "two\n", "and is left alone");
	unlink(scratch_path(folder, "log"));
	scratch_write(folder, "victim", "mine\n");
	must(symlink("victim", scratch_path(folder, "log")) == 0, "symlink");
	tap_ok(add(&f, "four\n") == -ELOOP, "a link that was put in its place is not followed");
	unlink(scratch_path(folder, "log"));
	must(link(scratch_path(folder, "victim"), scratch_path(folder, "log")) == 0, "link");
	tap_ok(add(&f, "four\n") < 0, "nor another name of somebody's file written to");
	tap_is(scratch_read(folder, "victim"), "mine\n", "which stays as it is");
	unlink(scratch_path(folder, "log"));
	tap_ok(add(&f, "five\n") == 0, "and when it is gone, lines go on");
	audit_file_close(&f);
	scratch_empty(folder);

	f = open_at(scratch_make(gone), 100, 2);
	add(&f, "one\n");
	scratch_remove(gone);
	tap_ok(add(&f, "two\n") == -ENOENT && add(&f, "three\n") == -ENOENT, "a folder that vanished loses lines, and says so each time");
	audit_file_close(&f);
	tap_ok(audit_file_open(&f, scratch_path(gone, "log"), 100, 2, &e) < 0 && strstr(e.text, gone) && strstr(e.text, "No such file"),
	       "one that is not there is refused by its name");
}

static void check_refusals(const char *folder)
{
	static const struct {
		const char *path, *why;
	} rows[] = {
		{ "log", "absolute path" },
		{ "/tmp/", "absolute path" },
		{ "/tmp/log", "all users may write" },
		{ "/tmp/0123456789012345678901234567890123456789012345678901234567890123456789", "too long" },
	};
	struct audit_file f = AUDIT_FILE_NONE;
	struct err        e = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		tap_ok(audit_file_open(&f, rows[i].path, 100, 2, &e) < 0 && strstr(e.text, rows[i].why), "%s is refused: %s", rows[i].path, rows[i].why);
	tap_ok(audit_file_open(&f, scratch_path(folder, "log"), 100, 0, &e) < 0 && strstr(e.text, "1..99"), "keep 0 is refused");
	must(mkdir(scratch_path(folder, "log"), 0755) == 0, "mkdir");
	tap_ok(audit_file_open(&f, scratch_path(folder, "log"), 100, 2, &e) < 0, "a directory is refused");
	rmdir(scratch_path(folder, "log"));
	must(mkfifo(scratch_path(folder, "log"), 0644) == 0, "mkfifo");
	tap_ok(audit_file_open(&f, scratch_path(folder, "log"), 100, 2, &e) < 0 && strstr(e.text, "not a regular file"), "a pipe is refused, and does not hold us up");
	unlink(scratch_path(folder, "log"));
	must(symlink("/etc/passwd", scratch_path(folder, "log")) == 0, "symlink");
	tap_ok(audit_file_open(&f, scratch_path(folder, "log"), 100, 2, &e) < 0 && strstr(e.text, "not a regular file"), "a link is refused");
	tap_ok(f.fd == -1 && f.folder == -1, "what was refused has nothing open");
	scratch_empty(folder);
}

/* Writing comes to its end in the middle of a line, and later goes on. */
static void check_end_of_room(const char *folder)
{
	struct rlimit     old, small = { 0 };
	struct audit_file f = open_at(folder, 1000, 2);

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	add(&f, "first\n");
	small = (struct rlimit){ 10, old.rlim_max };
	setrlimit(RLIMIT_FSIZE, &small);
	tap_ok(add(&f, "second\n") < 0, "half a line is a line lost");
	tap_ok(add(&f, "third\n") == -EFBIG && add(&f, "third\n") == -EFBIG, "as long as nothing can be written");
	setrlimit(RLIMIT_FSIZE, &old);
	tap_ok(add(&f, "fourth\n") == 0, "then lines go on");
	tap_is(scratch_read(folder, "log"), "first\nseco\nfourth\n", "on a line of their own");
	audit_file_close(&f);
	scratch_empty(folder);
}

/* As the server confines itself: all that Landlock knows since its first version, but three rights below the folder. */
static bool confine_to(int folder)
{
	const struct landlock_ruleset_attr   all  = { .handled_access_fs = 2 * LANDLOCK_ACCESS_FS_MAKE_SYM - 1 };
	const struct landlock_path_beneath_attr own = { .parent_fd      = folder,
		                                        .allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_REMOVE_FILE };
	scoped_fd                            rules = landlock_create_ruleset(&all, sizeof all, 0);

	return rules >= 0 && landlock_add_rule(rules, LANDLOCK_RULE_PATH_BENEATH, &own, 0) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       landlock_restrict_self(rules, 0) == 0;
}

/* In a child, as there is no way back: 0, or the number of what was not as it should. */
static int work_confined(const char *folder, struct audit_file *f)
{
	if (!confine_to(f->folder))
		return 99;
	if (add(f, "1\n") < 0 || add(f, "2\n") < 0 || add(f, "3\n") < 0 || add(f, "4\n") < 0)
		return 1;
	if (unlink(scratch_path(folder, "log")) < 0 || add(f, "5\n") < 0)
		return 2;
	if (open(scratch_path(folder, "log"), O_RDONLY) >= 0 || openat(f->folder, ".", O_RDONLY | O_DIRECTORY) >= 0)
		return 3;
	return 0;
}

static void check_confined(const char *folder)
{
	struct audit_file f = open_at(folder, 2, 2);
	int               status = 0;
	pid_t             child;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(work_confined(folder, &f));
	must(child > 0 && waitpid(child, &status, 0) == child, "fork");
	status = WIFEXITED(status) ? WEXITSTATUS(status) : 98;
	if (status == 99) {
		printf("# confinement was not tried: this kernel has no Landlock\n");
	} else {
		tap_ok(status != 1, "writing and renaming go on where Landlock leaves nothing but the right to write, make and remove files there");
		tap_ok(status != 2, "so does making a file again that was removed");
		tap_ok(status == 0, "and nothing can be read");
		tap_is(scratch_read(folder, "log.2"), "2\n", "the files are where they should");
		tap_is(scratch_read(folder, "log"), "5\n", "the youngest, too");
	}
	audit_file_close(&f);
	scratch_empty(folder);
}

static void check_full_disk(const char *folder)
{
	char              line[1001];
	struct audit_file f;
	unsigned          fit = 0;

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 || mount("tmpfs", folder, "tmpfs", 0, "size=16k,mode=700") < 0) {
		printf("# a full disk was not tried: a tmpfs in a mount namespace needs root\n");
		return;
	}
	memset(line, 'x', sizeof line - 2);
	strcpy(line + sizeof line - 2, "\n");
	f = open_at(folder, MIB, 2);
	while (add(&f, line) == 0 && fit < 100)
		fit++;
	tap_ok(fit == 16, "a disk of 16 KiB has room for 16 lines");
	tap_ok(add(&f, line) == -ENOSPC && add(&f, line) == -ENOSPC, "a full disk loses lines, and says so");
	scratch_write(folder, "other", "");
	must(truncate(scratch_path(folder, "log"), 4000) == 0, "truncate");
	tap_ok(add(&f, "goes on\n") == 0, "and when there is room again, lines go on");
	tap_ok(strcmp(scratch_read(folder, "log") + 3999, "\n\ngoes on\n") == 0, "on a line of their own");
	audit_file_close(&f);
	umount(folder);
}

int main(void)
{
	char folder[256];

	scratch_make(folder);
	check_lines(folder);
	check_rotation(folder);
	check_crash(folder);
	check_fewer(folder);
	check_underneath(folder);
	check_refusals(folder);
	check_end_of_room(folder);
	check_confined(folder);
	check_full_disk(folder);
	scratch_remove(folder);
	return tap_done();
}
