#define _GNU_SOURCE
#include "program_env.h"

#include "net_listeners.h"
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

/* Set to the number of CPUs of the run: more threads only wait for each other (OpenBLAS: +15 ms at start, and memory). The last is for joblib. */
static const char *const thread_counts[] = {
	"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "LOKY_MAX_CPU_COUNT",
};

/*
 * What leads to the program's own servers: each client compares in its own way. The name is the cell's own (cell.c). requests, Go and curl know
 * ranges; urllib wants every address. It wants IPv6 in brackets, with which httpx since 0.24 refuses every URL: its programs
 * reach their own servers at 127.0.0.1.
 */
#define NO_PROXY "localhost,127.0.0.1,127.0.0.2,127.0.0.3,127.0.1.1,127.0.0.0/8,0.0.0.0,::1,brig"

/* Some libraries read the upper case names, some the lower case ones. */
static const char *const network[] = {
	"HTTP_PROXY=" NET_PROXY_URL, "HTTPS_PROXY=" NET_PROXY_URL, "ALL_PROXY=" NET_PROXY_URL, "NO_PROXY=" NO_PROXY,
	"http_proxy=" NET_PROXY_URL, "https_proxy=" NET_PROXY_URL, "all_proxy=" NET_PROXY_URL, "no_proxy=" NO_PROXY,
};

/* For OpenSSL and Python's ssl; requests; curl; git; Node.js. */
static const char *const trust[] = {
	"SSL_CERT_FILE=" NET_TRUST_PATH,  "REQUESTS_CA_BUNDLE=" NET_TRUST_PATH,  "CURL_CA_BUNDLE=" NET_TRUST_PATH,
	"GIT_SSL_CAINFO=" NET_TRUST_PATH, "NODE_EXTRA_CA_CERTS=" NET_TRUST_PATH,
};

static const char *const refused[] = { "LD_*", "PYTHON*", "PATH", "GLIBC_TUNABLES" };
/* clang-format on */

void program_env_done(struct program_env *env)
{
	for (size_t i = 0; env->entry[i]; i++)
		free(env->entry[i]);
	*env = (struct program_env){ 0 };
}

static int check_name(const char *entry, size_t len, struct err *e)
{
	if (len == 0 || (entry[0] >= '0' && entry[0] <= '9'))
		return err_set(e, ERR_DENIED, "a name begins with a letter or '_'");
	for (size_t i = 0; i < len; i++) {
		char c = entry[i];

		if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'))
			return err_set(e, ERR_DENIED, "a name has letters, digits and '_' only");
	}
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		size_t n    = strcspn(refused[i], "*");
		bool   fits = len == n || (len > n && refused[i][n] == '*');

		if (fits && memcmp(refused[i], entry, n) == 0)
			return err_set(e, ERR_DENIED, "refused (%s would change how the interpreter starts)", refused[i]);
	}
	return 0;
}

static int check_entry(const char *entry, struct err *e)
{
	const char *equals = strchr(entry, '=');

	if (!equals)
		return err_set(e, ERR_DENIED, "write NAME=VALUE");
	if (check_name(entry, (size_t)(equals - entry), e) < 0)
		return -1;
	if (text_has_control(equals + 1))
		return err_set(e, ERR_DENIED, "the value has a control character");
	if (!text_is_utf8(entry, strlen(entry)))
		return err_set(e, ERR_DENIED, "the value is not UTF-8");
	return 0;
}

/* Replaces the entry with the same name. Takes ownership of `entry`, also on failure. */
static int env_put(struct program_env *env, char *entry, struct err *e)
{
	size_t i = 0, name = entry ? (size_t)(strchr(entry, '=') - entry) + 1 : 0;

	if (!entry)
		return err_set(e, ERR_LIMIT, "out of memory");
	while (env->entry[i] && strncmp(env->entry[i], entry, name) != 0)
		i++;
	if (i == PROGRAM_ENV_MAX) {
		free(entry);
		return err_set(e, ERR_DENIED, "more than %d variables", PROGRAM_ENV_MAX);
	}
	free(env->entry[i]);
	env->entry[i] = entry;
	return 0;
}

static int env_put_all(struct program_env *env, const char *const *entries, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (env_put(env, strdup(entries[i]), e) < 0)
			return -1;
	return 0;
}

int program_env_init(struct program_env *ret, const struct limits *limits, struct err *e)
{
	uint64_t threads = (limits->cpus + 999) / 1000;
	char    *entry;

	*ret = (struct program_env){ 0 };
	if (env_put_all(ret, base, ARRAY_LEN(base), e) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(thread_counts); i++)
		if (env_put(ret, asprintf(&entry, "%s=%" PRIu64, thread_counts[i], threads) < 0 ? NULL : entry, e) < 0)
			return -1;
	return 0;
}

int program_env_add_network(struct program_env *env, const struct net_policy *policy, bool is_read, struct err *e)
{
	char *entry;

	if (env_put_all(env, network, ARRAY_LEN(network), e) < 0 || (is_read && env_put_all(env, trust, ARRAY_LEN(trust), e) < 0))
		return -1;
	for (uint32_t i = 0; policy && i < policy->secrets; i++)
		if (env_put(env, asprintf(&entry, "%s=brig-secret-%s", policy->secret[i].name, policy->secret[i].name) < 0 ? NULL : entry, e) < 0)
			return -1;
	return 0;
}

int program_env_add(struct program_env *env, const char *entry, struct err *e)
{
	env->added += strlen(entry) + 1;
	if (env->added > PROGRAM_ENV_BYTES)
		return err_set(e, ERR_DENIED, "more than %d bytes in all", PROGRAM_ENV_BYTES);
	return check_entry(entry, e) < 0 ? -1 : env_put(env, strdup(entry), e);
}

int program_env_build(struct program_env *ret, const struct limits *limits, const char *const *added, size_t n, struct err *e)
{
	struct program_env env;
	int                r = program_env_init(&env, limits, e);

	for (size_t i = 0; r == 0 && i < n; i++)
		r = program_env_add(&env, added[i], e);
	if (r < 0)
		program_env_done(&env);
	else
		*ret = env;
	return r;
}
