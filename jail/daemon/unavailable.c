#include "client_protocol.h"
#include "packet.h"
#include "unavailable.h"

#include <stdlib.h>
#include <string.h>

/* A failed send has no consequence: nothing was started. */
void unavailable_send_error(int sock, const struct err *why)
{
	struct denial denial;
	json_t       *answer;
	char         *text;

	deny_err(&denial, DENIAL_unavailable, NULL, why);
	answer = protocol_error(&denial, TAG_NONE);
	text   = json_dumps(answer, JSON_COMPACT);
	if (text)
		(void)!packet_send(sock, text, strlen(text), NULL, 0);
	free(text);
	json_decref(answer);
}
