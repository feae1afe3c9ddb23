#include "http_cells.h"

#include "metrics.h"

static uint64_t count_ready_cells(const json_t *profiles)
{
	uint64_t n = 0;
	size_t   i;
	json_t  *one;

	json_array_foreach ((json_t *)profiles, i, one)
		n += (uint64_t)json_integer_value(json_object_get(one, "ready"));
	return n;
}

void cells_forget_question(struct cells *c)
{
	if (!c->message)
		return;
	brigd_link_detach(c->mcp->brigd_link, &c->question);
	json_decref(c->message);
	c->message = NULL;
}

static void on_stats_reply(void *owner, struct datagram *d)
{
	struct cells *c = owner;

	if (d->answer.kind == ANSWER_REPLY)
		metrics_set_ready_cells(c->mcp->metrics,
					count_ready_cells(json_object_get(d->answer.source, "profiles")));
	cells_forget_question(c);
}

static void on_stats_lost(void *owner, const struct err *why)
{
	(void)why;
	cells_forget_question(owner);
}

/* Asks over an open connection only: brigd_link_cache() is empty without one. */
void cells_ask_stats(struct cells *c, struct mcp *m)
{
	struct err e;

	if (c->message || !m->brigd_link || !json_object_size(brigd_link_cache(m->brigd_link)))
		return;
	c->mcp      = m;
	c->message  = json_pack("{ss}", "op", "stats");
	c->question = (struct question){
		.answered = on_stats_reply, .lost = on_stats_lost, .owner = c, .message = c->message
	};
	if (brigd_link_ask(m->brigd_link, &c->question, &e) < 0)
		cells_forget_question(c);
}
