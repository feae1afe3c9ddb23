/* fuzz_request.c - a number of descriptors, then any bytes, as a client's request: a refusal has a code and says why, what is accepted keeps its bounds */
#include "client_protocol.h"
#include "fuzz_rows.h"
#include "limits.h"
#include "run_plan.h"

static void must_be_refused_well(const struct denial *d, uint64_t tag)
{
	json_t       *error = protocol_error(d, tag);
	char         *text;
	scoped_answer a     = { 0 };
	struct err    e     = { 0 };

	protocol_error_put_facts(error, d);
	text = json_dumps(error, JSON_COMPACT);
	must((unsigned)d->code < DENIAL_COUNT && *d->text);
	must_about(d->text, text_is_plain(d->text));
	must_about(d->field, text_is_plain(d->field));
	must(text && strlen(text) <= PROTOCOL_MAX);
	must_about(text, protocol_parse_answer(&a, text, strlen(text), 0, &e) == 0 && a.kind == ANSWER_ERROR);
	free(text);
	json_decref(error);
}

static void must_be_plain_names(const json_t *ro)
{
	for (size_t i = 0; i < json_array_size(ro); i++) {
		const char *name = json_string_value(json_array_get(ro, i));

		must_about(name, *name && !strchr(name, '/') && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && !text_has_control(name));
	}
}

static void must_hold(const struct protocol_request *r, size_t fds)
{
	must(r->kind < REQUEST_COUNT && strcmp(request_name(r->kind), r->op) == 0);
	must_keep_bounds(request_fields(r->kind), r);
	must(r->tag == TAG_NONE || r->tag <= TAG_MAX);
	must(fds == (r->kind == REQUEST_run) + json_array_size(r->ro) + r->has_files && fds <= PROTOCOL_FDS_MAX);
	must(r->kind != REQUEST_exec || json_array_size(r->argv) >= 1);
	must(r->kind != REQUEST_cancel || r->run);
	must_be_plain_names(r->ro);
}

/* Whatever is asked, nothing above a ceiling comes out of it. */
static void must_only_lower(const struct protocol_request *r)
{
	static const int               none[1];
	static struct served_profile   profile = { .name = "fuzz" };
	static const struct brig_paths places;
	struct run_plan                plan;
	struct denial                  d;

	if (r->kind != REQUEST_exec || json_array_size(r->ro)) /* descriptors are not made of bytes */
		return;
	fields_set_presets(limits_fields, &profile.profile.limits);
	fields_set_presets(ceilings_fields, &profile.profile.ceilings);
	if (run_plan_build(&plan, &places, &profile, r, none, &d) < 0) {
		must_be_refused_well(&d, r->tag);
		return;
	}
	must(!limits_find_above_ceiling(&plan.limits, &profile.profile.ceilings) &&
	     exec_args_are_bounded(&plan.exec_args));
	run_plan_done(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	scoped_request r = { 0 };
	struct denial  d;
	size_t         fds;

	if (size == 0)
		return 0;
	fds = data[0] & 31;
	if (protocol_parse(&r, data + 1, size - 1, fds, &d) < 0) {
		must_be_refused_well(&d, r.tag);
		return 0;
	}
	must_hold(&r, fds);
	must_only_lower(&r);
	return 0;
}
