/* run_spec_head.c - the check of an order's numbers, which processes make that never open an order file */
#include "run_spec_file.h"

bool run_spec_head_is_bounded(const struct run_spec_head *o)
{
	return exec_args_are_bounded(&o->exec_args) && o->code_len <= RUN_SPEC_CODE_MAX && o->stdin_pipe <= 1 &&
	       o->result_pipe <= 1 && o->tools <= 1 && o->executes <= 1 && (o->code_len || o->executes);
}
