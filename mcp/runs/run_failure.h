/* run_failure.h - why something was not done, in words of brigd or brig-mcp */
#pragma once
#include "defs.h"

#include <stdio.h>

struct failure {
	char code[24];  /* of denial.def, or "lost", "cancelled"; "": nothing failed */
	char field[80]; /* the key of the request that was wrong */
	char text[600];
};

/* field: NULL or "" if no key was wrong. None of the texts may be in f. */
static inline void failure_set(struct failure *f, const char *code, const char *field, const char *text)
{
	snprintf(f->code, sizeof f->code, "%s", code);
	snprintf(f->field, sizeof f->field, "%s", field ? field : "");
	snprintf(f->text, sizeof f->text, "%s", text);
}
