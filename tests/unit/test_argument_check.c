/* Arguments against the schema of a tool, as a server may write it. */
#include "tool_schema.h"
#include "tap.h"

#include <string.h>

/* clang-format off */
static const struct {
	const char *name, *schema, *arguments, *error; /* error: NULL, they fit */
} rows[] = {
	{ "a whole number may be written with a point", "{\"type\": \"integer\"}", "2.0", NULL },
	{ "half a number is no integer", "{\"type\": \"integer\"}", "2.5", "expected integer" },
	{ "a number beyond 64 bits is whole", "{\"type\": \"integer\"}", "1e300", NULL },
	{ "a type of another draft is left to the server", "{\"type\": \"any\"}", "1", NULL },
	{ "half of a type's name is such a type", "{\"type\": \"str\"}", "1", NULL },
	{ "two names of types are no type", "{\"type\": \"string integer\"}", "null", NULL },
	{ "one of several types fits", "{\"type\": [\"string\", \"null\"]}", "null", NULL },
	{ "none of several types fits", "{\"type\": [\"string\", \"null\"]}", "1", "expected another type" },
	{ "the seventeenth of the types counts, too", "{\"type\": [\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"null\",\"string\"]}", "\"x\"", NULL },
	{ "a type of another draft among others is left to the server", "{\"type\": [\"string\", \"any\"]}", "1", NULL },
};
/* clang-format on */

/* Many values first, then the one that is refused. */
static void check_many(void)
{
	json_t    *schema = json_loads("{\"properties\": {\"a\": {\"items\": {\"type\": \"integer\"}}, \"mode\": {\"enum\": [\"read\"]}}}", 0, NULL);
	json_t    *many   = json_array(), *arguments = json_pack("{s: o, s: s}", "a", many, "mode", "DELETE");
	struct err e      = { 0 };

	for (int i = 0; i < 20001; i++)
		json_array_append_new(many, json_integer(i));
	tap_ok(argument_check(arguments, schema, &e) < 0 && strncmp(e.text, "mode: ", 6) == 0, "what comes behind 20,000 values is checked, too");
	for (int i = 0; i < 200001; i++)
		json_array_append_new(many, json_integer(i));
	tap_ok(argument_check(arguments, schema, &e) < 0 && strstr(e.text, "more than 200000 values"), "what is not checked does not pass");
	json_decref(schema);
	json_decref(arguments);
}

int main(void)
{
	check_many();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t    *schema    = json_pack("{s: {s: o}}", "properties", "q", json_loads(rows[i].schema, 0, NULL));
		json_t    *arguments = json_pack("{s: o}", "q", json_loads(rows[i].arguments, JSON_DECODE_ANY, NULL));
		struct err e         = { 0 };
		int        answer    = argument_check(arguments, schema, &e);

		tap_ok(rows[i].error ? answer < 0 && strncmp(e.text, "q: ", 3) == 0 && strstr(e.text, rows[i].error) : answer == 0, "%s", rows[i].name);
		json_decref(schema);
		json_decref(arguments);
	}
	return tap_done();
}
