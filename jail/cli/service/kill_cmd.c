/* kill_cmd.c - brig kill: ends runs of any client of this user, by an id, the beginning of one, or all */
#include "ask.h"
#include "command.h"
#include "run_client.h"
#include "text.h"

#include <pwd.h>
#include <string.h>

struct killing {
	struct ask  a;
	const char *user; /* --user; NULL: none */
	bool        all;
	uid_t       uid; /* of user */
};

static const struct option_row options[] = {
	OPTION_SWITCH("all", 0, offsetof(struct killing, all), "End all of your runs; root: those of all users"),
	OPTION_TEXT("user", 0, offsetof(struct killing, user), "USER", "End all runs of this user, a name or a number"),
	OPTION_SWITCH("json", 0, offsetof(struct killing, a.json), "Print the answers as JSON"),
	OPTION_END,
};
static const struct command_help help = {
	"brig kill [--json] RUN | --all | --user USER",
	"End one of your runs, by the id that brig ps prints or its beginning, or all of them; root can end those of all users.",
	NULL,
};

/* --- one run --- */

struct match {
	const char *word, *found;
	size_t      n;
};

static void count_if_id_matches(struct match *m, const json_t *id)
{
	const char *text = json_string_value(id);

	if (!text || strncmp(text, m->word, strlen(m->word)) != 0)
		return;
	m->found = text;
	m->n++;
}

/* The id that begins with the word, of a run or of a call in a session. A word that no id begins with stays: the service decides. */
static const char *complete_run_id(const json_t *list, const char *word, struct err *e)
{
	struct match  m        = { .word = word };
	const json_t *runs     = json_object_get(list, "runs"), *sessions = json_object_get(list, "sessions");

	for (size_t i = 0; i < json_array_size(runs); i++)
		count_if_id_matches(&m, json_object_get(json_array_get(runs, i), "run"));
	for (size_t i = 0; i < json_array_size(sessions); i++) {
		const json_t *calls = json_object_get(json_array_get(sessions, i), "running");

		for (size_t k = 0; k < json_array_size(calls); k++)
			count_if_id_matches(&m, json_array_get(calls, k));
	}
	if (m.n > 1) {
		err_set(e, ERR_BAD_SPEC, "%.40s: %zu runs begin with it; write more of the id that brig ps prints", word, m.n);
		return NULL;
	}
	return m.n ? m.found : word;
}

static json_t *kill_one_run(struct brigd *server, const char *word, struct err *e)
{
	json_t     *list = strlen(word) < RUN_ID_LEN && *word ? ask_exchange_on_connection(server, json_pack("{ss}", "op", "list"), e) : NULL, *reply;
	const char *id   = list ? complete_run_id(list, word, e) : word;

	reply = id ? ask_exchange_on_connection(server, cancel_request_to_json(id, NULL), e) : NULL;
	json_decref(list);
	return reply;
}

/* --- all --- */

static bool is_run_of_user(const struct killing *k, const json_t *run)
{
	return !k->user || (uid_t)ask_reply_integer(run, "uid") == k->uid;
}

/* A run that has ended meanwhile is no error. Appends the replies. False: *e. */
static bool kill_listed_runs(struct brigd *server, const struct killing *k, const json_t *runs, json_t *replies, struct err *e)
{
	for (size_t i = 0; i < json_array_size(runs); i++) {
		const json_t *run   = json_array_get(runs, i);
		const char   *id    = json_string_value(json_object_get(run, "run"));
		json_t       *reply = is_run_of_user(k, run) ? ask_exchange_on_connection(server, cancel_request_to_json(id, NULL), e) : NULL;

		if (reply)
			json_array_append_new(replies, reply);
		else if (is_run_of_user(k, run) && e->kind != ERR_DENIED)
			return false;
	}
	return true;
}

/* A list has the oldest runs: what it left out comes with the next one, as long as there is something to end. */
static json_t *kill_all_runs(struct brigd *server, const struct killing *k, struct err *e)
{
	json_t *replies = json_array(), *list;
	size_t  before;
	bool    more;

	do {
		before = json_array_size(replies);
		list   = ask_exchange_on_connection(server, json_pack("{ss}", "op", "list"), e);
		if (!list || !kill_listed_runs(server, k, json_object_get(list, "runs"), replies, e)) {
			json_decref(list);
			json_decref(replies);
			return NULL;
		}
		more = ask_reply_integer(list, "left_out") && json_array_size(replies) > before;
		json_decref(list);
	} while (more);
	return replies;
}

/* --- the command --- */

/* Of a static brig the accounts are those of this file (common/static/name_service.c). */
static int resolve_user_option(struct killing *k, struct err *e)
{
	const struct passwd *user = k->user ? getpwnam(k->user) : NULL;
	uint64_t             uid;

	if (user)
		k->uid = user->pw_uid;
	if (user || !k->user)
		return 0;
	if (text_to_u64(k->user, &uid) < 0 || uid >= UINT32_MAX)
		return err_set(e, ERR_BAD_SPEC, "--user %.40s: there is no such user in /etc/passwd; write a number", k->user);
	k->uid = (uid_t)uid;
	return 0;
}

static int parse_command_line(struct killing *k, int argc, char **argv, struct err *e)
{
	int n = options_parse(options, argc, argv, k, e), words = argc - 1 - n;

	if (n < 0)
		return n;
	if (words != !(k->all || k->user) || (k->all && k->user))
		return err_set(e, ERR_BAD_SPEC, "write: %s", help.line);
	return resolve_user_option(k, e) < 0 ? -1 : n + 1;
}

int kill_main(int argc, char **argv)
{
	struct killing k      = { .a = { 0 } };
	struct brigd   server = BRIGD_NONE;
	struct err     e;
	json_t        *reply  = NULL;
	int            word   = parse_command_line(&k, argc, argv, &e);

	if (word < 0)
		return command_print_help_or_error(word, argv[0], options, &help, &e);
	if (ask_connect(&server, &e) == 0)
		reply = k.all || k.user ? kill_all_runs(&server, &k, &e) : kill_one_run(&server, argv[word], &e);
	(void)brigd_close(&server);
	if (!reply)
		return command_print_error(argv[0], &e, STATUS_FAILED);
	if (k.a.json)
		ask_print_json(reply);
	else if (json_is_array(reply))
		printf("ended %zu run%s\n", json_array_size(reply), json_array_size(reply) == 1 ? "" : "s");
	json_decref(reply);
	return STATUS_OK;
}
