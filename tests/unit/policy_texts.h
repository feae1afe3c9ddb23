/* policy_texts.h - policies for tests: from memory, or from the profiles of the source tree */
#pragma once
#include "call_number.h"
#include "policy.h"

#include <string.h>

struct policy_text {
	const char *name, *text;
};

/* context: rows that end with a NULL name. */
static inline int policy_text_read(void *context, const char *name, char **text, size_t *len, struct err *e)
{
	for (const struct policy_text *row = context; row->name; row++)
		if (strcmp(row->name, name) == 0) {
			*text = strdup(row->text);
			*len  = strlen(row->text);
			return 0;
		}
	return err_set(e, ERR_MISSING, "no policy %s.policy", name);
}
