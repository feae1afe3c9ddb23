/* What the broker of tools decides without a machine: entries, patterns, signatures, arguments, lines of programs. */
#include "tool_schema.h"
#include "bridge_line.h"
#include "tap.h"
#include "tool_policy.h"
#include "tool_value.h"

#include <stdlib.h>

static json_t *json_of(const char *text)
{
	return json_loads(text, JSON_DECODE_ANY, NULL);
}

static const struct {
	const char *name, *pattern, *text;
	bool        fits;
} patterns[] = {
	{ "a pattern without a star is the text itself", "fs.read", "fs.read", true },
	{ "and nothing longer", "fs.read", "fs.read_file", false },
	{ "a star is any text", "fs.*", "fs.read_file", true },
	{ "also none", "fs.*", "fs.", true },
	{ "two stars are one", "f**d", "fs.read", true },
	{ "stars go back as far as they must", "*a*b*c", "xaybzbc", true },
	{ "and give up in the end", "*a*b*c", "xaybzb", false },
	{ "a question mark is one character", "fs.r??d", "fs.read", true },
	{ "and not none", "fs.read?", "fs.read", false },
	{ "a star alone fits all", "*", "anything.at_all", true },
	{ "nothing fits nothing", "", "", true },
	{ "many stars take no time", "*a*a*a*a*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false },
};

static const struct {
	const char *name, *word;
} words[] = {
	{ "github", "github" }, { "my-server", "my_server" }, { "get.x/y z", "get_x_y_z" }, { "1st", "_1st" }, { "import", "import_" }, { "None", "None_" }, { "self", "self_" }, { "\xc3\xa9t\xc3\xa9", "___t__" },
};

static const struct {
	const char *name, *input, *output, *want;
} signatures[] = {
	{ "what must be said comes first", "{\"properties\":{\"b\":{\"type\":\"integer\",\"default\":5},\"a\":{\"type\":\"string\"}},\"required\":[\"a\"]}", NULL, "(a: str, b: int = 5) -> Any" },
	{ "lists tell what is in them", "{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":\"number\"}}}}", NULL, "(a: list[float] = None) -> Any" },
	{ "choices are told", "{\"properties\":{\"a\":{\"enum\":[\"x\",\"y\"]}}}", NULL, "(a: Literal[\"x\", \"y\"] = None) -> Any" },
	{ "unions are told", "{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]},\"b\":{\"anyOf\":[{\"type\":\"boolean\"},{\"type\":\"array\"}]}}}", NULL,
	  "(a: str | None = None, b: bool | list = None) -> Any" },
	{ "references are followed", "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"}},\"$defs\":{\"x\":{\"type\":\"string\"}}}", NULL, "(a: str = None) -> Any" },
	{ "but not in circles, nor to other places", "{\"properties\":{\"a\":{\"$ref\":\"#\"},\"b\":{\"$ref\":\"http://x\"}}}", NULL, "(a: Any = None, b: Any = None) -> Any" },
	{ "a name that Python cannot write is told as one", "{\"properties\":{\"a-b\":{\"type\":\"string\"}},\"required\":[\"a-b\"]}", NULL, "(**{\"a-b\"}: str) -> Any" },
	{ "true is True", "{\"properties\":{\"a\":{\"type\":\"boolean\",\"default\":true}}}", NULL, "(a: bool = True) -> Any" },
	{ "a result has a type, too", "{}", "{\"type\":\"object\"}", "() -> dict" },
	{ "a schema that is none", "5", "[]", "() -> Any" },
};

static const struct {
	const char *name, *schema, *args, *want; /* the error, or NULL */
} arguments[] = {
	{ "what is wanted is there", "{\"required\":[\"a\"]}", "{\"a\":1}", NULL },
	{ "what is missing is named", "{\"required\":[\"a\"]}", "{}", "the argument a is missing" },
	{ "a type is checked", "{\"properties\":{\"a\":{\"type\":\"integer\"}}}", "{\"a\":\"1\"}", "a: expected integer" },
	{ "a whole real is an integer", "{\"properties\":{\"a\":{\"type\":\"integer\"}}}", "{\"a\":1.0}", NULL },
	{ "a real is none", "{\"properties\":{\"a\":{\"type\":\"integer\"}}}", "{\"a\":1.5}", "a: expected integer" },
	{ "one of several types will do", "{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]}}}", "{\"a\":null}", NULL },
	{ "none of them will not", "{\"properties\":{\"a\":{\"type\":[\"string\",\"null\"]}}}", "{\"a\":1}", "a: expected another type; see its signature" },
	{ "an unknown type is not ours to judge", "{\"properties\":{\"a\":{\"type\":\"date\"}}}", "{\"a\":1}", NULL },
	{ "a closed object takes no other", "{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"b\":1}", "there is no argument b" },
	{ "an open one does", "{\"properties\":{\"a\":{}}}", "{\"b\":1}", NULL },
	{ "choices are named", "{\"properties\":{\"a\":{\"enum\":[\"x\",\"y\"]}}}", "{\"a\":\"z\"}", "a: expected one of x, y" },
	{ "it looks into lists and objects", "{\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"required\":[\"n\"],\"properties\":{\"n\":{\"type\":\"string\"}}}}}}",
	  "{\"a\":[{\"n\":\"x\"},{\"n\":5}]}", "a[1].n: expected string" },
	{ "it follows references", "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"}},\"$defs\":{\"x\":{\"type\":\"string\"}}}", "{\"a\":5}", "a: expected string" },
	{ "what a circle of references says cannot be checked, and does not pass", "{\"properties\":{\"a\":{\"$ref\":\"#/$defs/x\"}},\"$defs\":{\"x\":{\"$ref\":\"#/$defs/x\"}}}", "{\"a\":5}", "a: cannot be checked: more than 16 references of its schema follow each other" },
	{ "a pattern is the server's to judge", "{\"properties\":{\"a\":{\"pattern\":\"^(a+)+$\"}}}", "{\"a\":\"b\"}", NULL },
};

static const struct {
	const char *name, *line;
	bool        ok;
} requests[] = {
	{ "a call", "{\"id\":1,\"op\":\"call\",\"name\":\"a.b\",\"args\":{}}", true },
	{ "a cancel", "{\"id\":1,\"op\":\"cancel\"}", true },
	{ "a search without max", "{\"id\":1,\"op\":\"find\",\"words\":\"x\"}", true },
	{ "a search with it", "{\"id\":1,\"op\":\"find\",\"words\":\"x\",\"max\":100}", true },
	{ "a search for more than there can be", "{\"id\":1,\"op\":\"find\",\"words\":\"x\",\"max\":101}", false },
	{ "a question for names", "{\"id\":1,\"op\":\"names\",\"under\":\"\"}", true },
	{ "a key of another op", "{\"id\":1,\"op\":\"names\",\"under\":\"\",\"args\":{}}", false },
	{ "a cancel with a name", "{\"id\":1,\"op\":\"cancel\",\"name\":\"x\"}", false },
	{ "no id", "{\"op\":\"cancel\"}", false },
	{ "the empty object", "{}", false },
	{ "two objects", "{\"id\":1,\"op\":\"cancel\"}{}", false },
};

static void try_signature(size_t i)
{
	json_t *input = json_of(signatures[i].input), *output = signatures[i].output ? json_of(signatures[i].output) : NULL;
	char   *got = signature_make(input, output);

	tap_ok(got && strcmp(got, signatures[i].want) == 0, "signature: %s%s%s", signatures[i].name, got && strcmp(got, signatures[i].want) ? ", but it is " : "",
	   got && strcmp(got, signatures[i].want) ? got : "");
	free(got);
	json_decref(input);
	json_decref(output);
}

static void try_arguments(size_t i)
{
	json_t    *schema = json_of(arguments[i].schema), *args = json_of(arguments[i].args);
	struct err e = { 0 };
	int        r = argument_check(args, schema, &e);

	tap_ok(arguments[i].want ? r < 0 && strcmp(e.text, arguments[i].want) == 0 : r == 0, "arguments: %s%s%s", arguments[i].name, r < 0 ? ": " : "", r < 0 ? e.text : "");
	json_decref(schema);
	json_decref(args);
}

static void try_request(size_t i)
{
	scoped_bridge_request r;
	struct err            e;
	int                   parsed = bridge_request_parse(&r, requests[i].line, strlen(requests[i].line), &e);

	tap_ok((parsed == 0) == requests[i].ok, "a line of a program: %s", requests[i].name);
}

static void try_values(void)
{
	static const struct {
		const char *name, *result, *value, *error;
	} rows[] = {
		{ "texts are joined", "{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]}", "\"a\\nb\"", NULL },
		{ "nothing is an empty text", "{\"content\":[]}", "\"\"", NULL },
		{ "without content, too", "{}", "\"\"", NULL },
		{ "structured content goes before", "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"structuredContent\":{\"x\":[1]}}", "{\"x\":[1]}", NULL },
		{ "an error is none", "{\"content\":[{\"type\":\"text\",\"text\":\"a\"}],\"isError\":true,\"structuredContent\":{}}", NULL, "a" },
		{ "an error without words has some", "{\"content\":[],\"isError\":true}", NULL, "the tool has failed, and gives no reason" },
		{ "an unknown block is empty", "{\"content\":[{\"type\":\"new\"},5]}", "[{},{}]", NULL },
		{ "an image is a bundle", "{\"content\":[{\"type\":\"image\",\"data\":\"AA==\",\"mimeType\":\"image/png\"}]}", "[{\"image/png\":\"AA==\"}]", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *result = json_of(rows[i].result), *want = rows[i].value ? json_of(rows[i].value) : NULL;
		char   *error  = NULL;
		json_t *got    = tool_result_to_value(result, &error);

		tap_ok(want ? json_equal(got, want) : !got && error && strcmp(error, rows[i].error) == 0, "a result: %s", rows[i].name);
		free(error);
		json_decref(got);
		json_decref(want);
		json_decref(result);
	}
}

static void try_answers(void)
{
	enum tool_outcome outcome = TOOL_OUTCOME_ok;
	size_t            len;
	char             *big = malloc(2 * MIB), *line;

	memset(big, 'x', 2 * MIB);
	line = bridge_dump_line(7, bridge_answer_body("result", json_stringn(big, 2 * MIB)), &len, &outcome);
	tap_ok(line && outcome == TOOL_OUTCOME_limit && len < 400 && strstr(line, "\"kind\":\"limit\"") && strstr(line, "\"id\":7"), "an answer that is too long becomes an error");
	free(line);
	free(big);
	line = bridge_dump_line(8, bridge_error_body(TOOL_OUTCOME_lost, "a\xff%s", "b"), &len, &outcome);
	tap_ok(line && strstr(line, "\"kind\":\"lost\"") && strstr(line, "a\xef\xbf\xbd" "b"), "an error is UTF-8 in any case");
	free(line);
}

int main(void)
{
	char word[64];

	for (size_t i = 0; i < ARRAY_LEN(patterns); i++)
		tap_ok(tool_pattern_matches(patterns[i].pattern, patterns[i].text) == patterns[i].fits, "%s", patterns[i].name);
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		make_python_identifier(words[i].name, word, sizeof word - 8);
		tap_ok(strcmp(word, words[i].word) == 0, "in Python %s is %s", i == 7 ? "a word with accents" : words[i].name, words[i].word);
	}
	for (size_t i = 0; i < ARRAY_LEN(signatures); i++)
		try_signature(i);
	for (size_t i = 0; i < ARRAY_LEN(arguments); i++)
		try_arguments(i);
	for (size_t i = 0; i < ARRAY_LEN(requests); i++)
		try_request(i);
	try_values();
	try_answers();
	return tap_done();
}
