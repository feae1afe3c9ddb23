#define _GNU_SOURCE
#include "request.h"
#include "run_files.h"

#include "early.h"
#include "fd.h"
#include "file.h"
#include "foreign.h"
#include "profile_file.h"
#include "sealed.h"
#include "text.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- options --- */

#define AT(member) offsetof(struct request, member)

/* The entry "NAME=VALUE" of brig's own environment, whose texts are never freed, or NULL. */
static const char *find_own_variable(const char *name)
{
	size_t n = strlen(name);

	for (char **entry = environ; *entry; entry++)
		if (strncmp(*entry, name, n) == 0 && (*entry)[n] == '=')
			return *entry;
	return NULL;
}

static int option_set_env(void *into, const struct option_row *row, const char *value, struct err *e)
{
	const char *entry = strchr(value, '=') ? value : find_own_variable(value);

	if (value[0] == '\0')
		return err_set(e, ERR_BAD_SPEC, "--env: the name is empty; write --env NAME or --env NAME=VALUE");
	if (!entry)
		return err_set(e, ERR_BAD_SPEC, "--env %.40s: there is no such variable in your environment; write --env %.40s=VALUE", value, value);
	return field_from_text(&row->field, entry, into, e) < 0 ? err_wrap(e, "--env") : 0;
}

/* clang-format off */
enum {
	CELLS  = BY_RUN | BY_EXEC | BY_OPEN | BY_SHELL,      /* makes a cell: has the options that describe it */
	RUNS   = BY_RUN | BY_EXEC | BY_CALL | BY_COMMAND,    /* something runs, and has a record */
	STARTS = CELLS | RUNS,
};

/* Which commands have a limit: some belong to a session, some also to a call, all others to the cell. brigd checks the profile's ceiling. */
#define IS(member, other) (offsetof(struct limits, member) == offsetof(struct limits, other))
#define OF_LIMIT(member) (IS(member, idle_ms) || IS(member, lifetime_ms) ? BY_OPEN | BY_SHELL : IS(member, wall_ms) || IS(member, cpu_ms) ? STARTS : IS(member, output_bytes) ? STARTS & ~BY_SHELL : CELLS)
#define LIMIT(member, type, option, least, most, preset, ceiling, doc) \
	{ OF_LIMIT(member), { { option, type, AT(limits.member), least, most, FIELD_UNSET, doc, NULL, NULL }, 0, NULL, NULL, false } },

static const struct {
	unsigned          by; /* bits of enum request_by */
	struct option_row row;
} options[] = {
	{ BY_RUN, { { "code", FIELD_STR, AT(code), 0, FIELD_ANY, 0, "Run this text as the program; what follows are its arguments", NULL, NULL }, 'c', "CODE", NULL, true } },
	{ BY_CALL, { { "code", FIELD_STR, AT(code), 0, FIELD_ANY, 0, "Run this text", NULL, NULL }, 'c', "CODE", NULL, true } },
	{ BY_RUN, { { "module", FIELD_STR, AT(module), 0, FIELD_ANY, 0, "Run a module of the rootfs, or of a directory that --ro shows, as python3 -m does; what follows are its arguments", NULL, NULL }, 'm', "MODULE", NULL, true } },
	{ BY_CHECK, OPTION_TEXT("profile", 'p', AT(profile), "NAME", "The profile whose rules count; default: basic (brig explain --all NAME shows them)") },
	{ CELLS | BY_PACKAGES, OPTION_TEXT("profile", 'p', AT(profile), "NAME", "The profile; default: basic (brig profile list shows all)") },
	{ BY_CALL, OPTION_TEXT("context", 0, AT(context), "NAME", "The interpreter of the session, made at its first use; default: main") },
#include "limits.def"
	{ BY_RUN | BY_EXEC | BY_COMMAND, OPTION_TEXT("stdin", 0, AT(stdin_path), "FILE", "The program's standard input; \"-\" is that of brig, which is the default for a pipe or a file") },
	{ CELLS | BY_CALL | BY_COMMAND, { { "env", FIELD_TEXTS, AT(env), 0, PROTOCOL_ENV_MAX, 0, "Set an environment variable of the program; K alone copies the value from your environment", NULL, NULL }, 'e', "K[=V]", option_set_env, false } },
	{ CELLS, { { "ro", FIELD_TEXTS, AT(shown), 0, PROTOCOL_RO_MAX, 0, "Show a directory or file, read-only, as /workspace/NAME; a program in that directory can import its neighbours", NULL, NULL }, 0, "PATH[:NAME]", NULL, false } },
	{ BY_RUN | BY_EXEC, { { "put", FIELD_TEXTS, AT(put), 0, FILES_ASKED_MAX, 0, "Copy a file or directory into /workspace as NAME; the program may change it", NULL, NULL }, 0, "PATH[:NAME]", NULL, false } },
	{ BY_RUN | BY_EXEC, { { "get", FIELD_TEXTS, AT(get), 0, FILES_ASKED_MAX, 0, "At the end, copy what matches out of /workspace, to LOCAL or into the current directory", NULL, NULL }, 0, "PATTERN[:LOCAL]", NULL, false } },
	{ BY_RUN | BY_EXEC, OPTION_TEXT("out", 0, AT(out), "DIR", "At the end, copy all that the program left in /workspace/out into DIR") },
	{ BY_RUN | BY_EXEC | BY_GET, OPTION_SWITCH("hidden", 0, AT(hidden), "Copy files too whose names, or those of their directories, begin with a dot that no PATTERN has") },
	{ BY_RUN | BY_EXEC | BY_CALL | BY_COMMAND | BY_SHELL, OPTION_TEXT("workdir", 'w', AT(workdir), "DIR", "Start the program in this directory of the jail; a relative one is below /workspace") },
	{ BY_OPEN, OPTION_SWITCH("start", 0, AT(start), "Start a service of your own where no socket of one exists; it stays") },
	{ BY_OPEN, OPTION_SWITCH("terminal", 0, AT(terminal), "Let calls have a terminal, for brig shell") },
	{ BY_COMMAND, OPTION_SWITCH("detach", 0, AT(detach), "Let processes that the command started go on after its end") },
	{ BY_CALL, OPTION_TEXT("artifacts", 0, AT(artifacts), "DIR", "Write pictures that the call shows into DIR, as call-1-1.png") },
	{ CELLS, { { "allow-missing", FIELD_TEXTS, AT(allow_missing), 0, 2, 0, "Run even if this host cannot enforce this limit (memory, cpus)", NULL, NULL }, 0, "LIMIT", NULL, false } },
	{ CELLS | BY_PACKAGES, OPTION_TEXT("requirements", 0, AT(requirements), "FILE", "Packages that the program can import, as a requirements file lists them: resolved in a jail, wheels only, and kept for the next run") },
	{ CELLS, { { "with", FIELD_TEXTS, AT(with), 0, WITH_MAX, 0, "The same for one package, as polars or 'polars>=1.0'; may be given again", NULL, NULL }, 0, "PACKAGE", NULL, false } },
	{ BY_RUN, OPTION_SWITCH("script", 0, AT(script), "The same for the packages that the program names in its block # /// script (PEP 723)") },
	{ BY_PACKAGES, OPTION_TEXT("script", 0, AT(program), "FILE", "The packages that this program names in its block # /// script (PEP 723)") },
	{ CELLS | BY_PACKAGES, OPTION_TEXT("index", 0, AT(index), "URL", "Take packages from this index; default: that of the profile, in a private run PyPI") },
	{ CELLS | BY_PACKAGES, OPTION_TEXT("find-links", 0, AT(find_links), "DIR", "Take packages from a directory of wheels; no network is used") },
	{ BY_PACKAGES, OPTION_SWITCH("upgrade", 0, AT(upgrade), "Resolve again, even if there is an answer") },
	{ CELLS | BY_PACKAGES, { { "net", FIELD_TEXTS, AT(network), 0, PROTOCOL_NETWORK_MAX, 0, "Let the program reach this host, as pypi.org, *.pypi.org or HOST:PORT; may be given again; none: no network, whatever the profile allows", NULL, NULL }, 0, "HOST[:PORT]", NULL, false } },
	{ RUNS, OPTION_SWITCH("json", 0, AT(json), "Print the record as JSON, with the program's output in it, and nothing else") },
	{ BY_CHECK, OPTION_SWITCH("json", 0, AT(json), "Print the findings as JSON") },
	{ BY_OPEN, OPTION_SWITCH("json", 0, AT(json), "Print the answer as JSON") },
	{ BY_REMOVE, OPTION_SWITCH("recursive", 'r', AT(recursive), "Remove directories with all that is in them") },
	{ BY_STAT, OPTION_SWITCH("json", 0, AT(json), "Print a list as JSON") },
	{ BY_GET | BY_FILES, OPTION_SWITCH("json", 0, AT(json), "Print a list of the files as JSON") },
	{ BY_GET, { { "max", FIELD_SIZE, AT(max_bytes), 0, 1024 * GIB, 0, "Copy at most so much in all; default 1G", NULL, NULL }, 0, NULL, NULL, false } },
	{ RUNS, OPTION_TEXT("record", 0, AT(record_to), "FILE|FD", "Write the record as JSON to a file or an open descriptor, beside the program's output") },
	{ CELLS, OPTION_SWITCH("cold", 0, AT(cold), "Start a new interpreter even if a service has a warm one") },
	{ CELLS | BY_PACKAGES, { { "wait", FIELD_MS, AT(wait_ms), 0, PROTOCOL_WAIT_MAX, 0, "How long to wait when a quota is used up, as 90s or 5m; default 60, 0: do not wait", NULL, NULL }, 0, NULL, NULL, false } },
	{ BY_RUN | BY_EXEC | BY_SHELL | BY_PACKAGES, OPTION_SWITCH("private", 0, AT(private), "Start a brigd for this run alone, even if a service is running") },
	{ BY_CHECK, OPTION_SWITCH("private", 0, AT(private), "Start a brigd for this alone, even if a service is running") },
	{ BY_RUN | BY_EXEC, OPTION_SWITCH("why", 0, AT(why), "At the end, print what the jail refused to the program, the policy line that refused it, and what allows it") },
	{ RUNS, OPTION_SWITCH("verbose", 'v', AT(verbose), "Print the one-line summary of the run even if the program exited by itself") },
	{ BY_PUT | BY_GET | ON_PATHS, OPTION_SWITCH("quiet", 'q', AT(quiet), "Do not name what was left out; the exit status tells") },
	{ STARTS | BY_PACKAGES, OPTION_SWITCH("quiet", 'q', AT(quiet), "Print no messages of brig, except why there was no run") },
};
#undef LIMIT
/* clang-format on */

static_assert(ARRAY_LEN(options) < REQUEST_OPTIONS_MAX, "the end is a row, too");

void request_options(unsigned by, struct option_row ret[REQUEST_OPTIONS_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (options[i].by & by)
			ret[n++] = options[i].row;
	ret[n] = (struct option_row)OPTION_END;
}

/* --- life --- */

void request_init(struct request *r, enum request_by by)
{
	*r = (struct request){ .by = by, .profile = by & ~(CELLS | BY_CHECK | BY_PACKAGES) ? NULL : "basic", .stdin_fd = -1, .files_sock = -1, .record_fd = -1, .layer = STORE_TREE_NONE, .wait_ms = EARLY_WAIT_MS, .max_bytes = GIB };
	for (const struct field *f = limits_fields; f->name; f++)
		*(uint64_t *)((char *)&r->limits + f->offset) = FIELD_UNSET;
}

void request_done(struct request *r)
{
	while (r->fds)
		close(r->fd[--r->fds]);
	fd_closep(&r->stdin_fd);
	fd_closep(&r->record_fd);
	fd_closep(&r->files_sock);
	store_close(&r->layer);
	free(r->profiles_wheels);
	free(r->profiles_index);
	r->profiles_wheels = r->profiles_index = NULL;
	json_decref(r->message);
	r->message = NULL;
	json_decref(r->cells);
	r->cells = NULL;
	free(r->in_shown);
	r->in_shown = NULL;
}

/* --- the message --- */

/* A list of texts, up to the n-th or NULL. Returns the first that is not UTF-8, which JSON needs (a shell can pass any bytes), or NULL. */
static const char *put_list(struct request *r, const char *key, const char *const *texts, size_t n)
{
	json_t *list = json_array();
	size_t  i    = 0;

	while (i < n && texts[i] && json_array_append_new(list, json_string(texts[i])) == 0)
		i++;
	json_object_set_new(r->message, key, list);
	return i < n ? texts[i] : NULL;
}

static int put_argv(struct request *r, const char *key, char *const *words, int n, struct err *e)
{
	const char *bad = put_list(r, key, (const char *const *)words, (size_t)n);

	return bad ? err_set(e, ERR_BAD_SPEC, "arguments: \"%.40s\" is not UTF-8", bad) : 0;
}

static int variable_name_length(const char *entry)
{
	size_t n = strcspn(entry, "=");

	return (int)(n > 40 ? 40 : n);
}

static int put_env(struct request *r, struct err *e)
{
	const char *bad = put_list(r, "env", r->env, ARRAY_LEN(r->env));

	return bad ? err_set(e, ERR_DENIED, "--env %.*s: the value is not UTF-8", variable_name_length(bad), bad) : 0;
}

/* A value that is no name of a profile may not be UTF-8 either. Loading it fails, with an error that lists the profiles. */
static int put_profile(struct request *r, struct err *e)
{
	struct profile    unused;
	struct brig_paths places;

	if (!text_is_name(r->profile))
		return brig_paths_find(&places, e) < 0 ? -1 : profile_file_load(&unused, &places, r->profile, e);
	return json_object_set_new(r->message, "profile", json_string(r->profile));
}

static void put_limits(struct request *r)
{
	json_t *limits = json_object();

	json_object_set_new(r->message, "limits", limits);
	for (const struct field *f = limits_fields; f->name; f++)
		if (limits_value(&r->limits, f) != FIELD_UNSET)
			json_object_set_new(limits, f->name, field_number_to_json(f, limits_value(&r->limits, f)));
}

/* One --ro: the path on the host, and the name in /workspace. */
struct ro_path {
	char *whole; /* owned: the path without symbolic links; NULL: it cannot be resolved, see errno */
	const char *name; /* points into whole or into the option's text */
};

static void ro_path_done(struct ro_path *s)
{
	free(s->whole);
}
#define scoped_ro_path scoped(ro_path_done) struct ro_path

/* Splits "PATH:NAME", unless the whole text is an existing path. The default name is the path's last component. */
static struct ro_path ro_path_split(const char *text)
{
	struct ro_path s     = { .whole = realpath(text, NULL) };
	const char  *colon = strrchr(text, ':');

	if (s.whole || !colon || strchr(colon, '/')) {
		s.name = s.whole ? strrchr(s.whole, '/') + 1 : "";
		return s;
	}
	s.whole = strndup(text, (size_t)(colon - text));
	s.name  = colon + 1;
	if (s.whole) {
		char *found = realpath(s.whole, NULL);

		free(s.whole);
		s.whole = found;
	}
	return s;
}

/* "DIR:../x" is not split at the colon, because of the slash. If DIR exists, "../x" was meant as the name. */
static int refuse_ro_path(const char *text, struct err *e)
{
	int         errnum = errno;
	const char *colon  = strchr(text, ':');
	char       *path   = colon ? strndup(text, (size_t)(colon - text)) : NULL;
	bool        is_name = path && access(path, F_OK) == 0;

	free(path);
	errno = errnum;
	return is_name ? err_set(e, ERR_BAD_SPEC, "--ro %s: the name after \":\" is one of /workspace: it has no \"/\"", text) : err_sys(e, "--ro %s", text);
}

static int put_ro(struct request *r, struct err *e)
{
	json_t *names = json_array();

	json_object_set_new(r->message, "ro", names);
	for (size_t i = 0; r->shown[i]; i++) {
		scoped_ro_path s = ro_path_split(r->shown[i]);
		int          fd = s.whole ? open(s.whole, O_PATH | O_CLOEXEC) : -1;

		if (fd < 0)
			return refuse_ro_path(r->shown[i], e);
		r->fd[r->fds++] = fd;
		if (strcmp(s.whole, "/") == 0)
			return err_set(e, ERR_BAD_SPEC, "--ro %s: show a directory or a file, not the whole host", r->shown[i]);
		if (json_array_append_new(names, json_string(s.name)) < 0)
			return err_set(e, ERR_BAD_SPEC, "--ro %s: the name is not UTF-8", r->shown[i]);
	}
	return 0;
}

/* "-" is brig's own standard input. */
static int open_program_or_stdin(const char *path)
{
	return strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
}

/*
 * As with python3 on the host, a pipe, a socket or a file is the program's input. A terminal is not, because a program that
 * reads its input would wait for keys; nor is a device like /dev/null.
 */
void request_use_inherited_stdin(struct request *r)
{
	struct stat st;
	off_t       at;

	if (r->stdin_path || fstat(STDIN_FILENO, &st) < 0 || !(S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode) || S_ISSOCK(st.st_mode)))
		return;
	r->stdin_path    = "-";
	r->stdin_unnamed = true;
	at               = S_ISREG(st.st_mode) ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
	r->half_read     = at > 0 && at < st.st_size;
}

static int open_stdin(struct request *r, struct err *e)
{
	struct stat st;

	if (!r->stdin_path)
		return 0;
	r->stdin_fd = open_program_or_stdin(r->stdin_path);
	if (r->stdin_fd < 0 || fstat(r->stdin_fd, &st) < 0)
		return err_sys(e, "--stdin %s", r->stdin_path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "--stdin %s: is a directory", r->stdin_path);
	return 0;
}

/* An empty list is left out of the message. */
static int put_text_list(struct request *r, const char *key, const char *option, const char *const *texts, struct err *e)
{
	const char *bad = *texts ? put_list(r, key, texts, SIZE_MAX) : NULL;

	return bad ? err_set(e, ERR_BAD_SPEC, "%s: the value is not UTF-8", option) : 0;
}

/* A number is a descriptor. 0 to 2 are refused: the program's output goes there, so the program could forge a record. */
static int open_record(struct request *r, struct err *e)
{
	const char *to = r->record_to;
	int         fd;

	if (!to)
		return 0;
	if (*to && to[strspn(to, "0123456789")] == 0) {
		fd = strlen(to) < 10 ? atoi(to) : -1;
		if (fd >= 0 && fd <= STDERR_FILENO)
			return err_set(e, ERR_BAD_SPEC, "--record %s: these are the program's own streams; name a descriptor from 3 on, or a file", to);
		r->record_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	} else {
		r->record_fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	}
	return r->record_fd < 0 ? err_sys(e, "--record %s", to) : 0;
}

/* The keys that describe a cell. A key for which there was no option is left out. */
static int put_cell_keys(struct request *r, struct err *e)
{
	if (put_profile(r, e) < 0 || put_ro(r, e) < 0)
		return -1;
	if (r->wait_ms)
		json_object_set_new(r->message, "wait_ms", json_integer((json_int_t)r->wait_ms));
	if (r->cold)
		json_object_set_new(r->message, "cold", json_true());
	return put_text_list(r, "allow_missing", "--allow-missing", r->allow_missing, e) < 0 ? -1 : put_text_list(r, "network", "--net", r->network, e);
}

static int put_cwd(struct request *r, struct err *e)
{
	if (r->workdir && json_object_set_new(r->message, "cwd", json_string(r->workdir)) < 0)
		return err_set(e, ERR_BAD_SPEC, "--workdir: the value is not UTF-8");
	return 0;
}

/* The keys for a program that gets its own process: environment, stdin, working directory. */
static int put_process_keys(struct request *r, struct err *e)
{
	if (put_env(r, e) < 0 || open_stdin(r, e) < 0 || put_cwd(r, e) < 0)
		return -1;
	if (r->stdin_fd >= 0)
		json_object_set_new(r->message, "stdin", json_true());
	return 0;
}

static int put_run_keys(struct request *r, struct err *e)
{
	put_limits(r);
	return open_record(r, e) < 0 || put_cell_keys(r, e) < 0 || put_process_keys(r, e) < 0 || run_files_open(r, e) < 0 ? -1 : 0;
}

static int put_call_keys(struct request *r, struct err *e)
{
	put_limits(r);
	if (json_object_set_new(r->message, "session", json_string(r->session)) < 0)
		return err_set(e, ERR_BAD_SPEC, "the session's name is not UTF-8");
	if (r->context && json_object_set_new(r->message, "context", json_string(r->context)) < 0)
		return err_set(e, ERR_BAD_SPEC, "--context: the value is not UTF-8");
	if (r->detach)
		json_object_set_new(r->message, "detach", json_true());
	return open_record(r, e);
}

/* --- a program in a directory of --ro --- */

/* "proj/pkg/main.py" of /home/ann/proj/pkg/main.py, with --ro proj. Both paths are absolute and without symbolic links. */
static int find_program_in_ro(struct request *r, const char *whole, struct err *e)
{
	for (size_t i = 0; r->shown[i] && !r->in_shown; i++) {
		scoped_ro_path s = ro_path_split(r->shown[i]);
		size_t       n = s.whole ? strlen(s.whole) : 0;

		if (!s.whole)
			return err_sys(e, "--ro %s", r->shown[i]);
		if (strncmp(whole, s.whole, n) == 0 && whole[n] == '/' && asprintf(&r->in_shown, "%s%s", s.name, whole + n) < 0)
			r->in_shown = NULL;
	}
	return r->in_shown && strlen(r->in_shown) > PROTOCOL_MAIN_MAX ? err_set(e, ERR_BAD_SPEC, "%s: its path is too long", r->program) : 0;
}

static bool paths_have_same_inode(const char *a, const char *b)
{
	struct stat first, second;

	return stat(a, &first) == 0 && stat(b, &second) == 0 && first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

/* Adds folder to the --ro directories, unless it is one already. */
static int add_ro_once(struct request *r, const char *folder, struct err *e)
{
	size_t n = 0;

	for (; r->shown[n]; n++)
		if (paths_have_same_inode(r->shown[n], folder))
			return 0;
	if (n == PROTOCOL_RO_MAX)
		return err_set(e, ERR_BAD_SPEC, "--ro: more than %d, with %s", PROTOCOL_RO_MAX, folder);
	r->shown[n] = folder;
	return 0;
}

/* For a directory: the path, in buf, of its __main__.py, which `python3 DIR` runs, or else of its main.py. Otherwise path itself. */
static int find_main_file(struct request *r, const char *path, char *buf, size_t len, const char **ret, struct err *e)
{
	static const char *const names[] = { "__main__.py", "main.py" };
	struct stat              st;

	*ret = path;
	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(e, "%s", path); /* open() will fail with the same error */
	if (!S_ISDIR(st.st_mode) || r->by != BY_RUN)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		*ret = buf;
		if (snprintf(buf, len, "%s/%s", path, names[i]) < (int)len && access(buf, F_OK) == 0)
			return add_ro_once(r, path, e);
	}
	return err_set(e, ERR_BAD_SPEC, "%s: is a directory without __main__.py or main.py; name a Python file", path);
}

/* Finds the file to read (*ret), and its path in the jail (r->in_shown). */
static int locate_program(struct request *r, const char *path, char *buf, size_t len, const char **ret, struct err *e)
{
	char *whole;
	int   found;

	*ret = path;
	if (strcmp(path, "-") == 0)
		return 0;
	if (find_main_file(r, path, buf, len, ret, e) < 0)
		return -1;
	whole = *r->shown ? realpath(*ret, NULL) : NULL;
	if (*r->shown && !whole && errno != ENOENT)
		return err_sys(e, "%s", *ret);
	found = whole ? find_program_in_ro(r, whole, e) : 0;
	free(whole);
	return found;
}

/* --- the program --- */

/* brigd checks the size too, but only after everything was sent, so a file that is much too large is refused here. */
static int read_program(struct request *r, const char *path, struct bytes *ret, struct err *e)
{
	scoped_fd   fd = open_program_or_stdin(path);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (S_ISDIR(st.st_mode))
		return err_set(e, ERR_BAD_SPEC, "%s: is a directory; name a Python file", path);
	return file_read_fd(fd, r->program, PROTOCOL_CODE_MAX, ret, e);
}

static int seal_program(struct request *r, const char *text, size_t len, struct err *e)
{
	int fd = sealed_create("main.py", text, len, e);

	if (fd < 0)
		return err_wrap(e, "set-up step seal-program");
	r->fd[r->fds++] = fd;
	return 0;
}

static int put_file(struct request *r, const char *path, struct err *e)
{
	char         buf[4096]; /* PATH_MAX; its header has the same name as brig's limits.h */
	const char  *file;
	scoped_bytes text = { 0 };

	if (locate_program(r, path, buf, sizeof buf, &file, e) < 0 || read_program(r, file, &text, e) < 0 || foreign_refuse_other_language(file, &text, e) < 0)
		return -1;
	if ((r->by == BY_CHECK ? foreign_join_notebook(file, &text, &r->cells, e) : foreign_extract_notebook(file, &text, e)) < 0)
		return -1;
	return seal_program(r, text.data, text.len, e);
}

/*
 * Searches the working directory first, as python3 -m does. The last statement is `pass`, because the value of a last
 * expression would be reported as the program's result.
 */
static int put_module(struct request *r, struct err *e)
{
	static const char program[] = "__import__('sys').path.insert(0, __import__('os').getcwd())\n"
				      "__import__('runpy').run_module('%s', run_name='__main__', alter_sys=True)\n"
				      "pass\n";
	char *text = NULL;
	int   n, result;

	if (!text_is_module(r->module))
		return err_set(e, ERR_BAD_SPEC, "--module %.60s: is no name of a module; write one as Python does, like json.tool", r->module);
	n      = asprintf(&text, program, r->module);
	result = n < 0 ? err_set(e, ERR_LIMIT, "out of memory") : seal_program(r, text, (size_t)n, e);
	if (n >= 0)
		free(text);
	return result;
}

int request_set_program(struct request *r, const char *path, char **words, int n, struct err *e)
{
	int program;

	r->program = r->module ? "--module" : r->code ? "--code" : strcmp(path, "-") == 0 ? "stdin" : path;
	r->message = json_pack("{ss}", "op", "run");
	if (early_run.sent)
		program = 0; /* with the program */
	else if (r->module)
		program = put_module(r, e);
	else
		program = r->code ? seal_program(r, r->code, strlen(r->code), e) : put_file(r, path, e);
	if (program < 0)
		return -1;
	if (r->session) /* env only if there is one: earlier services know it in no call of run */
		return put_call_keys(r, e) < 0 || (r->env[0] && put_env(r, e) < 0) ? -1 : put_cwd(r, e);
	if (r->mode != MODE_script)
		json_object_set_new(r->message, "mode", json_string(run_mode_name(r->mode)));
	if (r->in_shown && json_object_set_new(r->message, "main", json_string(r->in_shown)) < 0)
		return err_set(e, ERR_BAD_SPEC, "%s: its path is not UTF-8", r->program);
	return put_argv(r, "args", words, n, e) < 0 ? -1 : put_run_keys(r, e);
}

int request_set_command(struct request *r, char **words, int n, struct err *e)
{
	request_use_inherited_stdin(r);
	r->program = words[0];
	r->message = json_pack("{ss}", "op", "exec");
	if (put_argv(r, "argv", words, n, e) < 0)
		return -1;
	if (r->session)
		return put_call_keys(r, e) < 0 ? -1 : put_process_keys(r, e);
	return put_run_keys(r, e);
}

int request_set_open(struct request *r, struct err *e)
{
	r->program = r->name ? r->name : "the session";
	r->message = json_pack("{ss sb}", "op", "open", "stays", r->by == BY_OPEN);
	if (r->by == BY_SHELL || r->terminal)
		json_object_set_new(r->message, "terminal", json_true());
	put_limits(r);
	if (r->name && json_object_set_new(r->message, "name", json_string(r->name)) < 0)
		return err_set(e, ERR_BAD_SPEC, "the name is not UTF-8");
	return put_cell_keys(r, e) < 0 ? -1 : put_env(r, e);
}

int request_set_terminal_command(struct request *r, const char *session, char *const *words, int n, uint64_t rows, uint64_t columns, struct err *e)
{
	const char *term = find_own_variable("TERM");

	while (r->fds)
		close(r->fd[--r->fds]);
	json_decref(r->message);
	r->program = words[0];
	r->message = json_pack("{ss sb sI sI}", "op", "exec", "terminal", 1, "rows", (json_int_t)rows, "columns", (json_int_t)columns);
	put_limits(r);
	for (const struct field *f = limits_fields; !r->session && f->name; f++) /* this command opened the session, with the other limits */
		if (f->offset != offsetof(struct limits, wall_ms) && f->offset != offsetof(struct limits, cpu_ms))
			json_object_del(json_object_get(r->message, "limits"), f->name);
	if (json_object_set_new(r->message, "session", json_string(session)) < 0)
		return err_set(e, ERR_BAD_SPEC, "the session's name is not UTF-8");
	if (put_argv(r, "argv", words, n, e) < 0 || put_env(r, e) < 0)
		return -1;
	if (put_cwd(r, e) < 0)
		return -1;
	if (term) /* programs read it to learn what the terminal can do; a value that is not UTF-8 is left out: no program knows it */
		json_array_append_new(json_object_get(r->message, "env"), json_string(term));
	return 0;
}

/* --- the request that finds packages --- */

/* Files of the host that pip needs, under fixed names: "PATH:NAME". */
static int add_resolve_file(const char **list, char ret[PATH_SIZE], const char *path, const char *name, struct err *e)
{
	char *whole = realpath(path, NULL);
	bool  fits  = whole && snprintf(ret, PATH_SIZE, "%s:%s", whole, name) < PATH_SIZE;

	free(whole);
	if (!fits)
		return err_sys(e, "%s", path);
	while (*list)
		list++;
	*list = ret;
	return 0;
}

int request_set_resolve(struct request *q, char file[RESOLVE_FILES][PATH_SIZE], const struct request *r, int program, struct err *e)
{
	/* certificates of this host, as its other programs trust them: also those of a company's own index */
	static const char trust[] = "/etc/ssl/certs/ca-certificates.crt";

	q->profile = r->profile;
	q->private = r->private;
	q->wait_ms = r->wait_ms;
	q->program = "packages";
	q->quiet   = true;
	q->mode    = MODE_resolve;
	if (r->by == BY_PACKAGES) /* hosts that serve the index's files; --net of a run is about its program */
		memcpy(q->network, r->network, sizeof q->network);
	q->message = json_pack("{ss ss}", "op", "run", "mode", run_mode_name(MODE_resolve));
	if (r->script && (q->fd[q->fds] = fcntl(program, F_DUPFD_CLOEXEC, 3)) < 0)
		return err_sys(e, "--script");
	if (r->script)
		q->fds++;
	else if (seal_program(q, "\n", 1, e) < 0)
		return -1;
	if (put_text_list(q, "packages", "--with", r->with, e) < 0)
		return -1;
	if (r->index && json_object_set_new(q->message, "index", json_string(r->index)) < 0)
		return err_set(e, ERR_BAD_SPEC, "--index: the value is not UTF-8");
	/* copied in, as files of a closed home directory can be, but for the wheels, which may be many */
	if ((r->requirements && add_resolve_file(q->put, file[0], r->requirements, "requirements.txt", e) < 0) ||
	    (!r->find_links && access(trust, R_OK) == 0 && add_resolve_file(q->put, file[1], trust, "ca-certificates.crt", e) < 0) ||
	    (r->find_links && add_resolve_file(q->shown, file[2], r->find_links, "wheels", e) < 0))
		return -1;
	return put_cell_keys(q, e) < 0 || run_files_open(q, e) < 0 ? -1 : 0;
}

/* --- keys of the message as options --- */

/* The text that a field such as "ro[3]" means; NULL if it is no item of this list. */
static const char *list_item_of_field(const char *field, const char *list, const char *const *texts)
{
	size_t i;

	if (!denial_parse_index(field, list, &i))
		return NULL;
	while (i && *texts)
		i--, texts++;
	return *texts;
}

char *request_field_to_option(const struct request *r, const char *field, char *buf, size_t len)
{
	/* keys of the message, up to a bracket, and what the user wrote for them; NULL: the program's name */
	static const char *const names[][2] = {
		{ "code", NULL }, { "main", NULL }, { "name", NULL }, { "args", "arguments" }, { "argv", "arguments" },
		{ "cwd", "--workdir" }, { "files", "--put, --get and --out" }, { "allow_missing", "--allow-missing" },
		{ "network", "--net" }, { "context", "--context" },
		{ "detach", "--detach" }, { "layer", "packages" }, { "packages", "packages" }, { "index", "--index" },
	};
	const char *option = begins_with(field, "limits.") ? limits_option_name(field + 7) : NULL;
	const char *shown = list_item_of_field(field, "ro", r->shown), *variable = list_item_of_field(field, "env", r->env);
	size_t      n = strcspn(field, "[");

	*buf = 0;
	if (option)
		snprintf(buf, len, "--%s", option);
	else if (shown)
		snprintf(buf, len, "--ro %s", shown);
	else if (variable)
		snprintf(buf, len, "--env %.*s", variable_name_length(variable), variable);
	else if (strcmp(field, "env") == 0 || strcmp(field, "ro") == 0)
		snprintf(buf, len, "--%s", field);
	for (size_t i = 0; !*buf && i < ARRAY_LEN(names); i++)
		if (strlen(names[i][0]) == n && strncmp(field, names[i][0], n) == 0)
			snprintf(buf, len, "%s", names[i][1] ? names[i][1] : r->program);
	return buf;
}
