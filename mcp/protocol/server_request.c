#include "server_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static const char prefix[] = "brig-";

void client_request_make_secret(char *ret, size_t len)
{
	unsigned char raw[16];

	if (getrandom(raw, sizeof raw, 0) != sizeof raw)
		abort(); /* an id that can be guessed is a consent that can be forged */
	for (size_t i = 0; i < sizeof raw && 2 * i + 2 < len; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", raw[i]);
}

void client_request_send(struct client_request *r, struct call *c, const char *method, json_t *params)
{
	json_t *id, *message;

	(void)snprintf(r->principal, sizeof r->principal, "%s", c->channel->principal);
	strcpy(r->id, prefix);
	client_request_make_secret(r->id + strlen(prefix), 33);
	TAILQ_INSERT_TAIL(&c->mcp->client_requests, r, link);
	id      = json_string(r->id);
	message = rpc_request(id, method, params);
	c->channel->ops->send(c->channel, c, message);
	json_decref(message);
	json_decref(id);
}

void client_request_detach(struct client_request *r, struct mcp *m)
{
	if (!client_request_waits(r))
		return;
	TAILQ_REMOVE(&m->client_requests, r, link);
	*r->id = '\0';
}

void client_request_deliver_response(struct mcp *m, const struct channel *ch, const struct rpc_message *response)
{
	const char            *id = json_string_value(response->id);
	struct client_request *r;

	TAILQ_FOREACH(r, &m->client_requests, link)
		if (id && strcmp(r->id, id) == 0 && strcmp(r->principal, ch->principal) == 0)
			break;
	if (!r)
		return;
	client_request_detach(r, m);
	r->answered(r, m, response);
}
