/* session_cmd.c - brig session: chooses the subcommand; close, interrupt and list */
#include "session_common.h"

#include "ask.h"
#include "command.h"
#include "one_run.h"

#include <stdio.h>
#include <string.h>

/* A command that is one exchange with the service, whose reply it prints. */
struct exchange {
	const char *line, *what;
	int         words; /* how many follow the options */
	json_t   *(*ask)(struct brigd *server, char **word, struct err *e); /* a new reference to the reply, or NULL */
	void      (*print)(const json_t *reply);                                /* without --json; NULL: prints nothing */
};

static int run_exchange_command(int argc, char **argv, const struct exchange *x)
{
	struct brigd server = BRIGD_NONE;
	struct ask   a      = { 0 };
	struct err   e;
	json_t      *reply;
	int          status, word = ask_parse_options(&a, argc, argv, x->words, x->line, x->what, &status);

	if (word < 0)
		return status;
	if (session_connect(&server, false, &e) < 0)
		return command_print_error(argv[0], &e, STATUS_DENIED);
	reply = x->ask(&server, argv + word, &e);
	(void)brigd_close(&server);
	if (!reply)
		return command_print_error(argv[0], &e, STATUS_FAILED);
	if (a.json)
		ask_print_json(reply);
	else if (x->print)
		x->print(reply);
	json_decref(reply);
	return STATUS_OK;
}

static json_t *exchange_close_request(struct brigd *server, char **word, struct err *e)
{
	return ask_exchange_on_connection(server, json_pack("{ss ss}", "op", "close", "session", word[0]), e);
}

static const struct exchange close_exchange = {
	.line  = "brig session close [--json] SESSION",
	.what  = "Close a session: everything in it ends, and its files are gone.",
	.words = 1,
	.ask   = exchange_close_request,
};

static json_t *exchange_renew_request(struct brigd *server, char **word, struct err *e)
{
	static const struct field time = { "TIME", FIELD_MS, 0, PROTOCOL_LIFETIME_LEAST, PROTOCOL_LIFETIME_MAX, 0, NULL, NULL, NULL };
	uint64_t                  ms;

	if (field_from_text(&time, word[1], &ms, e) < 0) {
		(void)!err_wrap(e, "TIME");
		return NULL;
	}
	return ask_exchange_on_connection(server, json_pack("{ss ss sI}", "op", "renew", "session", word[0], "lifetime_ms", (json_int_t)ms), e);
}

static const struct exchange renew_exchange = {
	.line  = "brig session renew [--json] SESSION TIME",
	.what  = "Set when a session ends: so long from now, as 90s, 5m or 1h, in place of the end that it had.",
	.words = 2,
	.ask   = exchange_renew_request,
};

/* --- interrupt --- */

static bool session_has_name(const json_t *session, const char *word)
{
	const char *id = json_string_value(json_object_get(session, "session")), *name = json_string_value(json_object_get(session, "name"));

	return (id && strcmp(id, word) == 0) || (name && strcmp(name, word) == 0 && json_is_true(json_object_get(session, "mine")));
}

/* NULL: the word is no session that this user sees; it may be a call. */
static const json_t *find_session(const json_t *list, const char *word)
{
	const json_t *sessions = json_object_get(list, "sessions");

	for (size_t i = 0; i < json_array_size(sessions); i++)
		if (session_has_name(json_array_get(sessions, i), word))
			return json_array_get(sessions, i);
	return NULL;
}

static json_t *interrupt_run(struct brigd *server, const char *run, struct err *e)
{
	return ask_exchange_on_connection(server, json_pack("{ss ss}", "op", "interrupt", "run", run), e);
}

/* Interrupts every call of a session. A call that has ended meanwhile is no error. Returns the last reply. */
static json_t *interrupt_all(struct brigd *server, const json_t *session, const char *word, struct err *e)
{
	const json_t *running = json_object_get(session, "running");
	json_t       *last    = NULL;

	err_set(e, ERR_BAD_SPEC, "%.80s: no call is under way", word);
	for (size_t i = 0; i < json_array_size(running); i++) {
		json_t *reply = interrupt_run(server, json_string_value(json_array_get(running, i)), e);

		if (!reply && e->kind != ERR_DENIED)
			return NULL;
		json_decref(reply ? last : NULL);
		last = reply ? reply : last;
	}
	return last;
}

static json_t *exchange_interrupt_request(struct brigd *server, char **words, struct err *e)
{
	const char   *word    = words[0];
	json_t       *list    = ask_exchange_on_connection(server, json_pack("{ss}", "op", "list"), e), *reply;
	const json_t *session = find_session(list, word);

	if (!list)
		return NULL;
	reply = session ? interrupt_all(server, session, word, e) : interrupt_run(server, word, e);
	json_decref(list);
	return reply;
}

static const struct exchange interrupt_exchange = {
	.line  = "brig session interrupt [--json] SESSION|RUN",
	.what  = "Interrupt the calls that are under way in a session, or one of them by its id, as Ctrl-C does.",
	.words = 1,
	.ask   = exchange_interrupt_request,
};

/* --- list --- */

static double get_row_seconds(const json_t *row, const char *key)
{
	return (double)ask_reply_integer(row, key) / 1000;
}

static void print_session(const json_t *row)
{
	char          id[RUN_ID_LEN + 1], name[PROTOCOL_NAME_MAX + 1], profile[64], context[PROTOCOL_NAME_MAX + 1];
	const json_t *contexts = json_object_get(row, "contexts"), *running = json_object_get(row, "running");
	double        idle = get_row_seconds(row, "idle_left_ms"), lifetime = get_row_seconds(row, "lifetime_left_ms");

	ask_copy_plain_text(json_object_get(row, "name"), name, sizeof name);
	printf("%-*s %-12s ", RUN_ID_LEN, ask_copy_plain_text(json_object_get(row, "session"), id, sizeof id), *name ? name : "-");
	printf("%-12s ", ask_copy_plain_text(json_object_get(row, "profile"), profile, sizeof profile));
	printf("%8.1f %8.1f %8.1f ", get_row_seconds(row, "age_ms"), get_row_seconds(row, "idle_ms"), idle < lifetime ? idle : lifetime);
	printf("%6" JSON_INTEGER_FORMAT " %6" JSON_INTEGER_FORMAT " %7zu ", ask_reply_integer(row, "uid"), ask_reply_integer(row, "calls"), json_array_size(running));
	for (size_t i = 0; i < json_array_size(contexts); i++)
		printf("%s%s", i ? "," : "", ask_copy_plain_text(json_array_get(contexts, i), context, sizeof context));
	putchar('\n');
}

static void print_sessions(const json_t *reply)
{
	const json_t *sessions = json_object_get(reply, "sessions");

	printf("%-*s %-12s %-12s %8s %8s %8s ", RUN_ID_LEN, "SESSION", "NAME", "PROFILE", "SECONDS", "IDLE", "LEFT");
	printf("%6s %6s %7s CONTEXTS\n", "UID", "CALLS", "RUNNING");
	for (size_t i = 0; i < json_array_size(sessions); i++)
		print_session(json_array_get(sessions, i));
}

/* Removes the runs from the reply; brig ps prints them. */
static json_t *exchange_session_lists(struct brigd *server, char **word, struct err *e)
{
	json_t *reply = ask_exchange_on_connection(server, json_pack("{ss}", "op", "list"), e);

	(void)word;
	json_object_del(reply, "runs");
	json_object_del(reply, "left_out");
	if (reply && !json_object_get(reply, "sessions"))
		json_object_set_new(reply, "sessions", json_array());
	return reply;
}

static const struct exchange list_exchange = {
	.line  = "brig session list [--json]",
	.what  = "List your sessions in the service; root sees those of all users.",
	.ask   = exchange_session_lists,
	.print = print_sessions,
};

/* --- brig session --- */

/* clang-format off */
static const struct verb {
	const char *name, *called; /* in messages */
	const struct one_run_way *way; /* NULL: exchange */
	const char *doc;
	const struct exchange *exchange;
} verbs[] = {
	{ "open",      "session open",      &session_open_way,  "open a session: a jail that stays, for the calls of the others" },
	{ "run",       "session run",       &session_run_way,   "run Python in an interpreter that stays" },
	{ "exec",      "session exec",      &session_exec_way,  "run a command of the rootfs" },
	{ "put",       "session put",       &session_put_way,   "copy files into /workspace" },
	{ "get",       "session get",       &session_get_way,   "copy files out of /workspace" },
	{ "files",     "session files",     &session_files_way, "list files in /workspace" },
	{ "stat",      "session stat",      &session_stat_way,  "describe files and directories in /workspace" },
	{ "mkdir",     "session mkdir",     &session_mkdir_way, "make directories in /workspace" },
	{ "mv",        "session mv",        &session_mv_way,    "rename a file or directory in /workspace" },
	{ "rm",        "session rm",        &session_rm_way,    "remove files and directories in /workspace" },
	{ "interrupt", "session interrupt", NULL,               "interrupt what is under way, as Ctrl-C does", &interrupt_exchange },
	{ "renew",     "session renew",     NULL,               "set when a session ends: so long from now", &renew_exchange },
	{ "close",     "session close",     NULL,               "close a session: everything in it ends", &close_exchange },
	{ "list",      "session list",      NULL,               "list your sessions", &list_exchange },
	{ 0 },
};
/* clang-format on */

static void print_verbs(FILE *out)
{
	fputs("usage: brig session COMMAND [OPTION]...\n\nKeeps a jail with its files and interpreters from one call to the next; needs a service, which\nbrig session open --start starts where there is none.\n\n", out);
	for (const struct verb *v = verbs; v->name; v++)
		fprintf(out, "  %-10s %s\n", v->name, v->doc);
	fputs("\nbrig session COMMAND --help says more\n", out);
}

int session_main(int argc, char **argv)
{
	const struct verb *v = verbs;
	struct err         e;

	if (argc < 2) {
		print_verbs(stderr);
		return STATUS_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_verbs(stdout);
		return STATUS_OK;
	}
	while (v->name && strcmp(v->name, argv[1]) != 0)
		v++;
	if (!v->name) {
		err_set(&e, ERR_BAD_SPEC, "%.40s: no such command; see brig session --help", argv[1]);
		return command_print_error("session", &e, STATUS_USAGE);
	}
	argv[1] = (char *)v->called;
	return v->way ? one_run_main(argc - 1, argv + 1, v->way) : run_exchange_command(argc - 1, argv + 1, v->exchange);
}
