#include "method.h"
#include "tap.h"
#include "tool.h"
#include "tool_texts.h"

#include <stdlib.h>

/* A client that notes what it is told. */
struct heard {
	struct channel channel;
	json_t        *answers, *others;
	int            gone, status;
};

static void on_send(struct channel *ch, struct call *c, const json_t *message)
{
	(void)c;
	json_array_append(((struct heard *)ch)->others, (json_t *)message);
}

static void on_answer(struct channel *ch, struct call *c, const json_t *message, int http_status)
{
	(void)c;
	((struct heard *)ch)->status = http_status;
	json_array_append(((struct heard *)ch)->answers, (json_t *)message);
}

static void on_gone(struct channel *ch, struct call *c)
{
	(void)c;
	((struct heard *)ch)->gone++;
}

static const struct channel_ops ops = { .send = on_send, .answer = on_answer, .gone = on_gone };

/* --- tools that wait to be told --- */

static int cancelled;

static void on_cancel(struct call *c)
{
	(void)c;
	cancelled++;
}

static void hold(struct call *c, const json_t *arguments)
{
	(void)arguments;
	c->cancel = on_cancel;
}

static const struct tool  tool_hold = { .name = "hold", .title = "Hold", .description = "Waits.", .input_schema = "{\"type\":\"object\"}",
					.output_schema = "{\"type\":\"object\"}", .call = hold, .read_only = true };
const struct tool *const tools[] = { &tool_hold, NULL }; /* in the place of mcp/tools/tools.c */

struct world {
	struct settings settings;
	struct mcp      mcp;
	struct heard    a;
};

static void heard_init(struct heard *h, const char *principal)
{
	*h = (struct heard){ .channel = { .ops = &ops, .legacy = REVISION_LEGACY_NEWEST, .session = "" }, .answers = json_array(), .others = json_array() };
	snprintf(h->channel.principal, sizeof h->channel.principal, "%s", principal);
}

static void heard_done(struct world *w, struct heard *h)
{
	calls_cancel_all(&w->mcp, &h->channel);
	json_decref(h->answers);
	json_decref(h->others);
}

static void world_init(struct world *w)
{
	struct err e;

	settings_init(&w->settings);
	cancelled = 0;
	if (mcp_open(&w->mcp, &w->settings, &e) < 0)
		exit(1);
	heard_init(&w->a, "a");
}

static void world_done(struct world *w)
{
	heard_done(w, &w->a);
	mcp_close(&w->mcp);
	settings_done(&w->settings);
}

static void says(struct world *w, struct heard *h, const char *json)
{
	scoped_rpc       m;
	struct rpc_error e;

	if (rpc_parse(&m, json, strlen(json), &e) == 0)
		dispatch_message(&w->mcp, &h->channel, NULL, &m);
	else
		printf("# bad test: %s\n", e.text);
}

#define MODERN_META "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{}"
#define HOLD(id)        "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"hold\"}}"
#define HOLD_TOKEN(id)  "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"hold\",\"_meta\":{\"progressToken\":\"t\"}}}"
#define HOLD_MODERN(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"hold\"," MODERN_META ",\"progressToken\":7}}}"
#define CANCEL(id)      "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":" id "}}"

static const char *text_at(json_t *list, size_t i, char *buf, size_t len)
{
	char *text = json_dumps(json_array_get(list, i), JSON_COMPACT | JSON_REAL_PRECISION(15));

	snprintf(buf, len, "%s", text ? text : "(nothing)");
	free(text);
	return buf;
}

static void check_cancel(void)
{
	struct world w;

	world_init(&w);
	says(&w, &w.a, HOLD("1"));
	says(&w, &w.a, HOLD("\"1\""));
	says(&w, &w.a, CANCEL("2"));
	tap_ok(cancelled == 0 && calls_count_of_method(&w.mcp, "tools/call") == 2, "a cancellation of something unknown is ignored");
	says(&w, &w.a, CANCEL("\"1\""));
	tap_ok(cancelled == 1 && w.a.gone == 1 && calls_count_of_method(&w.mcp, "tools/call") == 1, "of 1 and \"1\" the one that is named is cancelled");
	tap_ok(json_array_size(w.a.answers) == 0, "nothing is said about it");
	says(&w, &w.a, CANCEL("\"1\""));
	tap_ok(cancelled == 1, "twice is as good as once");
	world_done(&w);
	tap_ok(cancelled == 2, "when the channel goes, so do its calls");
}

static void check_cancel_elsewhere(void)
{
	struct world w;
	struct heard same, other;

	world_init(&w);
	heard_init(&same, "a");
	heard_init(&other, "b");
	says(&w, &w.a, HOLD("1"));
	says(&w, &other, CANCEL("1"));
	tap_ok(cancelled == 0, "another client's call cannot be cancelled");
	same.channel.session = "theirs";
	says(&w, &same, CANCEL("1"));
	same.channel.session = NULL;
	says(&w, &same, CANCEL("1"));
	tap_ok(cancelled == 0, "nor that of another session");
	same.channel.session = "";
	says(&w, &same, CANCEL("1"));
	tap_ok(cancelled == 1, "one's own legacy call can, from another connection");
	says(&w, &w.a, HOLD("1"));
	says(&w, &same, HOLD("1"));
	says(&w, &w.a, HOLD_MODERN("3"));
	heard_done(&w, &other);
	heard_init(&other, "a");
	says(&w, &other, CANCEL("1"));
	tap_ok(cancelled == 1, "but not if two are called alike");
	says(&w, &other, CANCEL("3"));
	tap_ok(cancelled == 1, "and no modern one");
	heard_done(&w, &same);
	heard_done(&w, &other);
	world_done(&w);
}

static void check_ids(void)
{
	struct world w;
	char         buf[400];

	world_init(&w);
	says(&w, &w.a, HOLD("0"));
	says(&w, &w.a, HOLD("0"));
	tap_is(text_at(w.a.answers, 0, buf, sizeof buf),
	       "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":-32600,\"message\":\"id: a request with this one is still being worked on\"}}", "an id that is in use is refused");
	tap_ok(calls_count_of_method(&w.mcp, "tools/call") == 1 && w.a.status == 400, "and the first call goes on");
	world_done(&w);
}

static void turn_until_answered(struct world *w, size_t n)
{
	struct err e;

	for (int i = 0; i < 1000 && json_array_size(w->a.answers) < n; i++)
		(void)!loop_turn(&w->mcp.loop, 10, &e);
}

static void check_progress(void)
{
	struct world w;
	char         buf[400];
	int64_t      told;

	world_init(&w);
	says(&w, &w.a, HOLD("1"));
	struct call *silent = TAILQ_FIRST(&w.mcp.calls);

	call_send_progress(silent, 1, 0, "x");
	tap_ok(json_array_size(w.a.others) == 0, "who gave no token hears of no progress");
	says(&w, &w.a, HOLD_TOKEN("2"));
	struct call *c = TAILQ_NEXT(silent, link);

	call_send_progress(c, 0, 100, "x");
	call_send_progress(c, 1, 100, "y");
	tap_is(text_at(w.a.others, 0, buf, sizeof buf),
	       "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"t\",\"progress\":0.0,\"total\":100.0,\"message\":\"x\"}}", "progress carries the token");
	tap_ok(json_array_size(w.a.others) == 1, "and is told four times a second at most");
	c->progress_at_ms -= 1000;
	call_send_progress(c, 0, 100, "y");
	tap_ok(json_array_size(w.a.others) == 1, "what is not more than before is not told");
	call_send_progress(c, 0.5, 0, NULL);
	told = loop_now_ms();
	tap_is(text_at(w.a.others, 1, buf, sizeof buf), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"t\",\"progress\":0.5}}", "more is");
	tool_answer_text(c, "done", false);
	tap_ok(json_array_size(w.a.answers) == 0, "the answer does not come at the same moment");
	turn_until_answered(&w, 1);
	tap_ok(json_array_size(w.a.answers) == 1 && loop_now_ms() - told >= 2, "but a little later");
	tap_ok(calls_count_of_method(&w.mcp, "tools/call") == 1, "and then the call is over");
	world_done(&w);
}

static void check_cancel_of_answer(void)
{
	struct world w;
	struct err   e;

	world_init(&w);
	says(&w, &w.a, HOLD_TOKEN("2"));
	call_send_progress(TAILQ_FIRST(&w.mcp.calls), 1, 0, NULL);
	tool_answer_text(TAILQ_FIRST(&w.mcp.calls), "done", false);
	says(&w, &w.a, CANCEL("2"));
	for (int i = 0; i < 5; i++)
		(void)!loop_turn(&w.mcp.loop, 2, &e);
	tap_ok(json_array_size(w.a.answers) == 0 && cancelled == 0 && w.a.gone == 1, "an answer that waits behind progress can be cancelled, and nothing else is");
	world_done(&w);
}

static void check_response(void)
{
	struct world w;

	world_init(&w);
	says(&w, &w.a, HOLD("1"));
	says(&w, &w.a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	tap_ok(calls_count_of_method(&w.mcp, "tools/call") == 1 && json_array_size(w.a.answers) == 0 && json_array_size(w.a.others) == 0, "a response to what nobody asked is dropped");
	world_done(&w);
}

static bool has(json_t *list, size_t i, const char *part)
{
	char *text = json_dumps(json_array_get(list, i), JSON_COMPACT);
	bool  is   = text && strstr(text, part);

	if (!is)
		printf("#   %s\n", text ? text : "(nothing)");
	free(text);
	return is;
}

static void check_too_many(void)
{
	struct world w;

	world_init(&w);
	w.settings.max_calls = 2;
	says(&w, &w.a, HOLD("1"));
	says(&w, &w.a, HOLD("2"));
	says(&w, &w.a, HOLD("3"));
	tap_ok(has(w.a.answers, 0, "\"id\":3,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"Busy: 2 calls are being worked on") && has(w.a.answers, 0, "Try again in a second") && has(w.a.answers, 0, "\"isError\":true"),
	       "one call too many is refused as the result of the tool, and says when to try again");
	says(&w, &w.a, "{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/list\"}");
	tap_ok(has(w.a.answers, 1, "\"id\":4,\"result\":{\"tools\":["), "other requests are answered all the same");
	says(&w, &w.a, CANCEL("1"));
	w.settings.calls_per_minute = 1;
	says(&w, &w.a, HOLD("5"));
	says(&w, &w.a, CANCEL("5"));
	says(&w, &w.a, HOLD("6"));
	tap_ok(has(w.a.answers, 2, "Too many calls: 1 a minute are allowed. Try again in 60 s."), "so is one too many in a minute");
	world_done(&w);
}

static void check_list(void)
{
	static const struct tool_texts none = { .name = "basic" };
	struct world              w;
	json_t                   *old, *middle, *new;

	world_init(&w);
	old    = tool_json(&tool_hold, &w.mcp, &none, REVISION_2024_11_05);
	middle = tool_json(&tool_hold, &w.mcp, &none, REVISION_2025_03_26);
	new    = tool_json(&tool_hold, &w.mcp, &none, REVISION_2026_07_28);
	tap_ok(json_object_size(old) == 3, "the oldest revision has name, description and inputSchema");
	tap_ok(json_object_size(json_object_get(middle, "annotations")) == 5 && !json_object_get(middle, "title"), "the next one has annotations, and the title in them");
	tap_ok(json_object_size(json_object_get(new, "annotations")) == 4 && json_object_get(new, "title") && json_object_get(new, "outputSchema"),
	       "later ones have a title and an outputSchema");
	says(&w, &w.a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{\"cursor\":\"\"}}");
	tap_ok(has(w.a.answers, 0, "\"code\":-32602"), "a cursor that we never gave is refused, the empty one, too");
	json_decref(old);
	json_decref(middle);
	json_decref(new);
	world_done(&w);
}

static json_t *blocks(void)
{
	return json_pack("[{ssss} {ssssss} {ssssss}]", "type", "text", "text", "x", "type", "audio", "data", "AA==", "mimeType", "audio/wav", "type", "resource_link",
			 "uri", "a://b", "name", "n");
}

static void check_blocks(void)
{
	struct world w;

	world_init(&w);
	for (int r = REVISION_2024_11_05; r < REVISION_2026_07_28; r++) {
		w.a.channel.legacy = (enum revision)r;
		says(&w, &w.a, HOLD("1"));
		tool_answer_blocks(TAILQ_FIRST(&w.mcp.calls), blocks(), json_pack("{sb}", "ok", 1), false);
	}
	tap_ok(has(w.a.answers, 0, "{\"type\":\"text\",\"text\":\"[audio: audio/wav]\"},{\"type\":\"text\",\"text\":\"[resource: n at a://b]\"}]"), "blocks that a revision does not know become text");
	tap_ok(has(w.a.answers, 1, "{\"type\":\"audio\"") && has(w.a.answers, 1, "[resource: n at a://b]") && !json_object_get(json_object_get(json_array_get(w.a.answers, 1), "result"), "structuredContent"),
	       "each at its time");
	tap_ok(has(w.a.answers, 2, "{\"type\":\"resource_link\"") && has(w.a.answers, 2, "\"structuredContent\":{\"ok\":true}"), "and structuredContent is there where it may be");
	w.a.channel.legacy = REVISION_LEGACY_NEWEST;
	says(&w, &w.a, HOLD("1"));
	tool_answer_text(TAILQ_FIRST(&w.mcp.calls), "a\xff", true);
	tap_ok(has(w.a.answers, 4, "\"text\":\"a\xef\xbf\xbd\"") || has(w.a.answers, 4, "\\uFFFD"), "bytes that are no text become a mark");
	world_done(&w);
}

int main(void)
{
	check_cancel();
	check_cancel_elsewhere();
	check_ids();
	check_progress();
	check_cancel_of_answer();
	check_response();
	check_too_many();
	check_list();
	check_blocks();
	return tap_done();
}
