#include "check_report.h"

#include "command.h"
#include "foreign.h"
#include "report.h"
#include "summary.h"
#include "text.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

/* Prints the text made safe for a terminal. */
static void print_plain_text(const char *text)
{
	char *plain = strdup(text);

	if (!plain)
		return;
	text_make_plain(plain);
	fputs(plain, stdout);
	free(plain);
}

static void print_finding(const struct foreground_run *c, const json_t *finding, const char *kind)
{
	const json_t *at = json_object_get(finding, "line"), *cell = json_object_get(finding, "cell");

	print_plain_text(c->request->program);
	if (json_is_integer(cell))
		printf(": cell %" JSON_INTEGER_FORMAT ", line %" JSON_INTEGER_FORMAT, json_integer_value(cell), json_integer_value(at));
	else if (json_is_integer(at))
		printf(":%" JSON_INTEGER_FORMAT, json_integer_value(at));
	printf(": %s", kind);
	print_plain_text(json_string_value(json_object_get(finding, "message")));
	putchar('\n');
}

static void print_findings(const struct foreground_run *c, const json_t *report)
{
	const json_t *errors = json_object_get(report, "errors"), *warnings = json_object_get(report, "warnings");
	const json_t *syntax = json_object_get(report, "syntax_error");

	if (json_is_object(syntax) && json_array_size(errors) == 0)
		print_finding(c, syntax, "SyntaxError: ");
	for (size_t i = 0; i < json_array_size(errors); i++)
		print_finding(c, json_array_get(errors, i), "");
	for (size_t i = 0; i < json_array_size(warnings); i++)
		print_finding(c, json_array_get(warnings, i), "warning: ");
}

static void finding_to_cell(const json_t *cells, json_t *finding)
{
	json_int_t line = json_integer_value(json_object_get(finding, "line")), cell = line > 0 ? foreign_line_to_cell(cells, &line) : 0;

	if (!cell)
		return;
	json_object_set_new(finding, "line", json_integer(line));
	json_object_set_new(finding, "cell", json_integer(cell));
}

/* The checker has read the cells of a notebook as one text: makes its lines those of the cells. Its advice, which has lines in sentences, goes. */
static void findings_to_cells(const json_t *cells, json_t *report)
{
	static const char *const lists[] = { "errors", "warnings" };

	if (!cells)
		return;
	for (size_t k = 0; k < ARRAY_LEN(lists); k++)
		for (size_t i = 0; i < json_array_size(json_object_get(report, lists[k])); i++)
			finding_to_cell(cells, json_array_get(json_object_get(report, lists[k]), i));
	finding_to_cell(cells, json_object_get(report, "syntax_error"));
	json_array_clear(json_object_get(report, "recommendations"));
}

int check_report(const struct foreground_run *c)
{
	struct err       why    = { 0 };
	scoped_json     *record = report_make_record(c), *report = run_client_report(&c->run, PROGRAM_REPORT_check, &why);
	enum exit_reason reason;
	bool             is_valid;

	if (!report) { /* a program that the checker could not finish is known neither to be valid nor to be invalid */
		if (summary_get_exit_reason(record, &reason) && reason == EXIT_exited)
			fprintf(stderr, "brig: %s cannot be checked: the report of the checker cannot be used: %s\n", c->request->program, why.text);
		else
			report_print_ending(c, record);
		return STATUS_DENIED;
	}
	findings_to_cells(c->request->cells, report);
	if (!c->request->json)
		print_findings(c, report);
	else if (report_print_json(report) < 0)
		return STATUS_DENIED;
	/* a report that contradicts itself counts as invalid */
	is_valid = json_is_true(json_object_get(report, "valid")) && json_array_size(json_object_get(report, "errors")) == 0 &&
		   json_is_null(json_object_get(report, "syntax_error"));
	return is_valid ? STATUS_OK : STATUS_FAILED;
}
