#include "handle_call.h"

#include "reply.h"

#include <stdio.h>
#include <string.h>

struct execution *handle_call_find_execution(struct call *c, const json_t *arguments)
{
	const char       *id = json_string_value(json_object_get(arguments, "execution_id"));
	struct execution *x  = execution_find(c->mcp, c->channel->principal, id);
	char              why[300];
	scoped_outcome    o  = { 0 };

	if (x)
		return x;
	snprintf(why, sizeof why,
		 "execution_id: there is no run \"%.40s\" of yours. It is known for ten minutes after its end, and "
		 "only if execute_code answered with "
		 "exit_reason \"running\"; run the code again with execute_code.",
		 id);
	outcome_init_refused(&o, why);
	reply_to_call(c, &o,
	      &(struct answer_form){ .as_text = c->mcp->settings->reply == REPLY_TEXT,
				     .detail  = c->mcp->settings->detail });
	return NULL;
}
