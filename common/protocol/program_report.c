#include "program_report.h"

#include "base64.h"
#include "text.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

/* --- what reports look like --- */

/* clang-format off */
static const struct shape error_shape[] = {
	{ "type",      SHAPE_TEXT,  SHAPE_MUST, "The class of the exception", NULL },
	{ "message",   SHAPE_TEXT,  SHAPE_MUST, "Its text", NULL },
	{ "traceback", SHAPE_TEXT,  SHAPE_NULL, "As Python prints it, without the runner's own lines", NULL },
	{ "line",      SHAPE_COUNT, SHAPE_NULL, "The line of main.py", NULL },
	{ "offset",    SHAPE_COUNT, SHAPE_NULL, "The column of a syntax error", NULL },
	{ "text",      SHAPE_TEXT,  SHAPE_NULL, "That line", NULL },
	{ 0 },
};
#define MIME_JSON   "application/json"
#define MIME_PLOTLY "application/vnd.plotly.v1+json"
static const struct shape bundle_shape[] = {
	{ "text/plain",             SHAPE_TEXT, SHAPE_MAY, "What Python prints for the value", NULL },
	{ "text/html",              SHAPE_TEXT, SHAPE_MAY, "HTML of any kind, with scripts in it perhaps", NULL },
	{ "text/markdown",          SHAPE_TEXT, SHAPE_MAY, "Markdown", NULL },
	{ "text/latex",             SHAPE_TEXT, SHAPE_MAY, "LaTeX, with its dollar signs", NULL },
	{ "image/svg+xml",          SHAPE_TEXT, SHAPE_MAY, "SVG, which may have scripts in it", NULL },
	{ "image/png",              SHAPE_TEXT, SHAPE_MAY, "Base64; so are the next two", NULL },
	{ "image/jpeg",             SHAPE_TEXT, SHAPE_MAY, "A photograph", NULL },
	{ "application/pdf",        SHAPE_TEXT, SHAPE_MAY, "A document", NULL },
	{ MIME_JSON,                SHAPE_ANY,  SHAPE_MAY, "A value", NULL },
	{ "application/javascript", SHAPE_TEXT, SHAPE_MAY, "A script", NULL },
	{ MIME_PLOTLY,              SHAPE_ANY,  SHAPE_MAY, "A figure of plotly, which its library for browsers draws", NULL },
	{ 0 },
};
static const struct shape written_shape[] = {
	{ "path",  SHAPE_TEXT,  SHAPE_MUST, "Below /workspace", NULL },
	{ "bytes", SHAPE_COUNT, SHAPE_MUST, "Its size", NULL },
	{ "shown", SHAPE_BOOL,  SHAPE_MUST, "Whether it is an image that is one of the displays", NULL },
	{ 0 },
};
static const struct shape run_shape[] = {
	{ "result",            SHAPE_ANY,   SHAPE_NULL, "The value of the last expression, or of the variable result, where it is JSON", NULL },
	{ "result_repr",       SHAPE_TEXT,  SHAPE_NULL, "What Python prints for it", NULL },
	{ "error",             SHAPE_TABLE, SHAPE_NULL, "The exception that ended the program", error_shape },
	{ "variables",         SHAPE_TEXTS, SHAPE_MUST, "Names that the program defined", NULL },
	{ "exit_code",         SHAPE_INT,   SHAPE_NULL, "The status with which it exited", NULL },
	{ "security_event",    SHAPE_TEXT,  SHAPE_NULL, "\"blocked_import\": the program imported a module that is not allowed", NULL },
	{ "security_warnings", SHAPE_TEXTS, SHAPE_MUST, "Sentences for people", NULL },
	{ "figures",           SHAPE_COUNT, SHAPE_MAY,  "Number of figures of matplotlib that were open at the end or shown", NULL },
	{ "displays",          SHAPE_ROWS,  SHAPE_MAY,  "What was shown, by the function display and as figures, in order; each is a bundle, with a key for each MIME type in which there is something", bundle_shape },
	{ "bundle",            SHAPE_OBJECT, SHAPE_MAY, "The value of the last expression as such a bundle, if there is more to it than text", NULL },
	{ "left_out",          SHAPE_TEXTS, SHAPE_MAY,  "Sentences about what was too large or too much to be shown", NULL },
	{ "written",           SHAPE_ROWS,  SHAPE_MAY,  "The files below /workspace that the program has written, by name, at most 200; see VERSIONS", written_shape },
	{ "workspace",         SHAPE_TEXTS, SHAPE_MAY,  "Names in /workspace, at most 20, if the program missed a file; see VERSIONS", NULL },
	{ 0 },
};
static const struct shape finding_shape[] = {
	{ "line",    SHAPE_COUNT, SHAPE_NULL, "The line of the program", NULL },
	{ "offset",  SHAPE_COUNT, SHAPE_NULL, "The column", NULL },
	{ "message", SHAPE_TEXT,  SHAPE_MUST, "What is wrong there", NULL },
	{ 0 },
};
static const struct shape syntax_shape[] = {
	{ "message", SHAPE_TEXT,  SHAPE_MUST, "Python's message", NULL },
	{ "line",    SHAPE_COUNT, SHAPE_NULL, "The line of the program", NULL },
	{ "offset",  SHAPE_COUNT, SHAPE_NULL, "The column", NULL },
	{ "text",    SHAPE_TEXT,  SHAPE_NULL, "That line", NULL },
	{ 0 },
};
static const struct shape check_shape[] = {
	{ "valid",                SHAPE_BOOL,  SHAPE_MUST, "Whether there are no errors", NULL },
	{ "message",              SHAPE_TEXT,  SHAPE_MUST, "A summary in one sentence", NULL },
	{ "errors",               SHAPE_ROWS,  SHAPE_MUST, "Violations of the rules", finding_shape },
	{ "warnings",             SHAPE_ROWS,  SHAPE_MUST, "Findings that deserve a look", finding_shape },
	{ "syntax_error",         SHAPE_TABLE, SHAPE_NULL, "Why Python cannot compile the program", syntax_shape },
	{ "line_count",           SHAPE_COUNT, SHAPE_MUST, "Lines of the program", NULL },
	{ "character_count",      SHAPE_COUNT, SHAPE_MUST, "Characters of the program", NULL },
	{ "estimated_complexity", SHAPE_TEXT,  SHAPE_MUST, "\"low\", \"medium\" or \"high\"", NULL },
	{ "imports",              SHAPE_TEXTS, SHAPE_MUST, "Modules that it imports", NULL },
	{ "recommendations",      SHAPE_TEXTS, SHAPE_MUST, "Sentences for people", NULL },
	{ 0 },
};

static const struct shape *const shapes[] = { [PROGRAM_REPORT_run] = run_shape, [PROGRAM_REPORT_check] = check_shape };

/* The shape only says text or list. The runner counts characters, each of up to four bytes. The last row is for all other keys. */
static const struct bound {
	const char *key;
	size_t      bytes, items; /* bytes of a text, or of each text of a list; items of a list */
} bounds[] = {
	{ "variables",   400,      PROGRAM_REPORT_VARIABLES_MAX },
	{ "imports",     1024,     1000 },
	{ "result_repr", 32 * KIB, 0 },
	{ "traceback",   128 * KIB, 0 },
	{ "displays",    0,        PROGRAM_REPORT_DISPLAYS_MAX },
	{ "left_out",    1024,     PROGRAM_REPORT_LEFT_OUT_MAX },
	{ "written",     0,        PROGRAM_REPORT_WRITTEN_MAX },
	{ "workspace",   1024,     20 },
	{ NULL,          16 * KIB, 1000 },
};
/* clang-format on */

/* --- reading --- */

static const struct bound *bound_of_key(const char *key)
{
	static const struct bound datum = { "", PROGRAM_REPORT_DATUM_MAX, 0 };
	const struct bound       *b     = bounds;

	for (const struct shape *s = bundle_shape; s->name; s++)
		if (strcmp(s->name, key) == 0)
			return &datum;
	while (b->key && strcmp(b->key, key) != 0)
		b++;
	return b;
}

/* Keys whose value is any JSON of the program: with any keys, and NUL in texts. */
static bool is_free_form_key(const char *key)
{
	return strcmp(key, "result") == 0 || strcmp(key, MIME_JSON) == 0 || strcmp(key, MIME_PLOTLY) == 0;
}

/* Bytes of all texts and keys in the value. wire_memory_weight() bounds the rest. */
static size_t total_text_bytes(const json_t *value)
{
	size_t      sum = json_string_length(value);
	const char *key;
	json_t     *member;

	for (size_t i = 0; i < json_array_size(value); i++)
		sum += total_text_bytes(json_array_get(value, i));
	json_object_foreach((json_t *)value, key, member)
		sum += strlen(key) + total_text_bytes(member);
	return sum;
}

bool program_report_is_base64(const char *text, size_t len)
{
	size_t n = len;

	while (n && len - n < 2 && text[n - 1] == '=')
		n--;
	for (size_t i = 0; i < n; i++)
		if (base64_digit(text[i]) < 0)
			return false;
	return len && len % 4 == 0;
}

static int check_base64(const char *key, const json_t *text, struct err *e)
{
	static const char *const types[] = { "image/png", "image/jpeg", "application/pdf" };

	for (size_t i = 0; i < ARRAY_LEN(types); i++)
		if (strcmp(key, types[i]) == 0 && !program_report_is_base64(json_string_value(text), json_string_length(text)))
			return err_set(e, ERR_PROTOCOL, "%s: expected base64", key);
	return 0;
}

static int check_bounds(const char *key, const json_t *value, struct err *e);

static int check_members(const json_t *object, struct err *e)
{
	const char *key;
	json_t     *value;

	json_object_foreach((json_t *)object, key, value) {
		size_t most = strcmp(key, "result") == 0 ? PROGRAM_REPORT_RESULT_MAX : PROGRAM_REPORT_DATUM_MAX;

		if (is_free_form_key(key) && total_text_bytes(value) > most)
			return err_set(e, ERR_PROTOCOL, "%s: more than %zu bytes of text", key, most);
		if ((!is_free_form_key(key) && check_bounds(key, value, e) < 0) || check_base64(key, value, e) < 0)
			return -1;
	}
	return 0;
}

static int check_bounds(const char *key, const json_t *value, struct err *e)
{
	if (json_string_length(value) > bound_of_key(key)->bytes)
		return err_set(e, ERR_PROTOCOL, "%s: more than %zu bytes", key, bound_of_key(key)->bytes);
	if (json_array_size(value) > bound_of_key(key)->items)
		return err_set(e, ERR_PROTOCOL, "%s: more than %zu", key, bound_of_key(key)->items);
	for (size_t i = 0; i < json_array_size(value); i++)
		if (check_bounds(key, json_array_get(value, i), e) < 0)
			return -1;
	return json_is_object(value) ? check_members(value, e) : 0;
}

static bool is_one_of(const json_t *text, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(json_string_value(text), *words) == 0)
			return true;
	return false;
}

static int check_enumerated_texts(enum program_report_kind kind, const json_t *report, struct err *e)
{
	static const char *const events[] = { "blocked_import", NULL }, *const degrees[] = { "low", "medium", "high", NULL };
	const json_t            *event = json_object_get(report, "security_event");

	if (kind == PROGRAM_REPORT_check && !is_one_of(json_object_get(report, "estimated_complexity"), degrees))
		return err_set(e, ERR_PROTOCOL, "estimated_complexity: expected low, medium or high");
	if (json_is_string(event) && !is_one_of(event, events))
		return err_set(e, ERR_PROTOCOL, "security_event: expected blocked_import");
	return 0;
}

/* --- NUL: readers of these texts would take it for the end --- */

static void replace_nul(json_t *text)
{
	size_t      len = json_string_length(text), at = 0;
	const char *from = json_string_value(text);
	char       *to;

	if (strlen(from) == len || !(to = malloc(3 * len)))
		return;
	for (size_t i = 0; i < len; i++) {
		size_t n = from[i] ? 1 : 3;

		memcpy(to + at, from[i] ? from + i : "\xef\xbf\xbd", n);
		at += n;
	}
	json_string_setn_nocheck(text, to, at);
	free(to);
}

static void replace_all_nul(json_t *value)
{
	const char *key;
	json_t     *member;

	if (json_is_string(value))
		replace_nul(value);
	for (size_t i = 0; i < json_array_size(value); i++)
		replace_all_nul(json_array_get(value, i));
	json_object_foreach(value, key, member)
		if (!is_free_form_key(key))
			replace_all_nul(member);
}

/* --- all of it --- */

static int check_report(enum program_report_kind kind, const json_t *report, struct err *e)
{
	const json_t *bundle = json_object_get(report, "bundle");

	if (shape_check(shapes[kind], report, e) < 0)
		return -1;
	if (bundle && shape_check(bundle_shape, bundle, e) < 0)
		return err_wrap(e, "bundle");
	return check_members(report, e);
}

json_t *program_report_parse(enum program_report_kind kind, const void *bytes, size_t len, struct err *e)
{
	scoped_json *report = NULL;

	if (wire_memory_weight(bytes, len) > PROGRAM_REPORT_WEIGHT)
		err_set(e, ERR_PROTOCOL, "it has too many values");
	else if ((report = wire_parse_with_nul(bytes, len, PROGRAM_REPORT_MAX, e)) && check_report(kind, report, e) == 0) {
		replace_all_nul(report);
		if (check_enumerated_texts(kind, report, e) == 0)
			return json_incref(report);
	}
	text_make_plain(e->text);
	return NULL;
}

void program_report_copy_to_record(json_t *record, const json_t *report)
{
	static const char *const keys[] = { "result", "result_repr", "variables", "security_event", "security_warnings", "figures", "displays", "bundle", "left_out" };

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (json_object_get(report, keys[i]))
			json_object_set(record, keys[i], json_object_get(report, keys[i]));
	if (!json_is_object(json_object_get(record, "error")))
		json_object_set(record, "error", json_object_get(report, "error"));
}

void program_report_set_warning(json_t *record, const struct err *why)
{
	json_t *text = json_sprintf("What the program reported cannot be used: %s", why->text);

	json_object_set_new(record, "security_warnings", json_pack("[o]", text));
}

const struct shape *program_report_bundle_shape(void)
{
	return bundle_shape;
}

const struct shape *program_report_shape(enum program_report_kind kind)
{
	return shapes[kind];
}
