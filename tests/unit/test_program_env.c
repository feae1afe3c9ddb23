#include "program_env.h"
#include "tap.h"

static const struct {
	const char *name, *entry;
	bool        says;
} rows[] = {
	{ "a plain variable is added", "TOKEN=abc", true },
	{ "an empty value is a value", "EMPTY=", true },
	{ "HOME may be changed", "HOME=/tmp", true },
	{ "a name that only looks like one is added", "PATHS=x", true },
	{ "LD_PRELOAD is refused", "LD_PRELOAD=x", false },
	{ "any LD_ name is refused", "LD_=x", false },
	{ "PYTHONPATH is refused", "PYTHONPATH=x", false },
	{ "PATH is refused", "PATH=/x", false },
	{ "GLIBC_TUNABLES is refused", "GLIBC_TUNABLES=x", false },
	{ "a variable without '=' is refused", "TOKEN", false },
	{ "an empty name is refused", "=x", false },
	{ "a name that begins with a digit is refused", "1A=x", false },
	{ "a name with a dash is refused", "A-B=x", false },
	{ "a newline in a value is refused", "A=b\nc", false },
	{ "an escape in a value is refused", "A=\x1b[0m", false },
	{ "a value that is not UTF-8 is refused", "A=\xff", false },
};

static const char *value_of(const struct program_env *env, const char *name)
{
	for (size_t i = 0; env->entry[i]; i++)
		if (strncmp(env->entry[i], name, strlen(name)) == 0 && env->entry[i][strlen(name)] == '=')
			return env->entry[i] + strlen(name) + 1;
	return NULL;
}

int main(void)
{
	struct limits      limits;
	struct program_env env;
	struct err         e = { 0 };
	const char        *many[PROGRAM_ENV_MAX + 1];
	static char        names[PROGRAM_ENV_MAX + 1][16];

	fields_set_presets(limits_fields, &limits);
	limits.cpus = 1500;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool ok = program_env_build(&env, &limits, &rows[i].entry, 1, &e) == 0;

		if (ok)
			program_env_done(&env);
		tap_ok(ok == rows[i].says && (ok || e.text[0]), "%s", rows[i].name);
	}
	tap_ok(program_env_build(&env, &limits, &rows[2].entry, 1, &e) == 0, "an environment is built");
	tap_is(value_of(&env, "HOME"), "/tmp", "a variable that was there gets the new value, once");
	tap_is(value_of(&env, "OMP_NUM_THREADS"), "2", "one and a half CPUs are two threads");
	tap_is(value_of(&env, "LANG"), "C.UTF-8", "the language is C.UTF-8");
	program_env_done(&env);
	for (size_t i = 0; i < ARRAY_LEN(many); i++) {
		snprintf(names[i], sizeof names[i], "N%zu=x", i);
		many[i] = names[i];
	}
	tap_ok(program_env_build(&env, &limits, many, ARRAY_LEN(many), &e) < 0, "too many variables are refused");
	return tap_done();
}
