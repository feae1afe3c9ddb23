/* fuzz_environment.c - any words, NUL between them, as --env: ours stays, each name once, nothing that steers the loader */
#include "fuzz.h"
#include "program_env.h"

enum { WORDS_MAX = 128 };

static size_t name_len(const char *entry)
{
	must_about(entry, strchr(entry, '='));
	return strcspn(entry, "=");
}

static void must_be_an_entry(const char *entry)
{
	size_t n = name_len(entry);

	must_about(entry, n > 0 && strspn(entry, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") == n);
	must_about(entry, !begins_with(entry, "LD_") && !begins_with(entry, "PYTHON") && !begins_with(entry, "GLIBC_TUNABLES="));
	must_about(entry, !text_has_control(entry) && text_is_utf8(entry, strlen(entry)));
}

static void must_hold(const struct program_env *env)
{
	size_t n = 0;

	for (; env->entry[n]; n++) {
		must_be_an_entry(env->entry[n]);
		for (size_t i = 0; i < n; i++)
			must_about(env->entry[n], strncmp(env->entry[i], env->entry[n], name_len(env->entry[n]) + 1) != 0);
	}
	must(n <= PROGRAM_ENV_MAX && strcmp(env->entry[0], "PATH=/usr/local/bin:/usr/bin:/bin") == 0);
}

static void must_be_the_same_again(const struct program_env *env, const struct limits *limits)
{
	struct program_env again = { 0 };
	struct err         e     = { 0 };
	size_t             n = 0, bytes = 0;

	for (; env->entry[n]; n++)
		bytes += n ? strlen(env->entry[n]) + 1 : 0;
	if (bytes > PROGRAM_ENV_BYTES) /* ours do not count, but would as words */
		return;
	must_about(e.text, program_env_build(&again, limits, (const char *const *)env->entry + 1, n - 1, &e) == 0); /* all but PATH */
	for (size_t i = 0; i <= n; i++)
		must(env->entry[i] == again.entry[i] || strcmp(env->entry[i], again.entry[i]) == 0);
	program_env_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct limits limits           = { .cpus = 1500 };
	char                      *words[WORDS_MAX] = { NULL };
	struct program_env         env              = { 0 };
	struct err                 e                = { 0 };
	size_t                     n                = 0;

	while (size && n < WORDS_MAX)
		words[n++] = take_text(&data, &size);
	if (program_env_build(&env, &limits, (const char *const *)words, n, &e) < 0) {
		must_say_why(&e);
	} else {
		must_hold(&env);
		must_be_the_same_again(&env, &limits);
	}
	program_env_done(&env);
	for (size_t i = 0; i < n; i++)
		free(words[i]);
	return 0;
}
