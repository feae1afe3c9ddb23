#include "advice.h"

#include "defs.h"

#include <string.h>

/* Parts of the messages that libraries give when there is no network. */
static const char *const network[] = { "Temporary failure in name resolution", "Name or service not known", "No address associated with hostname",
				       "Network is unreachable", "No route to host" };

static const char *text_of(const json_t *error, const char *key)
{
	const char *text = json_string_value(json_object_get(error, key));

	return text ? text : "";
}

const char *advice_of(const json_t *error, bool has_stdin)
{
	const char *type = text_of(error, "type"), *message = text_of(error, "message");

	if (!has_stdin && strcmp(type, "EOFError") == 0 && strcmp(message, "EOF when reading a line") == 0)
		return "The program reads input and was given none: pass it in the argument stdin.";
	for (size_t i = 0; i < ARRAY_LEN(network); i++)
		if (strstr(message, network[i]))
			return "There is no network in here; trying again does not help.";
	return "";
}
