#include "id_scan.h"
#include "rpc.h"
#include "tap.h"

#include <stdlib.h>

static const struct {
	const char   *name, *json;
	int           code; /* 0: accepted */
	enum rpc_kind kind;
	const char   *id, *says; /* id as JSON, "" when there is none to echo */
} messages[] = {
	/* sentence, message, code, kind, id, beginning of the sentence */
	{ "a request is one", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 0, RPC_REQUEST, "1", "" },
	{ "params are an object", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}}", 0, RPC_REQUEST, "1", "" },
	{ "params that are null are not there", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":null}", 0, RPC_REQUEST, "1", "" },
	{ "a text is an id", "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}", 0, RPC_REQUEST, "\"a\"", "" },
	{ "the empty text is an id", "{\"jsonrpc\":\"2.0\",\"id\":\"\",\"method\":\"ping\"}", 0, RPC_REQUEST, "\"\"", "" },
	{ "zero is an id", "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}", 0, RPC_REQUEST, "0", "" },
	{ "a negative number is an id", "{\"jsonrpc\":\"2.0\",\"id\":-7,\"method\":\"ping\"}", 0, RPC_REQUEST, "-7", "" },
	{ "the largest number of 64 bits is an id", "{\"jsonrpc\":\"2.0\",\"id\":9223372036854775807,\"method\":\"ping\"}", 0, RPC_REQUEST, "9223372036854775807", "" },
	{ "a number in a text stays a text", "{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"method\":\"ping\"}", 0, RPC_REQUEST, "\"7\"", "" },
	{ "no id makes a notification", "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}", 0, RPC_NOTIFICATION, "", "" },
	{ "a result makes a response", "{\"jsonrpc\":\"2.0\",\"id\":\"ask-1\",\"result\":{}}", 0, RPC_RESPONSE, "\"ask-1\"", "" },
	{ "an error makes a response", "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":1,\"message\":\"\"}}", 0, RPC_RESPONSE, "3", "" },
	{ "half a character is mended", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\\ud83d\"}}", 0, RPC_REQUEST, "1", "" },
	{ "null is no id", "{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}", RPC_INVALID_REQUEST, RPC_REQUEST, "", "id: expected" },
	{ "a fraction is no id", "{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}", RPC_INVALID_REQUEST, RPC_REQUEST, "", "id: expected" },
	{ "a whole number written as a fraction is no id", "{\"jsonrpc\":\"2.0\",\"id\":1.0,\"method\":\"ping\"}", RPC_INVALID_REQUEST, RPC_REQUEST, "", "id: expected" },
	{ "true is no id", "{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"ping\"}", RPC_INVALID_REQUEST, RPC_REQUEST, "", "id: expected" },
	{ "a list is no id", "{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}", RPC_INVALID_REQUEST, RPC_REQUEST, "", "id: expected" },
	{ "another version is refused, with the id", "{\"jsonrpc\":\"1.0\",\"id\":5,\"method\":\"ping\"}", RPC_INVALID_REQUEST, RPC_REQUEST, "5", "jsonrpc: " },
	{ "no version is refused, with the id", "{\"id\":5,\"method\":\"ping\"}", RPC_INVALID_REQUEST, RPC_REQUEST, "5", "jsonrpc: " },
	{ "a method is a text", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":1}", RPC_INVALID_REQUEST, RPC_REQUEST, "5", "method: " },
	{ "a method has a name", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"\"}", RPC_INVALID_REQUEST, RPC_REQUEST, "5", "method: " },
	{ "a method with a NUL in it is none", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\\u0000x\"}", RPC_INVALID_REQUEST, RPC_REQUEST, "5", "method: " },
	{ "a message without anything is refused", "{\"jsonrpc\":\"2.0\",\"id\":5}", RPC_INVALID_REQUEST, RPC_REQUEST, "5", "method: " },
	{ "a list as params is refused, with the id", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\",\"params\":[1]}", RPC_INVALID_PARAMS, RPC_REQUEST, "5", "params: " },
	{ "a notification with bad params stays one", "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[1]}", RPC_INVALID_PARAMS, RPC_NOTIFICATION, "", "params: " },
	{ "a response with both is refused", "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{},\"error\":{}}", RPC_INVALID_REQUEST, RPC_RESPONSE, "5", "a response" },
	{ "a response without an id is refused", "{\"jsonrpc\":\"2.0\",\"result\":{}}", RPC_INVALID_REQUEST, RPC_RESPONSE, "", "a response" },
	{ "a batch is refused", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]", RPC_INVALID_REQUEST, RPC_REQUEST, "", "an array" },
	{ "a text is no message", "\"ping\"", RPC_INVALID_REQUEST, RPC_REQUEST, "", "expected an object" },
	{ "nothing is no JSON", "", RPC_PARSE_ERROR, RPC_REQUEST, "", "no JSON" },
	{ "half an object is no JSON", "{\"jsonrpc\":", RPC_PARSE_ERROR, RPC_REQUEST, "", "no JSON" },
	{ "a key twice is no JSON", "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}", RPC_PARSE_ERROR, RPC_REQUEST, "", "no JSON" },
	{ "two objects are no JSON", "{}{}", RPC_PARSE_ERROR, RPC_REQUEST, "", "no JSON" },
	{ "bytes that are no UTF-8 are no JSON", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", RPC_PARSE_ERROR, RPC_REQUEST, "", "no JSON" },
	{ "a number of 30 digits is no JSON", "{\"jsonrpc\":\"2.0\",\"id\":123456789012345678901234567890,\"method\":\"x\"}", RPC_PARSE_ERROR, RPC_REQUEST, "", "no JSON" },
};

static bool id_is(const json_t *id, const char *want)
{
	char *text = id ? json_dumps(id, JSON_ENCODE_ANY) : NULL;
	bool  is   = strcmp(text ? text : "", want) == 0;

	free(text);
	return is;
}

/* Of a message that is not read: what rpc_load_json() refuses. */
static const struct {
	const char *name, *json, *id;
} unread[] = {
	{ "an id before what cannot be read is found", "{\"id\":\"q\",\"method\":\"x\",\"params\":{\"a\":1e999}}", "\"q\"" },
	{ "and behind it", "{\"method\":\"x\",\"params\":{\"id\":7,\"a\":[1,{\"id\":8}],\"t\":\"\\\"id\\\":9}\"} , \"id\" : -12 }", "-12" },
	{ "half of one is none", "{\"method\":\"x\",\"id\":3", "" },
	{ "in half a message, too", "{\"id\":3,\"method\":\"x\",\"params\":{\"a\":", "3" },
	{ "that of a response or a notification is not", "{\"id\":3,\"result\":1e999}", "" },
	{ "two are none", "{\"id\":3,\"id\":3,\"method\":\"x\"}", "" },
	{ "a number of 30 digits is none", "{\"id\":123456789012345678901234567890,\"method\":\"x\"}", "" },
	{ "a list is none", "{\"id\":[1],\"method\":\"x\"}", "" },
	{ "a batch has none", "[{\"id\":1,\"method\":\"x\"}]", "" },
	{ "what follows a message makes it none", "{\"id\":1,\"method\":\"x\"}{}", "" },
};

static void check_message(size_t i)
{
	scoped_rpc       m;
	struct rpc_error e  = { .code = 0 };
	bool             ok = rpc_parse(&m, messages[i].json, strlen(messages[i].json), &e) == 0;

	ok = ok ? messages[i].code == 0 : e.code == messages[i].code && strncmp(e.text, messages[i].says, strlen(messages[i].says)) == 0;
	ok = ok && m.kind == messages[i].kind && id_is(m.id, messages[i].id);
	if (!tap_ok(ok, "%s", messages[i].name))
		printf("#   %d, kind %d: %s\n", e.code, (int)m.kind, e.code ? e.text : "accepted");
}

static void check_bounds(void)
{
	struct rpc_error e;
	char            *text = malloc(RPC_MAX + 1);
	size_t           n    = 0;

	memset(text, ' ', RPC_MAX + 1);
	tap_ok(!rpc_load_json(text, RPC_MAX + 1, &e) && e.code == RPC_PARSE_ERROR, "a message that is too large is refused unread");
	for (; n < 2 * (RPC_DEPTH + 1); n += 2)
		memcpy(text + n, "[ ", 2);
	tap_ok(!rpc_load_json(text, RPC_MAX, &e) && strncmp(e.text, "nested", 6) == 0, "what is nested too deep is refused before it is parsed");
	free(text);
}

static json_t *params_of(const char *json)
{
	scoped_rpc       m;
	struct rpc_error e;

	return rpc_parse(&m, json, strlen(json), &e) < 0 ? NULL : json_incref(json_object_get(m.params, "a"));
}

static void check_texts(void)
{
	json_t *half  = params_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"a\":\"x\\uD83Dy\\udc00 \\\\ud800 \\uD83D\\uDE00\"}}");
	json_t *nul   = params_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"a\":\"a\\u0000b\"}}");
	const char *want = "x\xef\xbf\xbdy\xef\xbf\xbd \\ud800 \xf0\x9f\x98\x80";

	tap_is(json_string_value(half), want, "each half of a character becomes U+FFFD, a whole one and a backslash stay");
	tap_ok(json_string_length(nul) == 3, "a NUL in a text arrives, so that it can be refused in words");
	json_decref(half);
	json_decref(nul);
}

static void check_ours(void)
{
	json_t          *id = json_integer(-3), *result = rpc_result(id, json_pack("{sf}", "t", 0.41)), *failure, *big;
	struct rpc_error e;
	size_t           len;
	char            *text = rpc_dump(result, &len);

	tap_is(text, "{\"jsonrpc\":\"2.0\",\"id\":-3,\"result\":{\"t\":0.41}}", "a result is one line, and 0.41 stays 0.41");
	free(text);
	rpc_error_set(&e, RPC_PARSE_ERROR, "a\nb\xff");
	failure = rpc_failure(NULL, &e);
	text    = rpc_dump(failure, &len);
	tap_is(text, "{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,\"message\":\"a?b?\"}}", "an error without an id has no id, and its sentence is plain");
	free(text);
	big = rpc_result(id, json_object());
	text = malloc(RPC_OUT_MAX + 2);
	memset(text, 'a', RPC_OUT_MAX + 1);
	json_object_set_new(json_object_get(big, "result"), "x", json_stringn(text, RPC_OUT_MAX + 1));
	free(text);
	text = rpc_dump_to_send(big, &len);
	tap_ok(text && len < 300 && strstr(text, "\"id\":-3,\"error\":{\"code\":-32603"), "an answer that is too large becomes an error with its id");
	free(text);
	json_decref(big);
	json_decref(result);
	json_decref(failure);
	json_decref(id);
}

static void check_unread(void)
{
	for (size_t i = 0; i < ARRAY_LEN(unread); i++) {
		json_t *id = id_scan_find(unread[i].json, strlen(unread[i].json), true);

		tap_ok(id_is(id, unread[i].id), "%s", unread[i].name);
		json_decref(id);
	}
}

int main(void)
{
	check_unread();
	for (size_t i = 0; i < ARRAY_LEN(messages); i++)
		check_message(i);
	check_bounds();
	check_texts();
	check_ours();
	return tap_done();
}
