#include "call_number.h"
#include "filter_cache.h"

#include <stdlib.h>

static int compile(const struct policy_bundle *b, struct filter *ret, struct err *e)
{
	struct policy *policy = malloc(sizeof *policy);
	int            answer;

	if (!policy)
		return err_sys(e, "memory for a policy");
	answer = policy_parse(policy, b, call_number, e) < 0 ? -1 : filter_compile(policy, ret, e);
	free(policy);
	return answer;
}

int filter_open(const struct policy_bundle *b, const char *runtime_dir, struct filter *ret, struct err *e)
{
	if (!filter_cache_find(b, runtime_dir, ret))
		return 0;
	if (compile(b, ret, e) < 0)
		return -1;
	(void)filter_cache_keep(b, runtime_dir, ret); /* if it fails, the next run compiles again */
	return 0;
}
