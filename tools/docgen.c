/*
 * docgen.c - a manual page from its template and the tables of the parsers.
 *
 *   docgen page FILE.in    the template on stdout, with two kinds of lines replaced:
 *                            .\" @include NAME     the file NAME beside the template
 *                            .\" @generate LIST    one of the lists below
 *                          and the version behind .Os, for the foot of the page
 *   docgen schema          the JSON schema of a profile
 *   docgen header          brig/protocol.h, for clients
 *   docgen lists           the names of the lists
 */
#define _GNU_SOURCE
#include "api_settings.h"
#include "audit_filter.h"
#include "client_protocol.h"
#include "config.h"
#include "layer.h"
#include "profile.h"
#include "program_report.h"
#include "record.h"
#include "brigd_connection.h"
#include "service_metrics.h"
#include "settings.h"
#include "shape.h"
#include "tool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Options of brig-api, each with its bounds. */
static void print_api_options(FILE *out)
{
	for (const struct option_row *row = api_options; row->field.name; row++) {
		const char *arg = option_arg_placeholder(row);

		fprintf(out, ".It Fl -%s%s%s\n%s.\n", row->field.name, *arg ? " Ar " : "", arg, row->field.doc);
		if (field_is_number(&row->field))
			field_print_bounds(&row->field, true, out);
	}
}

/* As they are typed behind the option: FIELD_MS rows take seconds there. */
static void print_options(FILE *out)
{
	char least[32], most[32], preset[32], ceiling[32];

	fputs(".Bl -tag -width Ds\n", out);
	for (const struct field *f = limits_fields; f->name; f++) {
		field_print_text(f, f->min, least, sizeof least);
		field_print_text(f, f->max, most, sizeof most);
		field_print_text(f, f->preset, preset, sizeof preset);
		field_print_text(f, field_find(ceilings_fields, f->name)->preset, ceiling, sizeof ceiling);
		fprintf(out, ".It Fl -%s Ar %s\n%s.\n", limits_option_name(f->name), field_arg_placeholder(f), f->doc);
		fprintf(out, "From %s to %s; default %s, ceiling %s.\n", least, most, preset, ceiling);
	}
	fputs(".El\n", out);
}

static void print_limits(FILE *out)
{
	fields_print_mdoc(limits_fields, out);
}

static void print_ceilings(FILE *out)
{
	char preset[32], ceiling[32];

	fputs(".Bl -column \"workspace_bytes\" \"--workspace-size\" \"default\" \"ceiling\" -compact\n"
	      ".It Sy setting Ta Sy option Ta Sy default Ta Sy ceiling\n", out);
	for (const struct field *f = limits_fields; f->name; f++) {
		field_print_value(f, f->preset, preset, sizeof preset);
		field_print_value(f, field_find(ceilings_fields, f->name)->preset, ceiling, sizeof ceiling);
		fprintf(out, ".It Ic %s Ta Fl -%s Ta %s Ta %s\n", f->name, limits_option_name(f->name), preset,
			ceiling);
	}
	fputs(".El\n", out);
}

static void print_profile(FILE *out)
{
	fields_print_mdoc(profile_fields, out);
}

static void print_exits(FILE *out)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (int i = 0; i < EXIT_REASONS; i++) {
		int status = exit_reason_status(i);

		fprintf(out, ".It Cm %s Pq status: ", exit_reason_name(i));
		fprintf(out, status < 0 ? "the program's own\n" : "%d\n", status);
		fprintf(out, "%s.\n", exit_reason_doc(i));
	}
	fputs(".El\n", out);
}

static void print_layers(FILE *out)
{
	static const char *const required[] = {
		[NEED_ALWAYS]        = "always",
		[NEED_ROOT]          = "when started by root",
		[NEED_WHERE_PRESENT] = "where the kernel has it",
	};

	fputs(".Bl -tag -width Ds\n", out);
	for (int i = 0; i < LAYER_COUNT; i++)
		fprintf(out, ".It Cm %s Pq required: %s\n%s.\n", layer_name(i), required[layer_need(i)], layer_doc(i));
	fputs(".El\n", out);
}

static void print_audit_rows(FILE *out)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (const struct audit_row *row = audit_rows; row->name; row++)
		fprintf(out, ".It Cm %s\n%s.\n", row->name, row->doc);
	fputs(".El\n", out);
}

static void print_audit_filters(FILE *out)
{
	for (const struct audit_filter_row *row = audit_filter_rows; row->option; row++)
		fprintf(out, ".It Fl -%s Ar %s\n%s.\n", row->option, row->arg, row->doc);
}

/* The settings, then what is inside of those that are objects. */
static void print_config(FILE *out)
{
	fields_print_mdoc(config_fields, out);
	for (const struct field *f = config_fields; f->name; f++) {
		if (!f->table)
			continue;
		fprintf(out, ".Pp\n%s\n.Cm %s :\n", f->type == FIELD_ROWS ? "In each row of" : "In", f->name);
		fields_print_mdoc(f->table, out);
	}
}

/* --- the protocol: what every request, answer or event has is said once, above its list --- */

enum { ROWS_MAX = 32 };

static bool is_one_of(const char *name, const char *const *names)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

static void print_keys(const struct field *f, FILE *out)
{
	static const char *const common[] = { "op", "tag", NULL };
	struct field             own[ROWS_MAX] = { 0 };
	size_t                   n             = 0;

	for (; f->name && n < ROWS_MAX - 1; f++)
		if (!is_one_of(f->name, common))
			own[n++] = *f;
	if (n)
		fields_print_mdoc(own, out);
}

static void print_shape(const struct shape *s, const char *const *common, FILE *out)
{
	struct shape own[ROWS_MAX] = { 0 };
	size_t       n             = 0;

	for (; s->name && n < ROWS_MAX - 1; s++)
		if (!is_one_of(s->name, common))
			own[n++] = *s;
	shape_print_mdoc(own, out);
}

static void print_reply(enum request_kind kind, FILE *out)
{
	static const char *const common[] = { "tag", NULL };

	fputs(".Pp\nThe reply:\n", out);
	print_shape(reply_shape(kind), common, out);
}

static void print_requests(FILE *out)
{
	for (int i = 0; i < REQUEST_COUNT; i++) {
		enum request_kind kind = (enum request_kind)i;

		fprintf(out, ".Ss %s\n%s.\nDescriptors: %s.\n", request_name(kind), request_doc(kind), request_fds_text(kind));
		if (request_required_key(kind))
			fprintf(out, "The key\n.Ic %s\nmust be there.\n", request_required_key(kind));
		print_keys(request_fields(kind), out);
		if (reply_shape(kind))
			print_reply(kind, out);
	}
}

static void print_events(FILE *out)
{
	static const char *const common[] = { "tag", "run", NULL };

	for (int i = 0; i < EVENT_COUNT; i++) {
		fprintf(out, ".Ss %s\n%s.\n", event_name((enum event_kind)i), event_doc((enum event_kind)i));
		print_shape(event_shape((enum event_kind)i), common, out);
	}
}

static void print_error(FILE *out)
{
	static const char *const common[] = { "tag", NULL };

	print_shape(error_shape(), common, out);
}

static void print_reports(FILE *out)
{
	static const char *const none[] = { NULL };

	fputs(".Ss report\nWhat came of a program:\n", out);
	print_shape(program_report_shape(PROGRAM_REPORT_run), none, out);
	fputs(".Ss check\nWhat was found in one:\n", out);
	print_shape(program_report_shape(PROGRAM_REPORT_check), none, out);
}

static void print_denials(FILE *out)
{
	fputs(".Bl -tag -width Ds\n", out);
	for (int i = 0; i < DENIAL_COUNT; i++)
		fprintf(out, ".It Cm %s\n%s.\n", denial_code_name((enum denial_code)i), denial_code_doc((enum denial_code)i));
	fputs(".El\n", out);
}

/* --- brig-mcp --- */

/* A text for models, sentence by sentence: it may begin a line with what mdoc takes for a request. */
static void print_prose(const char *text, FILE *out)
{
	for (bool begins = true; *text; text++) {
		if (begins && (*text == '.' || *text == '\''))
			fputs("\\&", out);
		if (*text == '\\')
			fputc('\\', out);
		fputc(*text == '\\' ? 'e' : *text, out);
		if (*text == '(' && text[1] == ')')
			fputs("\\&", out); /* print() is none of ours, and wants no .Fn */
		begins = *text == '\n';
		if (*text == '.' && text[1] == ' ') {
			fputc('\n', out);
			text++;
			begins = true;
		}
	}
	fputc('\n', out);
}

static void print_sentence(const char *text, FILE *out)
{
	char whole[1024];

	snprintf(whole, sizeof whole, "%s%s", text, *text && text[strlen(text) - 1] != '.' ? "." : "");
	print_prose(whole, out);
}

static void print_argument(const struct argument *a, FILE *out)
{
	const struct field *f = &a->field;

	fprintf(out, ".It Ic %s Pq %s%s\n", f->name, f->type == FIELD_SIZE ? "size, like 128m" : field_type_text(f), a->need == REQUIRED ? ", required" : "");
	print_sentence(a->manual ? a->manual : f->doc, out);
	field_print_bounds(f, false, out);
}

static void print_mcp_tools(FILE *out)
{
	for (size_t i = 0; tools[i]; i++) {
		const struct argument *a = tools[i]->arguments;

		fprintf(out, ".Ss %s\n", tools[i]->name);
		print_prose(tools[i]->manual ? tools[i]->manual : tools[i]->description, out);
		if (tools[i]->brokered)
			fputs("There with\n.Fl -servers\nonly.\n", out);
		if (tools[i]->in_session)
			fputs("Not there with\n.Ql --sessions 0 .\n", out);
		if (!a || !a->field.name)
			continue;
		fputs(".Bl -tag -width Ds\n", out);
		for (; a->field.name; a++)
			print_argument(a, out);
		fputs(".El\n", out);
	}
}

/* clang-format off */
static const struct {
	const char *name;
	void (*print)(FILE *);
} lists[] = {
	{ "api-options", print_api_options }, /* brig-api(1): items of the list of options */
	{ "options",  print_options },  /* brig(1): limits as options, in the units one types */
	{ "limits",   print_limits },   /* brig-profile(5): limits as settings */
	{ "ceilings", print_ceilings }, /* brig-profile(5): both presets of each, and the option */
	{ "profile",  print_profile },  /* brig-profile(5): settings of a profile */
	{ "exits",    print_exits },    /* brig(1): exit reasons and their statuses */
	{ "layers",   print_layers },   /* brig-security(7): as the record names them */
	{ "audit-rows",    print_audit_rows },    /* brigd(8): keys of a line */
	{ "config",   print_config },   /* brigd(8): settings of brig.json */
	{ "metrics",  service_metrics_print_mdoc }, /* brigd(8): what is on the page for Prometheus */
	{ "requests", print_requests }, /* brig-protocol(7): subsections, with the keys of each reply */
	{ "events",   print_events },   /* brig-protocol(7): subsections */
	{ "error",    print_error },    /* brig-protocol(7): keys of a refusal */
	{ "reports",  print_reports },  /* brig-protocol(7): subsections */
	{ "denials",  print_denials },  /* brig-protocol(7): codes of refusals */
	{ "mcp-settings", settings_print_mdoc },  /* brig-mcp(1): as options */
	{ "mcp-tools", print_mcp_tools },         /* brig-mcp(1): as models are told, with their arguments */
	{ "audit-filters", print_audit_filters }, /* brig(1): items of the list of options */
};
/* clang-format on */

/* A page wants lines of at most 80 bytes; sentences of the tables and of fragments may be longer. */
static void print_line(char *line, FILE *out)
{
	while (line[0] != '.' && strlen(line) > 79) {
		char *space = memrchr(line, ' ', 79);

		if (!space || space[1] == '.' || space[1] == '\'')
			break;
		fprintf(out, "%.*s\n", (int)(space - line), line);
		line = space + 1;
	}
	fprintf(out, "%s\n", line);
}

static int generate(const char *name, FILE *out)
{
	char  *text = NULL;
	size_t len;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if (strcmp(lists[i].name, name) == 0) {
			FILE *to = open_memstream(&text, &len);

			if (!to)
				return -1;
			lists[i].print(to);
			fclose(to);
			for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
				print_line(line, out);
			free(text);
			return 0;
		}
	fprintf(stderr, "docgen: no list \"%s\"\n", name);
	return -1;
}

static int copy_page(const char *path, FILE *out, int depth);

static int include(const char *page, const char *name, FILE *out, int depth)
{
	const char *slash = strrchr(page, '/');
	char        path[1024];

	snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - page) + 1 : 0, page, name);
	return copy_page(path, out, depth + 1);
}

static int copy_line(const char *path, char *line, bool *literal, FILE *out, int depth)
{
	char word[128];

	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, ".\\\" @include %100s", word) == 1)
		return include(path, word, out, depth);
	if (sscanf(line, ".\\\" @generate %100s", word) == 1)
		return generate(word, out);
	if (strcmp(line, ".Os") == 0)
		return fprintf(out, ".Os brig %s\n", BRIG_VERSION) < 0 ? -1 : 0;
	if (strncmp(line, ".Bd", 3) == 0 || strncmp(line, ".Ed", 3) == 0)
		*literal = line[1] == 'B';
	if (*literal)
		fprintf(out, "%s\n", line);
	else
		print_line(line, out);
	return 0;
}

static int copy_page(const char *path, FILE *out, int depth)
{
	FILE *in      = depth < 4 ? fopen(path, "re") : NULL;
	bool  literal = false;
	char  line[1024];
	int   r = 0;

	if (!in) {
		fprintf(stderr, "docgen: %s: %s\n", path, depth < 4 ? strerror(errno) : "included too deeply");
		return -1;
	}
	while (r == 0 && fgets(line, sizeof line, in))
		r = copy_line(path, line, &literal, out, depth);
	fclose(in);
	return r;
}

static int print_schema(FILE *out)
{
	json_t *schema = fields_schema(profile_fields);
	int     r;

	json_object_set_new(schema, "$schema", json_string("https://json-schema.org/draft/2020-12/schema"));
	json_object_set_new(schema, "title", json_string("brig profile"));
	r = json_dumpf(schema, out, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	json_decref(schema);
	fputc('\n', out);
	return r;
}

/* --- for clients --- */

static void define_text(const char *kind, const char *name, const char *doc, FILE *out)
{
	fprintf(out, "#define BRIG_%s_%s \"%s\" /* %s */\n", kind, name, name, doc);
}

/* Names as the protocol spells them, so that a program can be searched for them. */
static int print_header(FILE *out)
{
	fprintf(out, "/* brig/protocol.h - names and numbers of brig-protocol(7), version %d; made from brig's own tables */\n#pragma once\n\n", PROTOCOL_VERSION);
	fprintf(out, "#define BRIG_VERSION          \"%s\"\n#define BRIG_PROTOCOL_VERSION %d\n", BRIG_VERSION, PROTOCOL_VERSION);
	fprintf(out, "#define BRIG_SOCKET_PATH      \"%s\" /* of the host's service */\n", BRIGD_SOCKET);
	fprintf(out, "#define BRIG_MESSAGE_MAX      %d /* bytes of one message, either way */\n", PROTOCOL_MAX);
	fprintf(out, "#define BRIG_DESCRIPTORS_MAX  %d /* with one message */\n", PROTOCOL_FDS_MAX);
	fprintf(out, "#define BRIG_PROGRAM_MAX      %llu /* bytes of a program */\n", (unsigned long long)PROTOCOL_CODE_MAX);
	fprintf(out, "#define BRIG_ARGS_MAX         %d\n#define BRIG_ENV_MAX          %d\n#define BRIG_RO_MAX           %d\n", PROTOCOL_ARGS_MAX, PROTOCOL_ENV_MAX, PROTOCOL_RO_MAX);
	fputs("\n/* \"op\" of a request */\n", out);
	for (int i = 0; i < REQUEST_COUNT; i++)
		define_text("REQUEST", request_name((enum request_kind)i), request_doc((enum request_kind)i), out);
	fputs("\n/* \"event\" */\n", out);
	for (int i = 0; i < EVENT_COUNT; i++)
		define_text("EVENT", event_name((enum event_kind)i), event_doc((enum event_kind)i), out);
	fputs("\n/* \"code\" of an error */\n", out);
	for (int i = 0; i < DENIAL_COUNT; i++)
		define_text("ERROR", denial_code_name((enum denial_code)i), denial_code_doc((enum denial_code)i), out);
	fputs("\n/* \"exit_reason\" of a record */\n", out);
	for (int i = 0; i < EXIT_REASONS; i++)
		define_text("EXIT", exit_reason_name((enum exit_reason)i), exit_reason_doc((enum exit_reason)i), out);
	return 0;
}

static int print_names(FILE *out)
{
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		fprintf(out, "%s\n", lists[i].name);
	return 0;
}

int main(int argc, char **argv)
{
	int r;

	if (argc == 3 && strcmp(argv[1], "page") == 0)
		r = copy_page(argv[2], stdout, 0);
	else if (argc == 2 && strcmp(argv[1], "schema") == 0)
		r = print_schema(stdout);
	else if (argc == 2 && strcmp(argv[1], "header") == 0)
		r = print_header(stdout);
	else if (argc == 2 && strcmp(argv[1], "lists") == 0)
		r = print_names(stdout);
	else
		return 2;
	return r < 0 || fflush(stdout) != 0;
}
