/* fuzz_program_report.c - which report is wanted, then any bytes, as what comes out of a jail: what is taken has every key, is bounded, and fits a record */
#include "fuzz.h"
#include "program_report.h"
#include "record.h"

static bool is_free(const char *key)
{
	return strcmp(key, "result") == 0 || strcmp(key, "application/json") == 0 || strcmp(key, "application/vnd.plotly.v1+json") == 0;
}

/* All but JSON of the program's own are texts as the rest of us reads them. */
static void must_be_texts(const json_t *value)
{
	const char *key;
	json_t     *member;

	if (json_is_string(value))
		must(strlen(json_string_value(value)) == json_string_length(value) && json_string_length(value) <= PROGRAM_REPORT_DATUM_MAX);
	must(json_array_size(value) <= 1000);
	for (size_t i = 0; i < json_array_size(value); i++)
		must_be_texts(json_array_get(value, i));
	json_object_foreach((json_t *)value, key, member)
		if (!is_free(key))
			must_be_texts(member);
}

static void must_be_bundle(const json_t *bundle)
{
	static const char *const types[] = { "image/png", "image/jpeg", "application/pdf" };
	const char              *key;
	json_t                  *data;

	json_object_foreach((json_t *)bundle, key, data) {
		const struct shape *shape = program_report_bundle_shape();

		while (shape->name && strcmp(shape->name, key) != 0)
			shape++;
		must_about(key, shape->name);
	}
	for (size_t i = 0; i < ARRAY_LEN(types); i++) {
		const json_t *text = json_object_get(bundle, types[i]);

		must(!text || program_report_is_base64(json_string_value(text), json_string_length(text)));
	}
}

static void must_be_shown(const json_t *report)
{
	const json_t *displays = json_object_get(report, "displays");

	must(json_array_size(displays) <= PROGRAM_REPORT_DISPLAYS_MAX);
	for (size_t i = 0; i < json_array_size(displays); i++)
		must_be_bundle(json_array_get(displays, i));
	must_be_bundle(json_object_get(report, "bundle"));
}

static void must_fit_a_record(const json_t *report)
{
	struct record r = { .result = &RUN_RESULT_NONE };
	json_t       *record, *before;
	char         *text;

	record = record_to_json(&r);
	before = json_deep_copy(record);
	program_report_copy_to_record(record, report);
	must(json_object_size(record) == json_object_size(before) + !!json_object_get(report, "figures") + !!json_object_get(report, "displays") +
						  !!json_object_get(report, "bundle") + !!json_object_get(report, "left_out"));
	must(json_equal(json_object_get(record, "exit_reason"), json_object_get(before, "exit_reason")));
	must(json_equal(json_object_get(record, "exit_code"), json_object_get(before, "exit_code")));
	text = json_dumps(record, 0);
	must(text);
	free(text);
	json_decref(before);
	json_decref(record);
}

static void must_hold(enum program_report_kind kind, const json_t *report)
{
	const struct shape *shape = program_report_shape(kind);
	size_t              n     = 0;

	for (; shape->name; shape++)
		if (shape->need != SHAPE_MAY || json_object_get(report, shape->name)) {
			must_about(shape->name, json_object_get(report, shape->name));
			n++;
		}
	must(json_object_size(report) == n);
	must_be_texts(report);
	must_be_shown(report);
	if (kind == PROGRAM_REPORT_run)
		must_fit_a_record(report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = { 0 };
	json_t    *report;

	if (size == 0)
		return 0;
	report = program_report_parse(data[0] & 1, data + 1, size - 1, &e);
	if (!report)
		must_say_why(&e);
	else
		must_hold(data[0] & 1, report);
	json_decref(report);
	return 0;
}
