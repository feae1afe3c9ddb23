#include "reply.h"

#include "exact.h"
#include "tool.h"

#include <stdlib.h>

/*
 * The object is also structuredContent, with two exceptions: clients that read structuredContent show no images
 * beside it; and with detail the object may be so large that clients do not take it twice.
 */
void reply_to_call(struct call *c, const struct outcome *o, const struct answer_form *answer_form)
{
	json_t *object = answer_form->as_text ? NULL : reply_json(o, answer_form), *content;
	bool    twice  = object && !answer_form->detail && !json_array_size(o->gallery.content);
	size_t  len;
	char   *text = object ? json_dump_exact(object, JSON_COMPACT, &len)
			      : reply_text(o, c->mcp->settings->text_bytes);

	content = json_pack("[{ss ss}]", "type", "text", "text", text ? text : "Error: out of memory");
	json_array_extend(content, o->gallery.content);
	tool_answer_blocks(c, content, twice ? json_incref(object) : NULL, o->is_failure);
	json_decref(object);
	free(text);
}
