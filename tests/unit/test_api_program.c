#include "program.h"
#include "tap.h"

#include <string.h>

struct row {
	const char    *name, *body;
	enum interface by;
	const char    *wrong; /* a part of the error; NULL: it is right */
	uint64_t       wall_ms, cpu_ms, memory_bytes, pids;
};

static const struct row rows[] = {
	{ "seconds of SandboxFusion", "{\"code\":\"1\",\"run_timeout\":1.5,\"memory_limit_MB\":64}", INTERFACE_run_code, NULL, 1500, 0, 64 << 20, 0 },
	{ "-1 is the profile's limit", "{\"code\":\"1\",\"run_timeout\":-1,\"memory_limit_MB\":-1}", INTERFACE_run_code, NULL, 0, 0, 0, 0 },
	{ "null is the profile's limit", "{\"code\":\"1\",\"run_timeout\":null,\"stdin\":null,\"files\":null}", INTERFACE_run_code, NULL, 0, 0, 0, 0 },
	{ "seconds of NeMo", "{\"generated_code\":\"1\",\"timeout\":2}", INTERFACE_nemo, NULL, 2000, 0, 0, 0 },
	{ "milliseconds of Piston", "{\"run_timeout\":3,\"run_cpu_time\":4,\"run_memory_limit\":5}", INTERFACE_piston, NULL, 3, 4, 5, 0 },
	{ "kilobytes of Judge0", "{\"source_code\":\"1\",\"cpu_time_limit\":0.25,\"wall_time_limit\":1,\"memory_limit\":2,\"max_processes_and_or_threads\":3}", INTERFACE_judge0, NULL, 1000, 250, 2048, 3 },
	{ "a number beyond all is a large one", "{\"code\":\"1\",\"run_timeout\":1e300}", INTERFACE_run_code, NULL, 1000000000000000, 0, 0, 0 },
	{ "the least is one", "{\"code\":\"1\",\"run_timeout\":1e-9}", INTERFACE_run_code, NULL, 1, 0, 0, 0 },
	{ "unknown keys are ignored", "{\"code\":\"1\",\"compile_timeout\":10,\"nonesuch\":{}}", INTERFACE_run_code, NULL, 0, 0, 0, 0 },
	{ "a program is needed", "{}", INTERFACE_run_code, "code: missing", 0, 0, 0, 0 },
	{ "a program is a text", "{\"code\":[]}", INTERFACE_run_code, "code: expected a text", 0, 0, 0, 0 },
	{ "a NUL in the program", "{\"code\":\"a\\u0000b\"}", INTERFACE_run_code, "NUL", 0, 0, 0, 0 },
	{ "an unknown language", "{\"code\":\"1\",\"language\":\"cobol\"}", INTERFACE_run_code, "cobol", 0, 0, 0, 0 },
	{ "a limit that is a text", "{\"code\":\"1\",\"run_timeout\":\"5\"}", INTERFACE_run_code, "run_timeout: expected a number", 0, 0, 0, 0 },
	{ "files that are a list", "{\"code\":\"1\",\"files\":[]}", INTERFACE_run_code, "files: expected an object", 0, 0, 0, 0 },
	{ "a file that is no base64", "{\"code\":\"1\",\"files\":{\"a\":\"%\"}}", INTERFACE_run_code, "expected base64", 0, 0, 0, 0 },
	{ "a path that climbs", "{\"code\":\"1\",\"files\":{\"../a\":\"\"}}", INTERFACE_run_code, "files: path", 0, 0, 0, 0 },
	{ "a path of the host", "{\"code\":\"1\",\"files\":{\"/etc/x\":\"\"}}", INTERFACE_run_code, "is not there", 0, 0, 0, 0 },
	{ "one path in two spellings", "{\"code\":\"1\",\"files\":{\"a\":\"\",\"./a\":\"\"}}", INTERFACE_run_code, "comes twice", 0, 0, 0, 0 },
	{ "the program's own name", "{\"code\":\"1\",\"files\":{\"main.py\":\"\"}}", INTERFACE_run_code, "own name", 0, 0, 0, 0 },
	{ "an argument with NUL", "{\"args\":[\"a\\u0000\"]}", INTERFACE_piston, "args", 0, 0, 0, 0 },
	{ "a path to fetch that climbs", "{\"code\":\"1\",\"fetch_files\":[\"../x\"]}", INTERFACE_run_code, "fetch_files", 0, 0, 0, 0 },
};

static bool row_holds(const struct row *r, struct err *e)
{
	json_t        *body = json_loads(r->body, JSON_ALLOW_NUL, NULL);
	scoped_program p    = { 0 };
	int            done = program_read(&p, r->by, body, e);

	json_decref(body);
	if (r->wrong)
		return done < 0 && strstr(e->text, r->wrong);
	return done == 0 && p.wall_ms == r->wall_ms && p.cpu_ms == r->cpu_ms && p.memory_bytes == r->memory_bytes && p.pids == r->pids;
}

static void check_modules(const char *body, bool exec, const char *name)
{
	json_t        *parsed = json_loads(body, 0, NULL);
	scoped_program p      = { 0 };
	struct err     e;

	tap_ok(program_read(&p, INTERFACE_run_code, parsed, &e) == 0 && program_is_exec(&p) == exec, "%s", name);
	json_decref(parsed);
}

int main(void)
{
	struct err e = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		tap_ok(row_holds(&rows[i], &e), "%s", rows[i].name);
	check_modules("{\"code\":\"1\",\"files\":{\"a.txt\":\"\"}}", false, "data beside a program: brig runs it");
	check_modules("{\"code\":\"1\",\"files\":{\"a.py\":\"\"}}", true, "a module beside it: an interpreter that imports it");
	check_modules("{\"code\":\"1\",\"language\":\"bash\"}", true, "another language: its interpreter");
	tap_ok(language_has_version("3.11.2", "3.11") && language_has_version("3.11.2", "3.x") && language_has_version("3.11.2", "*") &&
		       !language_has_version("3.11.2", "3.1") && !language_has_version("3.11.2", "") && !language_has_version("3.11.2", "2"),
	       "what a version of Piston means");
	return tap_done();
}
