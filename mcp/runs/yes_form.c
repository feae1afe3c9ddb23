#include "yes_form.h"

#include <string.h>

json_t *yes_form_to_json(const char *text, const char *title)
{
	json_t *choice = json_pack("{ss ss s[ss] s[ss] ss}", "type", "string", "title", title, "enum", "no", "yes",
				   "enumNames", "No", "Yes", "default", "no");

	return json_pack("{ss s{ss s{so} s[s]}}", "message", text, "requestedSchema", "type", "object", "properties",
			 "answer", choice, "required", "answer");
}

bool yes_form_says_yes(const json_t *response)
{
	const char *action = json_string_value(json_object_get(response, "action"));
	const char *answer = json_string_value(json_object_get(json_object_get(response, "content"), "answer"));

	return action && answer && strcmp(action, "accept") == 0 && strcmp(answer, "yes") == 0;
}
