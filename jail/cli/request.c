#define _GNU_SOURCE
#include "request.h"

#include "fd.h"
#include "file.h"
#include "profile_file.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* --- options --- */

static int set_profile(void *into, const struct option_row *row, const char *value, struct err *e)
{
	(void)row, (void)e;
	((struct request *)into)->profile_name = value;
	return 0;
}

/* Kept as text: bounds and defaults are the profile's, which is read later. */
static int set_limit(void *into, const struct option_row *row, const char *value, struct err *e)
{
	struct request *r = into;
	struct limits   scratch;

	for (unsigned i = 0; i < LIMIT_COUNT; i++) {
		const struct field *f = &limits_fields[i];

		if (strcmp(limits_option(f->name), row->name) != 0)
			continue;
		r->limit_text[i] = value;
		return field_from_text(f, value, &scratch, e) < 0 ? err_wrap(e, "--%s", row->name) : 0;
	}
	return err_set(e, ERR_BROKEN, "--%s: no such limit", row->name);
}

static int set_env(void *into, const struct option_row *row, const char *value, struct err *e)
{
	struct request *r = into;

	(void)row;
	if (r->env_len == REQUEST_ENV_MAX)
		return err_set(e, ERR_BAD_SPEC, "--env: more than %d", REQUEST_ENV_MAX);
	r->env[r->env_len++] = value;
	return 0;
}

static int set_shown(void *into, const struct option_row *row, const char *value, struct err *e)
{
	struct request *r = into;

	(void)row;
	if (r->shown_len == MOUNT_SHOWN_MAX)
		return err_set(e, ERR_BAD_SPEC, "--ro: more than %d directories", MOUNT_SHOWN_MAX);
	r->shown[r->shown_len++] = value;
	return 0;
}

static int set_stdin(void *into, const struct option_row *row, const char *value, struct err *e)
{
	(void)row, (void)e;
	((struct request *)into)->stdin_path = value;
	return 0;
}

static int set_json(void *into, const struct option_row *row, const char *value, struct err *e)
{
	(void)row, (void)value, (void)e;
	((struct request *)into)->json = true;
	return 0;
}

static int set_verbose(void *into, const struct option_row *row, const char *value, struct err *e)
{
	(void)row, (void)value, (void)e;
	((struct request *)into)->verbose = true;
	return 0;
}

/* Every run is cold until there are zygotes. */
static int set_cold(void *into, const struct option_row *row, const char *value, struct err *e)
{
	(void)into, (void)row, (void)value, (void)e;
	return 0;
}

#define ARG_FIELD_MS    "S"
#define ARG_FIELD_SIZE  "SIZE"
#define ARG_FIELD_COUNT "N"
#define ARG_FIELD_MILLI "N"
#define LIMIT(name, type, option, least, most, preset, ceiling, doc) { option, 0, ARG_##type, doc, set_limit },

const struct option_row request_options[] = {
	{ "profile", 'p', "NAME", "Which profile; basic when not said (brig profile list)", set_profile },
#include "limits.def"
	{ "stdin", 0, "FILE", "What the program reads from stdin; \"-\" is brig's own; nothing when not said", set_stdin },
	{ "env", 0, "K=V", "One more variable for the program", set_env },
	{ "ro", 0, "DIR", "Show a directory, read-only, as /workspace/NAME", set_shown },
	{ "json", 0, NULL, "Print the record as JSON, and nothing else", set_json },
	{ "cold", 0, NULL, "Start a new interpreter (what happens anyway, for now)", set_cold },
	{ "verbose", 'v', NULL, "Print the one-line summary also when the program simply exited", set_verbose },
	{ 0 },
};
#undef LIMIT

/* --- life --- */

void request_init(struct request *r)
{
	*r = (struct request){ .profile_name = "basic", .stdin_fd = -1 };
	for (size_t i = 0; i < ARRAY_LEN(r->shown_fd); i++)
		r->shown_fd[i] = -1;
}

void request_done(struct request *r)
{
	for (size_t i = 0; i < ARRAY_LEN(r->shown_fd); i++) {
		fd_closep(&r->shown_fd[i]);
		free(r->shown_to[i]);
	}
	for (size_t i = 0; i < ARRAY_LEN(r->exec_path); i++)
		free(r->exec_path[i]);
	fd_closep(&r->stdin_fd);
	program_env_done(&r->program_env);
	policy_bundle_done(&r->policy);
	profile_done(&r->profile);
	free(r->program);
	free(r->argv);
}

/* --- preparing --- */

static int refuse_above(const struct request *r, const struct field *f, struct err *e)
{
	uint64_t most = limits_value(&r->profile.ceilings, f);
	char     text[32];

	field_print_text(f, most, text, sizeof text);
	return err_set(e, ERR_DENIED, "--%s %s is above the ceiling %s of profile %s", limits_option(f->name),
		       r->limit_text[f - limits_fields], text, r->profile.name);
}

static int lower_limits(struct request *r, struct err *e)
{
	const struct field *above;

	r->limits = r->profile.limits;
	for (unsigned i = 0; i < LIMIT_COUNT; i++)
		if (r->limit_text[i] && field_from_text(&limits_fields[i], r->limit_text[i], &r->limits, e) < 0)
			return err_wrap(e, "--%s", limits_option(limits_fields[i].name));
	above = limits_find_above(&r->limits, &r->profile.ceilings);
	return above ? refuse_above(r, above, e) : 0;
}

/* The last part of the path, as it would be called inside. */
static int name_shown(struct request *r, size_t i, struct err *e)
{
	char *whole = realpath(r->shown[i], NULL);

	if (!whole)
		return err_sys(e, "--ro %s", r->shown[i]);
	if (strcmp(whole, "/") == 0) {
		free(whole);
		return err_set(e, ERR_BAD_SPEC, "--ro /: show a directory, not the whole host");
	}
	if (asprintf(&r->shown_to[i], "workspace%s", strrchr(whole, '/')) < 0)
		r->shown_to[i] = NULL;
	free(whole);
	if (!r->shown_to[i])
		return err_set(e, ERR_LIMIT, "out of memory");
	if (strcmp(r->shown_to[i], "workspace/main.py") == 0)
		return err_set(e, ERR_BAD_SPEC, "--ro %s: the program itself is /workspace/main.py", r->shown[i]);
	return 0;
}

/* What the kernel says about the host, /proc before all, is what the cell's own namespaces hide. */
static int check_kind(int fd, const char *path, struct err *e)
{
	static const long kinds[] = { PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,
		                      TRACEFS_MAGIC, SECURITYFS_MAGIC, BPF_FS_MAGIC, EFIVARFS_MAGIC };
	struct statfs     fs;

	if (fstatfs(fd, &fs) < 0)
		return err_sys(e, "--ro %s", path);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if ((long)fs.f_type == kinds[i])
			return err_set(e, ERR_BAD_SPEC, "--ro %s: holds what the kernel tells of the host, no files", path);
	return 0;
}

static int open_shown(struct request *r, struct err *e)
{
	for (size_t i = 0; i < r->shown_len; i++) {
		if (name_shown(r, i, e) < 0)
			return -1;
		r->shown_fd[i] = open(r->shown[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (r->shown_fd[i] < 0)
			return err_sys(e, "--ro %s", r->shown[i]);
		if (check_kind(r->shown_fd[i], r->shown[i], e) < 0)
			return -1;
	}
	return 0;
}

/* "-" is our own standard input. */
static int open_input(const char *path)
{
	return strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

static int open_stdin(struct request *r, struct err *e)
{
	struct stat st;

	if (!r->stdin_path)
		return 0;
	r->stdin_fd = open_input(r->stdin_path);
	if (r->stdin_fd < 0 || fstat(r->stdin_fd, &st) < 0)
		return err_sys(e, "--stdin %s", r->stdin_path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "--stdin %s: is a directory", r->stdin_path);
	return 0;
}

static int plan_mounts(struct request *r, struct err *e)
{
	struct mount_wishes wishes = mount_wishes_of(&r->limits, r->profile.workspace_exec);

	wishes.shown     = (const char *const *)r->shown_to;
	wishes.shown_len = r->shown_len;
	return mount_plan_build(&r->mounts, &wishes, e);
}

static void fill_order(struct request *r)
{
	r->order.limits         = &r->limits;
	r->order.envp           = r->program_env.entry;
	r->order.mounts         = &r->mounts;
	r->order.shown_fd       = r->shown_fd;
	r->order.shown_len      = r->shown_len;
	r->order.stdin_pipe     = r->stdin_fd >= 0;
	r->order.workspace_exec = r->profile.workspace_exec;
	r->order.require_all    = r->profile.require == REQUIRE_ALL;
	r->order.store[0]       = r->places.store[0];
	r->order.store[1]       = r->places.store[1];
	r->order.rootfs         = r->profile.rootfs;
	r->order.runtime_dir    = r->places.runtime;
	r->order.policy         = &r->policy;
	r->order.exec_path      = (const char *const *)r->exec_path;
	r->order.argv           = r->argv;
}

int request_prepare(struct request *r, struct err *e)
{
	if (places_find(&r->places, e) < 0 || profile_file_load(&r->profile, &r->places, r->profile_name, e) < 0)
		return -1;
	if (lower_limits(r, e) < 0 || open_shown(r, e) < 0 || open_stdin(r, e) < 0 || plan_mounts(r, e) < 0)
		return -1;
	if (program_env_build(&r->program_env, &r->limits, r->env, r->env_len, e) < 0)
		return -1;
	if (profile_policy_load(&r->policy, &r->places, &r->profile, e) < 0)
		return -1;
	fill_order(r);
	return 0;
}

/* --- the program --- */

static int check_program(const struct bytes *text, const char *name, struct err *e)
{
	if (text->len == 0)
		return err_set(e, ERR_BAD_SPEC, "%s: is empty", name);
	if (memchr(text->data, 0, text->len))
		return err_set(e, ERR_BAD_SPEC, "%s: has a NUL byte; a Python program is text", name);
	if (!text_is_utf8(text->data, text->len))
		return err_set(e, ERR_BAD_SPEC, "%s: is not UTF-8; save it as UTF-8", name);
	return 0;
}

static int read_program(const char *path, struct bytes *ret, struct err *e)
{
	scoped_fd   fd = open_input(path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "%s: is a directory; name a Python file", path);
	return file_read_fd(fd, strcmp(path, "-") == 0 ? "stdin" : path, PROGRAM_BYTES_MAX, ret, e);
}

/* argv of what is executed: `first` words of ours, then the caller's. */
static int make_argv(struct request *r, char *const *first, char **words, int n, struct err *e)
{
	size_t bytes = 0, own = 0;

	while (first[own])
		own++;
	for (int i = 0; i < n; i++)
		bytes += strlen(words[i]) + 1;
	if (n > 1024 || bytes > 128 * KIB)
		return err_set(e, ERR_BAD_SPEC, "arguments: at most 1024, and 128K in all");
	r->argv = calloc(own + (size_t)n + 1, sizeof *r->argv);
	if (!r->argv)
		return err_set(e, ERR_LIMIT, "out of memory");
	memcpy(r->argv, first, own * sizeof *first);
	memcpy(r->argv + own, words, (size_t)n * sizeof *words);
	return 0;
}

int request_take_program(struct request *r, const char *path, char **words, int n, struct err *e)
{
	static char *const python[] = { (char *)"python3", (char *)"-I", (char *)"main.py", NULL };
	scoped_bytes       text     = { 0 };

	if (read_program(path, &text, e) < 0 || check_program(&text, strcmp(path, "-") == 0 ? "stdin" : path, e) < 0)
		return -1;
	r->program        = text.data;
	r->order.code     = text.data;
	r->order.code_len = text.len;
	text              = (struct bytes){ 0 };
	r->exec_path[0]   = strdup("/usr/bin/python3");
	return make_argv(r, python, words, n, e);
}

int request_take_command(struct request *r, char **words, int n, struct err *e)
{
	static const char *const folders[] = { "/usr/local/bin", "/usr/bin", "/bin" };
	static char *const       nothing[] = { NULL };

	if (strchr(words[0], '/')) {
		r->exec_path[0] = strdup(words[0]);
	} else {
		for (size_t i = 0; i < ARRAY_LEN(folders); i++)
			if (asprintf(&r->exec_path[i], "%s/%s", folders[i], words[0]) < 0)
				return err_set(e, ERR_LIMIT, "out of memory");
	}
	return make_argv(r, nothing, words, n, e);
}
