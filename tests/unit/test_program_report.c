#include "program_report.h"
#include "record.h"
#include "tap.h"
#include "text.h"
#include "wire.h"

#define RUN(result, error, rest)                                                                                                             \
	"{\"result\":" result ",\"result_repr\":null,\"error\":" error ",\"variables\":[\"x\"],\"exit_code\":null,\"security_event\":null," \
	"\"security_warnings\":[]" rest "}"
#define CHECK(valid, degree)                                                                                                            \
	"{\"valid\":" valid ",\"message\":\"m\",\"errors\":[{\"line\":1,\"offset\":null,\"message\":\"m\"}],\"warnings\":[],"           \
	"\"syntax_error\":null,\"line_count\":1,\"character_count\":2,\"estimated_complexity\":\"" degree "\",\"imports\":[\"os\"],"     \
	"\"recommendations\":[]}"
#define RAISED "{\"type\":\"ValueError\",\"message\":\"m\",\"traceback\":\"t\",\"line\":1,\"offset\":null,\"text\":null}"

/* clang-format off */
static const struct {
	const char              *name;
	enum program_report_kind kind;
	const char              *json, *says; /* says NULL: it is a report */
} rows[] = {
	{ "the report of a run is read",                   PROGRAM_REPORT_run, RUN("null", "null", ""), NULL },
	{ "so is one of a run that raised",                PROGRAM_REPORT_run, RUN("null", RAISED, ""), NULL },
	{ "a result is any JSON",                          PROGRAM_REPORT_run, RUN("[1,{\"a\":[true,1.5,\"\\u0000\"]}]", "null", ""), NULL },
	{ "a result may have keys of ours of any size",    PROGRAM_REPORT_run, RUN("{\"variables\":{},\"error\":7,\"result\":1}", "null", ""), NULL },
	{ "the report of a check is read",                 PROGRAM_REPORT_check, CHECK("false", "low"), NULL },
	{ "the end of file at once is no report",          PROGRAM_REPORT_run, "", "0 bytes" },
	{ "garbage is no report",                          PROGRAM_REPORT_run, "Hello\x1b[2J", "line 1, column" },
	{ "half a report is none",                         PROGRAM_REPORT_run, "{\"result\":1,", "line 1, column" },
	{ "two reports are none",                          PROGRAM_REPORT_run, RUN("null", "null", "") "{}", "end of file expected" },
	{ "a list is no report",                           PROGRAM_REPORT_run, "[]", "expected an object" },
	{ "a key twice is refused",                        PROGRAM_REPORT_run, RUN("null", "null", ",\"result\":1"), "duplicate" },
	{ "an unknown key is refused",                     PROGRAM_REPORT_run, RUN("null", "null", ",\"exit_reason\":\"exited\""), "exit_reason: no such key" },
	{ "a key that is missing is named",                PROGRAM_REPORT_run, "{\"result\":1}", "result_repr: missing" },
	{ "an error must have a type",                     PROGRAM_REPORT_run, RUN("null", "{\"message\":\"m\"}", ""), "error: type: missing" },
	{ "an error is no text",                           PROGRAM_REPORT_run, RUN("null", "\"oops\"", ""), "error: expected object" },
	{ "a line below the first is refused",             PROGRAM_REPORT_run, RUN("null", "{\"type\":\"E\",\"message\":\"m\",\"traceback\":null,\"line\":-1,\"offset\":null,\"text\":null}", ""), "error: line: expected whole number" },
	{ "a number that no integer holds is refused",     PROGRAM_REPORT_run, RUN("99999999999999999999", "null", ""), "too big integer" },
	{ "NaN is no JSON",                                PROGRAM_REPORT_run, RUN("NaN", "null", ""), "line 1, column" },
	{ "a key with NUL is refused",                     PROGRAM_REPORT_run, RUN("{\"a\\u0000b\":1}", "null", ""), "NUL byte in object key" },
	{ "half a surrogate is refused",                   PROGRAM_REPORT_run, RUN("\"\\ud800\"", "null", ""), "invalid Unicode" },
	{ "bytes that are no UTF-8 are refused",           PROGRAM_REPORT_run, RUN("\"\xff\"", "null", ""), "unable to decode byte 0xff" },
	{ "an event that nobody knows is refused",         PROGRAM_REPORT_run, "{\"result\":null,\"result_repr\":null,\"error\":null,\"variables\":[],\"exit_code\":0,\"security_event\":\"escaped\",\"security_warnings\":[]}", "security_event: expected blocked_import" },
	{ "a degree that nobody knows is refused",         PROGRAM_REPORT_check, CHECK("true", "extreme"), "estimated_complexity: expected low" },
	{ "a check that is neither valid nor not is none", PROGRAM_REPORT_check, CHECK("1", "low"), "valid: expected true or false" },
	{ "what was shown is a list of bundles",           PROGRAM_REPORT_run, RUN("null", "null", ",\"displays\":[{\"text/plain\":\"x\",\"image/png\":\"iVBORw0KGgo=\"},{}]"), NULL },
	{ "a bundle has JSON of any keys",                 PROGRAM_REPORT_run, RUN("null", "null", ",\"bundle\":{\"application/json\":{\"text/plain\":[null,\"\\u0000\"]},\"application/vnd.plotly.v1+json\":{}}"), NULL },
	{ "what was left out is told in sentences",        PROGRAM_REPORT_run, RUN("null", "null", ",\"left_out\":[\"a figure\"]"), NULL },
	{ "a type that nobody knows is refused",           PROGRAM_REPORT_run, RUN("null", "null", ",\"displays\":[{\"text/x-shell\":\"x\"}]"), "displays[0]: text/x-shell: no such key" },
	{ "so it is in the bundle of the result",          PROGRAM_REPORT_run, RUN("null", "null", ",\"bundle\":{\"result\":1}"), "bundle: result: no such key" },
	{ "a bundle is an object",                         PROGRAM_REPORT_run, RUN("null", "null", ",\"bundle\":[]"), "bundle: expected object" },
	{ "it is not null",                                PROGRAM_REPORT_run, RUN("null", "null", ",\"bundle\":null"), "bundle: expected object" },
	{ "a picture is a text",                           PROGRAM_REPORT_run, RUN("null", "null", ",\"displays\":[{\"image/png\":7}]"), "image/png: expected text" },
	{ "it is base64",                                  PROGRAM_REPORT_run, RUN("null", "null", ",\"displays\":[{\"image/png\":\"iVBORw0KGgo\"}]"), "image/png: expected base64" },
	{ "so it is in the bundle",                        PROGRAM_REPORT_run, RUN("null", "null", ",\"bundle\":{\"image/jpeg\":\"/9j/\\n\"}"), "image/jpeg: expected base64" },
	{ "and nothing is none",                           PROGRAM_REPORT_run, RUN("null", "null", ",\"bundle\":{\"application/pdf\":\"\"}"), "application/pdf: expected base64" },
	{ "files that were written have names and sizes",  PROGRAM_REPORT_run, RUN("null", "null", ",\"written\":[{\"path\":\"a\",\"bytes\":1,\"shown\":false}]"), NULL },
	{ "a size below nothing is refused",               PROGRAM_REPORT_run, RUN("null", "null", ",\"written\":[{\"path\":\"a\",\"bytes\":-1,\"shown\":false}]"), "bytes: expected whole number" },
	{ "what was left out is no text",                  PROGRAM_REPORT_run, RUN("null", "null", ",\"left_out\":\"all\""), "left_out: expected list of texts" },
	{ "a check shows nothing",                         PROGRAM_REPORT_check, "{\"displays\":[]}", "displays: no such key" },
	{ "a run's report is no check's",                  PROGRAM_REPORT_check, RUN("null", "null", ""), "no such key" },
};
/* clang-format on */

static json_t *parse_text(enum program_report_kind kind, const char *text, struct err *e)
{
	return program_report_parse(kind, text, strlen(text), e);
}

static void check_rows(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err   e = { 0 };
		scoped_json *j = parse_text(rows[i].kind, rows[i].json, &e);
		bool         ok = rows[i].says ? !j && strstr(e.text, rows[i].says) && !text_has_control(e.text) : j != NULL;

		tap_ok(ok, "%s", rows[i].name);
		if (!ok)
			printf("#   %s\n", e.text);
	}
}

/* `result` is JSON between head and tail. */
static json_t *parse_long(const char *head, char of, size_t n, const char *tail, struct err *e)
{
	size_t  before = strlen(head), after = strlen(tail);
	char   *text = malloc(before + n + after + 1);
	json_t *j;

	memcpy(text, head, before);
	memset(text + before, of, n);
	memcpy(text + before + n, tail, after);
	j = program_report_parse(PROGRAM_REPORT_run, text, before + n + after, e);
	free(text);
	return j;
}

#define HEAD "{\"result\":\""
#define TAIL "\",\"result_repr\":null,\"error\":null,\"variables\":[],\"exit_code\":0,\"security_event\":null,\"security_warnings\":[]}"

static void check_bounds(void)
{
	const size_t around = strlen(HEAD TAIL);
	struct err   e      = { 0 };
	json_t      *j;

	j = parse_long("", ' ', PROGRAM_REPORT_MAX - around, HEAD TAIL, &e);
	tap_ok(j, "a report may be as long as it may be");
	json_decref(j);
	tap_ok(!parse_long("", ' ', PROGRAM_REPORT_MAX - around + 1, HEAD TAIL, &e) && strstr(e.text, "expected 1 to"), "and not a byte longer");
	j = parse_long(HEAD, 'x', PROGRAM_REPORT_RESULT_MAX, TAIL, &e);
	tap_ok(j, "a result may have a MiB of text");
	json_decref(j);
	tap_ok(!parse_long(HEAD, 'x', PROGRAM_REPORT_RESULT_MAX + 1, TAIL, &e) && strstr(e.text, "result: more than"), "and no more");
	tap_ok(!parse_long("", '[', 100, "", &e) && strstr(e.text, "nested deeper"), "it may not be nested for ever");
	tap_ok(!parse_long("{\"result\":1,\"result_repr\":\"", 'r', 32 * KIB + 1,
			   "\",\"error\":null,\"variables\":[],\"exit_code\":0,\"security_event\":null,\"security_warnings\":[]}", &e) &&
		       strstr(e.text, "result_repr: more than"),
	       "what Python prints for a result is bounded");
	tap_ok(!parse_long("{\"result\":1,\"result_repr\":null,\"error\":null,\"exit_code\":0,\"security_event\":null,\"security_warnings\":[],"
			   "\"variables\":[\"", 'v', 401, "\"]}", &e) && strstr(e.text, "variables: more than"),
	       "so are the names of variables");
	tap_ok(!parse_long("{\"result\":1,\"result_repr\":null,\"exit_code\":0,\"security_event\":null,\"security_warnings\":[],\"variables\":[],"
			   "\"error\":{\"type\":\"", 'T', 16 * KIB + 1, "\",\"message\":\"\",\"traceback\":null,\"line\":1,\"offset\":1,\"text\":null}}", &e) &&
		       strstr(e.text, "type: more than"),
	       "so is what is inside of an error");
}

#define SHOWN "{\"result\":1,\"result_repr\":null,\"error\":null,\"variables\":[],\"exit_code\":0,\"security_event\":null,\"security_warnings\":[],"

static void check_shown(void)
{
	struct err e = { 0 };
	json_t    *j = parse_long(SHOWN "\"displays\":[{\"image/png\":\"", 'A', PROGRAM_REPORT_DATUM_MAX, "\"}]}", &e);

	tap_ok(j, "a picture may have two MiB");
	json_decref(j);
	tap_ok(!parse_long(SHOWN "\"displays\":[{\"image/png\":\"", 'A', PROGRAM_REPORT_DATUM_MAX + 4, "\"}]}", &e) && strstr(e.text, "image/png: more than"), "and no more");
	tap_ok(!parse_long(SHOWN "\"bundle\":{\"text/html\":\"", 'h', PROGRAM_REPORT_DATUM_MAX + 1, "\"}}", &e) && strstr(e.text, "text/html: more than"), "so it is with HTML");
	tap_ok(!parse_long(SHOWN "\"bundle\":{\"application/json\":{\"", 'k', PROGRAM_REPORT_DATUM_MAX + 1, "\":1}}}", &e) && strstr(e.text, "application/json: more than"),
	       "and with keys of JSON");
	tap_ok(!parse_long(SHOWN "\"left_out\":[\"", 's', 1025, "\"]}", &e) && strstr(e.text, "left_out: more than"), "a sentence is no novel");
}

/* n times the same in a list of this name. */
static bool is_too_many(const char *name, const char *item, int n)
{
	struct err   e    = { 0 };
	scoped_json *j    = parse_text(PROGRAM_REPORT_run, RUN("null", "null", ""), &e), *back = NULL;
	json_t      *list = json_array();
	char        *text;

	for (int i = 0; i < n; i++)
		json_array_append_new(list, json_loads(item, JSON_DECODE_ANY, NULL));
	json_object_set_new(j, name, list);
	text = json_dumps(j, 0);
	back = parse_text(PROGRAM_REPORT_run, text, &e);
	free(text);
	return !back && strstr(e.text, "more than");
}

static void check_too_many_shown(void)
{
	tap_ok(!is_too_many("displays", "{\"text/plain\":\"x\"}", PROGRAM_REPORT_DISPLAYS_MAX), "many things can be shown");
	tap_ok(is_too_many("displays", "{\"text/plain\":\"x\"}", PROGRAM_REPORT_DISPLAYS_MAX + 1), "but not more");
	tap_ok(is_too_many("left_out", "\"x\"", PROGRAM_REPORT_LEFT_OUT_MAX + 1), "nor more sentences about the rest");
}

static void check_base64(void)
{
	static const struct {
		const char *text;
		bool        is;
	} texts[] = { { "AAAA", true }, { "AA==", true }, { "AAA=", true }, { "09+/", true }, { "", false }, { "A===", false }, { "====", false }, { "AAA", false }, { "AA=A", false }, { "AA-_", false }, { "AA A", false }, { "\x80\x80\x80\x80", false } };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		tap_ok(program_report_is_base64(texts[i].text, strlen(texts[i].text)) == texts[i].is, "\"%s\" is%s base64", text_has_control(texts[i].text) ? "?" : texts[i].text, texts[i].is ? "" : " no");
	tap_ok(!program_report_is_base64("AA\0A", 4), "nor is NUL");
}

static void check_too_many(void)
{
	struct err   e = { 0 };
	scoped_json *j = parse_text(PROGRAM_REPORT_run, RUN("null", "null", ""), &e);
	char        *text;

	for (int i = 0; i < PROGRAM_REPORT_VARIABLES_MAX; i++)
		json_array_append_new(json_object_get(j, "variables"), json_string("v"));
	text = json_dumps(j, 0);
	tap_ok(!parse_text(PROGRAM_REPORT_run, text, &e) && strstr(e.text, "variables: more than 200"), "there are not more variables than are told");
	free(text);
}

static void check_nul(void)
{
	struct err   e = { 0 };
	scoped_json *j = parse_text(PROGRAM_REPORT_run,
				   RUN("\"a\\u0000b\"", "{\"type\":\"E\",\"message\":\"a\\u0000b\",\"traceback\":null,\"line\":1,\"offset\":1,\"text\":null}", ""), &e);

	tap_is(json_string_value(json_object_get(json_object_get(j, "error"), "message")), "a\xef\xbf\xbd" "b", "NUL in a text is replaced");
	tap_ok(json_string_length(json_object_get(j, "result")) == 3, "NUL in a result stays what it is");
}

static void check_record(void)
{
	struct run_result result = RUN_RESULT_NONE;
	struct record r      = { .result = &result };
	struct err    e      = { 0 };
	scoped_json  *report = parse_text(PROGRAM_REPORT_run, RUN("{\"a\":1}", RAISED, ""), &e), *record = NULL, *failed = NULL;

	result.wait_status = 1 << 8;
	record = record_to_json(&r);
	program_report_copy_to_record(record, report);
	tap_ok(json_equal(json_object_get(record, "result"), json_object_get(report, "result")), "a record takes the result over");
	tap_is(json_string_value(json_object_get(json_object_get(record, "error"), "type")), "ValueError", "and the exception");
	tap_ok(json_integer_value(json_object_get(record, "exit_code")) == 1, "but no exit code");
	tap_ok(json_object_size(record) == json_object_size(failed = record_to_json(&r)),
	       "and no key that it did not have");
	err_set(&result.why, ERR_SETUP, "ours");
	json_decref(failed);
	failed = record_to_json(&r);
	program_report_copy_to_record(failed, report);
	tap_is(json_string_value(json_object_get(json_object_get(failed, "error"), "message")), "ours", "an error of ours stays");
	err_set(&e, ERR_PROTOCOL, "why");
	program_report_set_warning(failed, &e);
	tap_is(json_string_value(json_array_get(json_object_get(failed, "security_warnings"), 0)), "What the program reported cannot be used: why",
	       "what was no report is complained of");
}

int main(void)
{
	check_rows();
	check_bounds();
	check_shown();
	check_too_many_shown();
	check_base64();
	check_too_many();
	check_nul();
	check_record();
	return tap_done();
}
