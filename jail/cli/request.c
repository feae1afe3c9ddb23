#define _GNU_SOURCE
#include "request.h"

#include "early.h"
#include "fd.h"
#include "file.h"
#include "profile_file.h"
#include "sealed.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- options --- */

static int set_profile(void *into, const struct option_row *row, const char *value, struct err *e)
{
	(void)row, (void)e;
	((struct request *)into)->profile = value;
	return 0;
}

/* Checked here, for the message has it in another form; the profile's ceiling is known to brigd. */
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
	if (r->env_len == PROTOCOL_ENV_MAX)
		return err_set(e, ERR_BAD_SPEC, "--env: more than %d", PROTOCOL_ENV_MAX);
	r->env[r->env_len++] = value;
	return 0;
}

static int set_shown(void *into, const struct option_row *row, const char *value, struct err *e)
{
	struct request *r = into;

	(void)row;
	if (r->shown_len == PROTOCOL_RO_MAX)
		return err_set(e, ERR_BAD_SPEC, "--ro: more than %d", PROTOCOL_RO_MAX); /* of brig run DIR as well */
	r->shown[r->shown_len++] = value;
	return 0;
}

static int set_allow_missing(void *into, const struct option_row *row, const char *value, struct err *e)
{
	struct request *r = into;

	if (r->allow_len == ARRAY_LEN(r->allow_missing))
		return err_set(e, ERR_BAD_SPEC, "--%s: said more than twice; there are: memory, cpus", row->name);
	r->allow_missing[r->allow_len++] = value;
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

static int set_why(void *into, const struct option_row *row, const char *value, struct err *e)
{
	(void)row, (void)value, (void)e;
	((struct request *)into)->why = true;
	return 0;
}

static int set_cold(void *into, const struct option_row *row, const char *value, struct err *e)
{
	(void)row, (void)value, (void)e;
	((struct request *)into)->cold = true;
	return 0;
}

static int set_wait(void *into, const struct option_row *row, const char *value, struct err *e)
{
	static const struct field seconds = { "wait", FIELD_MS, offsetof(struct request, wait_ms), 0, PROTOCOL_WAIT_MAX, 0, "", NULL, NULL };

	return field_from_text(&seconds, value, into, e) < 0 ? err_wrap(e, "--%s", row->name) : 0;
}

static int set_private(void *into, const struct option_row *row, const char *value, struct err *e)
{
	(void)row, (void)value, (void)e;
	((struct request *)into)->private = true;
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
	{ "stdin", 0, "FILE", "What the program reads from stdin; \"-\" is brig's own, as when that is a pipe or a file", set_stdin },
	{ "env", 0, "K=V", "One more variable for the program", set_env },
	{ "ro", 0, "PATH", "Show a directory or file, read-only, as /workspace/NAME; a program that lies in it finds its modules there", set_shown },
	{ "allow-missing", 0, "LIMIT", "Run though this limit (memory, cpus) was asked for and nothing here can hold it", set_allow_missing },
	{ "json", 0, NULL, "Print the record as JSON, and nothing else", set_json },
	{ "cold", 0, NULL, "Start a new interpreter, also where the profile's runs are warm", set_cold },
	{ "wait", 0, "S", "How long to wait for a place when a quota is used up: 60 when not said, 0 not at all", set_wait },
	{ "private", 0, NULL, "Start a brigd for this run alone, though a service runs here", set_private },
	{ "why", 0, NULL, "Say what the jail refused to the program, by which line of the policy, and what allows it", set_why },
	{ "verbose", 'v', NULL, "Print the one-line summary also when the program simply exited", set_verbose },
	{ 0 },
};
#undef LIMIT

const struct option_row check_options[] = {
	{ "profile", 'p', "NAME", "Whose modules and calls count; basic when not said (brig explain NAME)", set_profile },
	{ "json", 0, NULL, "Print what was found as JSON", set_json },
	{ "private", 0, NULL, "Start a brigd for this alone, though a service runs here", set_private },
	{ 0 },
};

/* --- life --- */

void request_init(struct request *r)
{
	*r = (struct request){ .profile = "basic", .stdin_fd = -1, .wait_ms = EARLY_WAIT_MS };
}

void request_done(struct request *r)
{
	while (r->fds)
		close(r->fd[--r->fds]);
	fd_closep(&r->stdin_fd);
	json_decref(r->message);
	r->message = NULL;
	free(r->in_shown);
	r->in_shown = NULL;
}

/* --- the message --- */

/* JSON is UTF-8, what a shell hands over may be anything. */
static int put_text(json_t *list, const char *text)
{
	return json_array_append_new(list, json_string(text));
}

static int put_words(struct request *r, const char *key, char **words, int n, struct err *e)
{
	json_t *list = json_array();
	int     i    = 0;

	while (i < n && put_text(list, words[i]) == 0)
		i++;
	json_object_set_new(r->message, key, list);
	return i < n ? err_set(e, ERR_BAD_SPEC, "arguments: \"%.40s\" is not UTF-8", words[i]) : 0;
}

static int name_length(const char *entry)
{
	size_t n = strcspn(entry, "=");

	return (int)(n > 40 ? 40 : n);
}

static int put_env(struct request *r, struct err *e)
{
	json_t *list = json_array();
	size_t  i    = 0;

	while (i < r->env_len && put_text(list, r->env[i]) == 0)
		i++;
	json_object_set_new(r->message, "env", list);
	return i < r->env_len ? err_set(e, ERR_DENIED, "--env %.*s: the value is not UTF-8", name_length(r->env[i]), r->env[i]) : 0;
}

/* What is no name may be no text either; the error lists those that are. */
static int put_profile(struct request *r, struct err *e)
{
	struct profile unused;
	struct places  places;

	if (!text_is_name(r->profile))
		return places_find(&places, e) < 0 ? -1 : profile_file_load(&unused, &places, r->profile, e);
	return json_object_set_new(r->message, "profile", json_string(r->profile));
}

static int put_limits(struct request *r, struct err *e)
{
	json_t       *limits = json_object();
	struct limits asked;

	json_object_set_new(r->message, "limits", limits);
	for (unsigned i = 0; i < LIMIT_COUNT; i++) {
		const struct field *f = &limits_fields[i];

		if (!r->limit_text[i])
			continue;
		if (field_from_text(f, r->limit_text[i], &asked, e) < 0)
			return err_wrap(e, "--%s", limits_option(f->name));
		json_object_set_new(limits, f->name, field_json(f, limits_value(&asked, f)));
	}
	return 0;
}

/* The last part of the path, as it would be called inside. */
static int put_shown_name(json_t *names, const char *path, struct err *e)
{
	char *whole = realpath(path, NULL);
	int   r     = 0;

	if (!whole)
		return err_sys(e, "--ro %s", path);
	if (strcmp(whole, "/") == 0)
		r = err_set(e, ERR_BAD_SPEC, "--ro /: show a directory or a file, not the whole host");
	else if (put_text(names, strrchr(whole, '/') + 1) < 0)
		r = err_set(e, ERR_BAD_SPEC, "--ro %s: the name is not UTF-8", path);
	free(whole);
	return r;
}

static int put_shown(struct request *r, struct err *e)
{
	json_t *names = json_array();

	json_object_set_new(r->message, "ro", names);
	for (size_t i = 0; i < r->shown_len; i++) {
		int fd;

		if (put_shown_name(names, r->shown[i], e) < 0)
			return -1;
		fd = open(r->shown[i], O_PATH | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, "--ro %s", r->shown[i]);
		r->fd[r->fds++] = fd;
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

static int put_allow_missing(struct request *r, struct err *e)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->allow_len; i++)
		if (put_text(list, r->allow_missing[i]) < 0) {
			json_decref(list);
			return err_set(e, ERR_BAD_SPEC, "--allow-missing: what follows is not UTF-8");
		}
	if (r->allow_len)
		json_object_set(r->message, "allow_missing", list);
	json_decref(list);
	return 0;
}

/* What run and exec have in common; only what was asked is said. */
static int put_common(struct request *r, struct err *e)
{
	if (put_profile(r, e) < 0 || put_limits(r, e) < 0 || put_env(r, e) < 0 || put_shown(r, e) < 0 || open_stdin(r, e) < 0)
		return -1;
	if (r->stdin_fd >= 0)
		json_object_set_new(r->message, "stdin", json_true());
	if (r->wait_ms)
		json_object_set_new(r->message, "wait_ms", json_integer((json_int_t)r->wait_ms));
	if (r->cold)
		json_object_set_new(r->message, "cold", json_true());
	return put_allow_missing(r, e);
}

/* --- a program that lies in a directory which is shown --- */

/* The rest of a whole path behind a whole directory, or NULL. */
static const char *path_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n : NULL;
}

/* "proj/pkg/main.py" of /home/ann/proj/pkg/main.py, with --ro proj. */
static int find_in_shown(struct request *r, const char *whole, struct err *e)
{
	for (size_t i = 0; i < r->shown_len && !r->in_shown; i++) {
		char       *folder = realpath(r->shown[i], NULL);
		const char *rest;

		if (!folder)
			return err_sys(e, "--ro %s", r->shown[i]);
		rest = path_below(whole, folder);
		if (rest && asprintf(&r->in_shown, "%s%s", strrchr(folder, '/') + 1, rest) < 0)
			r->in_shown = NULL;
		free(folder);
	}
	return r->in_shown && strlen(r->in_shown) > PROTOCOL_MAIN_MAX ? err_set(e, ERR_BAD_SPEC, "%s: its path is too long", r->program) : 0;
}

static bool is_same(const char *a, const char *b)
{
	struct stat first, second;

	return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* Unless --ro has said so. */
static int show_once(struct request *r, const char *folder, struct err *e)
{
	for (size_t i = 0; i < r->shown_len; i++)
		if (is_same(r->shown[i], folder))
			return 0;
	return set_shown(r, NULL, folder, e);
}

/* As `python3 DIR`, which wants the first of these, and as people name it. In buf; path itself when it is no directory. */
static int find_file(struct request *r, const char *path, char *buf, size_t len, const char **ret, struct err *e)
{
	static const char *const names[] = { "__main__.py", "main.py" };
	struct stat              st;

	*ret = path;
	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "%s", path); /* open() says it, too */
	if (!S_ISDIR(st.st_mode) || r->mode == MODE_check)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		*ret = buf;
		if (snprintf(buf, len, "%s/%s", path, names[i]) < (int)len && access(buf, F_OK) == 0)
			return show_once(r, path, e);
	}
	return err_set(e, ERR_BAD_SPEC, "%s: is a directory without __main__.py or main.py; name a Python file", path);
}

/* What is to be read, and how it will be called inside. */
static int place_program(struct request *r, const char *path, char *buf, size_t len, const char **ret, struct err *e)
{
	char *whole;
	int   found;

	*ret = path;
	if (strcmp(path, "-") == 0)
		return 0;
	if (find_file(r, path, buf, len, ret, e) < 0)
		return -1;
	whole = r->shown_len ? realpath(*ret, NULL) : NULL;
	if (r->shown_len && !whole && errno != ENOENT)
		return err_sys(e, "%s", *ret);
	found = whole ? find_in_shown(r, whole, e) : 0;
	free(whole);
	return found;
}

/* --- the program --- */

/* Looked at by brigd, but not before all of it was sent: what is much too large is refused here. */
static int read_program(struct request *r, const char *path, struct bytes *ret, struct err *e)
{
	scoped_fd   fd = open_input(path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "%s: is a directory; name a Python file", path);
	return file_read_fd(fd, r->program, PROTOCOL_CODE_MAX, ret, e);
}

static int put_program(struct request *r, const char *path, struct err *e)
{
	scoped_bytes text = { 0 };
	int          fd;

	if (read_program(r, path, &text, e) < 0)
		return -1;
	fd = sealed_open("main.py", text.data, text.len, e);
	if (fd < 0)
		return err_wrap(e, "set-up step seal-program");
	r->fd[r->fds++] = fd;
	return 0;
}

static void put_mode(struct request *r)
{
	if (r->mode != MODE_script)
		json_object_set_new(r->message, "mode", json_string(run_mode_name(r->mode)));
}

int request_take_program(struct request *r, const char *path, char **words, int n, struct err *e)
{
	char        buf[4096]; /* PATH_MAX, whose header has the name of ours */
	const char *file;

	r->program = strcmp(path, "-") == 0 ? "stdin" : path;
	r->message = json_pack("{ss}", "op", "run");
	if (!early_run.sent && (place_program(r, path, buf, sizeof buf, &file, e) < 0 || put_program(r, file, e) < 0))
		return -1;
	put_mode(r);
	if (r->in_shown && json_object_set_new(r->message, "main", json_string(r->in_shown)) < 0)
		return err_set(e, ERR_BAD_SPEC, "%s: its path is not UTF-8", path);
	return put_words(r, "args", words, n, e) < 0 ? -1 : put_common(r, e);
}

int request_take_command(struct request *r, char **words, int n, struct err *e)
{
	r->program = words[0];
	r->message = json_pack("{ss}", "op", "exec");
	return put_words(r, "argv", words, n, e) < 0 ? -1 : put_common(r, e);
}

/* --- and back --- */

/* The number in "ro[3]", when it is one of ours. */
static bool is_item(const char *field, const char *list, size_t count, size_t *ret)
{
	char          end[2];
	unsigned      i;
	const size_t  n = strlen(list);

	if (strncmp(field, list, n) != 0 || sscanf(field + n, "[%4u%1[]]", &i, end) != 2 || i >= count)
		return false;
	*ret = i;
	return true;
}

char *request_name_field(const struct request *r, const char *field, char *buf, size_t len)
{
	const char *option = strncmp(field, "limits.", 7) == 0 ? limits_option(field + 7) : NULL;
	size_t      i;

	*buf = 0;
	if (option)
		snprintf(buf, len, "--%s", option);
	else if (is_item(field, "ro", r->shown_len, &i))
		snprintf(buf, len, "--ro %s", r->shown[i]);
	else if (is_item(field, "env", r->env_len, &i))
		snprintf(buf, len, "--env %.*s", name_length(r->env[i]), r->env[i]);
	else if (strcmp(field, "code") == 0 || strcmp(field, "main") == 0)
		snprintf(buf, len, "%s", r->program);
	else if (strncmp(field, "arg", 3) == 0) /* args, argv and their items */
		snprintf(buf, len, "arguments");
	else if (strncmp(field, "allow_missing", 13) == 0)
		snprintf(buf, len, "--allow-missing");
	else if (strcmp(field, "env") == 0 || strcmp(field, "ro") == 0)
		snprintf(buf, len, "--%s", field);
	return buf;
}
