#include "reply.h"

#include "exact.h"
#include "tool.h"

#include <stdlib.h>

static char *text_of(const struct call *c, const struct outcome *o, bool as_text, bool echo)
{
	json_t *object;
	size_t  len;
	char   *text;

	if (as_text)
		return reply_text(o, c->mcp->settings->text_bytes);
	object = reply_json(o, echo);
	text   = exact_dump(object, JSON_COMPACT, &len);
	json_decref(object);
	return text;
}

void reply(struct call *c, const struct outcome *o, bool as_text, bool echo)
{
	char   *text    = text_of(c, o, as_text, echo);
	json_t *content = json_pack("[{ss ss}]", "type", "text", "text", text ? text : "Error: out of memory");

	json_array_extend(content, o->images);
	tool_answer_blocks(c, content, NULL, o->is_failure);
	free(text);
}
