#include "finding.h"
#include "tap.h"

static const struct {
	const char *name;
	enum result raw;
	enum need   need;
	bool        is_root;
	enum result says;
} settled[] = {
	/* sentence                                       found             needed by      root   becomes */
	{ "what is ok stays ok",                          RESULT_OK,       NEED_DEFAULT,  false, RESULT_OK },
	{ "a default thing that is missing is missing",   RESULT_MISSING,  NEED_DEFAULT,  false, RESULT_MISSING },
	{ "a limit that is missing as root is missing",   RESULT_MISSING,  NEED_SERVICE,  true,  RESULT_MISSING },
	{ "a limit that is missing rootless is a loss",   RESULT_MISSING,  NEED_SERVICE,  false, RESULT_DEGRADED },
	{ "a figure that is missing is a loss",           RESULT_MISSING,  NEED_OPTIONAL, true,  RESULT_DEGRADED },
	{ "an information is never missing",              RESULT_MISSING,  NEED_INFO,     true,  RESULT_DEGRADED },
	{ "a loss in a default thing stays a loss",       RESULT_DEGRADED, NEED_DEFAULT,  true,  RESULT_DEGRADED },
};

struct seen {
	enum need   need;
	enum result result;
};

static const struct {
	const char *name;
	bool        is_root;
	struct seen seen[3];
	bool        can_run;
	const char *sentence;
} verdicts[] = {
	{ "all ok can run", true, { { NEED_DEFAULT, RESULT_OK }, { NEED_SERVICE, RESULT_OK }, { NEED_INFO, RESULT_OK } }, true,
	  "The default profile can run here." },
	{ "a loss does not keep it from running", false,
	  { { NEED_DEFAULT, RESULT_OK }, { NEED_DEFAULT, RESULT_DEGRADED }, { NEED_OPTIONAL, RESULT_DEGRADED } }, true,
	  "The default profile can run here." },
	{ "what root would insist on is counted", false,
	  { { NEED_DEFAULT, RESULT_OK }, { NEED_SERVICE, RESULT_DEGRADED }, { NEED_OPTIONAL, RESULT_DEGRADED } }, true,
	  "The default profile can run here, without 1 thing that root has: see degraded." },
	{ "one missing thing does, and is named", true,
	  { { NEED_DEFAULT, RESULT_OK }, { NEED_SERVICE, RESULT_MISSING }, { NEED_INFO, RESULT_OK } }, false,
	  "The default profile cannot run here: 1 of 2 needed things is missing; first: b." },
	{ "the first of several is named", true,
	  { { NEED_DEFAULT, RESULT_MISSING }, { NEED_DEFAULT, RESULT_OK }, { NEED_DEFAULT, RESULT_MISSING } }, false,
	  "The default profile cannot run here: 2 of 3 needed things are missing; first: a." },
};

int main(void)
{
	static const char *const names[] = { "a", "b", "c" };
	struct verdict           nothing = { 0 };
	char                     text[160];

	for (size_t i = 0; i < ARRAY_LEN(settled); i++)
		tap_ok(result_degrade_by_need(settled[i].raw, settled[i].need, settled[i].is_root) == settled[i].says,
		       "%s", settled[i].name);
	for (size_t i = 0; i < ARRAY_LEN(verdicts); i++) {
		struct verdict v = { 0 };

		for (size_t j = 0; j < ARRAY_LEN(names); j++)
			verdict_add_result(&v, j, verdicts[i].seen[j].need, verdicts[i].seen[j].result,
					   verdicts[i].is_root);
		tap_ok(verdict_can_run(&v) == verdicts[i].can_run, "%s", verdicts[i].name);
		tap_is(verdict_print_sentence(&v, names[v.first], text, sizeof text), verdicts[i].sentence, "its sentence says so");
	}
	tap_ok(!verdict_can_run(&nothing), "nothing probed is not a yes");
	return tap_done();
}
