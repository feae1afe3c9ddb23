/* settings_source.c - what variables, .env and the configuration file say, from their bytes. */
#include "dotenv.h"
#include "settings.h"
#include "wire.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

static bool may_set(enum setting_id id, bool older, enum setting_origin origin)
{
	if (origin != ORIGIN_DOTENV || (id == SETTING_token && older))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(dotenv_settings); i++)
		if (dotenv_settings[i] == id)
			return true;
	return false;
}

/* "SANDBOX_TIMEOUT in the environment", ".env, line 3: SANDBOX_TIMEOUT" */
static const char *describe(const char *name, const json_t *lines, char *buf, size_t len)
{
	if (lines)
		snprintf(buf, len, ".env, line %" JSON_INTEGER_FORMAT ": %s", json_integer_value(json_object_get(lines, name)), name);
	else
		snprintf(buf, len, "%s in the environment", name);
	return buf;
}

static int take_variable(struct settings *s, enum setting_id id, const char *name, bool older, enum setting_origin origin,
			 const json_t *names, const json_t *lines, struct err *e)
{
	const char *text = json_string_value(json_object_get(names, name));
	char        buf[SETTING_NAME_MAX + 40];
	struct setting_source by = { origin, describe(name, lines, buf, sizeof buf), older };

	if (!text)
		return 0;
	if (!may_set(id, older, origin) && *text)
		return err_set(e, ERR_BAD_SPEC, "%s: such a file does not decide that; say it as an option or in the environment", buf);
	return setting_set(s, id, &by, text, e);
}

/* First BRIG_MCP_*, then the older names in the order of the row: the first that is set counts. */
static int take_names(struct settings *s, enum setting_id id, enum setting_origin origin, const json_t *names, const json_t *lines,
		      struct err *e)
{
	char        name[SETTING_NAME_MAX];
	const char *p = setting_texts[id].older;

	if (take_variable(s, id, setting_name(id, SPELT_VARIABLE, name, sizeof name), false, origin, names, lines, e) < 0)
		return -1;
	while (*p) {
		size_t len = strcspn(p, " ");

		snprintf(name, sizeof name, "%.*s", (int)len, p);
		if (take_variable(s, id, name, true, origin, names, lines, e) < 0)
			return -1;
		p += len + (p[len] == ' ');
	}
	return 0;
}

/* Refuses unknown names with BRIG_MCP_, which must be typing errors: no other program has such names, as some have with SANDBOX_. */
static int refuse_unknown(const json_t *names, const json_t *lines, struct err *e)
{
	const char *name;
	json_t     *value;
	char        where[400], near[SETTING_NAME_MAX];
	int         id;

	json_object_foreach((json_t *)names, name, value)
	{
		if (strncmp(name, SETTINGS_VARIABLE, strlen(SETTINGS_VARIABLE)) != 0 || setting_find(SPELT_VARIABLE, name) >= 0 ||
		    strcmp(name, SETTINGS_CONFIG_VARIABLE) == 0)
			continue;
		describe(name, lines, where, sizeof where);
		id = setting_nearest(SPELT_VARIABLE, name);
		if (id < 0)
			return err_set(e, ERR_BAD_SPEC, "%.200s: no such setting; see brig-mcp --help", where);
		return err_set(e, ERR_BAD_SPEC, "%.200s: no such setting; is it %s?", where,
			       setting_name((enum setting_id)id, SPELT_VARIABLE, near, sizeof near));
	}
	return 0;
}

int settings_take_variables(struct settings *s, enum setting_origin origin, const json_t *names, const json_t *lines, struct err *e)
{
	for (int id = 0; id < SETTING_COUNT; id++)
		if (take_names(s, (enum setting_id)id, origin, names, lines, e) < 0)
			return -1;
	return refuse_unknown(names, lines, e);
}

/* --- .env --- */

bool settings_is_ours(const char *name)
{
	return strncmp(name, SETTINGS_VARIABLE, strlen(SETTINGS_VARIABLE)) == 0 || strncmp(name, "SANDBOX_", 8) == 0;
}

/* Lines for other programs are ignored, even if they cannot be read. If a name appears twice, the last one counts. */
static int collect(struct dotenv *d, json_t *names, json_t *lines, struct err *e)
{
	enum dotenv_step step;

	while ((step = dotenv_next(d, e)) != DOTENV_END) {
		bool ours = d->name && settings_is_ours(d->name);

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

int settings_take_dotenv(struct settings *s, const char *bytes, size_t len, struct err *e)
{
	scoped_json  *names = json_object(), *lines = json_object();
	scoped_dotenv d;

	dotenv_init(&d, bytes, len);
	if (collect(&d, names, lines, e) < 0)
		return -1;
	return settings_take_variables(s, ORIGIN_DOTENV, names, lines, e);
}

/* --- the configuration file --- */

/* The end of the JSON text whose opening quote is at p. */
static const char *text_end(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

/* The line of a key of the outermost object; the bytes must be valid JSON. 0: not found, as the key is written with escapes. */
static unsigned line_of(const char *bytes, size_t len, const char *key)
{
	const char *end = bytes + len;
	unsigned    line = 1, depth = 0;
	size_t      n    = strlen(key);

	for (const char *p = bytes; p < end; p++) {
		line += *p == '\n';
		depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
		if (*p != '"')
			continue;
		const char *behind = text_end(p, end), *colon = behind + strspn(behind, " \t\r\n");

		if (depth == 1 && *colon == ':' && (size_t)(behind - p) == n + 2 && memcmp(p + 1, key, n) == 0)
			return line;
		p = behind - 1;
	}
	return 0;
}

static char *join(const json_t *list, size_t *n)
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
static char *text_of(enum setting_id id, const json_t *v, struct err *e)
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
		text = join(v, &n);
	if (!text)
		err_set(e, ERR_BAD_SPEC, "expected %s", field_like(f));
	return text;
}

static int refuse_key(const char *where, const char *key, struct err *e)
{
	char near[SETTING_NAME_MAX];
	int  id = setting_nearest(SPELT_KEY, key);

	if (id < 0)
		return err_set(e, ERR_BAD_SPEC, "%s: no such setting; brig-mcp(1) has the list", where);
	return err_set(e, ERR_BAD_SPEC, "%s: no such setting; is it %s?", where, setting_name((enum setting_id)id, SPELT_KEY, near, sizeof near));
}

static int take_key(struct settings *s, const char *where, const char *key, const json_t *value, struct err *e)
{
	int               id = setting_find(SPELT_KEY, key), r;
	const struct setting_source by = { ORIGIN_FILE, where, false };
	char             *text;

	if (strcmp(key, "comment") == 0)
		return 0;
	if (id < 0)
		return refuse_key(where, key, e);
	if (!(text = text_of((enum setting_id)id, value, e)))
		return err_wrap(e, "%s", where);
	r = setting_set(s, (enum setting_id)id, &by, text, e);
	free(text);
	return r;
}

int settings_take_file(struct settings *s, const char *path, const char *bytes, size_t len, struct err *e)
{
	scoped_json *all = wire_parse(bytes, len, SETTINGS_FILE_MAX, e);
	const char  *key;
	json_t      *value;
	char         where[400];

	if (!all)
		return err_wrap(e, "%s", path);
	json_object_foreach(all, key, value)
	{
		unsigned line = line_of(bytes, len, key);

		snprintf(where, sizeof where, line ? "%.200s, line %u: %.60s" : "%.200s, line %u or below: %.60s", path, line ? line : 1, key);
		if (take_key(s, where, key, value, e) < 0)
			return -1;
	}
	return 0;
}
