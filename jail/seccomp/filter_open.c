#include "call_number.h"
#include "filter_cache.h"

#include <stdlib.h>

static int compile_policy_bundle(const struct policy_bundle *b, struct filter *ret, struct err *e)
{
	struct policy *policy = malloc(sizeof *policy);
	int            answer;

	if (!policy)
		return err_sys(e, "memory for a policy");
	answer = policy_parse(policy, b, call_number, e) < 0 ? -1 : filter_compile(policy, ret, e);
	free(policy);
	return answer;
}

int filter_load_or_compile(const struct policy_bundle *b, const char *runtime_dir, struct filter *ret, struct err *e)
{
	if (!filter_cache_load(b, runtime_dir, ret))
		return 0;
	if (compile_policy_bundle(b, ret, e) < 0)
		return -1;
	(void)filter_cache_store(b, runtime_dir, ret); /* if it fails, the next run compiles again */
	return 0;
}
