/* session_cmd.c - brig session: chooses the subcommand; close, interrupt and list */
#include "session_common.h"

#include "ask.h"
#include "command.h"
#include "run_talk.h"

#include <stdio.h>
#include <string.h>

/* --- commands that are one request --- */

static int tell(const char *command, const struct ask *a, json_t *reply, const struct err *e)
{
	if (!reply) {
		fprintf(stderr, "brig %s: %s\n", command, e->text);
		return STATUS_FAILED;
	}
	if (a->json)
		ask_print_json(reply);
	json_decref(reply);
	return STATUS_OK;
}

static int close_main(int argc, char **argv)
{
	struct brigd server = BRIGD_NONE;
	struct ask   a      = { 0 };
	struct err   e;
	json_t      *reply  = NULL;
	int          status, word;

	word = ask_parse(&a, argc, argv, 1, "brig session close [--json] SESSION", "Close a session: everything in it ends, and its files are gone.", &status);
	if (word < 0)
		return status;
	if (session_connect(&server, false, &e) < 0)
		return session_without(argv[0], &e);
	reply = ask_on(&server, json_pack("{ss ss}", "op", "close", "session", argv[word]), &e);
	(void)brigd_close(&server);
	return tell(argv[0], &a, reply, &e);
}

/* --- interrupt --- */

static bool is_called(const json_t *session, const char *word)
{
	const char *id = json_string_value(json_object_get(session, "session")), *name = json_string_value(json_object_get(session, "name"));

	return (id && strcmp(id, word) == 0) || (name && strcmp(name, word) == 0 && json_is_true(json_object_get(session, "mine")));
}

/* NULL: the word is no session that this user sees; it may be a call. */
static const json_t *find_session(const json_t *list, const char *word)
{
	const json_t *sessions = json_object_get(list, "sessions");

	for (size_t i = 0; i < json_array_size(sessions); i++)
		if (is_called(json_array_get(sessions, i), word))
			return json_array_get(sessions, i);
	return NULL;
}

static json_t *interrupt_run(struct brigd *server, const char *run, struct err *e)
{
	json_t *request = json_pack("{ss ss}", "op", "interrupt", "run", run);

	if (request)
		return ask_on(server, request, e);
	err_set(e, ERR_BAD_SPEC, "the arguments are not UTF-8");
	return NULL;
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

static json_t *interrupt(struct brigd *server, const char *word, struct err *e)
{
	json_t       *list    = ask_on(server, json_pack("{ss}", "op", "list"), e), *reply;
	const json_t *session = find_session(list, word);

	if (!list)
		return NULL;
	reply = session ? interrupt_all(server, session, word, e) : interrupt_run(server, word, e);
	json_decref(list);
	return reply;
}

static int interrupt_main(int argc, char **argv)
{
	struct brigd server = BRIGD_NONE;
	struct ask   a      = { 0 };
	struct err   e;
	json_t      *reply  = NULL;
	int          status, word;

	word = ask_parse(&a, argc, argv, 1, "brig session interrupt [--json] SESSION|RUN",
			 "Interrupt the calls that are under way in a session, or one of them by its id, as Ctrl-C does.", &status);
	if (word < 0)
		return status;
	if (session_connect(&server, false, &e) < 0)
		return session_without(argv[0], &e);
	reply = interrupt(&server, argv[word], &e);
	(void)brigd_close(&server);
	return tell(argv[0], &a, reply, &e);
}

/* --- list --- */

static double seconds(const json_t *row, const char *key)
{
	return (double)ask_figure(row, key) / 1000;
}

static void print_names(const json_t *names)
{
	char text[PROTOCOL_NAME_MAX + 1];

	for (size_t i = 0; i < json_array_size(names); i++)
		printf("%s%s", i ? "," : "", ask_text(json_array_get(names, i), text, sizeof text));
	putchar('\n');
}

static void print_session(const json_t *row)
{
	char   id[RUN_ID_LEN + 1], name[PROTOCOL_NAME_MAX + 1], profile[64];
	double idle = seconds(row, "idle_left_ms"), lifetime = seconds(row, "lifetime_left_ms");

	ask_text(json_object_get(row, "name"), name, sizeof name);
	printf("%-*s %-12s ", RUN_ID_LEN, ask_text(json_object_get(row, "session"), id, sizeof id), *name ? name : "-");
	printf("%-12s ", ask_text(json_object_get(row, "profile"), profile, sizeof profile));
	printf("%8.1f %8.1f %8.1f ", seconds(row, "age_ms"), seconds(row, "idle_ms"), idle < lifetime ? idle : lifetime);
	printf("%6" JSON_INTEGER_FORMAT " %6" JSON_INTEGER_FORMAT " %7zu ", ask_figure(row, "uid"), ask_figure(row, "calls"), json_array_size(json_object_get(row, "running")));
	print_names(json_object_get(row, "contexts"));
}

static void print_sessions(const json_t *sessions)
{
	printf("%-*s %-12s %-12s %8s %8s %8s %6s %6s %7s CONTEXTS\n", RUN_ID_LEN, "SESSION", "NAME", "PROFILE", "SECONDS", "IDLE", "LEFT", "UID", "CALLS", "RUNNING");
	for (size_t i = 0; i < json_array_size(sessions); i++)
		print_session(json_array_get(sessions, i));
}

/* Removes the runs from the reply; brig ps prints them. */
static void keep_sessions(json_t *reply)
{
	json_object_del(reply, "runs");
	json_object_del(reply, "left_out");
	if (!json_object_get(reply, "sessions"))
		json_object_set_new(reply, "sessions", json_array());
}

static int list_main(int argc, char **argv)
{
	struct brigd server = BRIGD_NONE;
	struct ask   a      = { 0 };
	struct err   e;
	json_t      *reply;
	int          status;

	if (ask_parse(&a, argc, argv, 0, "brig session list [--json]", "List your sessions in the service; root sees those of all users.", &status) < 0)
		return status;
	if (session_connect(&server, false, &e) < 0)
		return session_without(argv[0], &e);
	reply = ask_on(&server, json_pack("{ss}", "op", "list"), &e);
	(void)brigd_close(&server);
	if (reply)
		keep_sessions(reply);
	if (reply && !a.json)
		print_sessions(json_object_get(reply, "sessions"));
	return tell(argv[0], &a, reply, &e);
}

/* --- brig session --- */

/* clang-format off */
static const struct verb {
	const char *name, *called; /* in messages */
	int       (*main)(int argc, char **argv);
	const char *doc;
} verbs[] = {
	{ "open",      "session open",      session_open_main,  "open a session: a jail that stays, for the calls of the others" },
	{ "run",       "session run",       session_run_main,   "run Python in an interpreter that stays" },
	{ "exec",      "session exec",      session_exec_main,  "run a command of the rootfs" },
	{ "put",       "session put",       session_put_main,   "copy files into /workspace" },
	{ "get",       "session get",       session_get_main,   "copy files out of /workspace" },
	{ "files",     "session files",     session_files_main, "list files in /workspace" },
	{ "interrupt", "session interrupt", interrupt_main,     "interrupt what is under way, as Ctrl-C does" },
	{ "close",     "session close",     close_main,         "close a session: everything in it ends" },
	{ "list",      "session list",      list_main,          "list your sessions" },
	{ NULL, NULL, NULL, NULL },
};
/* clang-format on */

static void usage(FILE *out)
{
	fputs("usage: brig session COMMAND [OPTION]...\n\nKeeps a jail with its files and interpreters from one call to the next; needs a service, which\nbrig session open --start starts where there is none.\n\n", out);
	for (const struct verb *v = verbs; v->name; v++)
		fprintf(out, "  %-10s %s\n", v->name, v->doc);
	fputs("\nbrig session COMMAND --help says more\n", out);
}

static const struct verb *find(const char *name)
{
	const struct verb *v = verbs;

	while (v->name && strcmp(v->name, name) != 0)
		v++;
	return v->name ? v : NULL;
}

int session_main(int argc, char **argv)
{
	const struct verb *v = argc > 1 ? find(argv[1]) : NULL;
	struct err         e;

	if (argc < 2) {
		usage(stderr);
		return STATUS_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		usage(stdout);
		return STATUS_OK;
	}
	if (!v) {
		err_set(&e, ERR_BAD_SPEC, "%.40s: no such command; see brig session --help", argv[1]);
		fprintf(stderr, "brig session: %s\n", e.text);
		return STATUS_USAGE;
	}
	argv[1] = (char *)v->called;
	return v->main(argc - 1, argv + 1);
}
