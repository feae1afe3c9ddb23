/* fusion.c - SandboxFusion's /run_code: rewards of verl, open-instruct and others */
#include "single_run.h"
#include "spelling.h"

static json_t *fusion_encode(const struct exchange *x, const struct run_outcome *o)
{
	json_t *files = o->files ? json_incref(o->files) : json_object();

	(void)x;
	return json_pack("{ss ss sn s{ss sf si so so} sn so so}", "status",
			 o->verdict == VERDICT_finished ? "Success" : "Failed", "message", single_run_limit_text(o),
			 "compile_result", "run_result", "status", verdict_names[o->verdict].fusion, "execution_time",
			 o->wall_ms < 0 ? 0 : o->wall_ms / 1000, "return_code", o->exit_code, "stdout",
			 run_outcome_text_to_json(o->out, o->out_len), "stderr", single_run_stderr_to_json(o),
			 "executor_pod_name", "files", files, "brig", run_outcome_brig_to_json(o));
}

void fusion_run_code(struct exchange *x)
{
	scoped_program p = { 0 };
	struct err     e;

	if (program_read(&p, INTERFACE_run_code, x->json, &e) < 0)
		single_run_refuse(x, &e);
	else
		single_run_start(x, &p, NULL, fusion_encode);
}

void fusion_ping(struct exchange *x)
{
	exchange_answer_text(x, 200, "application/json", "\"pong\"");
}
