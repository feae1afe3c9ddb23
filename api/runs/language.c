#include "language.h"

#include <string.h>

/* clang-format off */
const struct language languages[] = {
	{ "python", { "python3", "py", "py3", "python3.11" }, "python3", "3.11.0", "python3", true, "program.py",
	  { 100, 92, 71, 109, 113 }, "Python (3)" },
	{ "bash", { "sh", "shell" }, "bash", "5.2.0", "bash", false, "main.sh", { 46 }, "Bash (5)" },
	{ 0 },
};
/* clang-format on */

const struct language *language_find(const char *name)
{
	for (const struct language *l = languages; l->name; l++) {
		if (strcmp(l->name, name) == 0)
			return l;
		for (size_t i = 0; i < LANGUAGE_NAMES && l->aliases[i]; i++)
			if (strcmp(l->aliases[i], name) == 0)
				return l;
	}
	return NULL;
}

const struct language *language_find_judge0(int64_t id)
{
	for (const struct language *l = languages; l->name; l++)
		for (size_t i = 0; i < LANGUAGE_IDS && l->judge0[i]; i++)
			if (l->judge0[i] == id)
				return l;
	return NULL;
}

bool language_has_version(const char *version, const char *wanted)
{
	size_t n = strlen(wanted);

	if (n >= 2 && strcmp(wanted + n - 2, ".x") == 0)
		n -= 2;
	if (strcmp(wanted, "*") == 0 || strcmp(wanted, "x") == 0)
		return true;
	return n && strncmp(version, wanted, n) == 0 && (!version[n] || version[n] == '.');
}
