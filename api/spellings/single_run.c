#include "single_run.h"

#include "route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct single_run {
	struct exchange *x;
	struct api_run  *run;
	run_encoder     *encode;
};

static void single_run_on_ended(void *owner, struct run_outcome *o)
{
	struct single_run *s = owner;
	struct exchange   *x = s->x;

	if (o->fault != FAULT_NONE)
		exchange_answer_fault(x, o);
	else
		exchange_answer(x, 200, s->encode(x, o));
	free(s);
}

static void single_run_abandon(void *work)
{
	struct single_run *s = work;

	api_run_abandon(s->run);
	free(s);
}

void single_run_start(struct exchange *x, struct program *p, struct api_session *session, run_encoder *encode)
{
	struct single_run *s = calloc(1, sizeof *s);

	if (s) {
		*s     = (struct single_run){ .x = x, .encode = encode };
		s->run = api_run_start(x->api, x->token, x->route->api, p, session, single_run_on_ended, s);
	}
	if (s && s->run) {
		x->work    = s;
		x->abandon = single_run_abandon;
		return;
	}
	free(s);
	exchange_refuse(x, exchange_fault_status(x->route->api, FAULT_BRIG), "memory", "out of memory");
}

void single_run_refuse(struct exchange *x, const struct err *e)
{
	exchange_refuse(x, exchange_fault_status(x->route->api, FAULT_REQUEST), "bad_field", "%s", e->text);
}

const char *single_run_limit_text(const struct run_outcome *o)
{
	static const char *const texts[VERDICT_COUNT] = {
		[VERDICT_time]   = "brig: the time limit was reached",
		[VERDICT_memory] = "brig: the memory limit was reached",
		[VERDICT_output] = "brig: more than eight times the output limit was written",
	};

	return texts[o->verdict] ? texts[o->verdict] : "";
}

json_t *single_run_stderr_to_json(const struct run_outcome *o)
{
	const char *limit = single_run_limit_text(o);
	json_t     *plain = run_outcome_text_to_json(o->err, o->err_len), *made;
	size_t      len   = json_string_length(plain), n = strlen(limit);
	char       *text  = n ? malloc(len + n + 3) : NULL;

	if (!text)
		return plain;
	memcpy(text, json_string_value(plain), len);
	if (len && text[len - 1] != '\n')
		text[len++] = '\n';
	memcpy(text + len, limit, n);
	text[len + n] = '\n';
	made          = json_stringn_nocheck(text, len + n + 1);
	free(text);
	json_decref(plain);
	return made;
}
