/* tool_write_file.c - put a file into a session */
#include "profile_info.h"
#include "session_use.h"
#include "tool.h"
#include "workspace_file.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const struct argument rows[] = {
	{ { "session", FIELD_STR, 0, 0, PROTOCOL_NAME_MAX,    0, "", NULL, NULL }, true,
	  "Its name; a new one is made with the profile of the server" },
	{ { "path",    FIELD_STR, 0, 1, FILE_NAME_BYTES + 32, 0, "", NULL, NULL }, true,
	  "Path below /workspace; directories are made, and a file that is there is replaced" },
	{ { "content", FIELD_STR, 0, 0, FIELD_ANY,            0, "", NULL, NULL }, false,
	  "Its text" },
	{ { "base64",  FIELD_STR, 0, 0, FIELD_ANY,            0, "", NULL, NULL }, false,
	  "Or its bytes" },
	{ { 0 }, false, NULL },
};
/* clang-format on */

struct work {
	struct call         *call;
	json_t              *arguments;
	const char          *session; /* borrowed from arguments */
	json_t              *asked;
	struct profile_question          fact;
	struct session_files files;
	char                *out; /* until files has it */
	size_t               out_len;
	uint64_t             left_out; /* the reason why it was left out + 1; 0: it was not */
};

static void write_file_work_free(struct call *c)
{
	struct work *w = c->work;

	c->cancel = NULL;
	profile_info_detach(&w->fact);
	session_files_done(&w->files);
	json_decref(w->arguments);
	json_decref(w->asked);
	free(w->out);
	free(w);
}

/* --- what comes of it --- */

static bool on_file_left_out(void *owner, const struct file_entry *entry, const char *name)
{
	struct work *w = owner;

	(void)name;
	if (entry->kind == FILE_LEFT)
		w->left_out = entry->bytes + 1;
	return true;
}

static void on_file_written(void *owner, const struct err *why)
{
	struct work *w    = owner;
	const char  *path = json_string_value(json_object_get(w->arguments, "path"));
	json_t      *text;

	if (why) {
		tool_end_work_with_text(w->call, why->text, true);
		return;
	}
	if (w->left_out)
		text = json_sprintf("path: \"%s\" %s", path, workspace_file_left_out_text(w->left_out - 1));
	else
		text = json_sprintf("Written: %s, in session '%s'.", path, w->session);
	tool_end_work_with_text(w->call, json_string_value(text), w->left_out > 0);
	json_decref(text);
}

/* --- the session --- */

static void on_profile_explained(void *owner, const json_t *reply, const struct err *why)
{
	static const struct transfer_events events = { .read  = { .entry = on_file_left_out },
						       .ended = on_file_written };
	struct work                        *w      = owner;
	struct err                          e      = why ? *why : (struct err){ 0 };
	struct named_session *s = reply ? named_session_make(w->call, w->session, w->asked, reply, NULL, &e) : NULL;
	char                               *out    = w->out;

	if (!s) {
		tool_end_work_with_text(w->call, e.text, true);
		return;
	}
	w->out = NULL;
	session_files_start(&w->files, s, out, w->out_len, &events, w);
}

/* --- the arguments --- */

static int write_file_parse_arguments(struct work *w, const json_t *given, struct err *e)
{
	static const char *const keys[] = { "path", "content", "base64" };
	json_t                  *file;

	w->arguments = arguments_parse(rows, given, NULL, e);
	w->session   = w->arguments ? named_session_parse_argument(w->arguments, e) : NULL;
	if (!w->session)
		return -1;
	if (!*w->session)
		return err_set(e, ERR_BAD_SPEC, "session: is empty; choose a name");
	file = json_object();
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (json_is_string(json_object_get(w->arguments, keys[i])))
			json_object_set(file, keys[i], json_object_get(w->arguments, keys[i]));
	w->out = workspace_file_make_puts(file, &w->out_len, e);
	json_decref(file);
	w->asked = w->out ? named_session_merge_asked(w->call, w->session, w->arguments, NULL, e) : NULL;
	return w->asked ? 0 : -1;
}

static void write_file_call(struct call *c, const json_t *given)
{
	struct work *w = tool_work_create(c, sizeof *w, write_file_work_free);
	struct err   e;

	if (!w)
		return;
	w->call   = c;
	w->fact   = (struct profile_question){ .known = on_profile_explained, .owner = w };
	if (write_file_parse_arguments(w, given, &e) < 0)
		tool_end_work_with_text(w->call, e.text, true);
	else
		profile_info_ask(&w->fact, c->mcp->brigd_link, "explain",
				 json_string_value(json_object_get(w->asked, "profile")));
}

const struct tool tool_write_file = {
	.name        = "write_file",
	.description = "Write a file of a session: content is text, base64 bytes.",
	.arguments   = rows,
	.idempotent  = true,
	.in_session  = true,
	.call        = write_file_call,
};
