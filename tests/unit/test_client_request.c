#include "server_request.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

/* A client that notes what it is asked. */
struct client {
	struct channel channel;
	json_t        *asked;
};

static void on_send(struct channel *ch, struct call *c, const json_t *message)
{
	(void)c;
	json_array_append(((struct client *)ch)->asked, (json_t *)message);
}

static const struct channel_ops ops = { .send = on_send };

struct world {
	struct settings settings;
	struct mcp      mcp;
	struct client   a, b;
	struct call    *call; /* of a */
};

static void client_init(struct client *c, const char *principal)
{
	*c = (struct client){ .channel = { .ops = &ops, .legacy = REVISION_LEGACY_NEWEST }, .asked = json_array() };
	snprintf(c->channel.principal, sizeof c->channel.principal, "%s", principal);
}

static void world_init(struct world *w)
{
	scoped_rpc       message;
	struct rpc_error refused;
	struct err       e;
	static const char json[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}";

	settings_init(&w->settings);
	client_init(&w->a, "a");
	client_init(&w->b, "b");
	if (mcp_open(&w->mcp, &w->settings, &e) < 0 || rpc_parse(&message, json, strlen(json), &refused) < 0 ||
	    !(w->call = call_create(&w->mcp, &w->a.channel, NULL, &message, REVISION_LEGACY_NEWEST)))
		exit(1);
}

static void world_done(struct world *w)
{
	calls_cancel_all(&w->mcp, &w->a.channel);
	json_decref(w->a.asked);
	json_decref(w->b.asked);
	mcp_close(&w->mcp);
	settings_done(&w->settings);
}

/* --- requests that note their answers --- */

struct noting {
	struct client_request request;
	int                   answers, said;
};

static void note(struct client_request *r, struct mcp *m, const struct rpc_message *response)
{
	struct noting *n = (struct noting *)r;

	(void)m;
	n->answers++;
	n->said = (int)json_integer_value(json_object_get(response->result, "said"));
}

static struct noting noting(void)
{
	return (struct noting){ .request = { .answered = note } };
}

static void answer(struct world *w, struct client *from, const char *id, int said)
{
	scoped_rpc       message;
	struct rpc_error e;
	char             json[200];

	(void)snprintf(json, sizeof json, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"said\":%d}}", id, said);
	if (rpc_parse(&message, json, strlen(json), &e) == 0)
		client_request_deliver_response(&w->mcp, &from->channel, &message);
	else
		printf("# bad test: %s\n", e.text);
}

static const char *sent_id(const struct client *c, size_t i)
{
	const char *id = json_string_value(json_object_get(json_array_get(c->asked, i), "id"));

	return id ? id : "";
}

/* --- rows --- */

static void check_answered(void)
{
	struct world  w;
	struct noting one = noting(), other = noting();

	world_init(&w);
	client_request_send(&one.request, w.call, "roots/list", json_object());
	client_request_send(&other.request, w.call, "roots/list", json_object());
	tap_ok(json_array_size(w.a.asked) == 2 && strcmp(sent_id(&w.a, 0), one.request.id) == 0 && client_request_waits(&one.request),
	       "the client of the call is sent the request with its id");
	tap_ok(strlen(one.request.id) >= 32 && strcmp(one.request.id, other.request.id) != 0, "no id is like another");
	answer(&w, &w.a, sent_id(&w.a, 1), 7);
	tap_ok(other.answers == 1 && other.said == 7 && one.answers == 0, "an answer is that of the request that it names");
	answer(&w, &w.a, sent_id(&w.a, 1), 8);
	tap_ok(other.answers == 1 && !client_request_waits(&other.request), "a second answer is not heard");
	client_request_detach(&one.request, &w.mcp);
	world_done(&w);
}

static void check_others(void)
{
	struct world  w;
	struct noting one = noting();
	char          id[40];

	world_init(&w);
	client_request_send(&one.request, w.call, "roots/list", json_object());
	(void)snprintf(id, sizeof id, "%s", one.request.id);
	answer(&w, &w.b, id, 1);
	answer(&w, &w.a, "", 1);
	answer(&w, &w.a, "brig-", 1);
	tap_ok(one.answers == 0 && client_request_waits(&one.request), "another principal cannot answer even with the id, nor this one without it");
	client_request_detach(&one.request, &w.mcp);
	answer(&w, &w.a, id, 1);
	tap_ok(one.answers == 0 && TAILQ_EMPTY(&w.mcp.client_requests), "the answer to a request that was forgotten is not heard");
	client_request_detach(&one.request, &w.mcp);
	world_done(&w);
}

int main(void)
{
	check_answered();
	check_others();
	return tap_done();
}
