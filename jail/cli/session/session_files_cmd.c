/* session_files_cmd.c - brig session put, get and files: a session's /workspace and the files of its user */
#include "session_common.h"

#include "ascii.h"
#include "ask.h"
#include "command.h"
#include "datagram.h"
#include "fd.h"
#include "file_stream.h"
#include "run_files.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What differs between the three commands. */
struct way {
	enum request_by by;
	const char     *line, *what;
	int           (*take)(struct request *, const char **list, char **words, int n, struct err *);
	int           (*report)(const struct request *, json_t *rows);
};

/* --- the command line --- */

static int take_words(const char **into, char **words, int n, struct err *e)
{
	if (n < 1 || n > FILES_ASKED_MAX)
		return n ? err_set(e, ERR_BAD_SPEC, "more than %d at once; name a directory or a pattern", FILES_ASKED_MAX) : err_set(e, ERR_BAD_SPEC, "name a file");
	for (int i = 0; i < n; i++)
		into[i] = words[i];
	return 0;
}

static int take_put(struct request *r, const char **list, char **words, int n, struct err *e)
{
	(void)list;
	return take_words(r->put, words, n, e);
}

static int take_get(struct request *r, const char **list, char **words, int n, struct err *e)
{
	(void)list;
	return take_words(r->get, words, n, e);
}

static int take_list(struct request *r, const char **list, char **words, int n, struct err *e)
{
	char        plain[FILE_NAME_BYTES + 1];
	const char *fault;

	(void)r;
	*list = n ? words[0] : "*";
	fault = file_pattern_plain(*list, plain);
	if (n > 1)
		return err_set(e, ERR_BAD_SPEC, "one pattern at most");
	return fault ? err_set(e, ERR_BAD_SPEC, "%.60s: the pattern %s; name files as they lie below /workspace, like out/*.csv", *list, fault) : 0;
}

/* --- output --- */

static int by_name(const void *a, const void *b)
{
	return strcmp(json_string_value(json_object_get(*(json_t *const *)a, "name")), json_string_value(json_object_get(*(json_t *const *)b, "name")));
}

static json_t *sort(const json_t *rows)
{
	size_t   n      = json_array_size(rows);
	json_t **sorted = calloc(n + 1, sizeof(json_t *)), *list = json_array();

	for (size_t i = 0; sorted && i < n; i++)
		sorted[i] = json_array_get(rows, i);
	if (sorted)
		qsort(sorted, n, sizeof(json_t *), by_name);
	for (size_t i = 0; sorted && i < n; i++)
		json_array_append(list, sorted[i]);
	free(sorted);
	return list;
}

static int put_bytes(const char *bytes, size_t len, void *into)
{
	return fwrite(bytes, 1, len, into) == len ? 0 : -1;
}

/* Prints the name unchanged, or in quotes with escapes if a terminal would not show it. */
static void print_file_name(const json_t *name)
{
	const char *text = json_string_value(name);

	if (text_is_plain(text) && *text != '"')
		fputs(text, stdout);
	else
		ascii_dump(name, JSON_ENCODE_ANY, put_bytes, stdout);
	putchar('\n');
}

static void print_row(const json_t *row)
{
	const char *left_out = json_string_value(json_object_get(row, "left_out"));

	if (left_out)
		printf("%12s ", left_out);
	else
		printf("%12" JSON_INTEGER_FORMAT " ", ask_figure(row, "bytes"));
	print_file_name(json_object_get(row, "name"));
}

/* A row with an empty name says that the list was cut. */
static bool is_cut(const json_t *row)
{
	return !*json_string_value(json_object_get(row, "name"));
}

static int tell_list(const struct request *r, json_t *rows)
{
	scoped_json *sorted = sort(rows);
	int          status = STATUS_OK;

	if (r->json)
		ask_print_json(sorted);
	else
		printf("%12s NAME\n", "BYTES");
	for (size_t i = 0; i < json_array_size(sorted); i++) {
		const json_t *row = json_array_get(sorted, i);

		if (is_cut(row)) {
			fputs("brig: the list did not come as a whole\n", stderr);
			status = STATUS_FAILED;
		} else if (!r->json) {
			print_row(row);
		}
	}
	return status;
}

static int tell_put(const struct request *r, json_t *rows)
{
	return run_files_print_left_out(rows, "put", r->quiet) ? STATUS_NOT_SAVED : STATUS_OK;
}

static int tell_get(const struct request *r, json_t *rows)
{
	if (r->json)
		ask_print_json(rows);
	return run_files_print_left_out(rows, "saved", r->quiet) ? STATUS_NOT_SAVED : STATUS_OK;
}

/* --- brig session put, get and files --- */

static int open_socket(struct brigd *server, const struct request *r, struct err *e)
{
	json_t *request = json_pack("{ss ss}", "op", "files", "session", r->session);
	int     sock    = -1;
	json_t *reply;

	if (!request)
		return err_set(e, ERR_BAD_SPEC, "the session's name is not UTF-8");
	reply = datagram_exchange_fd(server->sock, request, &sock, e);
	json_decref(request);
	json_decref(reply);
	return sock;
}

static int fail(const char *command, const struct err *e)
{
	fprintf(stderr, "brig %s: %s\n", command, e->text);
	return STATUS_FAILED;
}

/* The connection stays open until everything is copied: a session may end with it. */
static int move(const char *command, struct request *r, const char *list, const struct way *way)
{
	struct brigd server = BRIGD_NONE;
	struct err   e;
	scoped_fd    sock = -1;
	int          sent, status;

	if (session_connect(&server, false, &e) < 0)
		return session_without(command, &e);
	sock = open_socket(&server, r, &e);
	if (sock < 0) {
		status = fail(command, &e);
	} else {
		scoped_json *rows = run_files_exchange(r, list, sock, &sent);

		status = way->report(r, rows);
		if (status == STATUS_OK && sent < 0)
			status = STATUS_NOT_SAVED;
	}
	(void)brigd_close(&server);
	return status;
}

static int usage(const struct option_row *rows, const struct way *way)
{
	printf("usage: %s\n\n%s\n\n", way->line, way->what);
	options_print(rows, stdout);
	return STATUS_OK;
}

static int main_of(struct request *r, int argc, char **argv, const struct way *way)
{
	struct option_row rows[REQUEST_OPTIONS_MAX];
	const char       *list = NULL;
	struct err        e;
	int               n;

	request_options(way->by, rows);
	n = session_parse(rows, argc, argv, r, &r->session, &e);
	if (n == OPTIONS_HELP)
		return usage(rows, way);
	if (n >= 0 && !r->session)
		n = err_set(&e, ERR_BAD_SPEC, "name a session; write: %s", way->line);
	if (n < 0 || way->take(r, &list, argv + n + 1, argc - n - 1, &e) < 0) {
		fprintf(stderr, "brig %s: %s\n", argv[0], e.text);
		return STATUS_USAGE;
	}
	return run_files_check(r, &e) < 0 ? fail(argv[0], &e) : move(argv[0], r, list, way);
}

static int way_main(int argc, char **argv, const struct way *way)
{
	struct request r;
	int            status;

	request_init(&r, way->by);
	status = main_of(&r, argc, argv, way);
	request_done(&r);
	return status;
}

int session_put_main(int argc, char **argv)
{
	return way_main(argc, argv, &(struct way){ BY_PUT, "brig session put SESSION [OPTION]... PATH[:NAME]...",
						   "Copy files and directories into /workspace of a session; a file that is there is replaced.", take_put, tell_put });
}

int session_get_main(int argc, char **argv)
{
	return way_main(argc, argv, &(struct way){ BY_GET, "brig session get SESSION [OPTION]... PATTERN[:LOCAL]...",
						   "Copy what matches out of /workspace of a session, to LOCAL or into the current directory.", take_get, tell_get });
}

int session_files_main(int argc, char **argv)
{
	return way_main(argc, argv, &(struct way){ BY_FILES, "brig session files SESSION [OPTION]... [PATTERN]",
						   "List the files in /workspace of a session: all, or those that match.", take_list, tell_list });
}
