/* reload_cmd.c - brig reload: makes the running service read its configuration and profiles again */
#include "ask.h"
#include "command.h"

static void print_profile_names(const char *what, const json_t *names, FILE *out)
{
	char text[64];

	for (size_t i = 0; i < json_array_size(names); i++)
		fprintf(out, "%s%s", i ? ", " : what, ask_copy_plain_text(json_array_get(names, i), text, sizeof text));
}

static void print_reload_outcome(const json_t *reply, FILE *out)
{
	char text[64];

	fprintf(out, "%" JSON_INTEGER_FORMAT " profiles", ask_reply_integer(reply, "profiles"));
	print_profile_names("; changed: ", json_object_get(reply, "changed"), out);
	print_profile_names("; gone: ", json_object_get(reply, "removed"), out);
	fputc('\n', out);
	if (json_is_string(json_object_get(reply, "restart")))
		fprintf(stderr, "brig reload: changes of %s in the configuration take effect at the next start\n",
			ask_copy_plain_text(json_object_get(reply, "restart"), text, sizeof text));
}

int reload_main(int argc, char **argv)
{
	return ask_and_print(argc, argv, "brig reload [--json]",
			     "Make the service read its configuration and profiles again. No run ends. If a file has a "
			     "mistake, nothing changes.",
			     "reload", print_reload_outcome);
}
