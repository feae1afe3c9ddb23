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

#define AT(member) offsetof(struct request, member)

/* The profile's ceiling is known to brigd. */
#define LIMIT(member, type, option, least, most, preset, ceiling, doc) \
	{ { option, type, AT(limits.member), least, most, FIELD_UNSAID, doc, NULL, NULL }, 0, NULL, NULL },

const struct option_row request_options[] = {
	OPTION_TEXT("profile", 'p', AT(profile), "NAME", "Which profile; basic when not said (brig profile list)"),
#include "limits.def"
	OPTION_TEXT("stdin", 0, AT(stdin_path), "FILE", "What the program reads from stdin; \"-\" is brig's own, as when that is a pipe or a file"),
	{ { "env", FIELD_TEXTS, AT(env), 0, PROTOCOL_ENV_MAX, 0, "One more variable for the program", NULL, NULL }, 0, "K=V", NULL },
	{ { "ro", FIELD_TEXTS, AT(shown), 0, PROTOCOL_RO_MAX, 0, "Show a directory or file, read-only, as /workspace/NAME; a program that lies in it finds its modules there", NULL, NULL }, 0, "PATH", NULL },
	{ { "allow-missing", FIELD_TEXTS, AT(allow_missing), 0, 2, 0, "Run though this limit (memory, cpus) was asked for and nothing here can hold it", NULL, NULL }, 0, "LIMIT", NULL },
	OPTION_SWITCH("json", 0, AT(json), "Print the record as JSON, and nothing else"),
	OPTION_SWITCH("cold", 0, AT(cold), "Start a new interpreter, also where the profile's runs are warm"),
	{ { "wait", FIELD_MS, AT(wait_ms), 0, PROTOCOL_WAIT_MAX, 0, "How long to wait for a place when a quota is used up: 60 when not said, 0 not at all", NULL, NULL }, 0, NULL, NULL },
	OPTION_SWITCH("private", 0, AT(private), "Start a brigd for this run alone, though a service runs here"),
	OPTION_SWITCH("why", 0, AT(why), "Say what the jail refused to the program, by which line of the policy, and what allows it"),
	OPTION_SWITCH("verbose", 'v', AT(verbose), "Print the one-line summary also when the program simply exited"),
	OPTION_END,
};
#undef LIMIT

const struct option_row check_options[] = {
	OPTION_TEXT("profile", 'p', AT(profile), "NAME", "Whose modules and calls count; basic when not said (brig explain NAME)"),
	OPTION_SWITCH("json", 0, AT(json), "Print what was found as JSON"),
	OPTION_SWITCH("private", 0, AT(private), "Start a brigd for this alone, though a service runs here"),
	OPTION_END,
};

/* --- life --- */

void request_init(struct request *r)
{
	*r = (struct request){ .profile = "basic", .stdin_fd = -1, .wait_ms = EARLY_WAIT_MS };
	for (const struct option_row *row = request_options; row->field.name; row++)
		if (row->field.preset == FIELD_UNSAID)
			*(uint64_t *)((char *)r + row->field.offset) = FIELD_UNSAID;
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

	while (r->env[i] && put_text(list, r->env[i]) == 0)
		i++;
	json_object_set_new(r->message, "env", list);
	return r->env[i] ? err_set(e, ERR_DENIED, "--env %.*s: the value is not UTF-8", name_length(r->env[i]), r->env[i]) : 0;
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

static void put_limits(struct request *r)
{
	json_t *limits = json_object();

	json_object_set_new(r->message, "limits", limits);
	for (const struct field *f = limits_fields; f->name; f++)
		if (limits_value(&r->limits, f) != FIELD_UNSAID)
			json_object_set_new(limits, f->name, field_json(f, limits_value(&r->limits, f)));
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
	for (size_t i = 0; r->shown[i]; i++) {
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

	for (size_t i = 0; r->allow_missing[i]; i++)
		if (put_text(list, r->allow_missing[i]) < 0) {
			json_decref(list);
			return err_set(e, ERR_BAD_SPEC, "--allow-missing: what follows is not UTF-8");
		}
	if (*r->allow_missing)
		json_object_set(r->message, "allow_missing", list);
	json_decref(list);
	return 0;
}

/* What run and exec have in common; only what was asked is said. */
static int put_common(struct request *r, struct err *e)
{
	put_limits(r);
	if (put_profile(r, e) < 0 || put_env(r, e) < 0 || put_shown(r, e) < 0 || open_stdin(r, e) < 0)
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
	for (size_t i = 0; r->shown[i] && !r->in_shown; i++) {
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
	size_t n = 0;

	for (; r->shown[n]; n++)
		if (is_same(r->shown[n], folder))
			return 0;
	if (n == PROTOCOL_RO_MAX)
		return err_set(e, ERR_BAD_SPEC, "--ro: more than %d, with %s", PROTOCOL_RO_MAX, folder);
	r->shown[n] = folder;
	return 0;
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
	whole = *r->shown ? realpath(*ret, NULL) : NULL;
	if (*r->shown && !whole && errno != ENOENT)
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

/* The text that "ro[3]" is about, when it is one of ours. */
static const char *item_of(const char *field, const char *list, const char *const *texts)
{
	char          end[2];
	unsigned      i;
	const size_t  n = strlen(list);

	if (strncmp(field, list, n) != 0 || sscanf(field + n, "[%4u%1[]]", &i, end) != 2)
		return NULL;
	while (i && *texts)
		i--, texts++;
	return *texts;
}

char *request_name_field(const struct request *r, const char *field, char *buf, size_t len)
{
	const char *option = strncmp(field, "limits.", 7) == 0 ? limits_option(field + 7) : NULL;
	const char *shown = item_of(field, "ro", r->shown), *variable = item_of(field, "env", r->env);

	*buf = 0;
	if (option)
		snprintf(buf, len, "--%s", option);
	else if (shown)
		snprintf(buf, len, "--ro %s", shown);
	else if (variable)
		snprintf(buf, len, "--env %.*s", name_length(variable), variable);
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
