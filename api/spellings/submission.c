#include "submission.h"

#include "run_id.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

struct submissions {
	struct api        *api;
	size_t             n;
	struct loop_timer  stale;
	TAILQ_HEAD(, submission) list; /* the oldest first */
};

static int64_t now_since_1970_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t submission_weigh(const struct submission *s)
{
	return sizeof *s + s->expected_len + s->source_len + s->input_len + s->outcome.out_len + s->outcome.err_len +
	       4 * KIB; /* record and request */
}

void submission_delete(struct submission *s)
{
	if (s->run)
		api_run_abandon(s->run);
	TAILQ_REMOVE(&s->all->list, s, link);
	s->all->n--;
	json_decref(s->asked);
	run_outcome_done(&s->outcome);
	free(s->expected);
	free(s->source);
	free(s->input);
	free(s->out);
	free(s->err);
	free(s);
}

static size_t submissions_weigh(const struct submissions *all)
{
	const struct submission *s;
	size_t                   bytes = 0;

	TAILQ_FOREACH(s, &all->list, link)
		bytes += submission_weigh(s);
	return bytes;
}

/* Results that are too old, or too many. */
static void submissions_forget_stale(void *owner)
{
	struct submissions *all   = owner;
	size_t              bytes = submissions_weigh(all);
	struct submission  *s, *next;

	for (s = TAILQ_FIRST(&all->list); s; s = next) {
		next = TAILQ_NEXT(s, link);
		if (s->run || s->ended)
			continue;
		if (loop_now_ms() - s->ended_ms < SUBMISSION_KEPT_MS && bytes <= SUBMISSIONS_BYTES &&
		    all->n < SUBMISSIONS_MAX)
			continue;
		bytes -= submission_weigh(s);
		submission_delete(s);
	}
	if (all->n)
		loop_timer_set(&all->api->loop, &all->stale, SUBMISSION_KEPT_MS / 10);
}

struct submissions *submissions_create(struct api *a)
{
	struct submissions *all = calloc(1, sizeof *all);

	if (!all)
		return NULL;
	all->api   = a;
	all->stale = (struct loop_timer){ .due = submissions_forget_stale, .owner = all };
	TAILQ_INIT(&all->list);
	return all;
}

void submissions_destroy(struct submissions *all)
{
	struct submission *s;

	if (!all)
		return;
	while ((s = TAILQ_FIRST(&all->list)))
		submission_delete(s);
	loop_timer_clear(&all->api->loop, &all->stale);
	free(all);
}

struct submission *submission_create(struct submissions *all, struct api_token *owner)
{
	struct submission *s;
	struct err         ignored;

	if (all->n >= SUBMISSIONS_MAX || submissions_weigh(all) > SUBMISSIONS_BYTES)
		submissions_forget_stale(all);
	s = all->n < SUBMISSIONS_MAX && submissions_weigh(all) <= SUBMISSIONS_BYTES ? calloc(1, sizeof *s) : NULL;
	if (!s)
		return NULL;
	*s = (struct submission){ .all = all, .owner = owner, .created_ms = now_since_1970_ms() };
	if (run_id_make(s->token, &ignored) < 0) {
		free(s);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&all->list, s, link);
	all->n++;
	if (!all->stale.set)
		loop_timer_set(&all->api->loop, &all->stale, SUBMISSION_KEPT_MS / 10);
	return s;
}

static char *copy_output(const char *bytes, size_t *len)
{
	char *copy = bytes ? malloc(*len + 1) : NULL;

	if (!copy)
		*len = 0;
	else
		memcpy(copy, bytes, *len);
	return copy;
}

/* The outcome is the run's; what it owns is taken. */
static void submission_on_ended(void *owner, struct run_outcome *o)
{
	struct submission *s = owner;

	s->run         = NULL;
	s->outcome     = *o;
	s->out         = copy_output(o->out, &s->outcome.out_len);
	s->err         = copy_output(o->err, &s->outcome.err_len);
	s->outcome.out = s->out;
	s->outcome.err = s->err;
	o->record = o->report = o->files = o->notes = NULL;
	s->finished_ms = now_since_1970_ms();
	s->ended_ms    = loop_now_ms();
	if (s->ended)
		s->ended(s->waiter, s);
}

bool submission_start(struct submission *s, struct program *p)
{
	s->run = api_run_start(s->all->api, s->owner, INTERFACE_judge0, p, NULL, submission_on_ended, s);
	return s->run;
}

struct submission *submission_find(struct submissions *all, const struct api_token *owner, const char *token)
{
	struct submission *s;

	TAILQ_FOREACH(s, &all->list, link)
		if (s->owner == owner && strcmp(s->token, token) == 0)
			return s;
	return NULL;
}
