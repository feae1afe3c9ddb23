#include "reload.h"

#include "fd.h"
#include "notify.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

const char reload_reader_is_gone[] = "the process that reads configuration and profiles has ended; restart brigd";

static void reload_start_reading(struct reload *r)
{
	r->reading++;
	r->is_reading     = true;
	r->is_asked_again = false;
	(void)!reader_send(r->reader, READER_READ, r->reading); /* a reader that has ended is seen by its end of file */
}

uint64_t reload_request_reading(struct reload *r)
{
	if (r->reader->sock < 0) {
		log_line(&r->server->log, "configuration and profiles cannot be read again: %s", reload_reader_is_gone);
		return 0;
	}
	if (r->is_reading) {
		r->is_asked_again = true;
		return r->reading + 1;
	}
	reload_start_reading(r);
	return r->reading;
}

/* --- the outcome --- */

/* For the log, and for the clients that asked. */
struct outcome {
	json_t      *changed, *removed; /* names of profiles; changed: with new ones */
	const char  *for_life;          /* settings that differ and take effect at a restart, or NULL */
	const char  *refused;           /* why the reading was refused; NULL: the server uses it */
};

static const struct served_profile *find_profile_by_name(const struct profile_set *s, const char *name)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->item[i]->name, name) == 0)
			return s->item[i];
	return NULL;
}

static void list_profile_changes(struct outcome *o, const struct profile_set *is, const struct profile_set *was)
{
	for (size_t i = 0; i < is->n; i++) {
		const struct served_profile *now = is->item[i], *before = find_profile_by_name(was, now->name);

		/* the same profile: the same number in the monitor, and the same text in the server */
		if (!before || before->index != now->index || !json_equal(before->profile.source, now->profile.source))
			json_array_append_new(o->changed, json_string(now->name));
	}
	for (size_t i = 0; i < was->n; i++)
		if (!find_profile_by_name(is, was->item[i]->name))
			json_array_append_new(o->removed, json_string(was->item[i]->name));
}

static void append_names(char *text, size_t len, const char *what, const json_t *names)
{
	size_t n = strlen(text);

	for (size_t i = 0; i < json_array_size(names) && n < len; i++)
		n += (size_t)snprintf(text + n, len - n, "%s%s", i ? ", " : what,
				      json_string_value(json_array_get(names, i)));
}

static void log_reload_outcome(const struct reload *r, const struct outcome *o)
{
	struct server *d           = r->server;
	char           text[700] = "", status[800];

	if (o->refused) {
		snprintf(text, sizeof text,
			 "configuration and profiles could not be read again, those of before hold: %s", o->refused);
	} else {
		snprintf(text, sizeof text, "configuration and profiles were read again: %zu profiles", d->profiles.n);
		append_names(text, sizeof text, "; changed: ", o->changed);
		append_names(text, sizeof text, "; gone: ", o->removed);
	}
	log_line(&d->log, "%s", text);
	if (o->for_life)
		log_line(&d->log, "changes of %s in the configuration take effect at the next start", o->for_life);
	snprintf(status, sizeof status, "STATUS=%s", text);
	text_make_plain(status); /* a newline in it could begin another assignment in the message to systemd */
	systemd_notify_send(r->notify, status);
}

static json_t *reload_reply_to_client(const struct connection *c, const struct outcome *o)
{
	json_t       *reply;
	struct denial why;

	if (o->refused) {
		deny(&why, DENIAL_unavailable, NULL, "%s", o->refused);
		return protocol_error(&why, c->reload_tag);
	}
	reply = protocol_reply(REQUEST_reload, c->reload_tag);
	json_object_set_new(reply, "profiles", json_integer((json_int_t)c->server->profiles.n));
	json_object_set(reply, "changed", o->changed);
	json_object_set(reply, "removed", o->removed);
	json_object_set_new(reply, "restart", o->for_life ? json_string(o->for_life) : json_null());
	return reply;
}

static void reload_finish(struct reload *r, const struct outcome *o)
{
	struct connection *c;

	log_reload_outcome(r, o);
	r->is_reading = false;
	LIST_FOREACH(c, &r->server->connections, link)
		if (c->reload && c->reload <= r->reading) {
			c->reload = 0;
			connection_send(c, reload_reply_to_client(c, o), NULL, 0);
		}
	if (r->is_asked_again)
		reload_start_reading(r);
}

/* --- messages of the reader --- */

static void reload_finish_refused(struct reload *r, const char *why)
{
	reload_finish(r, &(struct outcome){ .refused = why });
}

static void reload_use_rules(struct reload *r, int fd)
{
	struct server *d     = r->server;
	scoped_rules   rules = { .ids = { 0 } };
	struct outcome o     = { .refused = NULL };
	struct err     e;

	if (rules_from_sealed_file(&rules, fd, &d->places, &e) < 0) {
		(void)!reader_send(r->reader, READER_NOT_TAKEN, r->reading);
		reload_finish_refused(r, e.text);
		return;
	}
	o.changed  = json_array();
	o.removed  = json_array();
	o.for_life = config_changes_needing_restart(&d->first_config, &rules.config);
	list_profile_changes(&o, &rules.profiles, &d->profiles);
	server_set_rules(d, &rules);
	(void)!reader_send(r->reader, READER_TAKEN, r->reading);
	reload_finish(r, &o);
	json_decref(o.changed);
	json_decref(o.removed);
}

static void reload_on_message(void *owner)
{
	struct reload     *r = owner;
	struct reader_message message;
	scoped_fd          fd = -1;

	if (!reader_receive(r->reader, &message, &fd)) {
		loop_remove(&r->server->loop, &r->source);
		fd_closep(&r->reader->sock);
		r->is_asked_again = false;
		r->reading++; /* refuses the clients that wait for the next reading, too */
		reload_finish_refused(r, reload_reader_is_gone);
		return;
	}
	if (!r->is_reading || message.reading != r->reading)
		return; /* a reading that was answered already */
	if (message.kind == READER_RULES) {
		reload_use_rules(r, fd);
		return;
	}
	(void)!reader_send(r->reader, READER_NOT_TAKEN, r->reading);
	message.err.text[sizeof message.err.text - 1] = 0;
	brig_paths_unmap_view(message.err.text);
	reload_finish_refused(r, message.err.text);
}

int reload_open(struct reload *ret, struct server *d, struct reader *reader, int notify, struct err *e)
{
	*ret = (struct reload){
		.server = d, .reader = reader, .source = { reader->sock, reload_on_message, ret }, .notify = notify
	};
	d->reload = ret;
	return loop_add(&d->loop, &ret->source, e);
}
