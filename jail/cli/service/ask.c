#include "ask.h"

#include "ascii.h"
#include "command.h"
#include "datagram.h"
#include "privilege.h"
#include "text.h"

#include <string.h>

const struct option_row ask_options[] = {
	OPTION_SWITCH("json", 0, offsetof(struct ask, json), "Print the answer as JSON"),
	OPTION_END,
};

int ask_parse_options(struct ask *a, int argc, char **argv, int wanted, const char *line, const char *what, int *status)
{
	struct err e;
	int        n = options_parse(ask_options, argc, argv, a, &e);

	if (n >= 0 && argc - 1 - n != wanted)
		n = err_set(&e, ERR_BAD_SPEC, "write: %s", line);
	if (n >= 0)
		return n + 1;
	*status = command_print_help_or_error(n, argv[0], ask_options, &(struct command_help){ line, what, NULL }, &e);
	return -1;
}

int ask_connect(struct brigd *ret, struct err *e)
{
	return brigd_connect(ret, BRIGD_SERVICE, e) < 0 ? -1 : privilege_keep_only_cap_kill(e);
}

/* Rows of runs have the key program only on a connection whose hello had a version. */
json_t *ask_exchange_on_connection(struct brigd *server, json_t *request, struct err *e)
{
	const char  *op       = json_string_value(json_object_get(request, "op"));
	scoped_json *hello    = op && strcmp(op, request_name(REQUEST_list)) == 0 ? protocol_hello_request() : NULL;
	scoped_json *greeting = hello ? datagram_exchange(server->sock, hello, NULL, e) : NULL;
	json_t      *reply    = NULL;

	if (!request)
		err_set(e, ERR_BAD_SPEC, "the arguments are not UTF-8");
	else if (!hello || greeting)
		reply = datagram_exchange(server->sock, request, NULL, e);
	json_decref(request);
	return reply;
}

json_t *ask_connect_and_exchange(json_t *request, struct err *e)
{
	struct brigd server = BRIGD_NONE;
	json_t      *reply  = NULL;

	if (ask_connect(&server, e) == 0)
		reply = ask_exchange_on_connection(&server, request, e);
	else
		json_decref(request);
	(void)brigd_close(&server);
	return reply;
}

json_int_t ask_reply_integer(const json_t *row, const char *key)
{
	return json_integer_value(json_object_get(row, key));
}

char *ask_copy_plain_text(const json_t *text, char *buf, size_t len)
{
	snprintf(buf, len, "%s", json_is_string(text) ? json_string_value(text) : "");
	text_make_plain(buf);
	return buf;
}

int ask_write_bytes(const char *bytes, size_t len, void *into)
{
	return fwrite(bytes, 1, len, into) == len ? 0 : -1;
}

/* Clients choose their own names, and the output may be a terminal, so everything but ASCII is escaped. */
void ask_print_json(json_t *reply)
{
	json_object_del(reply, "reply");
	json_object_del(reply, "tag");
	json_dump_ascii(reply, JSON_INDENT(2) | JSON_REAL_PRECISION(12), ask_write_bytes, stdout);
	putchar('\n');
}

int ask_and_print(int argc, char **argv, const char *line, const char *what, const char *op,
		  void (*print)(const json_t *reply, FILE *out))
{
	struct ask a = { 0 };
	struct err e;
	json_t    *reply;
	int        status = STATUS_FAILED;

	if (ask_parse_options(&a, argc, argv, 0, line, what, &status) < 0)
		return status;
	reply = ask_connect_and_exchange(json_pack("{ss}", "op", op), &e);
	if (!reply)
		return command_print_error(argv[0], &e, STATUS_FAILED);
	if (a.json)
		ask_print_json(reply);
	else
		print(reply, stdout);
	json_decref(reply);
	return STATUS_OK;
}
