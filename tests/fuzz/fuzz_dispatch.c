/*
 * fuzz_dispatch.c - lines of any bytes as what a client says to the whole server: each request is answered once, or was cancelled, and each answer
 * is one of its revision. There is no brigd that a tool could reach.
 */
#include "batch.h"
#include "brigd_connection.h"
#include "fuzz.h"
#include "tool.h"

struct client {
	struct channel channel; /* first */
	size_t         asked, answered, gone;
};

/* --- what is said to it --- */

static void must_be_error(const json_t *error)
{
	static const int codes[] = { RPC_PARSE_ERROR, RPC_INVALID_REQUEST, RPC_METHOD_NOT_FOUND, RPC_INVALID_PARAMS, RPC_INTERNAL, RPC_UNSUPPORTED_VERSION };
	const char *text = json_string_value(json_object_get(error, "message"));
	bool        known = false;

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		known = known || json_integer_value(json_object_get(error, "code")) == codes[i];
	must(known && text && *text);
	must_about(text, !text_has_control(text) && text_is_utf8(text, strlen(text)));
}

static void must_be_tool_result(const struct call *c, const json_t *result)
{
	const json_t *content = json_object_get(result, "content");

	must(json_is_array(content) && json_is_boolean(json_object_get(result, "isError")));
	for (size_t i = 0; i < json_array_size(content); i++)
		must(json_string_value(json_object_get(json_array_get(content, i), "type")));
	must(!json_object_get(result, "structuredContent") || c->revision >= REVISION_2025_06_18);
}

static void must_be_result(const struct call *c, const json_t *result)
{
	bool modern = revision_is_modern(c->revision);

	must(json_is_object(result));
	must(modern == (json_object_get(result, "resultType") != NULL));
	must(modern == (json_object_get(json_object_get(result, "_meta"), META_SERVER) != NULL));
	if (strcmp(c->method, "tools/call") == 0)
		must_be_tool_result(c, result);
	if (strcmp(c->method, "tools/list") == 0)
		must(modern == json_is_integer(json_object_get(result, "ttlMs")) && json_is_array(json_object_get(result, "tools")));
}

static void must_be_line(const json_t *message)
{
	size_t len  = 0;
	char  *text = rpc_dump_to_send(message, &len);

	must(text && len <= RPC_OUT_MAX && !memchr(text, '\n', len));
	free(text);
}

static void on_answer(struct channel *ch, struct call *c, const json_t *message, int http_status)
{
	const json_t *result = json_object_get(message, "result"), *error = json_object_get(message, "error");

	((struct client *)ch)->answered++;
	must(json_equal(json_object_get(message, "id"), c->id) && json_typeof(json_object_get(message, "id")) == json_typeof(c->id));
	must(!result != !error);
	must(http_status == 200 || http_status == 400 || http_status == 404);
	if (error)
		must_be_error(error);
	else
		must_be_result(c, result);
	must_be_line(message);
	if (c->channel_data)
		batch_add_answer(c->channel_data, message);
}

static void on_send(struct channel *ch, struct call *c, const json_t *message)
{
	(void)ch;
	must(c->progress_token || !json_object_get(message, "id"));
	must_be_line(message);
}

static void on_gone(struct channel *ch, struct call *c)
{
	((struct client *)ch)->gone++;
	if (c->channel_data)
		batch_drop_call(c->channel_data);
}

static void batch_is_done(void *owner, const json_t *answers)
{
	(void)owner;
	must(!answers || json_array_size(answers) > 0);
}

static const struct channel_ops ops = { .send = on_send, .answer = on_answer, .gone = on_gone };

/* --- a tool that is never done --- */

static void no_cancel(struct call *c)
{
	(void)c;
}

static void hold(struct call *c, const json_t *arguments)
{
	must(json_is_object(arguments));
	c->cancel = no_cancel;
	call_send_progress(c, 1, 2, "x");
	call_send_progress(c, 2, 2, "y");
}

static const struct tool tool_hold = { .name = "hold", .description = "", .input_schema = "{\"type\":\"object\"}", .call = hold };
#define TOOL(name) extern const struct tool tool_##name;
#include "tools.def"

/* In the place of mcp/tools/tools.c. */
const struct tool *const tools[] = {
#define TOOL(name) &tool_##name,
#include "tools.def"
	&tool_hold,
	NULL,
};

/* --- what it says --- */

static size_t requests_of(const json_t *loaded)
{
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(loaded); i++) {
		scoped_rpc       m;
		struct rpc_error e;

		n += rpc_parse_json(&m, json_incref(json_array_get(loaded, i)), &e) == 0 && m.kind == RPC_REQUEST && strcmp(m.method, "initialize") != 0;
	}
	return n;
}

static void say(struct mcp *m, struct client *client, const void *line, size_t len)
{
	struct rpc_error e;
	scoped_rpc       message = { 0 };
	json_t          *loaded  = rpc_load_json(line, len, &e);
	size_t           n       = requests_of(loaded);

	if (!loaded)
		return;
	if (batch_is_accepted(&client->channel, loaded)) {
		client->asked += batch_dispatch(m, &client->channel, loaded, batch_is_done, NULL, &e) == 0 ? n : 0;
	} else if (rpc_parse_json(&message, loaded, &e) == 0) {
		client->asked += message.kind == RPC_REQUEST;
		dispatch_message(m, &client->channel, NULL, &message);
	}
}

static void say_all(struct mcp *m, struct client *client, const uint8_t *data, size_t size)
{
	while (size) {
		const uint8_t *newline = memchr(data, '\n', size);
		size_t         len     = newline ? (size_t)(newline - data) : size;

		say(m, client, data, len);
		len += newline != NULL;
		data += len;
		size -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client   client = { .channel = { .ops = &ops, .legacy = REVISION_LEGACY_NEWEST, .principal = "fuzz" } };
	scoped_settings settings;
	struct mcp      m;
	struct err      e;

	setenv("BRIG_SOCKET", "/nonexistent/brig.sock", 1);
	settings_init(&settings);
	settings.server         = BRIGD_SERVICE;
	settings.list_all_tools = true;
	settings.max_calls      = 8;
	must(mcp_open(&m, &settings, &e) == 0);
	say_all(&m, &client, data, size);
	for (int i = 0; i < 4 && !TAILQ_EMPTY(&m.calls); i++)
		must(loop_turn(&m.loop, 1, &e) >= 0);
	calls_cancel_all(&m, &client.channel);
	must(client.answered + client.gone == client.asked);
	mcp_close(&m);
	return 0;
}
