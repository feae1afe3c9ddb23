#define _GNU_SOURCE
#include "output_file.h"

#include "excerpt.h"
#include "missing_module.h"
#include "reply.h"
#include "session_use.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAMES = 16 }; /* names are used again after so many: the files take memory of the session */

struct work {
	struct call         *call;
	struct outcome       outcome;
	struct answer_form   answer_form;
	struct session_files files;
	bool                 left_out;
};

/* --- what is put --- */

/* A text reply shares its room among its sections; half of it is more than any of them has for certain. */
static bool output_is_cut(const struct outcome_stream *s, size_t but, size_t room)
{
	struct excerpt all = { s->text ? s->text : "", s->len - but, s->tail, s->tail_len, s->bytes, NULL };

	return excerpt_full_cost(&all) > room;
}

static void add_output_file(FILE *out, struct outcome_stream *s, const struct stream *all, const char *what,
			    unsigned number)
{
	snprintf(s->file, sizeof s->file, ".brig/%s-%u.txt", what, number);
	transfer_add_entry(out, FILE_REGULAR, s->file, all->data ? all->data : "", all->len);
}

struct named_session *output_file_build(struct output_files *ret, struct call *c, struct outcome *o,
				       const struct execution *x)
{
	struct named_session *s       = *x->queued.session && x->record && !x->answer_form.detail
						? named_session_find(c, x->queued.session)
						: NULL;
	size_t                room = x->answer_form.as_text ? c->mcp->settings->text_bytes / 4 : BRIEF_OUTPUT;
	bool out_too = output_is_cut(&o->out, 0, room), err_too = output_is_cut(&o->err, o->traceback_len, room);
	FILE                 *out;

	if (!s || s->state != SESSION_OPEN || !(out_too || err_too) || !(out = open_memstream(&ret->bytes, &ret->len)))
		return NULL;
	s->outputs = s->outputs % NAMES + 1;
	if (out_too)
		add_output_file(out, &o->out, &x->run.out.stream, "stdout", s->outputs);
	if (err_too)
		add_output_file(out, &o->err, &x->run.err.stream, "stderr", s->outputs);
	transfer_add_entry(out, FILE_END, "", NULL, 0);
	transfer_add_entry(out, FILE_END, "", NULL, 0);
	fclose(out);
	return ret->bytes ? s : NULL;
}

/* --- putting --- */

static void output_put_free(struct call *c)
{
	struct work *w = c->work;

	c->cancel = NULL;
	session_files_done(&w->files);
	outcome_done(&w->outcome);
	free(w);
}

static bool output_put_on_entry(void *owner, const struct file_entry *entry, const char *name)
{
	struct work *w = owner;

	(void)name;
	w->left_out |= entry->kind == FILE_LEFT;
	return true;
}

static void output_put_on_end(void *owner, const struct err *why)
{
	struct work       *w           = owner;
	struct call       *c           = w->call;
	struct answer_form answer_form = w->answer_form;
	scoped_outcome     o           = w->outcome;

	if (why || w->left_out)
		*o.out.file = *o.err.file = 0;
	w->outcome = (struct outcome){ 0 };
	output_put_free(c);
	if (!missing_module_answer_later(c, &o, &answer_form))
		reply_to_call(c, &o, &answer_form);
}

void output_file_put(struct call *c, struct named_session *s, struct output_files *files, struct outcome *o,
		     const struct answer_form *answer_form)
{
	static const struct transfer_events events = { .read  = { .entry = output_put_on_entry },
						       .ended = output_put_on_end };
	struct work                        *w      = malloc(sizeof *w);

	if (!w) {
		free(files->bytes);
		*o->out.file = *o->err.file = 0;
		reply_to_call(c, o, answer_form);
		return;
	}
	*w = (struct work){ .call = c, .outcome = *o, .answer_form = *answer_form };
	*o = (struct outcome){ 0 };
	c->work   = w;
	c->cancel = output_put_free;
	session_files_start(&w->files, s, files->bytes, files->len, &events, w);
}
