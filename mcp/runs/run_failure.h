/* run_failure.h - why something was not done, in words of brigd or brig-mcp */
#pragma once
#include "defs.h"

struct failure {
	char code[24];  /* of denial.def, or "lost", "cancelled"; "": nothing failed */
	char field[80]; /* the key of the request that was wrong */
	char text[600];
};
