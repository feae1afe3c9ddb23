/* fixture.h - what the files of this folder share */
#pragma once
#include "conformance.h"
#include "method.h"
#include "tool.h"

#define PNG_PIXEL "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="

#define META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

enum {
	RPC_RESOURCE_NOT_FOUND = -32002, /* legacy only */
	RPC_MISSING_CAPABILITY = -32021,
};

#define NO_ARGUMENTS "{\"type\":\"object\",\"additionalProperties\":false}"

static inline struct conformance *conformance_of(const struct call *c)
{
	return (struct conformance *)c->mcp;
}

/* What the client declares on this request (modern), else NULL; borrowed. */
const json_t *fixture_capabilities(const struct call *c);
/* The client may be asked for this one ("elicitation", "sampling", "roots") on this request. */
bool fixture_can(const struct call *c, const char *capability);
/* -32021: what the client would have to declare; takes `needed` over. */
void fixture_incapable(struct call *c, const char *what, json_t *needed);
/* -32602 with a sentence. */
void fixture_invalid(struct call *c, const char *why);
/* A result that may be kept: ttlMs and cacheScope where the revision has them. Takes it over. */
void fixture_cacheable(struct call *c, json_t *result);
/* An argument as text, or what is to stand for it. */
const char *fixture_text(const json_t *arguments, const char *name, const char *otherwise);

/* Steps with a pause between them, until one says true: it has ended the call. */
void fixture_steps(struct call *c, int64_t ms, bool (*step)(struct call *c, int n));

/* --- asked in the middle of a call (legacy) --- */
/* What the client says to a question; one of the two is NULL. Borrowed. */
typedef void ask_answered(struct call *c, const json_t *result, const json_t *error);
/*
 * A request of ours to the client, the work of its call; takes params over. It is answered once, or never when the call ends
 * first. false: this client cannot be asked.
 */
must_use bool ask(struct call *c, const char *method, json_t *params, ask_answered *answered);

/* --- asked in the middle of a call (modern) --- */
json_t *input_elicitation(const char *message, const char *property, const char *type);
json_t *input_sampling(const char *prompt, int max_tokens);
json_t *input_roots(void);
/* What the client has answered to a question, if it has the form of an answer; else NULL. */
const json_t *input_elicited(const struct call *c, const char *key);
const json_t *input_sampled(const struct call *c, const char *key);
const json_t *input_rooted(const struct call *c, const char *key);
/* The text that was given to an elicitation; "nobody" for who declined. NULL: no answer. */
const char *input_elicited_text(const struct call *c, const char *key, const char *property);
/* Ends the round. state: NULL, or kept by the client and sealed; both are taken over. */
void input_ask(struct call *c, json_t *requests, json_t *state);

/* The state that came back; *ret NULL: none came. -1: not ours, the call has been failed. */
must_use int state_open(struct call *c, json_t **ret);
json_t      *state_seal(const struct call *c, const json_t *state); /* a text */

/* --- tables of other files --- */
extern const struct tool tool_test_simple_text, tool_test_image_content, tool_test_audio_content, tool_test_embedded_resource,
	tool_test_multiple_content_types, tool_test_error_handling, tool_json_schema_2020_12_tool, tool_test_mirrored_header;
extern const struct tool tool_test_tool_with_progress, tool_test_tool_with_logging, tool_test_logging_tool;
extern const struct tool tool_test_sampling, tool_test_elicitation, tool_test_elicitation_sep1034_defaults,
	tool_test_elicitation_sep1330_enums, tool_test_missing_capability, tool_test_streaming_elicitation;
extern const struct tool tool_test_input_required_result_elicitation, tool_test_input_required_result_sampling,
	tool_test_input_required_result_list_roots, tool_test_input_required_result_request_state,
	tool_test_input_required_result_multiple_inputs, tool_test_input_required_result_multi_round,
	tool_test_input_required_result_tampered_state, tool_test_input_required_result_capabilities;
extern const struct tool tool_test_trigger_tool_change, tool_test_trigger_prompt_change;
extern const struct tool tool_greet, tool_slow_compute, tool_failing_job, tool_protocol_error_job, tool_confirm_delete, tool_multi_input,
	tool_test_tool_with_task;

/* Do the headers of a tools/call repeat the arguments that its tool's schema says? */
must_use int mirrors_check(const struct call *c, struct rpc_error *e);

void resources_list(struct call *c);
void resources_templates_list(struct call *c);
void resources_read(struct call *c);
void resources_subscribe(struct call *c);
void prompts_list(struct call *c);
void prompts_get(struct call *c);
void completion_complete(struct call *c);
void logging_set_level(struct call *c);
void subscriptions_listen(struct call *c);
void tasks_get(struct call *c);
void tasks_update(struct call *c);
void tasks_cancel(struct call *c);
void tasks_drop_all(struct conformance *c);
