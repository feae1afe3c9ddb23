/* tasks.c - runs that are asked about instead of waited for (extension io.modelcontextprotocol/tasks) */
#define _GNU_SOURCE
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define EXTENSION "io.modelcontextprotocol/tasks"
#define TTL_MS    300000
#define TASKS_MAX 256

struct task {
	TAILQ_ENTRY(task)   link;
	struct conformance *fixtures;
	char                id[33], principal[64];
	const char         *status;
	char                created[32], updated[32];
	int64_t             until_ms;
	struct loop_timer   due;
	json_t             *result, *error; /* at the end */
	json_t             *asked, *answered;
};

static void now_text(char ret[32])
{
	struct timespec now;
	struct tm       parts;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	(void)strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static void task_free(struct task *t)
{
	TAILQ_REMOVE(&t->fixtures->tasks, t, link);
	t->fixtures->n_tasks--;
	loop_timer_clear(&t->fixtures->mcp.loop, &t->due);
	json_decref(t->result);
	json_decref(t->error);
	json_decref(t->asked);
	json_decref(t->answered);
	free(t);
}

void tasks_drop_all(struct conformance *c)
{
	while (!TAILQ_EMPTY(&c->tasks))
		task_free(TAILQ_FIRST(&c->tasks));
}

static void drop_old(struct conformance *c)
{
	int64_t      now = loop_now_ms();
	struct task *t;

	while ((t = TAILQ_FIRST(&c->tasks)) && (t->until_ms < now || c->n_tasks >= TASKS_MAX))
		task_free(t);
}

static void task_becomes(struct task *t, const char *status)
{
	t->status = status;
	now_text(t->updated);
}

static void task_due(void *owner)
{
	struct task *t = owner;

	task_becomes(t, t->error ? "failed" : "completed");
}

static struct task *task_create(struct call *c)
{
	struct conformance *fixtures = conformance_of(c);
	struct task        *t;
	unsigned char       raw[16];

	drop_old(fixtures);
	t = calloc(1, sizeof *t);
	if (!t || getrandom(raw, sizeof raw, 0) != sizeof raw) {
		free(t);
		return NULL;
	}
	for (size_t i = 0; i < sizeof raw; i++)
		(void)snprintf(t->id + 2 * i, 3, "%02x", raw[i]);
	memcpy(t->principal, c->channel->principal, sizeof t->principal);
	t->fixtures = fixtures;
	t->until_ms = loop_now_ms() + TTL_MS;
	t->due      = (struct loop_timer){ .due = task_due, .owner = t };
	t->answered = json_object();
	TAILQ_INSERT_TAIL(&fixtures->tasks, t, link);
	fixtures->n_tasks++;
	now_text(t->created);
	task_becomes(t, "working");
	return t;
}

static json_t *task_json(const struct task *t, const char *type)
{
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:i,s:i}", "resultType", type, "taskId", t->id, "status", t->status, "createdAt", t->created, "lastUpdatedAt",
			 t->updated, "ttlMs", TTL_MS, "pollIntervalMs", 200);
}

static json_t *text_result(const char *text, bool is_error)
{
	return json_pack("{s:s,s:[{s:s,s:s}],s:b}", "resultType", "complete", "content", "type", "text", "text", text, "isError", (int)is_error);
}

/* Result, error and questions are those of the task from now on. */
static void task_begin(struct call *c, int64_t ms, json_t *result, json_t *error, json_t *asked)
{
	struct task *t = task_create(c);

	if (!t) {
		json_decref(result);
		json_decref(error);
		json_decref(asked);
		tool_answer_text(c, "No memory", true);
		return;
	}
	t->result = result;
	t->error  = error;
	t->asked  = asked;
	if (asked)
		task_becomes(t, "input_required");
	else
		loop_timer_set(&c->mcp->loop, &t->due, ms);
	call_answer_result(c, task_json(t, "task"));
}

static bool can_tasks(const struct call *c)
{
	return json_is_object(json_object_get(json_object_get(fixture_capabilities(c), "extensions"), EXTENSION));
}

static bool needs_tasks(struct call *c)
{
	if (can_tasks(c))
		return true;
	if (revision_is_modern(c->revision))
		fixture_incapable(c, EXTENSION, json_pack("{s:{s:{}}}", "extensions", EXTENSION));
	else
		tool_answer_text(c, "This needs a client with " EXTENSION, true);
	return false;
}

/* --- tools --- */

static void greet(struct call *c, const json_t *arguments)
{
	json_t *text = json_sprintf("Hello, %s!", fixture_text(arguments, "name", "nobody"));

	tool_answer_text(c, text ? json_string_value(text) : "Hello!", false);
	json_decref(text);
}

static bool computed(struct call *c, int n)
{
	if (n)
		tool_answer_text(c, "Computed", false);
	return n > 0;
}

static void slow_compute(struct call *c, const json_t *arguments)
{
	double  seconds = json_number_value(json_object_get(arguments, "seconds"));
	int64_t ms      = seconds > 0 && seconds <= 120 ? (int64_t)(seconds * 1000) : 0;

	if (can_tasks(c))
		task_begin(c, ms, text_result("Computed", false), NULL, NULL);
	else if (ms)
		fixture_steps(c, ms, computed);
	else
		tool_answer_text(c, "Computed", false);
}

static void failing_job(struct call *c, const json_t *arguments)
{
	(void)arguments;
	if (needs_tasks(c))
		task_begin(c, 1000, text_result("This job always fails", true), NULL, NULL);
}

static void protocol_error_job(struct call *c, const json_t *arguments)
{
	(void)arguments;
	if (needs_tasks(c))
		task_begin(c, 200, NULL, json_pack("{s:i,s:s}", "code", RPC_INTERNAL, "message", "This job ends with a protocol error"), NULL);
}

static void confirm_delete(struct call *c, const json_t *arguments)
{
	(void)arguments;
	if (needs_tasks(c))
		task_begin(c, 0, text_result("Answered", false), NULL, json_pack("{s:o}", "confirm", input_elicitation("Delete it?", "confirm", "boolean")));
}

static void multi_input(struct call *c, const json_t *arguments)
{
	(void)arguments;
	if (needs_tasks(c))
		task_begin(c, 0, text_result("Answered twice", false), NULL,
			   json_pack("{s:o,s:o}", "first", input_elicitation("What is first?", "value", "string"), "second",
				     input_elicitation("What is second?", "value", "string")));
}

static void tool_with_task(struct call *c, const json_t *arguments)
{
	const char *name = input_elicited_text(c, "user_name", "name");
	json_t     *text;

	(void)arguments;
	if (!needs_tasks(c))
		return;
	if (!name) {
		input_ask(c, json_pack("{s:o}", "user_name", input_elicitation("What is your name?", "name", "string")), NULL);
		return;
	}
	text = json_sprintf("Done for %s", name);
	task_begin(c, 200, text_result(text ? json_string_value(text) : "Done", false), NULL, NULL);
	json_decref(text);
}

/* --- methods --- */

static struct task *find(struct call *c)
{
	const char  *id = fixture_text(c->params, "taskId", "");
	struct task *t;

	if (!needs_tasks(c))
		return NULL;
	TAILQ_FOREACH(t, &conformance_of(c)->tasks, link)
		if (!strcmp(t->id, id) && !strcmp(t->principal, c->channel->principal))
			return t;
	fixture_invalid(c, "Unknown taskId");
	return NULL;
}

void tasks_get(struct call *c)
{
	const struct task *t = find(c);
	json_t            *result;

	if (!t)
		return;
	result = task_json(t, "complete");
	if (!strcmp(t->status, "completed"))
		json_object_set(result, "result", t->result);
	if (!strcmp(t->status, "failed"))
		json_object_set(result, "error", t->error);
	if (!strcmp(t->status, "input_required"))
		json_object_set(result, "inputRequests", t->asked);
	call_answer_result(c, result);
}

static void take_answers(struct task *t, const json_t *answers)
{
	const char *key;
	json_t     *answer;

	json_object_foreach ((json_t *)answers, key, answer)
		if (json_object_get(t->asked, key)) {
			json_object_set(t->answered, key, answer);
			json_object_del(t->asked, key);
		}
	if (json_object_size(t->asked))
		return;
	task_becomes(t, "working");
	loop_timer_set(&t->fixtures->mcp.loop, &t->due, 100);
}

void tasks_update(struct call *c)
{
	struct task *t = find(c);

	if (!t)
		return;
	if (!strcmp(t->status, "input_required"))
		take_answers(t, json_object_get(c->params, "inputResponses"));
	call_answer_result(c, json_object());
}

void tasks_cancel(struct call *c)
{
	struct task *t = find(c);

	if (!t)
		return;
	if (!strcmp(t->status, "working") || !strcmp(t->status, "input_required")) {
		loop_timer_clear(&c->mcp->loop, &t->due);
		task_becomes(t, "cancelled");
	}
	call_answer_result(c, json_object());
}

#define TASK_TOOL(id, function, about, schema) \
	const struct tool tool_##id = { .name = #id, .description = about, .input_schema = schema, .call = function }

TASK_TOOL(greet, greet, "Says hello.", "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}");
TASK_TOOL(slow_compute, slow_compute, "Takes some seconds; a task where the client knows tasks.",
	  "{\"type\":\"object\",\"properties\":{\"seconds\":{\"type\":\"number\"},\"label\":{\"type\":\"string\"}},\"required\":[\"seconds\"]}");
TASK_TOOL(failing_job, failing_job, "A task that fails after a second.", NO_ARGUMENTS);
TASK_TOOL(protocol_error_job, protocol_error_job, "A task that ends with a protocol error.", NO_ARGUMENTS);
TASK_TOOL(confirm_delete, confirm_delete, "A task that asks before it ends.",
	  "{\"type\":\"object\",\"properties\":{\"filename\":{\"type\":\"string\"}},\"required\":[\"filename\"]}");
TASK_TOOL(multi_input, multi_input, "A task that asks two questions at once.", NO_ARGUMENTS);
TASK_TOOL(test_tool_with_task, tool_with_task, "Asks for a name, then becomes a task.", NO_ARGUMENTS);
