#define _GNU_SOURCE
#include "server_process.h"

#include "fd.h"
#include "paths.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

/* --- its environment --- */

/* A '*' at the end stands for any rest of the name. */
static const char *const handed_on[] = { "HOME", "LOGNAME", "USER", "SHELL", "TERM", "PATH", "LANG", "LANGUAGE", "LC_*", "TZ", "TMPDIR", "XDG_*",
					 "http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
					 "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS" };

static bool is_inherited_variable(const char *variable)
{
	for (size_t i = 0; i < ARRAY_LEN(handed_on); i++) {
		size_t n = strcspn(handed_on[i], "*");

		if (strncmp(variable, handed_on[i], n) == 0 && (handed_on[i][n] == '*' ? strchr(variable, '=') != NULL : variable[n] == '='))
			return true;
	}
	return false;
}

/* {name: value}; a new reference. */
static json_t *server_environment(const struct server_entry *entry)
{
	json_t *env = json_object();
	char    name[128];

	for (char **p = environ; *p; p++)
		if (is_inherited_variable(*p) && snprintf(name, sizeof name, "%.*s", (int)strcspn(*p, "="), *p) < (int)sizeof name)
			json_object_set_new(env, name, json_string(strchr(*p, '=') + 1)); /* one that is not UTF-8 is left out */
	if (entry->env)
		json_object_update(env, (json_t *)entry->env);
	return env;
}

static void free_string_list(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

static char **env_to_strings(const json_t *env)
{
	char      **words = calloc(json_object_size(env) + 1, sizeof *words);
	const char *name;
	json_t     *value;
	size_t      n = 0;

	json_object_foreach((json_t *)env, name, value)
		if (words && json_string_value(value) && asprintf(&words[n], "%s=%s", name, json_string_value(value)) >= 0)
			n++;
	return words;
}

/* --- what is executed --- */

/* As a shell finds it, with the PATH that the server will have. */
static char *find_program(const char *command, const json_t *env)
{
	const char *path = json_string_value(json_object_get(env, "PATH"));
	char       *found = NULL;

	if (strchr(command, '/'))
		return strdup(command);
	for (const char *p = path ? path : "/usr/local/bin:/usr/bin:/bin"; *p; p += strspn(p, ":")) {
		size_t n = strcspn(p, ":");

		if (n && asprintf(&found, "%.*s/%s", (int)n, p, command) >= 0 && access(found, X_OK) == 0)
			return found;
		free(n ? found : NULL);
		found = NULL;
		p += n;
	}
	return NULL;
}

static char **argv_of_stdio_server(const struct server_entry *entry)
{
	char  **argv = calloc(json_array_size(entry->argv) + 1, sizeof *argv);
	size_t  i;
	json_t *word;

	json_array_foreach((json_t *)entry->argv, i, word)
		if (argv && !(argv[i] = strdup(json_string_value(word))))
			break;
	return argv;
}

/* The program of the build tree, or else the installed one. */
static char **argv_of_remote_server(const struct server_entry *entry)
{
	struct brig_paths places;
	struct err        ignored;
	char            **argv = calloc(2, sizeof *argv);
	char              path[PATH_SIZE + 20];

	(void)entry;
	if (!argv)
		return NULL;
	if (brig_paths_find(&places, &ignored) == 0 && snprintf(path, sizeof path, "%s/brig-mcp-remote", places.libexec) > 0 && access(path, X_OK) == 0)
		argv[0] = strdup(path);
	else
		argv[0] = strdup(BRIG_LIBEXECDIR "/brig-mcp-remote");
	return argv;
}

static char *remote_server_greeting(const struct server_entry *entry)
{
	json_t *object = json_pack("{ss so sb}", "url", entry->url, "headers", entry->headers ? json_incref((json_t *)entry->headers) : json_object(), "sse",
				 entry->kind == SERVER_sse);
	char   *line = json_dumps(object, JSON_COMPACT);

	json_decref(object);
	return line;
}

static const struct {
	char **(*argv)(const struct server_entry *entry);
	char  *(*greeting)(const struct server_entry *entry);
} kinds[] = {
	[SERVER_stdio] = { argv_of_stdio_server, NULL },
	[SERVER_http]  = { argv_of_remote_server, remote_server_greeting },
	[SERVER_sse]   = { argv_of_remote_server, remote_server_greeting },
};
_Static_assert(ARRAY_LEN(kinds) == SERVER_KINDS, "each kind has a row");

char *server_process_greeting(const struct server_entry *entry)
{
	return kinds[entry->kind].greeting ? kinds[entry->kind].greeting(entry) : NULL;
}

/* --- starting it --- */

struct plan {
	posix_spawn_file_actions_t files;
	posix_spawnattr_t          state;
};

static int set_spawn_attributes(struct plan *p)
{
	sigset_t all, none;
	int      r;

	memset(&all, 0xff, sizeof all); /* as in brigd_private.c */
	sigemptyset(&none);
	r = posix_spawnattr_setsigdefault(&p->state, &all);
	r = r ? r : posix_spawnattr_setsigmask(&p->state, &none);
	return r ? r : posix_spawnattr_setflags(&p->state, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
}

static int spawn_process(pid_t *pid, const char *program, char **argv, char **env, const int theirs[3], const char *cwd)
{
	struct plan plan;
	int         r = posix_spawn_file_actions_init(&plan.files);

	if (r)
		return r;
	r = posix_spawnattr_init(&plan.state);
	if (r == 0) {
		r = cwd ? posix_spawn_file_actions_addchdir_np(&plan.files, cwd) : 0;
		for (int fd = 0; fd < 3; fd++)
			r = r ? r : posix_spawn_file_actions_adddup2(&plan.files, theirs[fd], fd);
		r = r ? r : posix_spawn_file_actions_addclosefrom_np(&plan.files, 3);
		r = r ? r : set_spawn_attributes(&plan);
		r = r ? r : posix_spawn(pid, program, &plan.files, &plan.state, argv, env);
		posix_spawnattr_destroy(&plan.state);
	}
	posix_spawn_file_actions_destroy(&plan.files);
	return r;
}

static int open_pipes(int ours[3], int theirs[3])
{
	for (int fd = 0; fd < 3; fd++) {
		int pair[2], mine = fd == 0;

		if (pipe2(pair, O_CLOEXEC) < 0)
			return -1;
		ours[fd]   = pair[mine];
		theirs[fd] = pair[!mine];
		fcntl(ours[fd], F_SETFL, O_NONBLOCK); /* of this end only: each end of a pipe has an open file description of its own */
	}
	return 0;
}

static void close_three_fds(int fd[3])
{
	for (int i = 0; i < 3; i++)
		fd_closep(&fd[i]);
}

static int start_process_with_pipes(struct server_process *ret, const struct server_entry *entry, char **argv, char **env, const char *program,
			 struct err *e)
{
	int ours[3] = { -1, -1, -1 }, theirs[3] = { -1, -1, -1 };

	errno = open_pipes(ours, theirs) < 0 ? errno : spawn_process(&ret->pid, program, argv, env, theirs, entry->cwd);
	close_three_fds(theirs);
	if (errno) {
		close_three_fds(ours);
		ret->pid = 0;
		return err_sys(e, "cannot start %.200s%s%.100s", program, entry->cwd ? " in " : "", entry->cwd ? entry->cwd : "");
	}
	ret->out   = ours[0];
	ret->in    = ours[1];
	ret->err   = ours[2];
	ret->pidfd = pidfd_open(ret->pid, 0);
	return 0;
}

int server_process_start(struct server_process *ret, const struct server_entry *entry, struct err *e)
{
	char  **argv    = kinds[entry->kind].argv(entry);
	json_t *env     = server_environment(entry);
	char  **words   = env_to_strings(env);
	char   *program = argv && argv[0] ? find_program(argv[0], env) : NULL;
	int     r       = -1;

	*ret = SERVER_PROCESS_NONE;
	if (argv && argv[0] && words && program)
		r = start_process_with_pipes(ret, entry, argv, words, program, e);
	else if (argv && argv[0] && words)
		err_set(e, ERR_MISSING, "there is no program %.100s in PATH", argv[0]);
	else
		err_set(e, ERR_LIMIT, "out of memory");
	free(program);
	free_string_list(argv);
	free_string_list(words);
	json_decref(env);
	return r;
}

/* --- its end --- */

void server_process_signal(const struct server_process *p, int number)
{
	if (p->pid > 0)
		kill(-p->pid, number);
}

void server_process_kill_and_reap(struct server_process *p, char *how, size_t len)
{
	int status = 0;

	server_process_signal(p, SIGKILL); /* what is left of its group; it is not reaped yet, so no other group has its id */
	while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		snprintf(how, len, "SIG%s", sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status)) : "?");
	else
		snprintf(how, len, "exit status %d", WEXITSTATUS(status));
	p->pid = 0;
	fd_closep(&p->pidfd);
}
