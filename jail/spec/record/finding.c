#include "finding.h"

#include <stdio.h>

const char *need_name(enum need need)
{
	static const char *const names[] = {
		[NEED_INFO]     = "info",
		[NEED_OPTIONAL] = "optional",
		[NEED_SERVICE]  = "service",
		[NEED_DEFAULT]  = "default",
	};

	return names[need];
}

const char *result_name(enum result result)
{
	static const char *const names[] = {
		[RESULT_OK]       = "ok",
		[RESULT_DEGRADED] = "degraded",
		[RESULT_MISSING]  = "missing",
	};

	return names[result];
}

bool need_is_binding(enum need need, bool for_all)
{
	return need == NEED_DEFAULT || (need == NEED_SERVICE && for_all);
}

enum result result_degrade_by_need(enum result raw, enum need need, bool for_all)
{
	return raw == RESULT_MISSING && !need_is_binding(need, for_all) ? RESULT_DEGRADED : raw;
}

void verdict_add_result(struct verdict *v, size_t row, enum need need, enum result result, bool for_all)
{
	v->needed += need_is_binding(need, for_all);
	v->degraded += result == RESULT_DEGRADED;
	v->lost += result == RESULT_DEGRADED && need == NEED_SERVICE;
	if (result == RESULT_MISSING && v->missing++ == 0)
		v->first = row;
}

bool verdict_can_run(const struct verdict *v)
{
	return v->needed > 0 && v->missing == 0;
}

char *verdict_print_sentence(const struct verdict *v, const char *first_name, char *buf, size_t len)
{
	if (verdict_can_run(v) && v->lost)
		snprintf(buf, len, "The default profile can run here, without %u thing%s that root has: see degraded.", v->lost,
		         v->lost == 1 ? "" : "s");
	else if (verdict_can_run(v))
		snprintf(buf, len, "The default profile can run here.");
	else if (v->missing == 0)
		snprintf(buf, len, "The default profile cannot run here: nothing was probed.");
	else
		snprintf(buf, len, "The default profile cannot run here: %u of %u needed things %s missing; first: %s.", v->missing,
		         v->needed, v->missing == 1 ? "is" : "are", first_name);
	return buf;
}
