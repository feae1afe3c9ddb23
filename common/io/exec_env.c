#define _GNU_SOURCE
#include "exec_env.h"

#include "defs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the loader, of the C library and of OpenSSL: all names that begin with these. */
static const char *const loads_code[] = { "LD_", "GLIBC_TUNABLES=", "GCONV_PATH=", "LOCPATH=", "OPENSSL_" };

static bool is_code_loading_variable(const char *entry)
{
	for (size_t i = 0; i < ARRAY_LEN(loads_code); i++)
		if (strncmp(entry, loads_code[i], strlen(loads_code[i])) == 0)
			return true;
	return false;
}

char **exec_env_filtered(void)
{
	size_t count = 0, kept = 0;
	char **env;

	while (environ && environ[count])
		count++;
	env = calloc(count + 1, sizeof *env);
	for (size_t i = 0; env && i < count; i++)
		if (!is_code_loading_variable(environ[i]))
			env[kept++] = environ[i];
	return env;
}
