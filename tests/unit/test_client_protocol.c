#include "client_protocol.h"
#include "shape.h"
#include "tap.h"

static const struct {
	const char *name, *json;
	size_t      fds;
	int         code; /* -1: accepted */
	const char *field, *says;
} requests[] = {
	/* sentence, request, descriptors, answer, which key, beginning of the sentence */
	{ "hello may be said without anything", "{\"op\":\"hello\"}", 0, -1, "", "" },
	{ "hello may name the version", "{\"op\":\"hello\",\"version\":1}", 0, -1, "", "" },
	{ "another version is refused", "{\"op\":\"hello\",\"version\":2}", 0, DENIAL_bad_field, "version", "2 is outside 1..1" },
	{ "a program needs its text and no key", "{\"op\":\"run\"}", 1, -1, "", "" },
	{ "a program without its text is refused", "{\"op\":\"run\"}", 0, DENIAL_bad_descriptors, "", "run: 0 descriptors came, 1 are wanted: the program's text" },
	{ "a descriptor too many is refused", "{\"op\":\"run\"}", 2, DENIAL_bad_descriptors, "", "run: 2 descriptors came, 1 are wanted" },
	{ "each name to show wants a descriptor", "{\"op\":\"run\",\"ro\":[\"a\",\"b\"]}", 2, DENIAL_bad_descriptors, "", "run: 2 descriptors came, 3 are wanted" },
	{ "two directories come behind the text", "{\"op\":\"run\",\"ro\":[\"a\",\"b\"]}", 3, -1, "", "" },
	{ "a descriptor for hello is refused", "{\"op\":\"hello\"}", 1, DENIAL_bad_descriptors, "", "hello: 1 descriptors came, 0 are wanted: none" },
	{ "a command needs no descriptor", "{\"op\":\"exec\",\"argv\":[\"ls\"]}", 0, -1, "", "" },
	{ "a program lies below a name of ro", "{\"op\":\"run\",\"ro\":[\"a\"],\"main\":\"b/main.py\"}", 2, DENIAL_bad_field, "main", "\"b/main.py\" does not begin with a name of ro" },
	{ "a whole path is none below it", "{\"op\":\"run\",\"ro\":[\"a\"],\"main\":\"/a/main.py\"}", 2, DENIAL_bad_field, "main", "\"/a/main.py\" does not begin with a name of ro" },
	{ "no way out of it", "{\"op\":\"run\",\"ro\":[\"a\"],\"main\":\"a/../main.py\"}", 2, DENIAL_bad_field, "main", "\"a/../main.py\" is no plain path" },
	{ "nothing twice", "{\"op\":\"run\",\"ro\":[\"a\"],\"main\":\"a//main.py\"}", 2, DENIAL_bad_field, "main", "\"a//main.py\" is no plain path" },
	{ "a name alone is a directory", "{\"op\":\"run\",\"ro\":[\"a\"],\"main\":\"a\"}", 2, DENIAL_bad_field, "main", "\"a\" names no file" },
	{ "and so is one with a slash", "{\"op\":\"run\",\"ro\":[\"a\"],\"main\":\"a/\"}", 2, DENIAL_bad_field, "main", "\"a/\" is no plain path" },
	{ "no text is no name", "{\"op\":\"run\",\"ro\":[\"a\"],\"main\":\"\"}", 2, DENIAL_bad_field, "main", "\"\" does not begin with a name of ro" },
	{ "no control character in it", "{\"op\":\"run\",\"ro\":[\"a\"],\"main\":\"a/b\\n\"}", 2, DENIAL_bad_field, "main", "\"a/b" },
	{ "three limits cannot be missing, for there are two", "{\"op\":\"run\",\"allow_missing\":[\"a\",\"b\",\"c\"]}", 1, DENIAL_bad_field, "allow_missing", "expected a list" },
	{ "a command must be there", "{\"op\":\"exec\"}", 0, DENIAL_bad_field, "argv", "missing" },
	{ "an empty command is refused", "{\"op\":\"exec\",\"argv\":[]}", 0, DENIAL_bad_field, "argv", "expected a list of 1 to 1024 texts" },
	{ "a number is no argument", "{\"op\":\"run\",\"args\":[\"a\",1]}", 1, DENIAL_bad_field, "args[1]", "expected text, not 1" },
	{ "an unknown key with a colon is named whole", "{\"op\":\"list\",\"a: b\":1}", 0, DENIAL_bad_field, "a: b", "no such setting" },
	{ "a key of another request is refused", "{\"op\":\"run\",\"argv\":[\"ls\"]}", 1, DENIAL_bad_field, "argv", "no such setting" },
	{ "limits are an object", "{\"op\":\"run\",\"limits\":[]}", 1, DENIAL_bad_field, "limits", "expected an object" },
	{ "a profile is a name", "{\"op\":\"run\",\"profile\":\"../x\"}", 1, DENIAL_bad_field, "profile", "\"../x\" is no name" },
	{ "stdin is true or false", "{\"op\":\"run\",\"stdin\":1}", 1, DENIAL_bad_field, "stdin", "expected true or false" },
	{ "a path is no name to show", "{\"op\":\"run\",\"ro\":[\"a/b\"]}", 2, DENIAL_bad_field, "ro[0]", "\"a/b\" is no plain name" },
	{ "the folder above is no name to show", "{\"op\":\"run\",\"ro\":[\"a\",\"..\"]}", 3, DENIAL_bad_field, "ro[1]", "\"..\" is no plain name" },
	{ "nothing is no name to show", "{\"op\":\"run\",\"ro\":[\"\"]}", 2, DENIAL_bad_field, "ro[0]", "\"\" is no plain name" },
	{ "a line break is no name to show", "{\"op\":\"run\",\"ro\":[\"a\\nb\"]}", 2, DENIAL_bad_field, "ro[0]", "\"a?b\" has a control character" },
	{ "the program's own name is taken", "{\"op\":\"run\",\"ro\":[\"main.py\"]}", 2, DENIAL_bad_field, "ro[0]", "the program itself" },
	{ "a program may be reported on", "{\"op\":\"run\",\"mode\":\"report\",\"imports\":[\"os.path\"]}", 1, -1, "", "" },
	{ "one that may import nothing, too", "{\"op\":\"run\",\"mode\":\"report\",\"imports\":[]}", 1, -1, "", "" },
	{ "a program may be checked", "{\"op\":\"run\",\"mode\":\"check\"}", 1, -1, "", "" },
	{ "a mode that nobody knows is refused", "{\"op\":\"run\",\"mode\":\"fast\"}", 1, DENIAL_bad_field, "mode", "\"fast\" is none of script, report, check" },
	{ "packages are resolved by a run of their own", "{\"op\":\"run\",\"mode\":\"resolve\",\"packages\":[\"a>=1\"],\"files\":true}", 2, -1, "", "" },
	{ "which leaves them as a file", "{\"op\":\"run\",\"mode\":\"resolve\",\"packages\":[\"a\"]}", 1, DENIAL_bad_field, "files", "missing" },
	{ "packages of any other run are refused", "{\"op\":\"run\",\"packages\":[\"a\"]}", 1, DENIAL_bad_field, "packages", "needs the mode" },
	{ "and so is its index", "{\"op\":\"run\",\"index\":\"https://a.example/\"}", 1, DENIAL_bad_field, "index", "needs the mode" },
	{ "nor an environment", "{\"op\":\"run\",\"mode\":\"resolve\",\"files\":true,\"env\":[\"PIP_CONFIG_FILE=/workspace/x\"]}", 2, DENIAL_bad_field, "env", "has no effect" },
	{ "what resolves has no tools", "{\"op\":\"run\",\"mode\":\"resolve\",\"files\":true,\"tools\":true}", 2, DENIAL_bad_field, "tools", "has no effect" },
	{ "a layer has a descriptor behind those of ro", "{\"op\":\"run\",\"ro\":[\"a\"],\"layer\":true}", 3, -1, "", "" },
	{ "which must come", "{\"op\":\"run\",\"ro\":[\"a\"],\"layer\":true}", 2, DENIAL_bad_descriptors, "", "" },
	{ "imports without a runner are refused", "{\"op\":\"run\",\"imports\":[]}", 1, DENIAL_bad_field, "imports", "needs the mode" },
	{ "two names in one are no import", "{\"op\":\"run\",\"mode\":\"check\",\"imports\":[\"a\",\"b,c\"]}", 1, DENIAL_bad_field, "imports[1]", "\"b,c\" is no name of a module" },
	{ "a command has no mode", "{\"op\":\"exec\",\"argv\":[\"ls\"],\"mode\":\"script\"}", 0, DENIAL_bad_field, "mode", "no such setting" },
	{ "a run is ended by its id", "{\"op\":\"cancel\",\"run\":\"x\",\"reason\":\"output_limit\"}", 0, -1, "", "" },
	{ "a cancel without an id is refused", "{\"op\":\"cancel\"}", 0, DENIAL_bad_field, "run", "missing" },
	{ "another reason to end is refused", "{\"op\":\"cancel\",\"run\":\"x\",\"reason\":\"oom\"}", 0, DENIAL_bad_field, "reason", "\"oom\" is none of cancelled, output_limit" },
	{ "a request that nobody knows is refused", "{\"op\":\"reboot\"}", 0, DENIAL_unknown_request, "op", "\"reboot\" is no request" },
	{ "a request without a name is refused", "{}", 0, DENIAL_bad_field, "op", "missing" },
	{ "a number is no request", "{\"op\":1}", 0, DENIAL_bad_field, "op", "missing" },
	{ "a negative tag is refused", "{\"op\":\"list\",\"tag\":-1}", 0, DENIAL_bad_field, "tag", "expected a whole number from 0 to 9007199254740991, not -1" },
	{ "a tag above 2^53 is refused", "{\"op\":\"list\",\"tag\":9007199254740992}", 0, DENIAL_bad_field, "tag", "9007199254740992 is outside" },
	{ "a list is no request", "[]", 0, DENIAL_bad_message, "", "expected an object" },
	{ "nothing is no request", "", 0, DENIAL_bad_message, "", "0 bytes" },
	{ "a key twice is refused", "{\"op\":\"list\",\"op\":\"stats\"}", 0, DENIAL_bad_message, "", "line 1" },
	{ "left-over bytes are refused", "{\"op\":\"list\"}{", 0, DENIAL_bad_message, "", "line 1" },
	{ "deep nesting is refused", "{\"op\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", 0, DENIAL_bad_message, "", "line 1: nested deeper" },
};

static void check_request(size_t i)
{
	scoped_request r;
	struct denial  d  = { 0 };
	bool           no = protocol_parse(&r, requests[i].json, strlen(requests[i].json), requests[i].fds, &d) < 0;
	bool           ok = no ? (int)d.code == requests[i].code && strncmp(d.text, requests[i].says, strlen(requests[i].says)) == 0
			       : requests[i].code == -1;

	if (!tap_ok(ok && strcmp(d.field, requests[i].field) == 0, "%s", requests[i].name))
		printf("#   %s, %s: %s\n", no ? denial_code_name(d.code) : "accepted", d.field, d.text);
}

static void check_struct(void)
{
	static const char text[] = "{\"op\":\"exec\",\"tag\":7,\"argv\":[\"ls\",\"-l\"],\"env\":[\"A=1\"],\"stdin\":true,\"cold\":true,\"limits\":{\"pids\":1}}";
	scoped_request    r;
	struct denial     d;

	tap_ok(protocol_parse(&r, text, strlen(text), 0, &d) == 0, "a request with every key is accepted");
	tap_ok(r.kind == REQUEST_exec && r.tag == 7 && r.wants_stdin && r.cold, "numbers and switches arrive");
	tap_ok(json_array_size(r.argv) == 2 && json_array_size(r.env) == 1 && json_object_size(r.limits) == 1, "lists arrive");
	tap_is(r.profile, "basic", "the profile is basic when nobody says one");
	tap_ok(!r.args && !r.ro, "what was not said is not there");
}

static void check_tag_of_refused(void)
{
	static const char text[] = "{\"op\":\"reboot\",\"tag\":9}";
	scoped_request    r;
	struct denial     d;

	tap_ok(protocol_parse(&r, text, strlen(text), 0, &d) < 0 && r.tag == 9, "the answer to a refused request carries its tag");
}

/* Takes the value over. */
static bool is_answer(json_t *j, size_t fds, struct err *e)
{
	char         *text = json_dumps(j, JSON_COMPACT);
	scoped_answer a    = { 0 };
	bool          ok   = protocol_parse_answer(&a, text, strlen(text), fds, e) == 0;

	if (!ok)
		printf("#   %s: %s\n", text, e->text);
	free(text);
	json_decref(j);
	return ok;
}

static bool is_text_answer(struct json_text *t, size_t fds, struct err *e)
{
	json_text_finish(t);
	return is_answer(json_loads(t->to, 0, NULL), fds, e);
}

static bool is_started(uint64_t tag, bool with_stdin, bool with_result, size_t fds, struct err *e)
{
	char             text[512];
	struct json_text t = json_text_in(text, sizeof text);

	protocol_put_started(&t, "id", tag, with_stdin, with_result, false, 1024);
	return is_text_answer(&t, fds, e);
}

static bool is_ended(const char *exec_error, const char *lost, const char *left, struct err *e)
{
	char             text[512];
	struct json_text t = json_text_in(text, sizeof text);

	protocol_put_ended(&t, "id", 1, "{}", exec_error, lost, left);
	return is_text_answer(&t, 0, e);
}

/* index -1: there must be none. */
static void check_facts(const char *field, const char *reason, int index, struct err *e)
{
	struct denial d;
	json_t       *error, *inner;

	deny(&d, DENIAL_bad_field, field, "is none");
	snprintf(d.reason, sizeof d.reason, "%s", reason);
	error = protocol_error(&d, 5);
	protocol_error_put_facts(error, &d);
	inner = json_object_get(error, "error");
	tap_ok((index < 0 ? !json_object_get(inner, "index") : json_integer_value(json_object_get(inner, "index")) == index) &&
		       !*reason == !json_object_get(inner, "reason"), "the facts about %s and \"%s\" are keys", field, reason);
	tap_ok(is_answer(error, 0, e), "which we accept");
}

static void check_made_answers(void)
{
	struct denial d;
	struct err    e;

	deny(&d, DENIAL_busy, NULL, "8 runs at once are what you may have");
	tap_ok(is_answer(protocol_error(&d, TAG_NONE), 0, &e), "an error that we make is one that we accept");
	d.retry_after_ms = 250;
	tap_ok(is_answer(protocol_error(&d, 5), 0, &e), "so is one that says when to come back");
	check_facts("env[3]", "it was idle", 3, &e);
	check_facts("limits.pids", "", -1, &e);
	check_facts("env[3]x", "", -1, &e);
	tap_ok(is_started(5, false, false, 2, &e), "started comes with two descriptors");
	tap_ok(is_started(TAG_NONE, true, false, 3, &e), "started with stdin comes with three");
	tap_ok(is_started(TAG_NONE, true, true, 4, &e), "started with stdin and result comes with four");
	tap_ok(is_answer(protocol_limit_event("id", 1, "pids", 64, false), 0, &e), "a limit is told");
	tap_ok(is_ended(NULL, "[]", NULL, &e), "an end is told");
	tap_ok(is_ended("ENOENT", "[{\"layers\":[\"memory-limit\"],\"why\":\"v1\"}]", "x", &e),
	       "an end with losses is told");
}

static const struct {
	const char *name, *json, *says;
} answers[] = {
	{ "an answer with an unknown key is refused", "{\"reply\":\"cancel\",\"run\":\"x\",\"more\":1}", "more: no such key" },
	{ "an answer without a key is refused", "{\"reply\":\"cancel\"}", "run: missing" },
	{ "an answer to nothing is refused", "{\"reply\":\"run\"}", "invalid reply \"run\"" },
	{ "an event that nobody knows is refused", "{\"event\":\"paused\"}", "invalid event \"paused\"" },
	{ "a code that is not of the list is refused", "{\"error\":{\"code\":\"oops\",\"message\":\"m\",\"field\":null}}", "error: code: \"oops\" is not of the list" },
	{ "a text where a number belongs is refused", "{\"event\":\"limit\",\"run\":\"x\",\"name\":\"pids\",\"value\":\"64\",\"ends\":true}", "value: expected whole number" },
	{ "a row of a list is looked into", "{\"reply\":\"list\",\"left_out\":0,\"runs\":[{\"run\":\"x\"}]}", "runs[0]: profile: missing" },
	{ "descriptors that nobody announced are refused", "{\"event\":\"started\",\"run\":\"x\",\"streams\":[\"stdout\"],\"output_bytes\":1024}", "0 descriptors came, 1 are wanted" },
};

static void check_answer(size_t i)
{
	scoped_answer a = { 0 };
	struct err    e = { 0 };

	if (!tap_ok(protocol_parse_answer(&a, answers[i].json, strlen(answers[i].json), 0, &e) < 0 && strcmp(e.text, answers[i].says) == 0, "%s",
		    answers[i].name))
		printf("#   %s\n", e.text);
}

/* A row that was forgotten would be a NULL that somebody follows. */
static void check_rows(void)
{
	bool ok = true;

	for (int i = 0; i < REQUEST_COUNT; i++)
		ok = ok && request_fields(i) && (reply_shape(i) || i == REQUEST_run || i == REQUEST_exec || i == REQUEST_open);
	for (int i = 0; i < EVENT_COUNT; i++)
		ok = ok && event_shape(i);
	tap_ok(ok, "every request has keys and an answer, every event a shape");
}

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(requests); i++)
		check_request(i);
	check_struct();
	check_tag_of_refused();
	check_made_answers();
	for (size_t i = 0; i < ARRAY_LEN(answers); i++)
		check_answer(i);
	check_rows();
	return tap_done();
}
