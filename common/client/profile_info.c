#include "profile_info.h"

#include "denial.h"
#include "member.h"

#include <stdio.h>
#include <string.h>

enum { KEY_MAX = sizeof((struct profile_question){ 0 }.key) };

static char *print_cache_key(const char *what, const char *name, char *buf)
{
	snprintf(buf, KEY_MAX, "%s:%.63s", what, name ? name : "");
	return buf;
}

void profile_info_detach(struct profile_question *f)
{
	if (f->link)
		brigd_link_detach(f->link, &f->question);
	json_decref(f->message);
	f->message = NULL;
}

/* known() may free f: it is not touched afterwards. */
static void profile_info_deliver(struct profile_question *f, const json_t *reply, const struct err *why)
{
	profile_info_detach(f);
	f->known(f->owner, reply, why);
}

/*
 * An error that the client can correct is ERR_BAD_SPEC, any other ERR_SETUP. The folder is removed from "does not
 * exist in /etc/brig/profiles; there are: ...": paths of the host are not for clients.
 */
static void profile_info_parse_error(const json_t *error, struct err *why)
{
	const char *code = member_text(error, "code"), *field = member_text(error, "field"),
		   *message = member_text(error, "message");
	const char   *in = strstr(message, " in /"), *list = strstr(message, "; there are: ");
	bool          is_correctable = strcmp(code, denial_code_name(DENIAL_bad_field)) == 0 ||
			      strcmp(code, denial_code_name(DENIAL_unknown_profile)) == 0 ||
			      strcmp(code, denial_code_name(DENIAL_denied)) == 0;
	enum err_kind kind = is_correctable ? ERR_BAD_SPEC : ERR_SETUP;

	if (in && list && in < list)
		err_set(why, kind, "%.*s%s", (int)(in - message), message, list);
	else
		err_set(why, kind, "%s%s%s", field, *field ? ": " : "", message);
}

static void profile_info_on_reply(void *owner, struct datagram *d)
{
	struct profile_question *f = owner;
	struct err   why;

	switch (d->answer.kind) {
	case ANSWER_REPLY:
		json_object_set(brigd_link_cache(f->link), f->key, d->answer.source);
		profile_info_deliver(f, d->answer.source, NULL);
		return;
	case ANSWER_ERROR:
		profile_info_parse_error(json_object_get(d->answer.source, "error"), &why);
		break;
	case ANSWER_EVENT:
		err_set(&why, ERR_PROTOCOL, "brigd has answered a question with an event of a run");
		break;
	}
	profile_info_deliver(f, NULL, &why);
}

static void profile_info_on_lost(void *owner, const struct err *why)
{
	profile_info_deliver(owner, NULL, why);
}

void profile_info_ask(struct profile_question *f, struct brigd_link *link, const char *what, const char *profile)
{
	const json_t *known;
	struct err    e;

	f->link = link;
	known  = json_object_get(brigd_link_cache(link), print_cache_key(what, profile, f->key));
	if (known) {
		profile_info_deliver(f, known, NULL);
		return;
	}
	f->message  = json_pack("{ss ss*}", "op", what, "profile", profile);
	f->question = (struct question){
		.answered = profile_info_on_reply, .lost = profile_info_on_lost, .owner = f, .message = f->message
	};
	if (brigd_link_ask(link, &f->question, &e) < 0)
		profile_info_deliver(f, NULL, &e);
}

const json_t *profile_info_isolation(struct brigd_link *link, const char *profile)
{
	char key[KEY_MAX];

	return json_object_get(brigd_link_cache(link), print_cache_key("isolation", profile, key));
}

void profile_info_set_isolation(struct brigd_link *link, const char *profile, const json_t *isolation)
{
	char key[KEY_MAX];

	if (json_array_size(isolation))
		json_object_set(brigd_link_cache(link), print_cache_key("isolation", profile, key),
				(json_t *)isolation);
}

uint64_t profile_info_limit(const json_t *explained, const char *group, const char *name)
{
	return (uint64_t)json_number_value(json_object_get(json_object_get(explained, group), name));
}

bool profile_info_has_feature(struct brigd_link *link, const char *name)
{
	char          key[KEY_MAX];
	const json_t *hello = json_object_get(brigd_link_cache(link), print_cache_key("hello", NULL, key));
	const json_t *list  = json_object_get(hello, "features"), *one;
	size_t        i;

	json_array_foreach(list, i, one)
		if (strcmp(json_string_value(one) ? json_string_value(one) : "", name) == 0)
			return true;
	return false;
}
