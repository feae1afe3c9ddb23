#include "roots.h"

#include "server_request.h"
#include "text.h"
#include "yes_form.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_WAIT_MS = 5000, NOTES_MAX = 32 };

enum roots_state { ROOTS_UNKNOWN, ROOTS_ASKED, ROOTS_KNOWN };

struct waiting_call {
	TAILQ_ENTRY(waiting_call) link;
	struct roots *roots;
	struct call  *call;
	void        (*go)(struct call *c);
};

struct roots {
	/* first: a pointer to it is one to the roots. The client's list, then its person's answer */
	struct client_request request;
	struct mcp           *mcp;
	enum roots_state      state;
	struct ro_folders          offered; /* about which the person is asked */
	struct loop_timer     late;
	TAILQ_HEAD(, waiting_call)  waiters;
};

static void roots_log_left_out(const char *root, const char *why)
{
	char text[700];

	snprintf(text, sizeof text, "root %s: %s: left out", root, why);
	text_make_plain(text);
	fprintf(stderr, "brig-mcp: %s\n", text);
}

static void roots_resume_calls(struct roots *r)
{
	struct waiting_call *w;

	client_request_detach(&r->request, r->mcp);
	loop_timer_clear(&r->mcp->loop, &r->late);
	ro_folders_close(&r->offered);
	r->state = ROOTS_KNOWN;
	while ((w = TAILQ_FIRST(&r->waiters))) {
		struct call *c = w->call;
		void (*go)(struct call *) = w->go;

		TAILQ_REMOVE(&r->waiters, w, link);
		free(w);
		c->work   = NULL;
		c->cancel = NULL;
		go(c);
	}
}

static void roots_on_timeout(void *owner)
{
	struct roots *r = owner;

	roots_log_left_out("list", "the client has not answered");
	roots_resume_calls(r);
}

/* --- a person agrees --- */

static void roots_on_consent(struct client_request *request, struct mcp *m, const struct rpc_message *response)
{
	struct roots *r = (struct roots *)request;

	if (!response->error && yes_form_says_yes(response->result))
		ro_folders_replace_roots(&m->shown, &r->offered);
	else
		roots_log_left_out("list", "a person has not agreed");
	roots_resume_calls(r);
}

static void roots_request_consent(struct roots *r, struct call *c)
{
	char   text[SHOWN_PATH_MAX * PROTOCOL_RO_MAX + 200];
	size_t at = (size_t)snprintf(
		text, sizeof text,
		"Show these folders to programs that run in the sandbox? They can read them, and change nothing.");

	for (size_t i = 0; i < r->offered.n && at < sizeof text; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "\n%s", r->offered.path[i]);
	r->request = (struct client_request){ .answered = roots_on_consent };
	client_request_send(&r->request, c, "elicitation/create", yes_form_to_json(text, "Show them?"));
	loop_timer_set(&r->mcp->loop, &r->late, (int64_t)r->mcp->settings->ask_timeout_ms);
}

/* --- the client's list --- */

static void roots_parse_list(struct roots *r, const json_t *list)
{
	struct err e;

	for (size_t i = 0; i < json_array_size(list) && i < NOTES_MAX; i++) {
		const char *uri = json_string_value(json_object_get(json_array_get(list, i), "uri"));

		if (!uri)
			roots_log_left_out("list", "a root has no uri");
		else if (ro_folders_add_root(&r->offered, &r->mcp->shown, uri, &e) < 0)
			roots_log_left_out(uri, e.text);
	}
	if (json_array_size(list) > NOTES_MAX)
		roots_log_left_out("list", "more than 32 roots");
}

static void roots_on_list(struct client_request *request, struct mcp *m, const struct rpc_message *response)
{
	struct roots        *r = (struct roots *)request;
	const struct waiting_call *w = TAILQ_FIRST(&r->waiters);

	if (!w) { /* all calls were cancelled: the next one asks */
		roots_invalidate(m);
		return;
	}
	roots_parse_list(r, response->error ? NULL : json_object_get(response->result, "roots"));
	if (r->offered.n && w->call->channel->elicits) {
		roots_request_consent(r, w->call);
		return;
	}
	ro_folders_replace_roots(&m->shown, &r->offered);
	roots_resume_calls(r);
}

static void roots_request_list(struct roots *r, struct call *c)
{
	r->state   = ROOTS_ASKED;
	r->request = (struct client_request){ .answered = roots_on_list };
	client_request_send(&r->request, c, "roots/list", json_object());
	loop_timer_set(&r->mcp->loop, &r->late, LIST_WAIT_MS);
}

/* --- calls --- */

static void waiting_call_remove_and_free(struct call *c)
{
	struct waiting_call *w = c->work;

	TAILQ_REMOVE(&w->roots->waiters, w, link);
	free(w);
}

bool roots_wait_for_list(struct call *c, void (*go)(struct call *c))
{
	struct roots  *r = c->mcp->roots;
	struct waiting_call *w;

	if (!r || r->state == ROOTS_KNOWN || revision_is_modern(c->revision) || !c->channel->has_roots ||
	    !(w = calloc(1, sizeof *w)))
		return false;
	*w = (struct waiting_call){ .roots = r, .call = c, .go = go };
	TAILQ_INSERT_TAIL(&r->waiters, w, link);
	c->work   = w;
	c->cancel = waiting_call_remove_and_free;
	if (r->state == ROOTS_UNKNOWN)
		roots_request_list(r, c);
	return true;
}

void roots_invalidate(struct mcp *m)
{
	struct roots *r = m->roots;

	if (!r)
		return;
	client_request_detach(&r->request, m);
	loop_timer_clear(&m->loop, &r->late);
	ro_folders_close(&r->offered);
	ro_folders_replace_roots(&m->shown, &r->offered);
	r->state = ROOTS_UNKNOWN;
	if (!TAILQ_EMPTY(&r->waiters))
		roots_request_list(r, TAILQ_FIRST(&r->waiters)->call);
}

struct roots *roots_create(struct mcp *m)
{
	struct roots *r = calloc(1, sizeof *r);

	if (!r)
		return NULL;
	r->mcp  = m;
	r->late = (struct loop_timer){ .due = roots_on_timeout, .owner = r };
	TAILQ_INIT(&r->waiters);
	return r;
}

void roots_destroy(struct roots *r)
{
	if (!r)
		return;
	client_request_detach(&r->request, r->mcp);
	loop_timer_clear(&r->mcp->loop, &r->late);
	ro_folders_close(&r->offered);
	free(r);
}
