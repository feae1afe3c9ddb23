/* jupyter.c - SandboxFusion's /run_jupyter: cells one after the other, in a session that ends with the request */
#include "fetched_files.h"
#include "member.h"
#include "route.h"
#include "single_run.h"
#include "spelling.h"
#include "transfer.h"

#include <stdlib.h>
#include <string.h>

enum { JUPYTER_TOTAL_MS = 45000, JUPYTER_CELLS_MAX = 1000, JUPYTER_FETCH_MS = 30000 };

struct jupyter {
	struct exchange     *x;
	struct api_session  *session;
	struct api_run      *run;      /* of the cell before next; NULL: none is under way */
	struct program       first;    /* files to put, and to fetch */
	uint64_t             cell_ms;  /* 0: no limit but the total */
	uint64_t             total_ms; /* of all cells together, without what they wait */
	size_t               next;
	json_t              *cells;    /* of the answer */
	json_t              *brig;     /* of the last cell */
	enum run_verdict     verdict;
	bool                 failed;   /* a cell has raised, or was ended */
	double               wall_ms;
	struct transfer      transfer;
	struct fetched_files fetched;
	struct loop_timer    late;     /* ends a transfer that the jail holds up */
};

static void jupyter_free(struct jupyter *j)
{
	loop_timer_clear(&j->x->api->loop, &j->late);
	transfer_close(&j->transfer);
	api_session_close(j->session);
	api_session_leave(j->session);
	program_done(&j->first);
	fetched_files_done(&j->fetched);
	json_decref(j->cells);
	json_decref(j->brig);
	free(j);
}

static void jupyter_abandon(void *work)
{
	struct jupyter *j = work;

	if (j->run)
		api_run_abandon(j->run);
	jupyter_free(j);
}

/* --- the answer --- */

static json_t *lines_to_json(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		size_t n = strcspn(text, "\n");

		json_array_append_new(list, json_stringn(text, n));
		text += n + (text[n] == '\n');
	}
	return list;
}

static json_t *cell_error_to_json(const struct run_outcome *o)
{
	const json_t *error = json_object_get(o->report, "error");

	if (!json_is_object(error))
		return json_array();
	return json_pack("[{ss ss so}]", "ename", member_text(error, "type"), "evalue", member_text(error, "message"),
			 "traceback", lines_to_json(member_text(error, "traceback")));
}

static json_t *cell_display_to_json(const struct run_outcome *o)
{
	json_t       *list = json_array();
	const json_t *bundle = json_object_get(o->report, "bundle"), *text = json_object_get(o->report, "result_repr");

	json_array_extend(list, json_object_get(o->report, "displays"));
	if (json_is_object(bundle))
		json_array_append(list, (json_t *)bundle);
	else if (json_is_string(text) && strcmp(json_string_value(text), "None") != 0)
		json_array_append_new(list, json_pack("{sO}", "text/plain", text));
	return list;
}

static json_t *cell_to_json(const struct run_outcome *o)
{
	return json_pack("{so so so so}", "stdout", run_outcome_text_to_json(o->out, o->out_len), "stderr",
			 single_run_stderr_to_json(o), "display", cell_display_to_json(o), "error",
			 cell_error_to_json(o));
}

static void jupyter_answer(struct jupyter *j)
{
	struct exchange *x       = j->x;
	json_t          *files   = j->fetched.files ? json_incref(j->fetched.files) : json_object();
	bool             is_late = j->verdict == VERDICT_time;
	const char      *status  = is_late ? "TimeLimitExceeded" : j->failed ? "Error" : "Finished";
	json_t          *driver  = json_pack("{ss sf si ss ss}", "status", status, "execution_time", j->wall_ms / 1000,
					     "return_code", j->failed ? 1 : 0, "stdout", "", "stderr", "");

	exchange_answer(x, 200,
			json_pack("{ss ss so sO so sn so}", "status", j->failed ? "Failed" : "Success", "message",
				  is_late ? "brig: the time limit was reached" : "", "driver", driver, "cells",
				  j->cells, "files", files, "executor_pod_name", "brig",
				  j->brig ? json_incref(j->brig) : json_object()));
	jupyter_free(j);
}

static void jupyter_fail(struct jupyter *j, const struct run_outcome *o)
{
	struct exchange *x = j->x;

	exchange_answer_fault(x, o);
	jupyter_free(j);
}

/* --- files that are fetched --- */

static bool jupyter_on_file_entry(void *owner, const struct file_entry *entry, const char *name)
{
	return fetched_files_reader.entry(&((struct jupyter *)owner)->fetched, entry, name);
}

static bool jupyter_on_file_bytes(void *owner, const char *bytes, size_t len)
{
	return fetched_files_reader.bytes(&((struct jupyter *)owner)->fetched, bytes, len);
}

static void jupyter_on_fetched(void *owner, const struct err *why)
{
	struct jupyter *j = owner;

	(void)why; /* files that did not come are missing in the answer, as those that do not exist */
	fetched_files_finish(&j->fetched);
	jupyter_answer(j);
}

static void jupyter_on_late(void *owner)
{
	jupyter_on_fetched(owner, NULL);
}

static void jupyter_finish(struct jupyter *j)
{
	static const struct transfer_events events = {
		.read  = { .entry = jupyter_on_file_entry, .bytes = jupyter_on_file_bytes },
		.ended = jupyter_on_fetched,
	};
	struct err  e;
	size_t      len;
	char       *out = NULL;

	j->fetched.asked = j->first.fetch;
	if (j->first.fetch && j->session->state == API_SESSION_OPEN)
		out = program_make_transfer(&j->first, true, &len);
	if (!out || transfer_ask(&j->transfer, j->x->api->link, j->session->id, out, len, &events, j, &e) < 0) {
		jupyter_answer(j);
		return;
	}
	j->late = (struct loop_timer){ .due = jupyter_on_late, .owner = j };
	loop_timer_set(&j->x->api->loop, &j->late, JUPYTER_FETCH_MS);
}

/* --- cells --- */

static void jupyter_run_next(struct jupyter *j);

static void jupyter_on_cell(void *owner, struct run_outcome *o)
{
	struct jupyter *j = owner;

	j->run = NULL;
	if (o->fault != FAULT_NONE) {
		jupyter_fail(j, o);
		return;
	}
	json_array_append_new(j->cells, cell_to_json(o));
	json_decref(j->brig);
	j->brig     = run_outcome_brig_to_json(o);
	j->verdict  = o->verdict;
	j->wall_ms += o->wall_ms > 0 ? o->wall_ms : 0;
	j->failed   = o->verdict != VERDICT_finished || json_is_object(json_object_get(o->report, "error"));
	if (j->failed || j->next == json_array_size(json_object_get(j->x->json, "cells")))
		jupyter_finish(j);
	else
		jupyter_run_next(j);
}

/* The rest of the total, or the limit of a cell. At the end of it a cell is interrupted, and the request has failed. */
static uint64_t jupyter_limit(const struct jupyter *j)
{
	uint64_t used = (uint64_t)j->wall_ms, left = j->total_ms > used + 10 ? j->total_ms - used : 10;

	return j->cell_ms && j->cell_ms < left ? j->cell_ms : left;
}

static void jupyter_run_next(struct jupyter *j)
{
	const json_t  *code = json_array_get(json_object_get(j->x->json, "cells"), j->next);
	scoped_program p    = { .language = &languages[0], .wall_ms = jupyter_limit(j) };
	struct err     e;

	if (!j->next) { /* the first one puts the files */
		p.files           = json_incref(j->first.files);
		p.puts            = j->first.puts;
		p.puts_len        = j->first.puts_len;
		j->first.puts     = NULL;
		j->first.puts_len = 0;
	}
	j->next++;
	if (program_set_code(&p, json_string_value(code), json_string_length(code), &e) == 0)
		j->run = api_run_start(j->x->api, j->x->token, INTERFACE_run_code, &p, j->session, jupyter_on_cell, j);
	if (!j->run) {
		struct run_outcome o = { 0 };

		run_outcome_fail(&o, FAULT_BRIG, "memory", "out of memory");
		jupyter_fail(j, &o);
	}
}

/* --- the request --- */

static int jupyter_read(struct jupyter *j, const json_t *body, struct err *e)
{
	const json_t *cells = json_object_get(body, "cells"), *cell;
	uint64_t      total = JUPYTER_TOTAL_MS;
	json_t       *rest;
	size_t        i;
	int           r;

	if (!json_array_size(cells) || json_array_size(cells) > JUPYTER_CELLS_MAX)
		return err_set(e, ERR_BAD_SPEC, "cells: expected a list of 1 to %d texts", JUPYTER_CELLS_MAX);
	json_array_foreach(cells, i, cell)
		if (!json_is_string(cell) || strlen(json_string_value(cell)) != json_string_length(cell))
			return err_set(e, ERR_BAD_SPEC, "cells[%zu]: expected a text without NUL", i);
	if (*member_text(body, "kernel") && strcmp(member_text(body, "kernel"), "python3") != 0)
		return err_set(e, ERR_BAD_SPEC, "kernel: only python3 is served here");
	if (program_read_number(json_object_get(body, "cell_timeout"), "cell_timeout", 1000, &j->cell_ms, e) < 0 ||
	    program_read_number(json_object_get(body, "total_timeout"), "total_timeout", 1000, &total, e) < 0)
		return -1;
	j->total_ms = total;
	rest        = json_pack("{ss sO* sO*}", "code", "", "files", json_object_get(body, "files"), "fetch_files",
				json_object_get(body, "fetch_files"));
	r           = program_read(&j->first, INTERFACE_run_code, rest, e);
	json_decref(rest);
	return r;
}

void fusion_run_jupyter(struct exchange *x)
{
	struct run_outcome o = { 0 };
	struct jupyter    *j = calloc(1, sizeof *j);
	struct err         e;

	if (!j) {
		exchange_refuse(x, 504, "memory", "out of memory");
		return;
	}
	j->x = x;
	if (jupyter_read(j, x->json, &e) < 0) {
		single_run_refuse(x, &e);
	} else if (!(j->session = api_session_open(x->api, x->token, "", &o))) {
		exchange_answer_fault(x, &o);
	} else {
		j->cells   = json_array();
		x->work    = j;
		x->abandon = jupyter_abandon;
		jupyter_run_next(j);
		return;
	}
	program_done(&j->first);
	free(j);
}
