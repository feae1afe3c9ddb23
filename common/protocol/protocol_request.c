#include "client_protocol.h"

#include "text.h"

#include <stdio.h>
#include <string.h>

static const char *const run_modes[]      = { "script", "report", "check", "resolve", NULL };
static const char *const cancel_reasons[] = { "cancelled", "output_limit", NULL };

/* clang-format off */
#define AT(member) offsetof(struct protocol_call, member)
const struct field protocol_call_fields[] = {
	{ "name",        FIELD_STR, AT(name),        0,  512, 0, "The tool, as the program named it", NULL, NULL },
	{ "verdict",     FIELD_STR, AT(verdict),     1,  32,  0, "How the call ended: ok, or the kind of its error", NULL, NULL },
	{ "args_sha256", FIELD_STR, AT(args_sha256), 64, 64,  0, "SHA-256 of its arguments", NULL, NULL },
	{ 0 },
};
#undef AT

#define AT(member) offsetof(struct protocol_request, member)
/*                name        type          where             least  most               preset            meaning */
#define KEY_OP      { "op",      FIELD_STR,    AT(op),           0,     63,                0,                "Which request", NULL, NULL }
#define KEY_TAG     { "tag",     FIELD_COUNT,  AT(tag),          0,     TAG_MAX,           TAG_NONE,         "Copied into the reply, the error and every event of the run", NULL, NULL }
#define KEY_VERSION { "version", FIELD_COUNT,  AT(version),      1,     1,                 PROTOCOL_VERSION, "The protocol that the client speaks", NULL, NULL }
#define KEY_PROFILE { "profile", FIELD_NAME,   AT(profile),      0,     63,                0,                "The profile; default: basic", NULL, NULL }
#define KEY_LIMITS  { "limits",  FIELD_OBJECT, AT(limits),       0,     0,                 0,                "Limits that differ from those of the profile, see LIMITS; none above its ceiling", NULL, NULL }
#define KEY_ENV     { "env",     FIELD_WORDS,  AT(env),          0,     PROTOCOL_ENV_MAX,  0,                "More environment variables for the program, each NAME=VALUE", NULL, NULL }
#define KEY_STDIN   { "stdin",   FIELD_BOOL,   AT(wants_stdin),  0,     1,                 0,                "Whether the client wants to write to the program's stdin; otherwise it is empty", NULL, NULL }
#define KEY_RO      { "ro",      FIELD_WORDS,  AT(ro),           0,     PROTOCOL_RO_MAX,   0,                "Names of directories and files to show, read-only, as /workspace/NAME; one descriptor comes for each", NULL, NULL }
#define KEY_FILES   { "files",   FIELD_BOOL,   AT(has_files),    0,     1,                 0,                "Whether files are copied into /workspace or out of it, see FILES; the descriptor of a socket comes for them", NULL, NULL }
#define KEY_TOOLS   { "tools",   FIELD_BOOL,   AT(has_tools),    0,     1,                 0,                "Whether the program may call tools of the client, see TOOLS; the event started then brings the stream tools", NULL, NULL }
#define KEY_COLD    { "cold",    FIELD_BOOL,   AT(cold),         0,     1,                 0,                "Whether to start a new interpreter even if a warm one is there", NULL, NULL }
#define KEY_WAIT    { "wait_ms", FIELD_COUNT,  AT(wait_ms),      0,     PROTOCOL_WAIT_MAX, 0,                "How long the run may wait when a quota is used up; 0: it is refused at once", NULL, NULL }
#define KEY_ALLOW   { "allow_missing", FIELD_WORDS, AT(allow_missing), 0,  2,                 0,                "Limits (memory, cpus) that a host without control groups need not enforce; otherwise a run that asks for them is refused there", NULL, NULL }
#define KEY_NETWORK { "network", FIELD_WORDS,  AT(network),      0,     PROTOCOL_NETWORK_MAX, 0,             "Hosts that the program may reach, each as HOST, *.DOMAIN, HOST:PORT or SCHEME://HOST:PORT/PATH, instead of those that the profile allows; each is allowed by the profile, or below its ceiling; an empty list: no network, see NETWORK", NULL, NULL }
#define KEY_MAIN    { "main",    FIELD_STR,    AT(main),         0,     PROTOCOL_MAIN_MAX, 0,                "Path of the program below a name of ro, as NAME/main.py: it runs as that file, and can import its neighbours; default: it runs as /workspace/main.py", NULL, NULL }
#define KEY_CWD     { "cwd",     FIELD_STR,    AT(cwd),          1,     PROTOCOL_MAIN_MAX, 0,                "Directory of the jail in which the program starts; a relative one is below /workspace, which is the default", NULL, NULL }
#define KEY_ARGS    { "args",    FIELD_WORDS,  AT(args),         0,     PROTOCOL_ARGS_MAX, 0,                "Arguments of the program", NULL, NULL }
#define KEY_ARGV    { "argv",    FIELD_WORDS,  AT(argv),         1,     PROTOCOL_ARGS_MAX, 0,                "The command and its arguments; a command without a slash is searched in the PATH of the jail", NULL, NULL }
#define KEY_RUN     { "run",     FIELD_STR,    AT(run),          0,     RUN_ID_LEN,        0,                "The id of the run", NULL, NULL }
#define KEY_MODE    { "mode",    FIELD_CHOICE, AT(mode),         0,     3,                 MODE_script,      "What executes the program: the interpreter (script), or a runner in the jail, which reports the program's result on the stream result (report), or only checks the program and reports what it finds (check), or does not execute it either, and finds the packages that it needs (resolve), see PACKAGES", run_modes, NULL }
#define KEY_IMPORTS { "imports", FIELD_WORDS,  AT(imports),      0,     PROTOCOL_IMPORTS_MAX, 0,             "Modules that the program may import, for the modes report and check: policy, not a boundary; default: any", NULL, NULL }
#define KEY_PACKAGES { "packages", FIELD_WORDS, AT(packages),   0,     PROTOCOL_PACKAGES_MAX, 0,            "Lines of a requirements file, for the mode resolve, see PACKAGES", NULL, NULL }
#define KEY_INDEX   { "index",   FIELD_STR,    AT(index),        8,     PROTOCOL_MAIN_MAX, 0,                "Of the mode resolve: the address of the index; in a service only that of the profile", NULL, NULL }
#define KEY_LAYER   { "layer",   FIELD_BOOL,   AT(has_layer),    0,     1,                 0,                "Whether a directory of packages is shown as /opt/packages, from which Python imports; its descriptor comes after those of ro", NULL, NULL }
#define KEY_WAITING { "waiting", FIELD_BOOL,   AT(is_waiting),   0,     1,                 0,                "Whether a tool call takes long: true pauses the clock of the limit wall until a message with false", NULL, NULL }
#define KEY_CALLS   { "calls",   FIELD_ROWS,   AT(calls),        0,     PROTOCOL_CALLS_MAX, 0,               "Calls that have ended, for the audit log", NULL, protocol_call_fields }
#define KEY_SESSION { "session", FIELD_STR,    AT(session),      1,     PROTOCOL_NAME_MAX, 0,                "The session: its id, or a name of one of this user's sessions", NULL, NULL }
#define KEY_CALLED  { "session", FIELD_STR,    AT(session),      1,     PROTOCOL_NAME_MAX, 0,                "The session in which this is a call, see SESSIONS; default: the run has a jail of its own", NULL, NULL }
#define KEY_CONTEXT { "context", FIELD_STR,    AT(context),      1,     PROTOCOL_NAME_MAX, 0,                "The interpreter of the session, by name; default: main", NULL, NULL }
#define KEY_NAME    { "name",    FIELD_STR,    AT(name),         1,     PROTOCOL_NAME_MAX, 0,                "A name for the session: letters, digits and ._-, and no other session of this user has it", NULL, NULL }
#define KEY_STAYS   { "stays",   FIELD_BOOL,   AT(stays),        0,     1,                 0,                "Whether the session outlives the connection", NULL, NULL }
#define KEY_DETACH  { "detach",  FIELD_BOOL,   AT(detach),       0,     1,                 0,                "Whether processes that a command of a session has started may go on after its end", NULL, NULL }
#define KEY_TERMINALS { "terminal", FIELD_BOOL, AT(terminal),    0,     1,                 0,                "Whether calls of exec may have a terminal, see SESSIONS; the session's cell is then made for it", NULL, NULL }
#define KEY_TERMINAL { "terminal", FIELD_BOOL, AT(terminal),     0,     1,                 0,                "Of a call in a session: whether the command has a terminal, see SESSIONS", NULL, NULL }
#define KEY_ROWS    { "rows",    FIELD_COUNT,  AT(rows),         1,     PROTOCOL_SIDE_MAX, 24,               "Rows of the terminal", NULL, NULL }
#define KEY_COLUMNS { "columns", FIELD_COUNT,  AT(columns),      1,     PROTOCOL_SIDE_MAX, 80,               "Columns of the terminal", NULL, NULL }
#define KEY_LIFETIME { "lifetime_ms", FIELD_COUNT, AT(lifetime_ms), PROTOCOL_LIFETIME_LEAST, PROTOCOL_LIFETIME_MAX, 0,  "Must be there: milliseconds from now on, after which the session is closed in any case", NULL, NULL }
#define KEY_PRINCIPAL { "principal", FIELD_STR, AT(principal),   1,     PROTOCOL_NAME_MAX, 0,                "For whom the client asks, in its own words: the audit log has it beside the user of the client", NULL, NULL }
#define KEY_REASON  { "reason",  FIELD_CHOICE, AT(reason),       0,     1,                 CANCEL_cancelled, "The exit_reason of the record", cancel_reasons, NULL }

static const struct field hello_fields[]   = { KEY_OP, KEY_TAG, KEY_VERSION, { 0 } };
static const struct field run_fields[]     = { KEY_OP, KEY_TAG, KEY_PRINCIPAL, KEY_CALLED, KEY_CONTEXT, KEY_PROFILE, KEY_LIMITS, KEY_MAIN, KEY_CWD, KEY_ARGS, KEY_ENV, KEY_STDIN, KEY_RO, KEY_FILES, KEY_TOOLS, KEY_COLD, KEY_WAIT, KEY_ALLOW, KEY_NETWORK, KEY_MODE, KEY_IMPORTS, KEY_PACKAGES, KEY_INDEX, KEY_LAYER, { 0 } };
static const struct field exec_fields[]    = { KEY_OP, KEY_TAG, KEY_PRINCIPAL, KEY_CALLED, KEY_DETACH, KEY_TERMINAL, KEY_ROWS, KEY_COLUMNS, KEY_PROFILE, KEY_LIMITS, KEY_ARGV, KEY_CWD, KEY_ENV, KEY_STDIN, KEY_RO, KEY_FILES, KEY_TOOLS, KEY_COLD, KEY_WAIT, KEY_ALLOW, KEY_NETWORK, KEY_LAYER, { 0 } };
static const struct field open_fields[]    = { KEY_OP, KEY_TAG, KEY_PRINCIPAL, KEY_PROFILE, KEY_LIMITS, KEY_NAME, KEY_STAYS, KEY_TERMINALS, KEY_ENV, KEY_RO, KEY_COLD, KEY_WAIT, KEY_ALLOW, KEY_NETWORK, KEY_LAYER, { 0 } };
static const struct field files_fields[]   = { KEY_OP, KEY_TAG, KEY_SESSION, { 0 } };
static const struct field interrupt_fields[] = { KEY_OP, KEY_TAG, KEY_RUN, { 0 } };
static const struct field resize_fields[]  = { KEY_OP, KEY_TAG, KEY_RUN, KEY_ROWS, KEY_COLUMNS, { 0 } };
static const struct field restart_fields[] = { KEY_OP, KEY_TAG, KEY_SESSION, KEY_CONTEXT, { 0 } };
static const struct field renew_fields[]   = { KEY_OP, KEY_TAG, KEY_SESSION, KEY_LIFETIME, { 0 } };
static const struct field close_fields[]   = { KEY_OP, KEY_TAG, KEY_SESSION, { 0 } };
static const struct field tools_fields[]   = { KEY_OP, KEY_TAG, KEY_RUN, KEY_WAITING, KEY_CALLS, { 0 } };
static const struct field cancel_fields[]  = { KEY_OP, KEY_TAG, KEY_RUN, KEY_REASON, { 0 } };
static const struct field list_fields[]    = { KEY_OP, KEY_TAG, { 0 } };
static const struct field stats_fields[]   = { KEY_OP, KEY_TAG, { 0 } };
static const struct field metrics_fields[] = { KEY_OP, KEY_TAG, KEY_PROFILE, { 0 } };
static const struct field reload_fields[]  = { KEY_OP, KEY_TAG, { 0 } };
static const struct field explain_fields[] = { KEY_OP, KEY_TAG, KEY_PROFILE, { 0 } };
/* clang-format on */
#undef AT

static const struct request_row {
	const char         *name;
	const struct field *fields;
	const char         *must; /* NULL: every key has a preset */
	enum request_fds    fds;
	const char         *doc;
} requests[] = {
#define REQUEST(name, must, descriptors, handler, reply, access, doc) { #name, name##_fields, must, descriptors, doc },
#include "client_protocol.def"
};

static const char *const fds_texts[] = {
	[FDS_NONE]        = "none",
	[FDS_RO]          = "one for each name in ro, then the directory of layer, then the socket for files",
	[FDS_CODE_AND_RO] = "the program's text, then one for each name in ro, then the directory of layer, then the socket for files",
};

/* Read before the request is checked, so that a refusal has the tag as well. */
static uint64_t read_tag(const json_t *message)
{
	const json_t *tag = json_object_get(message, "tag");
	json_int_t    n   = json_integer_value(tag);

	return json_is_integer(tag) && n >= 0 && (uint64_t)n <= TAG_MAX ? (uint64_t)n : TAG_NONE;
}

static int find_request_kind(struct protocol_request *r, struct denial *d)
{
	if (!r->op)
		return deny(d, DENIAL_bad_field, "op", "missing; name a request, like \"run\"");
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		if (strcmp(requests[i].name, r->op) != 0)
			continue;
		r->kind = (enum request_kind)i;
		return 0;
	}
	return deny(d, DENIAL_unknown_request, "op", "\"%.40s\" is no request", r->op);
}

int protocol_check_ro_name(const json_t *before, size_t n, const char *name, struct err *e)
{
	if (!*name || strlen(name) > 255 || strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(e, ERR_BAD_SPEC, "\"%.60s\" is no plain name", name);
	if (text_has_control(name))
		return err_set(e, ERR_BAD_SPEC, "\"%.60s\" has a control character", name);
	if (strcmp(name, "main.py") == 0)
		return err_set(e, ERR_BAD_SPEC, "the program itself is /workspace/main.py");
	for (size_t i = 0; i < n; i++)
		if (strcmp(json_string_value(json_array_get(before, i)), name) == 0)
			return err_set(e, ERR_BAD_SPEC, "two of them would both be /workspace/%.60s", name);
	return 0;
}

static int check_ro(const struct protocol_request *r, struct denial *d)
{
	struct err e;
	char       field[32];

	for (size_t i = 0; i < json_array_size(r->ro); i++) {
		if (protocol_check_ro_name(r->ro, i, json_string_value(json_array_get(r->ro, i)), &e) == 0)
			continue;
		snprintf(field, sizeof field, "ro[%zu]", i);
		return deny_err(d, DENIAL_bad_field, field, &e);
	}
	return 0;
}

/* main must be a plain path that begins with a name of ro. */
static int check_main(const struct protocol_request *r, struct denial *d)
{
	size_t first = r->main ? strcspn(r->main, "/") : 0;
	bool   shown = false;

	if (!r->main)
		return 0;
	for (size_t i = 0; i < json_array_size(r->ro); i++) {
		const char *name = json_string_value(json_array_get(r->ro, i));

		shown |= strlen(name) == first && strncmp(name, r->main, first) == 0;
	}
	if (*r->main == '-')
		return deny(d, DENIAL_bad_field, "main", "\"%.60s\" begins with a dash, as options of Python do", r->main);
	if (!shown)
		return deny(d, DENIAL_bad_field, "main", "\"%.60s\" does not begin with a name of ro", r->main);
	for (const char *at = r->main + first; *at; at += strcspn(at, "/")) {
		size_t n = strcspn(++at, "/");

		if (n == 0 || n > 255 || (n == 1 && *at == '.') || (n == 2 && begins_with(at, "..")))
			return deny(d, DENIAL_bad_field, "main", "\"%.60s\" is no plain path", r->main);
	}
	if (!r->main[first] || text_has_control(r->main))
		return deny(d, DENIAL_bad_field, "main", "\"%.60s\" names no file", r->main);
	return 0;
}

/* The mode "resolve" runs brig's own code, with the network of the index; what it leaves goes to the client by files. */
static int check_resolve(const struct protocol_request *r, struct denial *d)
{
	bool        is_resolve = r->kind == REQUEST_run && r->mode == MODE_resolve;
	const char *unused     = r->main ? "main" : r->cwd ? "cwd" : r->args ? "args" : json_array_size(r->env) ? "env" : r->has_tools ? "tools" : r->has_layer ? "layer" : r->wants_stdin ? "stdin" : NULL;

	if (!is_resolve && (r->packages || r->index))
		return deny(d, DENIAL_bad_field, r->packages ? "packages" : "index", "needs the mode \"resolve\", which finds packages; the run itself gets them as its layer");
	if (is_resolve && unused)
		return deny(d, DENIAL_bad_field, unused, "has no effect with the mode \"resolve\", which does not execute the program");
	if (is_resolve && !r->has_files)
		return deny(d, DENIAL_bad_field, "files", "missing; with the mode \"resolve\" the packages come out as a file");
	return 0;
}

/* The mode "check" only reads the program. */
static int check_mode(const struct protocol_request *r, struct denial *d)
{
	static const char unused[] = "has no effect with the mode \"check\", which only reads the program";
	bool              is_check = r->kind == REQUEST_run && r->mode == MODE_check;
	char              field[32];

	if (r->cwd && !*r->cwd)
		return deny(d, DENIAL_bad_field, "cwd", "is empty; name a directory of the jail, like /tmp");
	if (is_check && (r->cwd || r->has_files))
		return deny(d, DENIAL_bad_field, r->cwd ? "cwd" : "files", "%s", unused);
	if (is_check && r->has_tools)
		return deny(d, DENIAL_bad_field, "tools", "a program that is only read calls nothing");
	if (is_check && json_array_size(r->network))
		return deny(d, DENIAL_bad_field, "network", "a program that is only read reaches nothing");
	if (r->imports && (r->mode == MODE_script || r->mode == MODE_resolve))
		return deny(d, DENIAL_bad_field, "imports", "needs the mode \"report\" or \"check\"");
	for (size_t i = 0; i < json_array_size(r->imports); i++) {
		const char *name = json_string_value(json_array_get(r->imports, i));

		if (text_is_module(name))
			continue;
		snprintf(field, sizeof field, "imports[%zu]", i);
		return deny(d, DENIAL_bad_field, field, "\"%.60s\" is no name of a module; write one as Python does, like \"json\" or \"os.path\"", name);
	}
	return 0;
}

/* --- sessions --- */

static bool is_uuid(const char *text)
{
	static const char form[] = "00000000-0000-0000-0000-000000000000";

	for (size_t i = 0; i < sizeof form; i++)
		if (form[i] == '0' ? !strchr("0123456789abcdefABCDEF", text[i]) || !text[i] : text[i] != form[i])
			return false;
	return true;
}

bool protocol_is_name(const char *text)
{
	static const char may[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t            n     = strlen(text);

	return n > 0 && n <= PROTOCOL_NAME_MAX && strspn(text, may) == n && !is_uuid(text);
}

static int check_name_field(const char *name, const char *field, struct denial *d)
{
	if (!name || protocol_is_name(name))
		return 0;
	return deny(d, DENIAL_bad_field, field, "\"%.70s\" is no name; use 1 to %d letters, digits, dots, dashes and underscores, and no UUID", name, PROTOCOL_NAME_MAX);
}

/* Refuses the keys that belong to the session: they were set when it was opened. */
static int check_session_call_keys(const struct protocol_request *r, struct denial *d)
{
	static const char *const of_run[] = { "op", "tag", "principal", "session", "context", "env", "cwd", "limits", "tools", "mode", NULL }, *const of_exec[] = { "op", "tag", "principal", "session", "argv", "cwd", "env", "stdin", "detach", "terminal", "rows", "columns", "limits", NULL };
	const char              *key;
	json_t                  *value;

	json_object_foreach(r->source, key, value) {
		const char *const *may = r->kind == REQUEST_run ? of_run : of_exec;

		while (*may && strcmp(*may, key) != 0)
			may++;
		if (!*may)
			return deny(d, DENIAL_bad_field, key, "cannot be set in a call of a session");
	}
	if (json_object_get(r->source, "mode") && r->mode != MODE_report)
		return deny(d, DENIAL_bad_field, "mode", "is \"report\" in a session");
	return 0;
}

static int check_session(struct protocol_request *r, struct denial *d)
{
	bool is_start = r->kind == REQUEST_run || r->kind == REQUEST_exec;

	if (r->kind == REQUEST_renew && !r->lifetime_ms)
		return deny(d, DENIAL_bad_field, "lifetime_ms", "missing");
	if (check_name_field(r->name, "name", d) < 0 || check_name_field(r->context, "context", d) < 0)
		return -1;
	if (is_start && r->session && check_session_call_keys(r, d) < 0)
		return -1;
	if (is_start && !r->session && (r->detach || r->context || r->terminal))
		return deny(d, DENIAL_bad_field, r->context ? "context" : r->detach ? "detach" : "terminal", "needs a session");
	if (r->terminal && r->detach)
		return deny(d, DENIAL_bad_field, "detach", "a terminal ends with its command, and with it what was started there");
	r->wants_stdin |= is_start && r->terminal; /* for what the user types */
	if (is_start && r->session && r->kind == REQUEST_run)
		r->mode = MODE_report;
	if (!r->context)
		r->context = "main";
	return 0;
}

static int check_fd_count(const struct protocol_request *r, size_t fds, struct denial *d)
{
	const struct request_row *row  = &requests[r->kind];
	size_t                    want = (row->fds == FDS_CODE_AND_RO) + json_array_size(r->ro) + r->has_layer + r->has_files;

	if (fds == want)
		return 0;
	return deny(d, DENIAL_bad_descriptors, NULL, "%s: %zu descriptors came, %zu are wanted: %s", row->name, fds, want, fds_texts[row->fds]);
}

static int decode_request(struct protocol_request *r, struct denial *d)
{
	const struct request_row *row = &requests[r->kind];
	uint64_t                  tag = r->tag;
	struct err                e;
	int                       failed;

	fields_set_presets(row->fields, r);
	r->profile = "basic";
	failed     = fields_decode(row->fields, r->source, r, &e);
	r->tag     = tag; /* decoding may have failed before it came to this key */
	if (failed)
		return deny_setting(d, DENIAL_bad_field, NULL, &e);
	if (row->must && !json_object_get(r->source, row->must))
		return deny(d, DENIAL_bad_field, row->must, "missing");
	return 0;
}

int protocol_parse(struct protocol_request *ret, const void *bytes, size_t len, size_t fds, struct denial *d)
{
	struct protocol_request *r = ret;
	struct err               e;

	*r = (struct protocol_request){ .tag = TAG_NONE };
	if (!(r->source = wire_parse(bytes, len, PROTOCOL_MAX, &e)))
		return deny_err(d, DENIAL_bad_message, NULL, &e);
	r->op  = json_string_value(json_object_get(r->source, "op"));
	r->tag = read_tag(r->source);
	if (find_request_kind(r, d) < 0 || decode_request(r, d) < 0 || check_session(r, d) < 0)
		return -1;
	return check_ro(r, d) < 0 || check_main(r, d) < 0 || check_mode(r, d) < 0 || check_resolve(r, d) < 0 || check_fd_count(r, fds, d) < 0 ? -1 : 0;
}

void protocol_request_done(struct protocol_request *r)
{
	json_decref(r->source);
	r->source = NULL;
}

json_t *protocol_hello_request(void)
{
	return json_pack("{ss si}", "op", request_name(REQUEST_hello), "version", PROTOCOL_VERSION);
}

const char *run_mode_name(enum run_mode mode)
{
	return run_modes[mode];
}

const char *request_name(enum request_kind kind)
{
	return requests[kind].name;
}

const char *request_doc(enum request_kind kind)
{
	return requests[kind].doc;
}

const char *request_fds_text(enum request_kind kind)
{
	return fds_texts[requests[kind].fds];
}

const char *request_required_key(enum request_kind kind)
{
	return requests[kind].must;
}

const struct field *request_fields(enum request_kind kind)
{
	return requests[kind].fields;
}
