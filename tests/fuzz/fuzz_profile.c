/* fuzz_profile.c - any bytes as a profile: what is accepted keeps every bound and can be written down and read again */
#include "fuzz_rows.h"
#include "profile.h"

static void must_hold(const struct profile *p)
{
	must(p->rootfs && p->policy && p->description);
	must_keep_bounds(profile_fields, p);
	must(!limits_find_above_ceiling(&p->limits, &p->ceilings));
}

static void must_read_the_same(const struct profile *p)
{
	json_t        *first = rows_to_json(profile_fields, p), *second;
	char          *text  = json_dumps(first, JSON_COMPACT);
	scoped_profile again = { 0 };
	struct err     e     = { 0 };

	must(text);
	if (strlen(text) <= PROFILE_MAX) { /* with every preset written out it may be longer than a file */
		must_about(e.text, profile_parse(&again, "fuzz", text, strlen(text), &e) == 0);
		second = rows_to_json(profile_fields, &again);
		must_about(text, json_equal(first, second));
		json_decref(second);
	}
	json_decref(first);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_profile p = { 0 };
	struct err     e = { 0 };

	if (profile_parse(&p, "fuzz", data, size, &e) < 0) {
		must_name_row(profile_fields, &e);
		must(!p.source);
		return 0;
	}
	must_hold(&p);
	must_read_the_same(&p);
	return 0;
}
