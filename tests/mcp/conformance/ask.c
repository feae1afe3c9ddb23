/* ask.c - requests of the server to the client, as the legacy revisions have them, and the client's responses */
#include "fixture.h"
#include "http_post.h"

#include <stdlib.h>
#include <string.h>

struct ask {
	TAILQ_ENTRY(ask) link;
	struct call     *call;
	json_t          *id;
	ask_answered    *answered;
};

static void ask_drop(struct ask *a)
{
	TAILQ_REMOVE(&conformance_of(a->call)->asks, a, link);
	a->call->cancel = NULL;
	a->call->work   = NULL;
	json_decref(a->id);
	free(a);
}

static void ask_stop(struct call *c)
{
	ask_drop(c->work);
}

/* On HTTP a question is an event. */
static bool can_be_asked(const struct call *c)
{
	return !revision_is_modern(c->revision) && (!c->mcp->settings->http || head_takes_events(&((struct http_post *)c->channel)->head));
}

bool ask(struct call *c, const char *method, json_t *params, ask_answered *answered)
{
	struct conformance *all = conformance_of(c);
	struct ask         *a   = can_be_asked(c) ? calloc(1, sizeof *a) : NULL;
	json_t             *message;

	if (!a) {
		json_decref(params);
		return false;
	}
	*a        = (struct ask){ .call = c, .id = json_sprintf("ask-%llu", (unsigned long long)++all->asked), .answered = answered };
	c->work   = a;
	c->cancel = ask_stop;
	TAILQ_INSERT_TAIL(&all->asks, a, link);
	message = rpc_request(a->id, method, params);
	c->channel->ops->send(c->channel, c, message);
	json_decref(message);
	return true;
}

/* Over another channel, too: on HTTP the answer is a POST of its own. What nobody asked is dropped. */
static void take_response(struct mcp *m, const struct channel *ch, const struct rpc_message *response)
{
	struct ask *a;

	TAILQ_FOREACH(a, &((struct conformance *)m)->asks, link)
		if (json_equal(a->id, response->id) && strcmp(a->call->channel->principal, ch->principal) == 0)
			break;
	if (a) {
		struct call  *c        = a->call;
		ask_answered *answered = a->answered;

		ask_drop(a);
		answered(c, response->result, response->error);
	}
}

/* --- before the libraries' own --- */

void __real_dispatch(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message);
void __wrap_dispatch(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message);
void __real_dispatch_as(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message, enum revision revision);
void __wrap_dispatch_as(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message, enum revision revision);

void __wrap_dispatch(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message)
{
	if (message->kind == RPC_RESPONSE)
		take_response(m, ch, message);
	else
		__real_dispatch(m, ch, channel_data, message);
}

void __wrap_dispatch_as(struct mcp *m, struct channel *ch, void *channel_data, struct rpc_message *message, enum revision revision)
{
	if (message->kind == RPC_RESPONSE)
		take_response(m, ch, message);
	else
		__real_dispatch_as(m, ch, channel_data, message, revision);
}
