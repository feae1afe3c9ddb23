/* test_figures.c - what runs have cost, in counts and histograms */
#include "figures.h"
#include "tap.h"

static struct figures f;
static json_t        *told;

/* The reply to a client, of one profile; valid until the next call. */
static const json_t *tell(const char *profile)
{
	json_decref(told);
	told = json_object();
	figures_put_profile_json(&f, profile, told);
	return told;
}

static json_int_t bucket(const char *profile, const char *figure, const char *bound)
{
	return json_integer_value(json_object_get(json_object_get(json_object_get(tell(profile), figure), "buckets"), bound));
}

static double sum(const char *profile, const char *figure)
{
	return json_number_value(json_object_get(json_object_get(tell(profile), figure), "sum"));
}

static json_int_t ended(const char *profile, const char *how, const char *reason)
{
	return json_integer_value(json_object_get(json_object_get(tell(profile), how), reason));
}

static struct run_result result(enum exit_reason reason, bool warm)
{
	struct run_result r = RUN_RESULT_NONE;

	r.reason = reason;
	r.warm   = warm;
	return r;
}

static void check_ends(void)
{
	struct run_result cold = result(EXIT_exited, false), warm = result(EXIT_oom, true);

	figures_add_ended_run(&f, "basic", &cold);
	figures_add_ended_run(&f, "basic", &warm);
	tap_ok(ended("basic", "cold", "exited") == 1 && ended("basic", "warm", "exited") == 0, "a run is counted as it began");
	tap_ok(ended("basic", "warm", "oom") == 1 && ended("basic", "cold", "oom") == 0, "and as it ended");
	tap_ok(ended("strict", "cold", "exited") == 0 && json_object_size(json_object_get(tell("strict"), "cold")) == EXIT_REASONS,
	       "a profile that nothing ran under has a 0 for each reason");
}

static void check_bounds(void)
{
	struct run_result r = result(EXIT_exited, false);

	r.figures.wall_ms           = 1;
	r.figures.cpu_ms            = 300001;
	r.figures.memory_peak_bytes = 1048577;
	figures_add_ended_run(&f, "basic", &r);
	tap_ok(bucket("basic", "wall_seconds", "0.0005") == 0 && bucket("basic", "wall_seconds", "0.001") == 1, "a bound belongs to its bucket");
	tap_ok(bucket("basic", "wall_seconds", "300") == 1 && bucket("basic", "wall_seconds", "+Inf") == 1, "what is below a bound is below those above it");
	tap_ok(bucket("basic", "cpu_seconds", "300") == 0 && bucket("basic", "cpu_seconds", "+Inf") == 1, "what is above all is in the last");
	tap_ok(bucket("basic", "memory_peak_bytes", "1048576") == 0 && bucket("basic", "memory_peak_bytes", "2097152") == 1, "memory is in bytes");
	tap_ok(sum("basic", "wall_seconds") == 0.001 && sum("basic", "memory_peak_bytes") == 1048577, "times are in seconds");
}

static void check_unknown(void)
{
	struct run_result r = result(EXIT_setup_failed, false);

	figures_add_ended_run(&f, "unknown", &r);
	tap_ok(ended("unknown", "cold", "setup_failed") == 1, "a run of which nothing could be measured is counted");
	tap_ok(bucket("unknown", "setup_seconds", "+Inf") == 0 && bucket("unknown", "wall_seconds", "+Inf") == 0 && bucket("unknown", "cpu_seconds", "+Inf") == 0 &&
		       bucket("unknown", "memory_peak_bytes", "+Inf") == 0 && sum("unknown", "cpu_seconds") == 0,
	       "and observed nowhere: what is not known is no 0");
	figures_add_wait(&f, "unknown", 0);
	tap_ok(bucket("unknown", "wait_seconds", "0.0005") == 1, "a wait of 0 is one");
}

static void check_names(void)
{
	struct run_result r = result(EXIT_exited, false);
	char              name[64];

	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "p%d", i);
		figures_add_wait(&f, name, i);
	}
	figures_add_ended_run(&f, "basic", &r);
	tap_ok(sum("p7", "wait_seconds") == 0.007 && sum("p299", "wait_seconds") == 0.299, "each profile has its own");
	tap_ok(ended("basic", "cold", "exited") == 3, "a profile that comes again counts on");
}

int main(void)
{
	figures_init(&f);
	check_ends();
	check_bounds();
	check_unknown();
	check_names();
	figures_done(&f);
	tap_ok(ended("basic", "cold", "exited") == 0, "after the end nothing is left");
	figures_done(&f);
	json_decref(told);
	return tap_done();
}
