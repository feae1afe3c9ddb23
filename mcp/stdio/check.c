#define _GNU_SOURCE
#include "check.h"

#include "brigd_link.h"
#include "broker.h"
#include "member.h"
#include "method.h"
#include "paths.h"
#include "tool.h"
#include "wire.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The time that a run may take beyond its own limit: on a slow machine, or with a rootfs that was never read before. */
#define TIMEOUT_MS 30000

#define PROGRAM "print('hello from a jail')\n6 * 7\n"
#define PRINTED "hello from a jail\n"

struct check {
	struct channel channel;
	struct mcp     mcp;
	FILE          *out;
	json_t        *answer; /* owned; NULL: none yet */
	int            asked;
	bool           lacks; /* a layer is missing */
};

static void keep_response(struct channel *ch, struct call *c, const json_t *message, int http_status)
{
	struct check *k = (struct check *)ch; /* its first member */

	(void)c, (void)http_status;
	json_decref(k->answer);
	k->answer = json_deep_copy(message);
}

static void ignore_message(struct channel *ch, struct call *c, const json_t *message)
{
	(void)ch, (void)c, (void)message;
}

static const struct channel_ops ops = { .send = ignore_message, .answer = keep_response };

/* --- requests --- */

static int wait_for_response(struct check *k, const char *method, struct err *e)
{
	int64_t end = loop_now_ms() + (int64_t)k->mcp.settings->timeout_ms + TIMEOUT_MS, left;

	while (!k->answer) {
		if ((left = end - loop_now_ms()) <= 0) {
			calls_cancel_all(&k->mcp, &k->channel);
			return err_set(e, ERR_SETUP, "%s: no answer; type: brig doctor", method);
		}
		if (loop_turn(&k->mcp.loop, left > INT_MAX ? INT_MAX : (int)left, e) < 0)
			return -1;
	}
	return 0;
}

/* The request is parsed from bytes, as those of clients are. */
static int check_dispatch_request(struct check *k, const char *method, json_t *params, struct err *e)
{
	scoped_json       *id = json_integer(++k->asked), *request;
	size_t             len;
	char              *line;
	struct rpc_error   why = { 0 };
	struct rpc_message message;

	json_object_set_new(params, "_meta",
			    json_pack("{s:s, s:{s:s, s:s}, s:{}}", META_VERSION, revision_name(REVISION_MODERN),
				      META_CLIENT, "name", "brig-mcp --check", "version", BRIG_VERSION,
				      META_CAPABILITIES));
	request = rpc_request(id, method, params);
	line    = rpc_dump(request, &len);
	if (!line || rpc_parse(&message, line, len, &why) < 0) {
		free(line);
		return err_set(e, ERR_BROKEN, "a request of ours: %.200s", why.text);
	}
	dispatch_message(&k->mcp, &k->channel, NULL, &message);
	rpc_message_done(&message);
	free(line);
	return 0;
}

/* The result; takes params over. NULL with *e. */
static json_t *check_exchange_request(struct check *k, const char *method, json_t *params, struct err *e)
{
	scoped_json *answer = NULL;
	json_t      *result;

	if (check_dispatch_request(k, method, params, e) < 0 || wait_for_response(k, method, e) < 0)
		return NULL;
	answer    = k->answer;
	k->answer = NULL;
	result    = json_object_get(answer, "result");
	if (!result)
		err_set(e, ERR_BROKEN, "%s: %.300s", method,
			json_string_value(json_object_get(json_object_get(answer, "error"), "message")));
	return json_incref(result);
}

/* --- steps --- */

static void print_check_line(struct check *k, const char *what, const char *text)
{
	fprintf(k->out, "%-12s %s\n", what, text);
	fflush(k->out); /* the next step may take a while */
}

static int show_server_version(struct check *k, struct err *e)
{
	scoped_json  *result = check_exchange_request(k, "server/discover", json_object(), e);
	const json_t *self = json_object_get(json_object_get(result, "_meta"), META_SERVER);
	char          text[200];
	int           n;

	if (!result)
		return -1;
	n = snprintf(text, sizeof text, "%s %s; MCP", json_string_value(json_object_get(self, "name")),
		     json_string_value(json_object_get(self, "version")));
	for (int r = REVISION_COUNT - 1; r >= 0 && n > 0 && (size_t)n < sizeof text; r--)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", r < REVISION_COUNT - 1 ? ", " : " ",
			      revision_name((enum revision)r));
	print_check_line(k, "server", text);
	return 0;
}

static int show_tool_names(struct check *k, struct err *e)
{
	scoped_json *result = check_exchange_request(k, "tools/list", json_object(), e);
	size_t       i;
	json_t      *tool;
	char         text[600] = "";
	size_t       n         = 0;

	if (!result)
		return -1;
	json_array_foreach(json_object_get(result, "tools"), i, tool)
		if (n < sizeof text)
			n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : "",
					      json_string_value(json_object_get(tool, "name")));
	print_check_line(k, "tools", text);
	return i ? 0 : err_set(e, ERR_BROKEN, "tools/list: there are no tools");
}

static const char *first_content_text(const json_t *result)
{
	return member_text(json_array_get(json_object_get(result, "content"), 0), "text");
}

/* Checks what the program has printed and returned. If the reason is the host or brigd, the error names brig doctor. */
static int check_run_reply(const json_t *result, const json_t *reply, struct err *e)
{
	const char *error = json_string_value(json_object_get(reply, "error")), *hint = member_text(reply, "hint");
	bool        host  = strcmp(member_text(reply, "exit_reason"), "setup_failed") == 0;

	if (json_is_true(json_object_get(result, "isError")) || error)
		return err_set(e, ERR_SETUP, "execute_code: %.300s%s%.100s%s",
			       error ? error : first_content_text(result), *hint ? ". " : "", hint,
			       host ? "; type: brig doctor" : "");
	if (strcmp(member_text(reply, "stdout"), PRINTED) != 0 ||
	    json_integer_value(json_object_get(reply, "result")) != 42)
		return err_set(e, ERR_BROKEN, "execute_code: the reply above is not what the program gives");
	return 0;
}

static json_t *parse_reply_text(const json_t *result)
{
	const char  *text = first_content_text(result);
	struct err   e;

	return wire_parse(text, strlen(text), 16 * MIB, &e);
}

static json_t *check_call_tool(struct check *k, const char *tool, json_t *arguments, struct err *e)
{
	return check_exchange_request(k, "tools/call", json_pack("{ss so}", "name", tool, "arguments", arguments), e);
}

/*
 * With a short --yield-after the answer may be "running": this waits again until the run ends, as it has a time
 * limit.
 */
static json_t *run_program_to_end(struct check *k, struct err *e)
{
	json_t *result = check_call_tool(k, "execute_code",
				   json_pack("{ss ss sb}", "code", PROGRAM, "format", "json", "detail", 1), e);

	while (result) {
		scoped_json *reply  = parse_reply_text(result);

		if (strcmp(member_text(reply, "exit_reason"), "running") != 0)
			break;
		json_decref(result);
		result = check_call_tool(k, "wait_execution",
				   json_pack("{sO}", "execution_id", json_object_get(reply, "execution_id")), e);
	}
	return result;
}

/* The reply of one run; NULL with *e. */
static json_t *run_check_program(struct check *k, struct err *e)
{
	scoped_json *result = run_program_to_end(k, e);
	json_t      *reply;

	if (!result)
		return NULL;
	reply = parse_reply_text(result);
	if (check_run_reply(result, reply, e) == 0)
		return reply;
	if (reply)
		print_check_line(k, "reply", first_content_text(result));
	json_decref(reply);
	return NULL;
}

/* Prints the layers that are in force, or those that are missing, without the prefix "missing:". */
static void check_print_and_note_layers(struct check *k, const char *what, const json_t *layers, bool missing)
{
	static const char head[] = "missing:";
	char              text[2000] = "";
	size_t            i, n = 0;
	json_t           *item;

	json_array_foreach(layers, i, item) {
		const char *name = json_string_value(item);

		if (!name || (strncmp(name, head, sizeof head - 1) == 0) != missing || n >= sizeof text)
			continue;
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? ", " : "",
				      name + (missing ? sizeof head - 1 : 0));
	}
	if (n)
		print_check_line(k, what, text);
	k->lacks = k->lacks || (n && missing);
}

static void show_run_results(struct check *k, const json_t *reply, int64_t first_ms, int64_t second_ms)
{
	char       *text = json_dumps(reply, JSON_COMPACT | JSON_REAL_PRECISION(15)), line[200 + PATH_SIZE];
	bool        is_private;
	const char *server = brigd_link_server(k->mcp.brigd_link, &is_private);

	snprintf(line, sizeof line, is_private ? "a private one, %s" : "a service, %s",
		 server ? server : "which has gone");
	print_check_line(k, "brigd", line);
	print_check_line(k, "program", "print('hello from a jail'); 6 * 7");
	print_check_line(k, "reply", text ? text : "");
	check_print_and_note_layers(k, "in force", json_object_get(reply, "isolation"), false);
	check_print_and_note_layers(k, "missing", json_object_get(reply, "isolation"), true);
	snprintf(line, sizeof line, "%lld ms the first time, %lld ms the second", (long long)first_ms,
		 (long long)second_ms);
	print_check_line(k, "took", line);
	free(text);
}

static int check_two_runs(struct check *k, struct err *e)
{
	int64_t      began = loop_now_ms(), between;
	scoped_json *first = run_check_program(k, e), *second = NULL;

	if (!first)
		return -1;
	between = loop_now_ms();
	if (!(second = run_check_program(k, e)))
		return -1;
	show_run_results(k, first, between - began, loop_now_ms() - between);
	return 0;
}

/* Prints the tools of the servers. A server that cannot be started is an error. */
static int show_server_tools(struct check *k, struct err *e)
{
	struct broker *b     = k->mcp.broker;
	scoped_json   *asked = b ? check_call_tool(k, "find_tools", json_pack("{ss}", "query", ""), e) : json_object();
	scoped_json   *lost  = asked && b ? broker_failed_servers(b) : NULL,
		    *found   = asked && b ? broker_search_tools(b, "", 50) : NULL;
	char           line[300];

	if (json_array_size(lost))
		return err_set(e, ERR_SETUP, "--servers: %s", json_string_value(json_array_get(lost, 0)));
	for (size_t i = 0; i < json_array_size(found); i++) {
		snprintf(line, sizeof line, "tools.%s",
			 json_string_value(json_object_get(json_array_get(found, i), "signature")));
		print_check_line(k, "for programs", line);
	}
	return asked ? 0 : -1;
}

/* Prints what to put into a client's file, with the whole path, as the client may have another PATH. */
static void show_client_config(struct check *k)
{
	char    path[PATH_MAX] = "brig-mcp";
	ssize_t n              = readlink("/proc/self/exe", path, sizeof path - 1);
	json_t *file;
	char   *text;

	path[n > 0 ? n : (ssize_t)strlen(path)] = 0;
	file = json_pack("{s{s{ss s[ss]}}}", "mcpServers", "python", "command", path, "args", "--reply", "text");
	text = file ? json_dumps(file, JSON_COMPACT) : NULL;
	fprintf(k->out, "\n%s For a client's file:  %s\n",
		k->lacks ? "It runs, without the layers that are missing above; brig doctor says how to have them."
			 : "All in order.",
		text ? text : "");
	free(text);
	json_decref(file);
}

int check_run(const struct settings *s, FILE *out, struct err *e)
{
	struct check k = { .channel = { .ops = &ops, .legacy = REVISION_LEGACY_NEWEST, .principal = "check" },
			   .out     = out };
	int          r;

	if (mcp_open(&k.mcp, s, e) < 0)
		return -1;
	r = show_server_version(&k, e) < 0 || show_tool_names(&k, e) < 0 || check_two_runs(&k, e) < 0 ||
			    show_server_tools(&k, e) < 0
		    ? -1
		    : 0;
	if (r == 0)
		show_client_config(&k);
	json_decref(k.answer);
	mcp_close(&k.mcp);
	return r;
}
