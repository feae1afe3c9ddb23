/* settings_load.c - where the settings are read from: argv, environ, .env of this folder, the configuration file, the file of the token. */
#define _GNU_SOURCE
#include "fd.h"
#include "file.h"
#include "trust.h"
#include "settings.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int take_environment(struct settings *s, struct err *e)
{
	scoped_json *names = json_object();
	const char  *token;
	int          r;

	for (char **p = environ; *p; p++) {
		char *equals = strchr(*p, '=');
		int   n      = equals ? (int)(equals - *p) : 0;
		char  name[256];

		if (!n || n >= (int)sizeof name)
			continue;
		snprintf(name, sizeof name, "%.*s", n, *p);
		if (settings_is_ours(name) && json_object_set_new(names, name, json_string(equals + 1)) < 0)
			return err_set(e, ERR_BAD_SPEC, "%s in the environment: the text is not UTF-8", name);
	}
	r = settings_take_variables(s, ORIGIN_ENVIRONMENT, names, NULL, e);
	if ((token = json_string_value(json_object_get(names, "SANDBOX_API_TOKEN"))))
		explicit_bzero((char *)token, strlen(token)); /* free() would leave most of it */
	return r;
}

/* --- .env --- */

static void note(struct settings *s, const char *text)
{
	json_array_append_new(s->notes, json_string(text));
}

/* Why .env is not read; "": it may be read. Such a file is not an error: another user may have put it there, or it is for other programs. */
static void distrust(const struct stat *st, char *why, size_t len)
{
	struct err e;

	*why = 0;
	if (trust_check(st, ".env", &e) < 0)
		snprintf(why, len, "%s; not read", e.text);
	else if ((uint64_t)st->st_size > SETTINGS_FILE_MAX)
		snprintf(why, len, ".env: more than 64 KiB; not read. Give its settings as options, or in ~/.config/brig/mcp.json");
}

static int take_dotenv(struct settings *s, struct err *e)
{
	scoped_fd    fd = open(".env", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW); /* a FIFO must not block */
	scoped_bytes b  = { 0 };
	struct stat  st;
	char         why[sizeof((struct err *)0)->text + 16];

	if (fd < 0 && errno != ENOENT)
		note(s, errno == ELOOP ? ".env: a symbolic link; not read" : ".env: cannot be opened; not read");
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0; /* a folder of that name is a virtual environment */
	distrust(&st, why, sizeof why);
	if (*why) {
		note(s, why);
		return 0;
	}
	if (file_read_fd(fd, ".env", SETTINGS_FILE_MAX, &b, e) < 0 || settings_take_dotenv(s, b.data, b.len, e) < 0)
		return -1;
	if (s->origin[SETTING_token] == ORIGIN_DOTENV && s->token && *s->token && (st.st_mode & S_IROTH))
		note(s, ".env: it holds the token, and all users may read it; type: chmod 600 .env");
	return 0;
}

/* --- the configuration file --- */

/* A file that this user may not read counts as missing, unless it was named: su and sudo leave HOME as it was, which is another user's. */
static bool is_not_there(struct settings *s, const char *path, bool is_named, const struct err *e)
{
	char text[PATH_MAX + 64];

	if (e->errnum != EACCES || is_named)
		return e->errnum == ENOENT || e->errnum == ENOTDIR;
	snprintf(text, sizeof text, "%s: it is closed to this user; not read", path);
	note(s, text);
	return true;
}

/* 1: taken; 0: there is none. */
static int take_file(struct settings *s, const char *path, bool is_named, struct err *e)
{
	scoped_bytes b = { 0 };

	if (trust_read(path, SETTINGS_FILE_MAX, &b, e) < 0) {
		e->kind = ERR_BAD_SPEC; /* see settings_status() */
		return is_not_there(s, path, is_named, e) ? 0 : -1;
	}
	return settings_take_file(s, path, b.data, b.len, e) < 0 ? -1 : 1;
}

/* A file that was named must exist. Otherwise the first one that exists is read: the user's, or that in /etc. */
static int take_config(struct settings *s, struct err *e)
{
	const char *variable = getenv(SETTINGS_CONFIG_VARIABLE), *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	const char *named    = s->config ? s->config : variable && *variable ? variable : NULL;
	char        path[PATH_MAX];
	int         found;

	if (named && (found = take_file(s, named, true, e)) <= 0)
		return err_wrap(e, s->config ? "--config" : SETTINGS_CONFIG_VARIABLE " in the environment");
	if (named)
		return 0;
	if (config && config[0] == '/')
		snprintf(path, sizeof path, "%s/brig/mcp.json", config);
	else if (home && home[0] == '/')
		snprintf(path, sizeof path, "%s/.config/brig/mcp.json", home);
	else
		return take_file(s, "/etc/brig/mcp.json", false, e) < 0 ? -1 : 0;
	if ((found = take_file(s, path, false, e)) != 0)
		return found < 0 ? -1 : 0;
	return take_file(s, "/etc/brig/mcp.json", false, e) < 0 ? -1 : 0;
}

/* --- the token --- */

/* Others must not be able to read or write the token. Its group may read it: services share a file of root with mode 0640. */
static int check_token_file(int fd, const char *path, struct err *e)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_DENIED, "%s: not a regular file", path);
	if (st.st_mode & S_IROTH)
		return err_set(e, ERR_DENIED, "%s: others may read it; type: chmod 600 %s", path, path);
	return trust_check(&st, path, e) < 0 || trust_check_folder_of(path, e) < 0 ? -1 : 0;
}

static int read_token(struct settings *s, struct err *e)
{
	scoped_fd    fd = open(s->token_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	scoped_bytes b  = { 0 };
	json_t      *kept;

	if (check_token_file(fd, s->token_file, e) < 0 || file_read_fd(fd, s->token_file, SETTINGS_FILE_MAX, &b, e) < 0) {
		e->kind = ERR_DENIED; /* see settings_status() */
		return err_wrap(e, "%s", s->where[SETTING_token]);
	}
	while (b.len && memchr(" \t\r\n", b.data[b.len - 1], 4))
		b.len--;
	kept = json_stringn(b.data, b.len);
	explicit_bzero(b.data, b.len); /* free() would leave most of it */
	if (json_array_append_new(s->kept, kept) < 0 || strlen(json_string_value(kept)) != b.len)
		return err_set(e, ERR_DENIED, "%s: %s is no text", s->where[SETTING_token], s->token_file);
	s->token = json_string_value(kept);
	return 0;
}

int settings_load(struct settings *s, int argc, char **argv, struct err *e)
{
	settings_init(s);
	if (settings_take_options(s, argc, argv, e) < 0)
		return -1;
	if (s->help || s->version)
		return 0;
	if (take_environment(s, e) < 0 || take_dotenv(s, e) < 0 || take_config(s, e) < 0)
		return -1;
	if (s->http && s->token_file && read_token(s, e) < 0)
		return -1;
	return settings_judge(s, e);
}

void settings_hide_token(void)
{
	unsetenv("SANDBOX_API_TOKEN");
}
