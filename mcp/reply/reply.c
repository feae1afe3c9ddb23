#include "reply.h"

#include "exact.h"
#include "tool.h"

#include <stdlib.h>

static void answer(struct call *c, const struct outcome *o, const char *text, json_t *structured)
{
	json_t *content = json_pack("[{ss ss}]", "type", "text", "text", text ? text : "Error: out of memory");

	json_array_extend(content, o->gallery.content);
	tool_answer_blocks(c, content, structured, o->is_failure);
}

static void answer_text(struct call *c, const struct outcome *o)
{
	char *text = reply_text(o, c->mcp->settings->text_bytes);

	answer(c, o, text, NULL);
	free(text);
}

/*
 * The object is also structuredContent, with two exceptions: clients that read structuredContent show no images beside it; and
 * with detail the object may be so large that clients do not take it twice.
 */
static void answer_json(struct call *c, const struct outcome *o, const struct answer_form *answer_form)
{
	json_t *object = reply_json(o, answer_form);
	size_t  len;
	char   *text = exact_dump(object, JSON_COMPACT, &len);

	answer(c, o, text, answer_form->detail || json_array_size(o->gallery.content) ? NULL : json_incref(object));
	json_decref(object);
	free(text);
}

void reply(struct call *c, const struct outcome *o, const struct answer_form *answer_form)
{
	if (answer_form->as_text)
		answer_text(c, o);
	else
		answer_json(c, o, answer_form);
}
