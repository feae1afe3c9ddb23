/* run_failure.h - why something was not done, in brigd's words or ours */
#pragma once
#include "defs.h"

struct failure {
	char code[24];  /* of denial.def, or "lost"; "": nothing failed */
	char field[80]; /* the key of the request that it is about */
	char text[600];
};
