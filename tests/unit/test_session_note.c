/* What a call is told of its session: from the record, and from why an earlier one is gone. */
#include "session_note.h"
#include "tap.h"

/* clang-format off */
static const struct { const char *name, *record, *lost; bool stopped; const char *want; } rows[] = {
	{ "a new one",           "{\"session\":{\"state\":\"new\",\"idle_left_ms\":600000}}", "", false, "Session 'work' is new: variables and files are kept for 10 min." },
	{ "one that was kept",   "{\"session\":{\"state\":\"kept\",\"idle_left_ms\":90000}}", "", false, "Session 'work': variables and files are kept for 90 s." },
	{ "less than a second",  "{\"session\":{\"state\":\"kept\",\"idle_left_ms\":1}}", "", false, "Session 'work': variables and files are kept for 1 s." },
	{ "another interpreter", "{\"session\":{\"state\":\"reset\",\"idle_left_ms\":1000}}", "", false,
	  "Session 'work': reset: this call had a new interpreter, without the earlier variables; files are still there." },
	{ "no memory",           "{\"exit_reason\":\"oom\",\"session\":{\"state\":\"lost\",\"idle_left_ms\":1000}}", "", false,
	  "Session 'work': lost: the interpreter ended (out of memory); variables are gone; files are still there." },
	{ "no time",             "{\"exit_reason\":\"timeout_wall\",\"session\":{\"state\":\"lost\",\"idle_left_ms\":1000}}", "", false,
	  "Session 'work': lost: the interpreter ended (out of time); variables are gone; files are still there." },
	{ "a crash",             "{\"exit_reason\":\"signaled\",\"signal\":\"SIGSEGV\",\"exit_code\":139,\"session\":{\"state\":\"lost\",\"idle_left_ms\":1000}}", "", false,
	  "Session 'work': lost: the interpreter ended (killed by SIGSEGV); variables are gone; files are still there." },
	{ "a status that tells of a signal", "{\"exit_reason\":\"exited\",\"signal\":null,\"exit_code\":134,\"session\":{\"state\":\"lost\",\"idle_left_ms\":1000}}", "", false,
	  "Session 'work': lost: the interpreter ended (killed by SIGABRT); variables are gone; files are still there." },
	{ "an exit",             "{\"exit_reason\":\"exited\",\"exit_code\":3,\"session\":{\"state\":\"lost\",\"idle_left_ms\":1000}}", "", false,
	  "Session 'work': lost: the interpreter ended (exit code 3); variables are gone; files are still there." },
	{ "one that its client cancelled", "{\"exit_reason\":\"cancelled\",\"session\":{\"state\":\"lost\",\"idle_left_ms\":1000}}", "", true,
	  "Session 'work': lost: the interpreter ended (it was cancelled); variables are gone; files are still there." },
	{ "one that went with all of it", "{\"exit_reason\":\"cancelled\",\"session\":{\"state\":\"lost\",\"idle_left_ms\":1000}}", "", false,
	  "Session 'work': lost: the whole session has ended, with its variables and files. The next call makes a new one." },
	{ "a new one after one that is gone", "{\"session\":{\"state\":\"new\",\"idle_left_ms\":600000}}", "it was idle for 600 s", false,
	  "Session 'work': the earlier one is lost, with its variables and files: it was idle for 600 s. This one is new, and is kept for 10 min." },
	{ "a refusal after one that is gone", "{}", "it was idle for 600 s", false, "Session 'work': the earlier one is lost, with its variables and files: it was idle for 600 s." },
	{ "a record of an older brigd", "{\"session\":null}", "", false, "" },
};
/* clang-format on */

int main(void)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct outcome o      = { .session = "work", .record = json_loads(rows[i].record, 0, NULL) };
		const char    *reason = json_string_value(json_object_get(o.record, "exit_reason"));

		snprintf(o.exit_reason, sizeof o.exit_reason, "%s", reason ? reason : "exited");
		session_note_fill(&o, rows[i].lost, rows[i].stopped);
		tap_is(o.session_note, rows[i].want, rows[i].name);
		outcome_done(&o);
	}
	return tap_done();
}
