/* tool_end_session.c - end a session, and everything in it */
#include "session_use.h"
#include "tool.h"

/* clang-format off */
static const struct argument rows[] = {
	SESSION_ARGUMENT_ROW,
	{ { 0 }, false, NULL },
};
/* clang-format on */

static void end_session_call(struct call *c, const json_t *given)
{
	struct err            e;
	json_t               *arguments = arguments_parse(rows, given, NULL, &e), *text;
	const char           *name      = arguments ? named_session_parse_argument(arguments, &e) : NULL;
	struct named_session *s         = name ? named_session_find_open(c, name, &e) : NULL;

	if (s) {
		named_session_request_close(s);
		text = json_sprintf("Session '%s' is ended; its variables and files are gone.", name);
		tool_answer_text(c, json_string_value(text), false);
		json_decref(text);
	} else {
		tool_answer_text(c, e.text, true);
	}
	json_decref(arguments);
}

const struct tool tool_end_session = {
	.name        = "end_session",
	.description = "End a session: its variables, files and programs are gone.",
	.manual      = "End a session. Its variables, files and running programs are gone, and its name is free.",
	.arguments   = rows,
	.idempotent  = true,
	.in_session  = true,
	.unbounded   = true,
	.call        = end_session_call,
};
