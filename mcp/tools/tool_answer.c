/* tool_answer.c - what a tools/call answers, as the client's revision can read it */
#include "member.h"
#include "text.h"
#include "tool.h"

#include <stdlib.h>
#include <string.h>

/*
 * Blocks of types that older revisions do not have become text: a client drops the whole result for one that it does
 * not know.
 */
static void downgrade_content_blocks(json_t *content, enum revision revision)
{
	for (size_t i = 0; i < json_array_size(content); i++) {
		const json_t *block = json_array_get(content, i);
		const char   *type  = member_text(block, "type");
		json_t       *text  = NULL;

		if (revision < REVISION_2025_03_26 && strcmp(type, "audio") == 0)
			text = json_sprintf("[audio: %s]", member_text(block, "mimeType"));
		else if (revision < REVISION_2025_06_18 && strcmp(type, "resource_link") == 0)
			text = json_sprintf("[resource: %s at %s]", member_text(block, "name"),
					    member_text(block, "uri"));
		if (text)
			json_array_set_new(content, i, json_pack("{ss so}", "type", "text", "text", text));
	}
}

void tool_answer_blocks(struct call *c, json_t *content, json_t *structured, bool is_error)
{
	json_t *result = json_object();

	downgrade_content_blocks(content, c->revision);
	json_object_set_new(result, "content", content);
	if (structured && c->revision >= REVISION_2025_06_18)
		json_object_set(result, "structuredContent", structured);
	json_decref(structured);
	json_object_set_new(result, "isError", json_boolean(is_error));
	call_answer_result(c, result);
}

void tool_answer_text(struct call *c, const char *text, bool is_error)
{
	size_t len;
	char  *copy = text_as_utf8(text, strlen(text), &len); /* jansson takes nothing else */

	tool_answer_blocks(c, json_pack("[{ss ss}]", "type", "text", "text", copy ? copy : ""), NULL, is_error);
	free(copy);
}

void tool_answer_data(struct call *c, json_t *data, bool is_error)
{
	size_t  len;
	char   *text    = rpc_dump(data, &len);
	json_t *content = json_pack("[{ss ss}]", "type", "text", "text", text ? text : "{}");

	free(text);
	tool_answer_blocks(c, content, data, is_error);
}

void *tool_work_create(struct call *c, size_t size, void (*cancel)(struct call *))
{
	void *work = calloc(1, size);

	if (!work) {
		tool_answer_text(c, "out of memory", true);
		return NULL;
	}
	c->work   = work;
	c->cancel = cancel;
	return work;
}

void tool_end_work_with_text(struct call *c, const char *text, bool is_error)
{
	char *copy = strdup(text);

	c->cancel(c);
	tool_answer_text(c, copy ? copy : "out of memory", is_error || !copy);
	free(copy);
}
