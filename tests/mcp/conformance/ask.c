/* ask.c - what this server asks a legacy client in the middle of a call */
#include "server_request.h"
#include "fixture.h"
#include "http_post.h"

#include <stdlib.h>

struct ask {
	struct client_request request; /* first */
	struct call          *call;
	ask_answered         *answered;
};

static void ask_drop(struct ask *a)
{
	client_request_detach(&a->request, a->call->mcp);
	a->call->cancel = NULL;
	a->call->work   = NULL;
	free(a);
}

static void ask_stop(struct call *c)
{
	ask_drop(c->work);
}

/* On HTTP a question is an event. */
static bool can_be_asked(const struct call *c)
{
	return !revision_is_modern(c->revision) && (!c->mcp->settings->http || head_accepts_event_stream(&((struct http_post *)c->channel)->head));
}

static void take_answer(struct client_request *r, struct mcp *m, const struct rpc_message *response)
{
	struct ask   *a        = (struct ask *)r;
	struct call  *c        = a->call;
	ask_answered *answered = a->answered;

	(void)m;
	ask_drop(a);
	answered(c, response->result, response->error);
}

bool ask(struct call *c, const char *method, json_t *params, ask_answered *answered)
{
	struct ask *a = can_be_asked(c) ? calloc(1, sizeof *a) : NULL;

	if (!a) {
		json_decref(params);
		return false;
	}
	*a        = (struct ask){ .request = { .answered = take_answer }, .call = c, .answered = answered };
	c->work   = a;
	c->cancel = ask_stop;
	client_request_send(&a->request, c, method, params);
	return true;
}
