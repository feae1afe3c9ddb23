/*
 * settings_read.c - where the settings are read from: argv, environ, .env of this folder, the configuration file, the
 * file of the token
 */
#define _GNU_SOURCE
#include "settings.h"

#include "fd.h"
#include "file.h"
#include "text.h"
#include "trust.h"
#include "wire.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define BLANKS " \t\r"

void dotenv_init(struct dotenv *d, const char *bytes, size_t len)
{
	*d = (struct dotenv){ .at = bytes, .end = bytes + len, .next = 1 };
	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0)
		d->at += 3;
}

static void dotenv_free_row(struct dotenv *d)
{
	free(d->name);
	free(d->value);
	d->name = d->value = NULL;
}

void dotenv_done(struct dotenv *d)
{
	dotenv_free_row(d);
	*d = (struct dotenv){ 0 };
}

static bool dotenv_is_blank(char c)
{
	return c && strchr(BLANKS, c);
}

static bool is_name_char(char c, bool first)
{
	return text_is_identifier_letter(c) || (!first && c >= '0' && c <= '9');
}

static const char *dotenv_line_end(const struct dotenv *d)
{
	const char *newline = memchr(d->at, '\n', (size_t)(d->end - d->at));

	return newline ? newline : d->end;
}

static void dotenv_skip_blanks(struct dotenv *d)
{
	while (d->at < d->end && dotenv_is_blank(*d->at))
		d->at++;
}

/* To the beginning of the next line. */
static void dotenv_skip_line(struct dotenv *d)
{
	d->at = dotenv_line_end(d);
	if (d->at < d->end)
		d->at++;
	d->next++;
}

/* False: that line holds nothing. */
static bool dotenv_line_has_row(struct dotenv *d)
{
	dotenv_skip_blanks(d);
	return d->at < d->end && *d->at != '\n' && *d->at != '#';
}

static const char *dotenv_name_end(const struct dotenv *d)
{
	const char *p = d->at;

	while (p < d->end && is_name_char(*p, p == d->at))
		p++;
	return p;
}

static bool dotenv_parse_name(struct dotenv *d)
{
	const char *end = dotenv_name_end(d);

	if (end - d->at == 6 && memcmp(d->at, "export", 6) == 0 && end < d->end && dotenv_is_blank(*end)) {
		d->at = end;
		dotenv_skip_blanks(d);
		end = dotenv_name_end(d);
	}
	d->name = strndup(d->at, (size_t)(end - d->at));
	d->at   = end;
	return d->name;
}

static char unescape_char(char c)
{
	static const char from[] = "ntr\"\\$", to[] = "\n\t\r\"\\$";
	const char       *p      = c ? strchr(from, c) : NULL;

	return p ? to[p - from] : 0;
}

/*
 * d->at is after the opening quote, and afterwards after the closing one. If that is missing d->at does not move, so that only
 * this line is skipped.
 */
static int dotenv_parse_quoted(struct dotenv *d, char quote, struct err *e)
{
	char       *to = d->value = malloc((size_t)(d->end - d->at) + 1);
	const char *p = d->at;
	unsigned    lines = 0;

	if (!to)
		return err_set(e, ERR_LIMIT, "out of memory");
	for (; p < d->end && *p != quote; p++) {
		char meant = quote == '"' && *p == '\\' && p + 1 < d->end ? unescape_char(p[1]) : 0;

		lines += *p == '\n';
		p += meant != 0;
		*to++ = meant ? meant : *p;
	}
	*to = 0;
	if (p == d->end)
		return err_set(e, ERR_BAD_SPEC, "the quote %c is never closed", quote);
	if (memchr(d->value, 0, (size_t)(to - d->value)))
		return err_set(e, ERR_BAD_SPEC, "a NUL byte is not text");
	d->at = p + 1;
	d->next += lines;
	return 0;
}

/* A comment begins after a blank: "a#b" is a value. */
static int dotenv_parse_unquoted(struct dotenv *d, struct err *e)
{
	const char *end = dotenv_line_end(d), *p = d->at;

	while (p < end && !(*p == '#' && (p == d->at || dotenv_is_blank(p[-1]))))
		p++;
	while (p > d->at && dotenv_is_blank(p[-1]))
		p--;
	if (memchr(d->at, 0, (size_t)(p - d->at)))
		return err_set(e, ERR_BAD_SPEC, "a NUL byte is not text");
	d->value = strndup(d->at, (size_t)(p - d->at));
	d->at    = end;
	return d->value ? 0 : err_set(e, ERR_LIMIT, "out of memory");
}

static int dotenv_parse_row(struct dotenv *d, struct err *e)
{
	char quote;

	if (!dotenv_parse_name(d))
		return err_set(e, ERR_LIMIT, "out of memory");
	dotenv_skip_blanks(d);
	if (!*d->name || d->at == d->end || *d->at != '=')
		return err_set(e, ERR_BAD_SPEC, "expected NAME=VALUE");
	d->at++;
	dotenv_skip_blanks(d);
	quote = d->at < d->end && (*d->at == '"' || *d->at == '\'') ? *d->at++ : 0;
	if ((quote ? dotenv_parse_quoted(d, quote, e) : dotenv_parse_unquoted(d, e)) < 0)
		return -1;
	return dotenv_line_has_row(d) ? err_set(e, ERR_BAD_SPEC, "something stands behind the closing quote") : 0;
}

enum dotenv_step dotenv_next(struct dotenv *d, struct err *e)
{
	int bad;

	dotenv_free_row(d);
	while (d->at < d->end && !dotenv_line_has_row(d))
		dotenv_skip_line(d);
	if (d->at == d->end)
		return DOTENV_END;
	d->line = d->next;
	bad     = dotenv_parse_row(d, e);
	dotenv_skip_line(d);
	if (!bad)
		return DOTENV_ROW;
	free(d->value);
	d->value = NULL;
	if (!d->name)
		d->at = d->end;
	return DOTENV_BAD;
}

/*
 * All that a file .env may set, whoever owns it: a folder that was cloned or unpacked is one's own, and what is in it a stranger's. It may
 * set how long programs run and what replies look like, within what the profile allows, and pick a profile that comes with brig, see
 * check_profile() in run_request.c. The token may be in it, as it always could, but counts only where no other place names one: see is_covered() in
 * settings_row.c; its file may not.
 */
static const enum setting_id dotenv_settings[] = {
	SETTING_timeout_ms, SETTING_max_timeout_ms, SETTING_output_bytes, SETTING_memory_bytes, SETTING_code_chars, SETTING_allowed_imports,
	SETTING_data_science, SETTING_network, SETTING_filesystem, SETTING_container_mode, SETTING_container_image,
	SETTING_reply, SETTING_detail, SETTING_text_bytes, SETTING_yield_after_ms, SETTING_progress_ms, SETTING_echo_result,
};

static bool origin_may_set(enum setting_id id, bool older, enum setting_origin origin)
{
	if (origin != ORIGIN_DOTENV || (id == SETTING_token && older))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(dotenv_settings); i++)
		if (dotenv_settings[i] == id)
			return true;
	return false;
}

/* "SANDBOX_TIMEOUT in the environment", ".env, line 3: SANDBOX_TIMEOUT" */
static const char *describe_variable_source(const char *name, const json_t *lines, char *buf, size_t len)
{
	if (lines)
		snprintf(buf, len, ".env, line %" JSON_INTEGER_FORMAT ": %s", json_integer_value(json_object_get(lines, name)), name);
	else
		snprintf(buf, len, "%s in the environment", name);
	return buf;
}

static int set_from_variable(struct settings *s, enum setting_id id, const char *name, bool older, enum setting_origin origin,
			 const json_t *names, const json_t *lines, struct err *e)
{
	const char *text = json_string_value(json_object_get(names, name));
	char        buf[SETTING_NAME_MAX + 40];
	struct setting_source by = { origin, describe_variable_source(name, lines, buf, sizeof buf), older };

	if (!text)
		return 0;
	if (!origin_may_set(id, older, origin) && *text)
		return err_set(e, ERR_BAD_SPEC, "%s: not allowed in this file; set it as an option or in the environment", buf);
	return setting_set(s, id, &by, text, e);
}

/* First BRIG_MCP_*, then the older names in the order of the row: the first that is set counts. */
static int set_from_all_names(struct settings *s, enum setting_id id, enum setting_origin origin, const json_t *names, const json_t *lines,
		      struct err *e)
{
	char        name[SETTING_NAME_MAX];
	const char *p = setting_texts[id].older;

	if (set_from_variable(s, id, setting_spell_name(id, SPELT_VARIABLE, name, sizeof name), false, origin, names, lines, e) < 0)
		return -1;
	while (*p) {
		size_t len = strcspn(p, " ");

		snprintf(name, sizeof name, "%.*s", (int)len, p);
		if (set_from_variable(s, id, name, true, origin, names, lines, e) < 0)
			return -1;
		p += len + (p[len] == ' ');
	}
	return 0;
}

/* Refuses unknown names with BRIG_MCP_, which must be typing errors: no other program has such names, as some have with SANDBOX_. */
static int refuse_unknown_variables(const json_t *names, const json_t *lines, struct err *e)
{
	const char *name;
	json_t     *value;
	char        where[400], near[SETTING_NAME_MAX];
	int         id;

	json_object_foreach((json_t *)names, name, value)
	{
		if (strncmp(name, SETTINGS_VARIABLE, strlen(SETTINGS_VARIABLE)) != 0 || setting_find_by_name(SPELT_VARIABLE, name) >= 0 ||
		    strcmp(name, SETTINGS_CONFIG_VARIABLE) == 0)
			continue;
		describe_variable_source(name, lines, where, sizeof where);
		id = setting_find_nearest(SPELT_VARIABLE, name);
		if (id < 0)
			return err_set(e, ERR_BAD_SPEC, "%.200s: no such setting; see brig-mcp --help", where);
		return err_set(e, ERR_BAD_SPEC, "%.200s: no such setting; is it %s?", where,
			       setting_spell_name((enum setting_id)id, SPELT_VARIABLE, near, sizeof near));
	}
	return 0;
}

int settings_set_from_variables(struct settings *s, enum setting_origin origin, const json_t *names, const json_t *lines, struct err *e)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		if (set_from_all_names(s, (enum setting_id)id, origin, names, lines, e) < 0)
			return -1;
	return refuse_unknown_variables(names, lines, e);
}

/* --- .env --- */

bool settings_is_own_variable(const char *name)
{
	return strncmp(name, SETTINGS_VARIABLE, strlen(SETTINGS_VARIABLE)) == 0 || begins_with(name, "SANDBOX_");
}

/* Lines for other programs are ignored, even if they cannot be read. If a name appears twice, the last one counts. */
static int dotenv_collect_settings(struct dotenv *d, json_t *names, json_t *lines, struct err *e)
{
	enum dotenv_step step;

	while ((step = dotenv_next(d, e)) != DOTENV_END) {
		bool ours = d->name && settings_is_own_variable(d->name);

		if (step == DOTENV_BAD && (ours || e->kind == ERR_LIMIT))
			return err_wrap(e, ".env, line %u: %.60s", d->line, ours ? d->name : "");
		if (!ours)
			continue;
		if (json_object_set_new(names, d->name, json_string(d->value)) < 0)
			return err_set(e, ERR_BAD_SPEC, ".env, line %u: %.60s: the text is not UTF-8", d->line, d->name);
		json_object_set_new(lines, d->name, json_integer(d->line));
	}
	return 0;
}

int settings_parse_dotenv(struct settings *s, const char *bytes, size_t len, struct err *e)
{
	scoped_json  *names = json_object(), *lines = json_object();
	scoped_dotenv d;

	dotenv_init(&d, bytes, len);
	if (dotenv_collect_settings(&d, names, lines, e) < 0)
		return -1;
	return settings_set_from_variables(s, ORIGIN_DOTENV, names, lines, e);
}

/* --- the configuration file --- */

/* The end of the JSON text whose opening quote is at p. */
static const char *json_string_end(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

/* The line of a key of the outermost object; the bytes must be valid JSON. 0: not found, as the key is written with escapes. */
static unsigned line_of_json_key(const char *bytes, size_t len, const char *key)
{
	const char *end = bytes + len;
	unsigned    line = 1, depth = 0;
	size_t      n    = strlen(key);

	for (const char *p = bytes; p < end; p++) {
		line += *p == '\n';
		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		if (*p != '"')
			continue;
		const char *behind = json_string_end(p, end), *colon = behind + strspn(behind, " \t\r\n");

		if (depth == 1 && *colon == ':' && (size_t)(behind - p) == n + 2 && memcmp(p + 1, key, n) == 0)
			return line;
		p = behind - 1;
	}
	return 0;
}

static char *join_list_with_commas(const json_t *list, size_t *n)
{
	char   *text = NULL;
	FILE   *to   = open_memstream(&text, n);
	size_t  i;
	json_t *item;

	if (!to)
		return NULL;
	json_array_foreach(list, i, item)
		fprintf(to, "%s%s", i ? "," : "", json_is_string(item) ? json_string_value(item) : "");
	fclose(to);
	return text;
}

static bool is_list_of_texts(const json_t *v)
{
	for (size_t i = 0; i < json_array_size(v); i++)
		if (!json_is_string(json_array_get(v, i)) || strchr(json_string_value(json_array_get(v, i)), ','))
			return false;
	return json_is_array(v);
}

/* As a person would have typed it; the caller frees. NULL with *e. */
static char *json_value_to_text(enum setting_id id, const json_t *v, struct err *e)
{
	const struct field *f    = &setting_rows[id].field;
	char               *text = NULL;
	size_t              n;

	if (json_is_string(v))
		text = strdup(json_string_value(v));
	else if (json_is_boolean(v) && f->type == FIELD_BOOL)
		text = strdup(json_is_true(v) ? "true" : "false");
	else if (json_is_number(v) && (f->type == FIELD_MS || json_is_integer(v)))
		text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(12));
	else if (f->type == FIELD_LIST && is_list_of_texts(v))
		text = join_list_with_commas(v, &n);
	if (!text)
		err_set(e, ERR_BAD_SPEC, "expected %s", field_expected_text(f));
	return text;
}

static int refuse_unknown_key(const char *where, const char *key, struct err *e)
{
	char near[SETTING_NAME_MAX];
	int  id = setting_find_nearest(SPELT_KEY, key);

	if (id < 0)
		return err_set(e, ERR_BAD_SPEC, "%s: no such setting; brig-mcp(1) has the list", where);
	return err_set(e, ERR_BAD_SPEC, "%s: no such setting; is it %s?", where, setting_spell_name((enum setting_id)id, SPELT_KEY, near, sizeof near));
}

static int set_from_json_key(struct settings *s, const char *where, const char *key, const json_t *value, struct err *e)
{
	int               id = setting_find_by_name(SPELT_KEY, key), r;
	const struct setting_source by = { ORIGIN_FILE, where, false };
	char             *text;

	if (strcmp(key, "comment") == 0)
		return 0;
	if (id < 0)
		return refuse_unknown_key(where, key, e);
	if (!(text = json_value_to_text((enum setting_id)id, value, e)))
		return err_wrap(e, "%s", where);
	r = setting_set(s, (enum setting_id)id, &by, text, e);
	free(text);
	return r;
}

int settings_parse_json(struct settings *s, const char *path, const char *bytes, size_t len, struct err *e)
{
	scoped_json *all = wire_parse(bytes, len, SETTINGS_FILE_MAX, e);
	const char  *key;
	json_t      *value;
	char         where[400];

	if (!all)
		return err_wrap(e, "%s", path);
	json_object_foreach(all, key, value)
	{
		unsigned line = line_of_json_key(bytes, len, key);

		snprintf(where, sizeof where, line ? "%.200s, line %u: %.60s" : "%.200s, line %u or below: %.60s", path, line ? line : 1, key);
		if (set_from_json_key(s, where, key, value, e) < 0)
			return -1;
	}
	return 0;
}

static int read_environment(struct settings *s, struct err *e)
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
		if (settings_is_own_variable(name) && json_object_set_new(names, name, json_string(equals + 1)) < 0)
			return err_set(e, ERR_BAD_SPEC, "%s in the environment: the text is not UTF-8", name);
	}
	r = settings_set_from_variables(s, ORIGIN_ENVIRONMENT, names, NULL, e);
	if ((token = json_string_value(json_object_get(names, "SANDBOX_API_TOKEN"))))
		explicit_bzero((char *)token, strlen(token)); /* free() would leave most of it */
	return r;
}

/* --- .env --- */

static void settings_add_note(struct settings *s, const char *text)
{
	json_array_append_new(s->notes, json_string(text));
}

/* A .env that is not trusted is not an error: it may be for other programs. */
static int read_dotenv_file(struct settings *s, struct err *e)
{
	scoped_fd    fd = open(".env", O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW); /* a FIFO must not block */
	scoped_bytes b  = { 0 };
	struct stat  st;
	char         why[sizeof e->text + 16];

	if (fd < 0 && errno != ENOENT)
		settings_add_note(s, errno == ELOOP ? ".env: a symbolic link; not read" : ".env: cannot be opened; not read");
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0; /* a folder of that name is a virtual environment */
	if (trust_check(&st, ".env", e) < 0) { /* another user may have put it there */
		snprintf(why, sizeof why, "%s; not read", e->text);
		settings_add_note(s, why);
		return 0;
	}
	if ((uint64_t)st.st_size > SETTINGS_FILE_MAX) {
		settings_add_note(s, ".env: more than 64 KiB; not read. Give its settings as options, or in ~/.config/brig/mcp.json");
		return 0;
	}
	if (file_read_fd(fd, ".env", SETTINGS_FILE_MAX, &b, e) < 0 || settings_parse_dotenv(s, b.data, b.len, e) < 0)
		return -1;
	if (s->origin[SETTING_token] == ORIGIN_DOTENV && s->token && *s->token && (st.st_mode & S_IROTH))
		settings_add_note(s, ".env: it holds the token, and all users may read it; type: chmod 600 .env");
	return 0;
}

/* --- the configuration file --- */

/* A file that this user may not read counts as missing, unless it was named: su and sudo leave HOME as it was, which is another user's. */
static bool counts_as_missing_file(struct settings *s, const char *path, bool is_named, const struct err *e)
{
	char text[PATH_MAX + 64];

	if (e->errnum != EACCES || is_named)
		return e->errnum == ENOENT || e->errnum == ENOTDIR;
	snprintf(text, sizeof text, "%s: it is closed to this user; not read", path);
	settings_add_note(s, text);
	return true;
}

/* 1: taken; 0: there is none. */
static int read_config_file(struct settings *s, const char *path, bool is_named, struct err *e)
{
	scoped_bytes b = { 0 };

	if (trust_read(path, SETTINGS_FILE_MAX, &b, e) < 0) {
		e->kind = ERR_BAD_SPEC; /* see settings_exit_status() */
		return counts_as_missing_file(s, path, is_named, e) ? 0 : -1;
	}
	return settings_parse_json(s, path, b.data, b.len, e) < 0 ? -1 : 1;
}

/* A file that was named must exist. Otherwise the first one that exists is read: the user's, or that in /etc. */
static int find_and_read_config(struct settings *s, struct err *e)
{
	const char *variable = getenv(SETTINGS_CONFIG_VARIABLE), *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	const char *named    = s->config ? s->config : variable && *variable ? variable : NULL;
	char        path[PATH_MAX];
	int         found;

	if (named && (found = read_config_file(s, named, true, e)) <= 0)
		return err_wrap(e, s->config ? "--config" : SETTINGS_CONFIG_VARIABLE " in the environment");
	if (named)
		return 0;
	if (config && config[0] == '/')
		snprintf(path, sizeof path, "%s/brig/mcp.json", config);
	else if (home && home[0] == '/')
		snprintf(path, sizeof path, "%s/.config/brig/mcp.json", home);
	else
		return read_config_file(s, "/etc/brig/mcp.json", false, e) < 0 ? -1 : 0;
	if ((found = read_config_file(s, path, false, e)) != 0)
		return found < 0 ? -1 : 0;
	return read_config_file(s, "/etc/brig/mcp.json", false, e) < 0 ? -1 : 0;
}

/* --- the token --- */

static int read_token_file(struct settings *s, struct err *e)
{
	scoped_bytes b  = { 0 };
	json_t      *kept;

	if (trust_read_secret(s->token_file, SETTINGS_FILE_MAX, &b, e) < 0) {
		e->kind = ERR_DENIED; /* see settings_exit_status() */
		return err_wrap(e, "%s", s->where[SETTING_token]);
	}
	while (b.len && memchr(" \t\r\n", b.data[b.len - 1], 4))
		b.len--;
	kept = json_stringn(b.data, b.len);
	explicit_bzero(b.data, b.len); /* free() would leave most of it */
	if (json_array_append_new(s->kept, kept) < 0 || strlen(json_string_value(kept)) != b.len)
		return err_set(e, ERR_DENIED, "%s: %s is not text", s->where[SETTING_token], s->token_file);
	s->token = json_string_value(kept);
	return 0;
}

int settings_load(struct settings *s, int argc, char **argv, struct err *e)
{
	settings_init(s);
	if (settings_parse_options(s, argc, argv, e) < 0)
		return -1;
	if (s->help || s->version)
		return 0;
	if (read_environment(s, e) < 0 || read_dotenv_file(s, e) < 0 || find_and_read_config(s, e) < 0)
		return -1;
	if (s->http && s->token_file && read_token_file(s, e) < 0)
		return -1;
	return settings_judge(s, e);
}

void settings_unset_token_variable(void)
{
	unsetenv("SANDBOX_API_TOKEN");
}
