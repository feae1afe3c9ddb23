#include "summary.h"
#include "tap.h"

static char line[1024];

static const char *printed(const json_t *record, const char *limit)
{
	FILE *f = fmemopen(line, sizeof line, "w");

	summary_print(record, limit, f);
	fclose(f);
	return line;
}

static void check_lines(void)
{
	struct run_result result = RUN_RESULT_NONE;
	struct record     r      = { .result = &result };
	json_t           *j;

	result.reason            = EXIT_timeout_wall;
	result.figures           = (struct run_figures){ .wall_ms = 501.26, .cpu_ms = 3, .setup_ms = 7.4, .memory_peak_bytes = 10 << 20, .pids_peak = 3 };
	result.hit[result.hits++] = (struct run_hit){ LIMIT_pids, 64, 64, 3 };
	j = record_to_json(&r);
	json_object_set_new(j, "truncated", json_true());
	tap_is(printed(j, "--timeout 0.5"),
	       "timeout_wall (--timeout 0.5), wall 501.3 ms, cpu 3.0 ms, memory peak 10.0 MiB, pids peak 3, set-up 7.4 ms; limit hit: pids 64; output truncated\n",
	       "everything that is known is on one line");
	json_decref(j);

	result             = RUN_RESULT_NONE;
	result.wait_status = 3 << 8;
	j                  = record_to_json(&r);
	tap_is(printed(j, ""), "exited 3\n", "what is not known is not there");
	json_decref(j);

	result.reason      = EXIT_signaled;
	result.wait_status = 11;
	j                  = record_to_json(&r);
	tap_is(printed(j, ""), "signaled SIGSEGV\n", "a signal is named");
	tap_ok(summary_exit_status(j) == 139, "its status is 128 and its number");
	json_decref(j);
}

/* brigd is asked by whoever can name a socket: what it says may be anything. */
static void check_strange(void)
{
	json_t *j = json_pack("{ss ss s{ss} s[i{si}] si}", "exit_reason", "bo\x1b[1mom", "signal", "\x1b]0;x\a", "error", "message", "a\nb\x1b",
			      "limits_hit", 1, "name", 5, "exit_code", 7);

	tap_is(printed(j, ""), "bo?[1mom ?]0;x?: a?b?; limit hit:  0; limit hit:  0\n", "control characters do not reach the terminal");
	tap_ok(summary_exit_status(j) == 125, "a reason that does not exist is no success");
	json_decref(j);
	j = json_pack("{ss si}", "exit_reason", "exited", "exit_code", 256);
	tap_ok(summary_exit_status(j) == 125, "nor is a status that no program can have");
	json_decref(j);
	j = json_pack("{ss sn}", "exit_reason", "exited", "exit_code");
	tap_ok(summary_exit_status(j) == 125, "nor is one that is not known");
	json_decref(j);
	j = json_object();
	tap_is(printed(j, ""), "\n", "an empty record is an empty line");
	tap_ok(summary_exit_status(j) == 125, "and no success");
	json_decref(j);
}

static void check_statuses(void)
{
	static const struct {
		enum exit_reason reason;
		int              status;
	} rows[] = {
		{ EXIT_timeout_wall, 124 }, { EXIT_timeout_cpu, 124 }, { EXIT_oom, 137 },  { EXIT_output_limit, 153 },
		{ EXIT_cancelled, 143 },    { EXIT_setup_failed, 125 }, { EXIT_denied, 125 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct run_result result = RUN_RESULT_NONE;
		struct record     r      = { .result = &result };
		json_t           *j;

		result.reason = rows[i].reason;
		j             = record_to_json(&r);
		tap_ok(summary_exit_status(j) == rows[i].status, "%s exits with %d", exit_reason_name(rows[i].reason),
		       rows[i].status);
		json_decref(j);
	}
}

int main(void)
{
	check_lines();
	check_strange();
	check_statuses();
	return tap_done();
}
