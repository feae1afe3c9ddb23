/* session_paths_cmd.c - brig session stat, mkdir, mv and rm: one exchange with the files helper of a session */
#include "session_common.h"

#include "ask.h"
#include "command.h"
#include "datagram.h"
#include "fd.h"
#include "file_stream.h"
#include "one_run.h"
#include "run_files.h"
#include "text.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

/* --- the command line --- */

/* "": /workspace itself */
static void copy_plain_path(const char *path, char ret[FILE_NAME_BYTES + 1])
{
	if (file_pattern_normalize(path, ret) || strcmp(ret, "**") == 0)
		*ret = 0;
}

static int check_path(const struct request *r, const char *path, struct err *e)
{
	char        plain[FILE_NAME_BYTES + 1];
	const char *fault = file_pattern_normalize(path, plain);

	if (fault)
		return err_set(e, ERR_BAD_SPEC,
			       "%.60s: the path %s; name it as it lies below /workspace, like out/a.csv", path, fault);
	return r->by != BY_STAT && strcmp(plain, "**") == 0 ?
		       err_set(e, ERR_BAD_SPEC, "%.60s: is /workspace itself, which stays; name what is in it", path) :
		       0;
}

static int set_paths(struct request *r, char **words, int n, struct err *e)
{
	if (r->by == BY_MOVE && n != 2)
		return err_set(e, ERR_BAD_SPEC, "write two paths: what it is called, and what it will be");
	if (n < 1)
		return err_set(e, ERR_BAD_SPEC, "name a file or directory");
	if (n > FILES_ASKED_MAX)
		return err_set(e, ERR_BAD_SPEC, "more than %d at once", FILES_ASKED_MAX);
	for (int i = 0; i < n; i++) {
		r->path[i] = words[i];
		if (check_path(r, words[i], e) < 0)
			return -1;
	}
	return 0;
}

/* --- the exchange --- */

/* The helper reads all of this before it answers, so neither side waits for the other. */
static int send_paths(const struct request *r, int sock)
{
	char plain[FILE_NAME_BYTES + 1], to[FILE_NAME_BYTES + 1];

	if (r->by == BY_MOVE) {
		copy_plain_path(r->path[0], plain);
		copy_plain_path(r->path[1], to);
		if (file_stream_write_header(sock, FILE_RENAME, plain, strlen(to)) < 0 ||
		    file_stream_write(sock, to, strlen(to)) < 0)
			return -1;
	}
	for (size_t i = 0; r->path[i] && r->by & (BY_MKDIR | BY_REMOVE); i++) {
		copy_plain_path(r->path[i], plain);
		if (file_stream_write_header(sock, r->by == BY_MKDIR ? FILE_FOLDER : FILE_REMOVE, plain,
					     r->recursive ? FILE_REMOVE_TREE : 0) < 0)
			return -1;
	}
	if (file_stream_write_header(sock, FILE_END, "", 0) < 0)
		return -1;
	for (size_t i = 0; r->path[i] && r->by == BY_STAT; i++) {
		copy_plain_path(r->path[i], plain);
		if (file_stream_write_header(sock, FILE_STAT, plain, 0) < 0)
			return -1;
	}
	return file_stream_write_header(sock, FILE_END, "", 0);
}

/* -1: the helper has ended, and what is received ends early, too. */
static int send_paths_without_sigpipe(const struct request *r, int sock)
{
	int sent;

	signal(SIGPIPE, SIG_IGN);
	sent = send_paths(r, sock);
	signal(SIGPIPE, SIG_DFL);
	return sent;
}

static const char *type_name(uint32_t mode)
{
	return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "directory" : S_ISLNK(mode) ? "link" : "special";
}

/* A program of the session may control the sender. */
static json_t *receive_status(int sock, const struct file_entry *entry, const char *name)
{
	struct file_status st;
	char               target[FILE_TARGET_BYTES + 1];
	size_t             n = entry->bytes - sizeof st;

	if (entry->bytes < sizeof st || n > FILE_TARGET_BYTES || file_stream_read(sock, &st, sizeof st) < 0 ||
	    file_stream_read(sock, target, n) < 0)
		return NULL;
	target[n] = 0;
	return json_pack("{so ss si sI sf so}", "name", run_files_name_to_json(*name ? name : "."), "type",
			 type_name(st.mode), "mode", (int)(st.mode & 07777), "bytes", (json_int_t)(st.size & INT64_MAX),
			 "modified", (double)st.mtime_ns / 1e9, "target",
			 n ? run_files_name_to_json(target) : json_null());
}

static json_t *make_left_row(const char *name, const char *why)
{
	return json_pack("{so ss}", "name", run_files_name_to_json(name), "left_out", why);
}

static json_t *receive_rows(const struct request *r, int sock)
{
	struct file_entry entry;
	char              name[FILE_NAME_BYTES + 1];
	struct err        e;
	json_t           *rows = json_array(), *row;

	for (size_t i = 0; i <= FILES_ASKED_MAX && file_stream_read_header(sock, &entry, name, &e) == 0; i++) {
		if (entry.kind == FILE_END)
			return rows;
		row = NULL;
		if (entry.kind == FILE_LEFT)
			row = make_left_row(name, file_left_reason_name((enum file_left)entry.bytes));
		else if (entry.kind == FILE_STAT && r->by == BY_STAT)
			row = receive_status(sock, &entry, name);
		if (!row)
			break;
		json_array_append_new(rows, row);
	}
	json_array_append_new(rows, make_left_row("", "cut"));
	return rows;
}

/* --- output --- */

static void print_status(const json_t *row)
{
	time_t      modified = (time_t)json_real_value(json_object_get(row, "modified"));
	char        time[40] = "-";
	struct tm   local;
	const char *target = json_string_value(json_object_get(row, "target"));

	if (localtime_r(&modified, &local))
		strftime(time, sizeof time, "%Y-%m-%d %H:%M:%S", &local);
	printf("%-9s %04o %12" JSON_INTEGER_FORMAT " %s ", json_string_value(json_object_get(row, "type")),
	       (unsigned)ask_reply_integer(row, "mode"), ask_reply_integer(row, "bytes"), time);
	session_print_file_name(json_object_get(row, "name"));
	if (target) {
		fputs(" -> ", stdout);
		session_print_file_name(json_object_get(row, "target"));
	}
	putchar('\n');
}

static void print_statuses(const struct request *r, const json_t *rows)
{
	scoped_json *found = json_array();

	for (size_t i = 0; i < json_array_size(rows); i++)
		if (!json_object_get(json_array_get(rows, i), "left_out"))
			json_array_append(found, json_array_get(rows, i));
	if (r->json) {
		ask_print_json(found);
		return;
	}
	if (json_array_size(found))
		printf("%-9s %4s %12s %-19s NAME\n", "TYPE", "MODE", "BYTES", "MODIFIED");
	for (size_t i = 0; i < json_array_size(found); i++)
		print_status(json_array_get(found, i));
}

static int paths_carry_out(struct request *r, const char *command)
{
	struct brigd server = BRIGD_NONE;
	struct err   e;
	scoped_fd    sock   = -1;
	int          status = STATUS_FAILED;

	if (session_connect(&server, false, &e) < 0)
		return command_print_error(command, &e, STATUS_DENIED);
	sock = datagram_open_files(server.sock, r->session, &e);
	if (sock < 0) {
		command_print_error(command, &e, status);
	} else {
		const char  *done = r->by == BY_STAT  ? "found" :
				    r->by == BY_MKDIR ? "made" :
				    r->by == BY_MOVE  ? "moved" :
							"removed";
		int          sent = send_paths_without_sigpipe(r, sock);
		scoped_json *rows = receive_rows(r, sock);

		if (r->by == BY_STAT)
			print_statuses(r, rows);
		status = run_files_print_left_out(rows, done, r->quiet) || sent < 0 ? STATUS_NOT_SAVED : STATUS_OK;
	}
	(void)brigd_close(&server);
	return status;
}

const struct one_run_way session_stat_way = {
	.by        = BY_STAT,
	.help      = { "brig session stat SESSION [OPTION]... PATH...",
		       "Describe files and directories in /workspace of a session. A link is not followed.", NULL },
	.take      = set_paths,
	.carry_out = paths_carry_out,
};

const struct one_run_way session_mkdir_way = {
	.by        = BY_MKDIR,
	.help      = { "brig session mkdir SESSION PATH...",
		       "Make directories in /workspace of a session, and those above them that are missing.", NULL },
	.take      = set_paths,
	.carry_out = paths_carry_out,
};

const struct one_run_way session_mv_way = {
	.by        = BY_MOVE,
	.help      = { "brig session mv SESSION PATH NEW",
		       "Rename a file or directory in /workspace of a session; a file called NEW is replaced.", NULL },
	.take      = set_paths,
	.carry_out = paths_carry_out,
};

const struct one_run_way session_rm_way = {
	.by        = BY_REMOVE,
	.help      = { "brig session rm SESSION [OPTION]... PATH...",
		       "Remove files and empty directories in /workspace of a session.", NULL },
	.take      = set_paths,
	.carry_out = paths_carry_out,
};
