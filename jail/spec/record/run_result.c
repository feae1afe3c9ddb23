#include "run_result.h"

#include <string.h>
#include <sys/wait.h>

static const struct {
	const char *name;
	int         status;
	const char *doc;
} reasons[] = {
#define EXIT(name, status, doc) { #name, status, doc },
#include "exit.def"
#undef EXIT
};

const char *exit_reason_name(enum exit_reason reason)
{
	return reasons[reason].name;
}

bool exit_reason_find(const char *name, enum exit_reason *ret)
{
	for (int i = 0; i < EXIT_REASONS; i++)
		if (strcmp(reasons[i].name, name) == 0) {
			*ret = (enum exit_reason)i;
			return true;
		}
	return false;
}

const char *exit_reason_doc(enum exit_reason reason)
{
	return reasons[reason].doc;
}

int exit_reason_status(enum exit_reason reason)
{
	return reasons[reason].status;
}

int run_result_signal(const struct run_result *r)
{
	return r->wait_status >= 0 && WIFSIGNALED(r->wait_status) ? WTERMSIG(r->wait_status) : 0;
}

int run_result_exit_code(const struct run_result *r)
{
	int signal = run_result_signal(r);

	return r->wait_status < 0 ? RECORD_NONE : signal ? 128 + signal : WEXITSTATUS(r->wait_status);
}
