/* session_send.c - messages to a session server */
#include "packet.h"
#include "served_run.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 160 * 1024 }; /* RUN_SPEC_MAX in jail/guest/session.py */

void session_freeze(struct session *s)
{
	s->is_to_be_frozen = true;
	run_set_frozen(&s->run->run, true);
}

void session_allow_background_messages(struct session *s)
{
	s->background_messages += 2; /* when it begins and when it ends */
}

int session_send_message(struct session *s, json_t *message, const int *fds, size_t n)
{
	char  *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	size_t len  = text ? strlen(text) : 0;
	int    r;

	if (s->is_to_be_frozen) /* a frozen server would not read the message */
		run_set_frozen(&s->run->run, false);
	s->is_to_be_frozen = false;
	r                  = !text               ? -ENOMEM
			     : s->source.fd < 0  ? -EPIPE
			     : len > MESSAGE_MAX ? -EMSGSIZE
						 : packet_send_nowait(s->source.fd, text, len, fds, n);

	free(text);
	json_decref(message);
	return r;
}

int session_send_or_deny(struct session *s, json_t *message, const int *fds, size_t n, struct denial *why)
{
	int r = session_send_message(s, message, fds, n);

	return r < 0 ? deny(why, DENIAL_busy, "session", "it takes no request now: %s", strerror(-r)) : 0;
}
