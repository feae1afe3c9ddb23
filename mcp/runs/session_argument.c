#include "session_argument.h"

#include "choice.h"
#include "server_request.h"
#include "ask_hosts.h"
#include "named_sessions.h"
#include "run_request.h"

#include <stdio.h>
#include <string.h>

const char *session_argument_owner(const struct call *c)
{
	return *c->channel->owner ? c->channel->owner : c->channel->principal;
}

const char *session_argument_name(const json_t *arguments, struct err *e)
{
	const char *name = json_string_value(json_object_get(arguments, SESSION_ARGUMENT));

	if (!name || !*name || protocol_is_name(name))
		return name ? name : "";
	err_set(e, ERR_BAD_SPEC, "session: \"%.70s\" is no name; use 1 to %d letters, digits, dots, dashes and underscores", name, PROTOCOL_NAME_MAX);
	return NULL;
}

struct named_session *session_argument_find(struct call *c, const char *name, struct err *e)
{
	struct named_session *s = *name ? named_sessions_find(c->mcp, session_argument_owner(c), name) : NULL;
	char                  names[200];

	if (s && s->state != SESSION_CLOSED)
		return s;
	named_sessions_names(c->mcp, session_argument_owner(c), names, sizeof names);
	if (s)
		err_set(e, ERR_BAD_SPEC, "session: \"%s\" is lost, with its variables and files: %.300s", name, s->lost);
	else
		err_set(e, ERR_BAD_SPEC, "session: there is no \"%s\"; execute_code makes one%s%s", name, *names ? "; there are: " : "", names);
	return NULL;
}

/* --- what it has --- */

static const char *const of_session[] = { "profile", "memory_limit", "env" };

static bool is_given(const json_t *value)
{
	return value && !json_is_null(value) && !(json_is_string(value) && !json_string_length(value)) && !(json_is_object(value) && !json_object_size(value));
}

static json_t *take_given(const json_t *arguments)
{
	json_t *asked = json_object();

	for (size_t i = 0; i < ARRAY_LEN(of_session); i++)
		if (is_given(json_object_get(arguments, of_session[i])))
			json_object_set(asked, of_session[i], json_object_get(arguments, of_session[i]));
	return asked;
}

/* An open session keeps its profile: a call with another one is refused. */
static int check_profile(const struct named_session *s, const json_t *said, struct err *e)
{
	const json_t *profile = json_object_get(said, "profile"), *own = json_object_get(s->asked, "profile");

	if (!profile || json_equal(profile, own))
		return 0;
	return err_set(e, ERR_BAD_SPEC, "profile: session \"%s\" has %s; use another session, or end it first with end_session", s->name, json_string_value(own));
}

/* For an open session: warns of arguments that differ from its own, which no call changes. */
static json_t *compare(const struct named_session *s, const json_t *said, json_t *warnings, struct err *e)
{
	if (check_profile(s, said, e) < 0)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(of_session); i++) {
		const json_t *value = json_object_get(said, of_session[i]);

		if (value && !json_equal(value, json_object_get(s->asked, of_session[i])))
			json_array_append_new(warnings, json_sprintf("%s was ignored: session '%s' has it from its first call", of_session[i], s->name));
	}
	return json_incref(s->asked);
}

json_t *session_argument_asked(struct call *c, const char *name, const json_t *arguments, json_t *warnings, struct err *e)
{
	const struct named_session *s     = named_sessions_find(c->mcp, session_argument_owner(c), name);
	json_t                     *asked = take_given(arguments), *own;

	if (s && s->asked && s->state != SESSION_CLOSED) {
		own = compare(s, asked, warnings, e);
		json_decref(asked);
		return own;
	}
	if (s && s->asked)
		json_object_update_missing(asked, s->asked);
	if (!json_object_get(asked, "profile"))
		json_object_set_new(asked, "profile", json_string(choice_profile(c->mcp->settings)));
	return asked;
}

enum { RANDOM_DIGITS = 6 };

/* Does the name end as in "main-8c1f52"? */
static bool is_unlikely(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash && strlen(dash + 1) >= RANDOM_DIGITS && strspn(dash + 1, "0123456789abcdef") == strlen(dash + 1);
}

/* Clients that cannot be told apart would share "main" by accident: a new session of theirs has a name that no other chooses. */
static int check_new_name(const struct call *c, const char *name, struct err *e)
{
	char digits[RANDOM_DIGITS + 1];

	if (!c->channel->shares || is_unlikely(name) || named_sessions_find(c->mcp, session_argument_owner(c), name))
		return 0;
	client_request_secret(digits, sizeof digits);
	return err_set(e, ERR_BAD_SPEC, "session: another client with this token could choose \"%s\", too; use \"%.50s-%s\", in this call and in later ones", name, name, digits);
}

struct named_session *session_argument_make(struct call *c, const char *name, const json_t *asked, const json_t *explained, json_t *warnings, struct err *e)
{
	struct named_session *s = check_new_name(c, name, e) < 0 ? NULL : named_sessions_make(c->mcp, session_argument_owner(c), name, e);
	json_t               *message;

	if (!s)
		return NULL;
	if (s->state != SESSION_CLOSED) /* perhaps another call has made it meanwhile */
		return check_profile(s, asked, e) < 0 ? NULL : s;
	message = run_request_open(c->mcp->settings, asked, explained, warnings, e);
	if (!message)
		return NULL;
	hosts_into(c->mcp, message, explained);
	named_session_prepare(s, json_incref((json_t *)asked), message);
	return s;
}
