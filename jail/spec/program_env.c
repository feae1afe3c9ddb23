#define _GNU_SOURCE
#include "program_env.h"

#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
static const char *const base[] = {
	"PATH=/usr/local/bin:/usr/bin:/bin",
	"HOME=/workspace",
	"LANG=C.UTF-8",
};

/* As many threads as CPUs: more only wait for each other (OpenBLAS: +15 ms a start, and memory). joblib's workers likewise. */
static const char *const thread_counts[] = {
	"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "LOKY_MAX_CPU_COUNT",
};

static const char *const refused[] = { "LD_*", "PYTHON*", "PATH", "GLIBC_TUNABLES" };
/* clang-format on */

void program_env_done(struct program_env *env)
{
	for (size_t i = 0; env->entry[i]; i++)
		free(env->entry[i]);
	*env = (struct program_env){ 0 };
}

static bool matches(const char *rule, const char *name, size_t len)
{
	size_t n = strlen(rule);

	return rule[n - 1] == '*' ? len >= n - 1 && memcmp(rule, name, n - 1) == 0 : len == n && memcmp(rule, name, n) == 0;
}

static int check_name(const char *entry, size_t len, struct err *e)
{
	int shown = (int)(len > 40 ? 40 : len);

	if (len == 0 || (entry[0] >= '0' && entry[0] <= '9'))
		return err_set(e, ERR_DENIED, "--env %.*s: a name begins with a letter or '_'", shown, entry);
	for (size_t i = 0; i < len; i++) {
		char c = entry[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
			return err_set(e, ERR_DENIED, "--env %.*s: a name has letters, digits and '_' only", shown, entry);
	}
	for (size_t i = 0; i < ARRAY_LEN(refused); i++)
		if (matches(refused[i], entry, len))
			return err_set(e, ERR_DENIED, "--env %.*s: refused (%s would change how the interpreter starts)", shown, entry, refused[i]);
	return 0;
}

static int check_entry(const char *entry, struct err *e)
{
	const char *equals = strchr(entry, '=');

	if (!equals)
		return err_set(e, ERR_DENIED, "--env %.40s: write NAME=VALUE", entry);
	if (check_name(entry, (size_t)(equals - entry), e) < 0)
		return -1;
	if (text_has_control(equals + 1))
		return err_set(e, ERR_DENIED, "--env %.*s: the value has a control character", (int)(equals - entry > 40 ? 40 : equals - entry), entry);
	if (!text_is_utf8(entry, strlen(entry)))
		return err_set(e, ERR_DENIED, "--env %.*s: the value is not UTF-8", (int)(equals - entry > 40 ? 40 : equals - entry), entry);
	return 0;
}

/* A name that is there already gets the new value. Takes `entry` over. */
static int put(struct program_env *env, char *entry, struct err *e)
{
	size_t i = 0, name = entry ? (size_t)(strchr(entry, '=') - entry) + 1 : 0;

	if (!entry)
		return err_set(e, ERR_LIMIT, "out of memory");
	while (env->entry[i] && strncmp(env->entry[i], entry, name) != 0)
		i++;
	if (i == PROGRAM_ENV_MAX) {
		free(entry);
		return err_set(e, ERR_DENIED, "--env: more than %d variables", PROGRAM_ENV_MAX);
	}
	free(env->entry[i]);
	env->entry[i] = entry;
	return 0;
}

static int put_thread_counts(struct program_env *env, const struct limits *limits, struct err *e)
{
	uint64_t threads = (limits->cpus + 999) / 1000;
	char    *entry;

	for (size_t i = 0; i < ARRAY_LEN(thread_counts); i++)
		if (asprintf(&entry, "%s=%" PRIu64, thread_counts[i], threads) < 0 || put(env, entry, e) < 0)
			return -1;
	return 0;
}

int program_env_build(struct program_env *ret, const struct limits *limits, const char *const *added, size_t n, struct err *e)
{
	struct program_env env   = { 0 };
	size_t             bytes = 0;

	for (size_t i = 0; i < ARRAY_LEN(base); i++)
		if (put(&env, strdup(base[i]), e) < 0)
			goto failed;
	if (put_thread_counts(&env, limits, e) < 0)
		goto failed;
	for (size_t i = 0; i < n; i++) {
		bytes += strlen(added[i]) + 1;
		if (bytes > PROGRAM_ENV_BYTES) {
			err_set(e, ERR_DENIED, "--env: more than %d bytes in all", PROGRAM_ENV_BYTES);
			goto failed;
		}
		if (check_entry(added[i], e) < 0 || put(&env, strdup(added[i]), e) < 0)
			goto failed;
	}
	*ret = env;
	return 0;
failed:
	program_env_done(&env);
	return -1;
}
