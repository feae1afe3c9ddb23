/* session_say.c - what the door says to a session server */
#include "packet.h"
#include "session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_MAX = 160 * 1024 }; /* as the server reads */

int session_say(struct session *s, json_t *message, const int *fds, size_t n)
{
	char  *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
	size_t len  = text ? strlen(text) : 0;
	int    r    = !text ? -ENOMEM : s->source.fd < 0 ? -EPIPE : len > MESSAGE_MAX ? -EMSGSIZE : packet_offer(s->source.fd, text, len, fds, n);

	free(text);
	json_decref(message);
	return r;
}
