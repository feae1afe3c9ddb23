#include "server_info.h"

#include "clean.h"
#include "instructions.h"
#include "named_session.h"
#include "tool_texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *server_info_json(enum revision revision)
{
	json_t *info = json_pack("{ssss}", "name", SELF_NAME, "version", BRIG_VERSION);

	if (revision >= REVISION_2025_06_18)
		json_object_set_new(info, "title", json_string("brig: a jail for Python"));
	return info;
}

/* Nothing is declared that could change: a client that reads listChanged keeps a subscription open for it. */
json_t *server_capabilities_json(void)
{
	return json_pack("{s{}}", "tools");
}

json_t *server_supported_versions_json(void)
{
	json_t *list = json_array();

	for (unsigned i = REVISION_MODERN; i < REVISION_COUNT; i++)
		json_array_append_new(list, json_string(revision_name((enum revision)i)));
	return list;
}

json_t *server_instructions_json(const struct mcp *m)
{
	const struct settings *s        = m->settings;
	json_t                *profiles = instructions_profiles_sentence(m), *whole;
	const char            *known    = json_string_value(profiles);
	char                   handle[200] = "", text[INSTRUCTIONS_MAX], *made;
	scoped_tool_texts           w;
	const char            *tools = m->broker ? "Programs can call tools of other servers, which find_tools finds: "
							      "tools.SERVER.NAME(argument=value). "
						   "One program that calls many of them costs less than many calls. "
						 : "";

	const char *kept = named_sessions_are_offered(s)
				   ? "Calls that name the same session share variables, files and programs, and the "
				     "reply says whether these were kept or lost; without "
				     "one every call starts from nothing. write_file, read_file and list_files are for "
				     "the files of a session, end_session ends it. "
				   : "Every call starts from nothing: no variables, files or processes of earlier "
				     "calls, so send a whole program. ";

	tool_texts_init(m, &w);
	if (s->yield_after_ms)
		snprintf(handle, sizeof handle,
			 " What runs longer than %" PRIu64
			 " s answers with an execution_id: go on with wait_execution, "
			 "or stop it with cancel_execution.",
			 s->yield_after_ms / 1000);
	snprintf(text, sizeof text,
		 "Runs Python 3 in a jail. Use execute_code whenever a program answers better than thinking: "
		 "arithmetic, dates, parsing, data, trying out code. The value of the last expression is the result; "
		 "print what you want to see; figures and images are shown. "
		 "%s"
		 "It is a jail {network}, and nothing of the host can be seen.{shown}{packages} "
		 "%s%sLimits: {timeout} s of time (the argument timeout asks for up to {most} s), memory, processes "
		 "and output; the reply says which one ended a program.%s "
		 "Output is bounded: print a summary, or the part you need, instead of everything. "
		 "get_sandbox_info tells the profiles, limits and installed packages; validate_code checks a program "
		 "without running it.",
		 kept, tools, known ? known : "", handle);
	json_decref(profiles);
	made  = tool_texts_expand(&w, text);
	/* names may be too long for the room */
	whole = made ? json_stringn(made, clean_whole_characters(made, strlen(made) < INSTRUCTIONS_MAX ? strlen(made)
											    : INSTRUCTIONS_MAX - 1))
		     : NULL;
	free(made);
	return whole;
}
