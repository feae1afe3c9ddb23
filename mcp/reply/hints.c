#include "hints.h"

#include "defs.h"
#include "member.h"

#include <stdio.h>
#include <string.h>

#define NO_NETWORK \
	"There is no network in here; trying again does not help. A person can allow hosts, with --net of brig-mcp."
#define NO_INSTALL   "Nothing can be installed from inside; get_sandbox_info lists the packages that are there."
#define NO_SCREEN                                                                                                      \
	"There is no screen in here, and none can be installed: leave the choice of a backend out; figures are shown " \
	"as images."
#define LOCALHOST \
	"localhost is the sandbox itself: only servers that this program has started are there, none of the host."
#define NO_INPUT     "The program reads input and was given none: pass it in the argument stdin."
#define STARTS_FRESH                                                                                                 \
	"If an earlier call defined it: calls without a session start fresh; name the same session in each call to " \
	"keep variables."
#define LESS_MEMORY                                                                                                  \
	"Work on less data at a time, or ask for more memory with the argument memory_limit, in a session with its " \
	"first call."

enum when { ALWAYS, WITHOUT_INPUT, WITHOUT_SESSION };

/* clang-format off */
static const struct row {
	const char *type; /* of the exception; NULL: any */
	const char *part; /* of its message; "": any */
	enum when   when;
	const char *advice;
} rows[] = { /* the first one that fits counts */
	{ "EOFError",               "EOF when reading a line",               WITHOUT_INPUT,   NO_INPUT },
	{ "NameError",              "is not defined",                        WITHOUT_SESSION, STARTS_FRESH },
	{ "MemoryError",            "",                                      ALWAYS,          LESS_MEMORY },
	{ "ModuleNotFoundError",    "No module named 'IPython'",             ALWAYS,          "display() and figures need no import here; IPython is not there, and nothing can be installed from inside." },
	{ "ModuleNotFoundError",    "No module named 'pip'",                 ALWAYS,          NO_INSTALL },
	{ "FileNotFoundError",      "No such file or directory: 'pip",       ALWAYS,          NO_INSTALL },
	{ "FileNotFoundError",      "No such file or directory: 'conda'",    ALWAYS,          NO_INSTALL },
	{ "FileNotFoundError",      "No such file or directory: 'apt",       ALWAYS,          NO_INSTALL },
	{ "FileNotFoundError",      "No such file or directory: 'uv'",       ALWAYS,          NO_INSTALL },
	{ "subprocess.CalledProcessError", "pip",                            ALWAYS,          NO_INSTALL },
	{ "ModuleNotFoundError",    "No module named 'tkinter'",             ALWAYS,          NO_SCREEN },
	{ "ImportError",            "interactive framework",                 ALWAYS,          NO_SCREEN },
	{ "_tkinter.TclError",      "no display",                            ALWAYS,          NO_SCREEN },
	{ "ConnectionRefusedError", "",                                      ALWAYS,          LOCALHOST },
	{ NULL,                     "[Errno 111] Connection refused",        ALWAYS,          LOCALHOST },
	{ NULL,                     "Temporary failure in name resolution",  ALWAYS,          NO_NETWORK },
	{ NULL,                     "Name or service not known",             ALWAYS,          NO_NETWORK },
	{ NULL,                     "No address associated with hostname",   ALWAYS,          NO_NETWORK },
	{ NULL,                     "Network is unreachable",                ALWAYS,          NO_NETWORK },
	{ NULL,                     "No route to host",                      ALWAYS,          NO_NETWORK },
};

/* Messages of libraries that miss another one: what stands before its name. */
static const struct {
	const char *type, *before, *after; /* after: what follows the name; "": anything that cannot be part of it */
	bool        ends;                  /* and nothing follows that */
} missing[] = {
	{ "ModuleNotFoundError", "No module named '",               "'", true },
	{ "ImportError",         "Missing optional dependency '",   "'", false },
	{ "ImportError",         "`Import ",                        "`", false },
	{ "ImportError",         "tried using: '",                  "'", false },
	{ "ImportError",         "Use pip or conda to install the ", "", false },
	{ "ImportError",         "Use pip or conda to install ",    "", false },
	{ "ImportError",         "pip install ",                    "", false },
	{ "ImportError",         "",                                " not found, please install it", true },
	{ "AttributeError",      "accessor requires ",              "", false },
	{ "ValueError",          "requires the ",                   "", false },
};
/* clang-format on */

static bool hint_applies(enum when when, const struct advice_about *about)
{
	switch (when) {
	case WITHOUT_INPUT:
		return !about->has_stdin;
	case WITHOUT_SESSION:
		return about->has_sessions && !about->in_session;
	case ALWAYS:
		break;
	}
	return true;
}

const char *advice_for_exception(const json_t *error, const struct advice_about *about)
{
	const char *type = member_text(error, "type"), *message = member_text(error, "message");

	for (const struct row *r = rows; r < rows + ARRAY_LEN(rows); r++)
		if ((!r->type || strcmp(r->type, type) == 0) && strstr(message, r->part) && hint_applies(r->when, about))
			return r->advice;
	return "";
}

bool advice_is_host_path_error(const json_t *error)
{
	static const char *const types[] = { "FileNotFoundError", "PermissionError", "NotADirectoryError" };
	static const char *const inside[] = { "workspace", "tmp",  "usr", "etc",   "proc", "dev", "sys",
					      "bin",       "sbin", "lib", "lib64", "var",  "run" };
	const char *type = member_text(error, "type"), *path = strstr(member_text(error, "message"), ": '");
	size_t                   n;

	for (size_t i = 0; i < ARRAY_LEN(types) && path; i++)
		if (strcmp(types[i], type) == 0) {
			path += 3;
			n = *path == '/' ? strcspn(path + 1, "/'") : 0;
			for (size_t k = 0; k < ARRAY_LEN(inside) && n; k++)
				n = strlen(inside[k]) == n && strncmp(inside[k], path + 1, n) == 0 ? 0 : n;
			return n || (*path && path[1] == ':') || *path == '~';
		}
	return false;
}

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"

const char *advice_missing_module_name(const json_t *error, char *buf, size_t max)
{
	const char *type = member_text(error, "type"), *message = member_text(error, "message");

	*buf = 0;
	for (size_t i = 0; i < ARRAY_LEN(missing) && !*buf; i++) {
		const char *at = strcmp(missing[i].type, type) == 0 ? strstr(message, missing[i].before) : NULL;
		size_t      n  = at ? strspn(at += strlen(missing[i].before), LETTERS) : 0;

		if (n && n <= max &&
		    (missing[i].ends ? strcmp(at + n, missing[i].after) == 0
				     : strncmp(at + n, missing[i].after, strlen(missing[i].after)) == 0))
			snprintf(buf, max + 1, "%.*s", (int)n, at);
	}
	return buf;
}
