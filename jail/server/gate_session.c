/* gate_session.c - requests about an open session; gate_run.c opens sessions and makes calls in them */
#include "fd.h"
#include "gate.h"
#include "served_run.h"
#include "session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int gate_handle_files(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	struct session *s = session_find_open_or_deny(c->server, request->session, c->peer.uid, why);
	int             pair[2], r;

	if (!s)
		return -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return deny(why, DENIAL_broken, NULL, "a socket for files: %s", strerror(errno));
	r = session_send_or_deny(s, json_pack("{ss}", "op", "files"), &pair[1], 1, why);
	if (r == 0) {
		s->background++; /* until its server has sent the real number (SESSION_BACKGROUND) */
		session_allow_background_messages(s);
		session_note_use(s);
		json_object_set_new(reply, "session", json_string(s->run->id));
		connection_send(c, json_incref(reply), &pair[0], 1);
	}
	fd_closep(&pair[0]);
	fd_closep(&pair[1]);
	return r == 0 ? GATE_ANSWERS_ITSELF : -1;
}

int gate_handle_interrupt(struct connection *c, const struct protocol_request *request, json_t *reply,
			  struct denial *why)
{
	struct session_call *call = session_call_find(c->server, request->run, c->peer.uid);

	if (!call)
		return deny(why, DENIAL_not_found, "run", "you have no call \"%.40s\" in a session", request->run);
	session_call_interrupt(call);
	json_object_set_new(reply, "run", json_string(request->run));
	return GATE_ANSWERED;
}

int gate_handle_resize(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	struct session_call *call = session_call_find(c->server, request->run, c->peer.uid);

	if (!call || !call->terminal)
		return deny(why, DENIAL_not_found, "run", "you have no call \"%.40s\" with a terminal", request->run);
	session_call_resize_terminal(call, request);
	json_object_set_new(reply, "run", json_string(request->run));
	return GATE_ANSWERED;
}

int gate_handle_restart(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	struct session *s = session_find_open_or_deny(c->server, request->session, c->peer.uid, why);

	if (!s)
		return -1;
	for (int i = 0; i < SESSION_CONTEXTS_MAX; i++) {
		struct session_context *context = &s->context[i];

		if (strcmp(context->name, request->context) != 0)
			continue;
		if (context->call)
			session_call_interrupt_or_kill(context->call, EXIT_cancelled);
		else if (context->is_there &&
			 session_send_or_deny(s, json_pack("{ss si}", "op", "restart", "context", i), NULL, 0, why) < 0)
			return -1;
		session_note_use(s);
		json_object_set_new(reply, "session", json_string(s->run->id));
		json_object_set_new(reply, "context", json_string(request->context));
		return GATE_ANSWERED;
	}
	return deny(why, DENIAL_not_found, "context", "the session has no context \"%.64s\"", request->context);
}

int gate_handle_renew(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	struct session *s = session_find_open_or_deny(c->server, request->session, c->peer.uid, why);

	if (!s || session_renew(s, request->lifetime_ms, why) < 0)
		return -1;
	json_object_set_new(reply, "session", json_string(s->run->id));
	json_object_set_new(reply, "lifetime_ms", json_integer((json_int_t)s->limits.lifetime_ms));
	return GATE_ANSWERED;
}

int gate_handle_close(struct connection *c, const struct protocol_request *request, json_t *reply, struct denial *why)
{
	struct session *s = session_find_open_or_deny(c->server, request->session, c->peer.uid, why);

	if (!s)
		return -1;
	session_request_close(s, "its client closed it");
	json_object_set_new(reply, "session", json_string(s->run->id));
	return GATE_ANSWERED;
}
