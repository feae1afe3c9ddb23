#include "guest_runner.h"
#include "tap.h"

/* What it is told, in one line. */
static void check(const char *name, const char *mode, const struct guest_runner_lists *lists, const char *want)
{
	scoped_guest_runner_args w;
	struct err          e;
	char                line[200];
	size_t              n = 0;

	if (!tap_ok(guest_runner_args_build(&w, mode, lists, &e) == 0, "%s is built", name))
		return;
	for (size_t i = 0; w.arg[i]; i++)
		n += (size_t)snprintf(line + n, sizeof line - n, "%s[%s]", i ? " " : "", w.arg[i]);
	tap_is(line, want, name);
}

int main(void)
{
	json_t *two = json_pack("[ss]", "os", "xml.etree"), *none = json_array();

	check("no list is any, and no call to warn of", "report", &(struct guest_runner_lists){ .main = NULL },
	      "[python3] [-I] [/usr/lib/brig/guest.pyc] [report] [5] [*] [*] [] [--]");
	check("an empty list is none", "check", &(struct guest_runner_lists){ none, none, none, NULL, false }, "[python3] [-I] [/usr/lib/brig/guest.pyc] [check] [5] [] [] [] [--]");
	check("names stand between commas, and the program's place behind the dashes", "check", &(struct guest_runner_lists){ two, two, two, "proj/main.py", false },
	      "[python3] [-I] [/usr/lib/brig/guest.pyc] [check] [5] [os,xml.etree] [os,xml.etree] [os,xml.etree] [--proj/main.py]");
	check("the socket to tools stands behind the pipe of the report", "report", &(struct guest_runner_lists){ .tools = true },
	      "[python3] [-I] [/usr/lib/brig/guest.pyc] [report] [5,4] [*] [*] [] [--]");
	json_decref(two);
	json_decref(none);
	return tap_done();
}
