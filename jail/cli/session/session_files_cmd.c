/* session_files_cmd.c - brig session put, get and files: a session's /workspace and the files of its user */
#include "session_common.h"

#include "ask.h"
#include "command.h"
#include "datagram.h"
#include "fd.h"
#include "one_run.h"
#include "run_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- the command line --- */

static int set_file_words(const char **into, char **words, int n, struct err *e)
{
	if (n < 1 || n > FILES_ASKED_MAX)
		return n ? err_set(e, ERR_BAD_SPEC, "more than %d at once; name a directory or a pattern", FILES_ASKED_MAX)
			 : err_set(e, ERR_BAD_SPEC, "name a file");
	memcpy(into, words, (size_t)n * sizeof *into);
	return 0;
}

static int put_set_words(struct request *r, char **words, int n, struct err *e)
{
	return set_file_words(r->put, words, n, e);
}

static int get_set_words(struct request *r, char **words, int n, struct err *e)
{
	return set_file_words(r->get, words, n, e);
}

static int files_set_pattern(struct request *r, char **words, int n, struct err *e)
{
	r->list = n ? words[0] : "*";
	return n > 1 ? err_set(e, ERR_BAD_SPEC, "one pattern at most") : run_files_check_pattern(r->list, "", e);
}

/* --- output --- */

static int compare_row_names(const void *a, const void *b)
{
	return strcmp(json_string_value(json_object_get(*(json_t *const *)a, "name")), json_string_value(json_object_get(*(json_t *const *)b, "name")));
}

static json_t *sort_rows(const json_t *rows)
{
	size_t   n      = json_array_size(rows);
	json_t **sorted = calloc(n + 1, sizeof(json_t *)), *list = json_array();

	for (size_t i = 0; sorted && i < n; i++)
		sorted[i] = json_array_get(rows, i);
	if (sorted)
		qsort(sorted, n, sizeof(json_t *), compare_row_names);
	for (size_t i = 0; sorted && i < n; i++)
		json_array_append(list, sorted[i]);
	free(sorted);
	return list;
}

static void print_row(const json_t *row)
{
	const char *left_out = json_string_value(json_object_get(row, "left_out"));

	if (left_out)
		printf("%12s ", left_out);
	else
		printf("%12" JSON_INTEGER_FORMAT " ", ask_reply_integer(row, "bytes"));
	session_print_file_name(json_object_get(row, "name"));
	putchar('\n');
}

static int print_list(const struct request *r, json_t *rows)
{
	scoped_json *sorted = sort_rows(rows);
	int          status = STATUS_OK;

	if (r->json)
		ask_print_json(sorted);
	else
		printf("%12s NAME\n", "BYTES");
	for (size_t i = 0; i < json_array_size(sorted); i++) {
		const json_t *row = json_array_get(sorted, i);

		if (!json_string_length(json_object_get(row, "name"))) { /* a row for the end of a list that was cut */
			fputs("brig: the list did not come as a whole\n", stderr);
			status = STATUS_FAILED;
		} else if (!r->json) {
			print_row(row);
		}
	}
	return status;
}

/* --- brig session put, get and files --- */

static int print_moved_files(const struct request *r, json_t *rows)
{
	if (r->by == BY_FILES)
		return print_list(r, rows);
	if (r->by == BY_GET && r->json)
		ask_print_json(rows);
	return run_files_print_left_out(rows, r->by == BY_PUT ? "put" : "saved", r->quiet) ? STATUS_NOT_SAVED : STATUS_OK;
}

/* The connection stays open until everything is copied: a session may end with it. */
static int files_carry_out(struct request *r, const char *command)
{
	struct brigd server = BRIGD_NONE;
	struct err   e;
	scoped_fd    sock = -1;
	int          sent, status = STATUS_FAILED;

	if (run_files_check(r, &e) < 0)
		return command_print_error(command, &e, STATUS_FAILED);
	if (session_connect(&server, false, &e) < 0)
		return command_print_error(command, &e, STATUS_DENIED);
	sock = datagram_open_files(server.sock, r->session, &e);
	if (sock < 0) {
		command_print_error(command, &e, status);
	} else {
		scoped_json *rows = run_files_exchange(r, sock, &sent);

		status = print_moved_files(r, rows);
		if (status == STATUS_OK && sent < 0)
			status = STATUS_NOT_SAVED;
	}
	(void)brigd_close(&server);
	return status;
}

const struct one_run_way session_put_way = {
	.by        = BY_PUT,
	.help      = { "brig session put SESSION [OPTION]... PATH[:NAME]...",
		       "Copy files and directories into /workspace of a session; a file that is there is replaced.", NULL },
	.take      = put_set_words,
	.carry_out = files_carry_out,
};

const struct one_run_way session_get_way = {
	.by        = BY_GET,
	.help      = { "brig session get SESSION [OPTION]... PATTERN[:LOCAL]...",
		       "Copy what matches out of /workspace of a session, to LOCAL or into the current directory.", NULL },
	.take      = get_set_words,
	.carry_out = files_carry_out,
};

const struct one_run_way session_files_way = {
	.by        = BY_FILES,
	.help      = { "brig session files SESSION [OPTION]... [PATTERN]",
		       "List the files in /workspace of a session: all, or those that match.", NULL },
	.take      = files_set_pattern,
	.carry_out = files_carry_out,
};
