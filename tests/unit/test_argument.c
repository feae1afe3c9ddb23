#include "argument.h"
#include "tap.h"

#include <stdlib.h>

static const char *const formats[] = { "json", "text", NULL };

/* clang-format off */
static const struct argument rows[] = {
	{ { "code",    FIELD_STR,    0, 0,   20,     0,            "the program", NULL,    NULL }, true, NULL },
	{ { "timeout", FIELD_MILLI,  0, 10,  300000, 30000,        "seconds",     NULL,    NULL }, false, NULL },
	{ { "count",   FIELD_COUNT,  0, 1,   5,      FIELD_UNSET, "how many",     NULL,    NULL }, false, NULL },
	{ { "flag",    FIELD_BOOL,   0, 0,   1,      1,            "yes or no",   NULL,    NULL }, false, NULL },
	{ { "imports", FIELD_WORDS,  0, 0,   3,      0,            "modules",     NULL,    NULL }, false, NULL },
	{ { "env",     FIELD_MAP,    0, 0,   2,      0,            "variables",   NULL,    NULL }, false, NULL },
	{ { "memory",  FIELD_SIZE,   0, MIB, GIB,    FIELD_UNSET, "bytes",        NULL,    NULL }, false, NULL },
	{ { "format",  FIELD_CHOICE, 0, 0,   1,      0,            "which",       formats, NULL }, false, NULL },
	{ { 0 }, false, NULL },
};

static const struct {
	const char *name, *given, *key, *want; /* want: JSON of that key; NULL: refused */
	const char *says;
} cases[] = {
	/* sentence, arguments (code is added), key, what it becomes or NULL, the sentence that refuses */
	{ "a text is a text",                            "", "code", "\"x\"", "" },
	{ "what was not said is null",                   "", "timeout", "null", "" },
	{ "null was not said",                           "\"timeout\":null", "timeout", "null", "" },
	{ "a number is a number",                        "\"timeout\":2.5", "timeout", "2.5", "" },
	{ "a whole number is a number, too",             "\"timeout\":2", "timeout", "2.0", "" },
	{ "a number in a text is a number",              "\"timeout\":\"2.5\"", "timeout", "2.5", "" },
	{ "words are no number",                         "\"timeout\":\"long\"", "timeout", NULL, "timeout: expected a number with at most three decimals from 0.01 to 300, not \"long\"" },
	{ "a number with left-over is none",             "\"timeout\":\"2 s\"", "timeout", NULL, "timeout: expected a number with at most three decimals from 0.01 to 300, not \"2 s\"" },
	{ "infinity is no number",                       "\"timeout\":\"1e999\"", "timeout", NULL, "timeout: expected a number with at most three decimals from 0.01 to 300" },
	{ "a list is no number",                         "\"timeout\":[1]", "timeout", NULL, "timeout: expected a number with at most three decimals from 0.01 to 300, not [1]" },
	{ "too much is refused with the bounds",         "\"timeout\":301", "timeout", NULL, "timeout: 301 is outside 0.01..300" },
	{ "too little is refused with the bounds",       "\"timeout\":0", "timeout", NULL, "timeout: 0 is outside 0.01..300" },
	{ "a count is whole",                            "\"count\":3", "count", "3", "" },
	{ "a count may be written with .0",              "\"count\":3.0", "count", "3", "" },
	{ "a fraction is no count",                      "\"count\":2.5", "count", NULL, "count: expected a whole number from 1 to 5, not 2.5" },
	{ "a count beyond 2^53 is refused",              "\"count\":9007199254740993", "count", NULL, "count: 9007199254740993 is outside 1..5" },
	{ "true is true",                                "\"flag\":true", "flag", "true", "" },
	{ "a switch in a text is one",                   "\"flag\":\"false\"", "flag", "false", "" },
	{ "another text is no switch",                   "\"flag\":\"no\"", "flag", NULL, "flag: expected true or false, not \"no\"" },
	{ "a list of texts is one",                      "\"imports\":[\"a\",\"b\"]", "imports", "[\"a\",\"b\"]", "" },
	{ "a list in a text is unwrapped",               "\"imports\":\"[\\\"a\\\"]\"", "imports", "[\"a\"]", "" },
	{ "a plain text is no list",                     "\"imports\":\"a\"", "imports", NULL, "imports: expected a list of at most 3 texts, as [\"a\", \"b\"], not \"a\"" },
	{ "a number in a list of texts is refused",      "\"imports\":[\"a\",1]", "imports", NULL, "imports[1]: expected text, not 1" },
	{ "a list that is too long is refused",          "\"imports\":[\"a\",\"b\",\"c\",\"d\"]", "imports", NULL, "imports: expected a list of at most 3 texts, not 4" },
	{ "an object of texts is one",                   "\"env\":{\"A\":\"1\"}", "env", "{\"A\":\"1\"}", "" },
	{ "a number in it is refused",                   "\"env\":{\"A\":80}", "env", NULL, "env: A: expected text, not 80" },
	{ "a switch in it is refused",                   "\"env\":{\"A\":true}", "env", NULL, "env: A: expected text, not true" },
	{ "a list is no object",                         "\"env\":[]", "env", NULL, "env: expected an object of at most 2 texts, as {\"NAME\": \"value\"}, not []" },
	{ "a size has a unit",                           "\"memory\":\"128m\"", "memory", "134217728", "" },
	{ "the unit may be large",                       "\"memory\":\"1G\"", "memory", "1073741824", "" },
	{ "a size without a unit is MiB",                "\"memory\":64", "memory", "67108864", "" },
	{ "a size without a unit in a text is MiB, too", "\"memory\":\"64\"", "memory", "67108864", "" },
	{ "a size that is too large says the bounds",    "\"memory\":\"2g\"", "memory", NULL, "memory: 2G is outside 1M..1G" },
	{ "a size below zero is none",                   "\"memory\":-1", "memory", NULL, "memory: expected a size (\"64M\") from 1M to 1G, not -1" },
	{ "words are no size",                           "\"memory\":\"much\"", "memory", NULL, "memory: expected a size (\"64M\") from 1M to 1G, not \"much\"" },
	{ "a choice is one of them",                     "\"format\":\"text\"", "format", "\"text\"", "" },
	{ "another word names the choices",              "\"format\":\"xml\"", "format", NULL, "format: \"xml\" is none of json, text" },
	{ "a NUL in a list is refused",                  "\"imports\":[\"a\\u0000\"]", "imports", NULL, "imports[0]: has a NUL byte, as byte 2" },
};
/* clang-format on */

static void check_case(size_t i)
{
	char       text[400];
	struct err e = { 0 };

	snprintf(text, sizeof text, "{\"code\":\"x\"%s%s}", *cases[i].given ? "," : "", cases[i].given);
	json_t *given = json_loads(text, JSON_ALLOW_NUL, NULL), *taken = arguments_parse(rows, given, NULL, &e);
	char   *got   = taken ? json_dumps(json_object_get(taken, cases[i].key), JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
	bool    ok    = taken ? cases[i].want && strcmp(got, cases[i].want) == 0 : !cases[i].want && strncmp(e.text, cases[i].says, strlen(cases[i].says)) == 0;

	if (!tap_ok(ok, "%s", cases[i].name))
		printf("#   %s\n", taken ? got : e.text);
	free(got);
	json_decref(taken);
	json_decref(given);
}

static void check_refusal(const char *name, const char *json, const char *want)
{
	json_t    *given = json_loads(json, JSON_ALLOW_NUL, NULL);
	struct err e     = { 0 };

	tap_ok(!arguments_parse(rows, given, NULL, &e), "%s", name);
	tap_is(e.text, want, "... with these words");
	json_decref(given);
}

static void check_unknown(void)
{
	json_t    *given    = json_loads("{\"code\":\"x\",\"colour\":1,\"a\\nb\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"j\":10}", 0, NULL);
	json_t    *warnings = json_array();
	struct err e;
	json_t    *taken = arguments_parse(rows, given, warnings, &e);

	tap_ok(taken && !json_object_get(taken, "colour"), "an unknown argument is not taken");
	tap_is(json_string_value(json_array_get(warnings, 0)),
	       "The argument 'colour' is unknown and was ignored; there are: code, timeout, count, flag, imports, env, memory, format", "but told, with those that there are");
	tap_ok(strstr(json_string_value(json_array_get(warnings, 1)), "'a?b'") != NULL, "its name is shown plain");
	tap_ok(json_array_size(warnings) == 8, "of many unknown ones some are told");
	json_decref(taken);
	json_decref(given);
	json_decref(warnings);
}

static void check_schema(void)
{
	static const struct argument none[] = { { { 0 }, false, NULL } };
	json_t *schema = arguments_schema(rows), *empty = arguments_schema(none), *properties = json_object_get(schema, "properties");
	char   *text   = json_dumps(empty, JSON_COMPACT), *must = json_dumps(json_object_get(schema, "required"), JSON_COMPACT);
	char   *timeout = json_dumps(json_object_get(properties, "timeout"), JSON_COMPACT | JSON_REAL_PRECISION(15));
	char   *imports = json_dumps(json_object_get(properties, "imports"), JSON_COMPACT), *format = json_dumps(json_object_get(properties, "format"), JSON_COMPACT);

	tap_is(text, "{\"type\":\"object\",\"additionalProperties\":false}", "a tool without arguments takes an empty object");
	tap_is(must, "[\"code\"]", "what must be said is required");
	tap_is(timeout, "{\"type\":\"number\",\"description\":\"seconds\",\"default\":30.0}", "a number has its preset, and no bounds that every model would read");
	tap_is(imports, "{\"type\":\"array\",\"description\":\"modules\",\"items\":{\"type\":\"string\"}}", "a list says what is in it");
	tap_is(format, "{\"type\":\"string\",\"description\":\"which\",\"enum\":[\"json\",\"text\"],\"default\":\"json\"}", "a choice lists them");
	tap_ok(json_object_size(properties) == ARRAY_LEN(rows) - 1, "each row is a property");
	free(text);
	free(must);
	free(timeout);
	free(imports);
	free(format);
	json_decref(schema);
	json_decref(empty);
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		check_case(i);
	check_refusal("what must be said and was not is refused", "{}", "code: missing; the program");
	check_refusal("a number is no text", "{\"code\":7}", "code: expected text, not 7");
	check_refusal("a text that is too long is refused", "{\"code\":\"012345678901234567890\"}", "code: expected text of at most 20 bytes, not 21");
	check_refusal("a NUL is shown where it is", "{\"code\":\"ab\\u0000c\"}", "code: has a NUL byte, as byte 3; in a Python text write \\x00 for it");
	check_unknown();
	check_schema();
	return tap_done();
}
